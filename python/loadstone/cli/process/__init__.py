"""The program as a process: who starts it, and where its output goes."""
