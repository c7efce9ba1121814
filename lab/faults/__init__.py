"""A block device that damages data in known ways, and who finds it."""
