"""What may be set on this machine for a measurement, and must be put back."""
