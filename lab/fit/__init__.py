"""The fit of how evidence is combined, on situations whose truth is known."""
