"""Runs on hosts that are network namespaces of this machine, and what goes wrong with them."""
