"""Fuzzing of every reader: `python -m tests.fuzz.NAME --minutes 10 --seed 1`."""
