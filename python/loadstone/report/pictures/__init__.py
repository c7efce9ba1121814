"""Charts as specifications, and how a specification becomes a picture."""
