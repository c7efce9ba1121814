"""May this be written: what stands on a target, who uses it, who made it, and what a run leaves there."""
