"""What the samples of a run say: totals, series and distributions, each with its error.

Reads bundles only. Knows no screen and no file format.
"""
