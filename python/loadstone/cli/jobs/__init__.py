"""From the command line's words to what is run: job files of every language, and named workloads."""
