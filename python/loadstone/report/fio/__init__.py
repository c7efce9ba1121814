"""What fio writes: JSON, human and terse output, and log files."""
