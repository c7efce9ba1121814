"""Studies prepared and run: lists, repeats, sweeps, curves, and each of them again."""
