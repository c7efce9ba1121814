"""Labelled runs: lies staged with real parts, and honest runs beside them."""
