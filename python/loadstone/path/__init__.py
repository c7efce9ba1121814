"""The data path from a file to the medium, as the kernel tells it.

Knows /sys and /proc. Judges nothing: whether something is safe or slow is said elsewhere.
"""
