"""One directory is one run: its files, how they are written and how they are read.

Knows files and their state. Computes nothing from what they hold.
"""
