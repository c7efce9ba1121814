"""Settings of the machine: set, put back, also after a crash."""
