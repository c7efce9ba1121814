"""The verdict: what a number is, what limited it, with the evidence.

Reads Cases, which come from bundles and from other tools' results alike.
"""
