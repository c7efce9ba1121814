"""What `import loadstone` offers: runs, results and comparisons, as Python objects and Polars frames.

Knows how the rooms below are put together for one call. Prints nothing and asks nobody.
"""
