"""Controlled experiments: factors, their order, what is set for each run and put back."""
