"""Probes tried on storage whose truth is known, drawn from seeds."""
