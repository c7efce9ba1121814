"""Runs that belong together: repeats, sweeps, curves, rounds, each from the figures of its runs."""
