"""What an experiment's factors do to its metrics, with intervals: statistics of a table of runs."""
