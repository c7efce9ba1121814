"""Results of other tools, and published figures, as Cases."""
