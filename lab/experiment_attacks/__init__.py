"""Experiments as people get them wrong."""
