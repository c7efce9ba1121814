"""From what was asked to what will run."""
