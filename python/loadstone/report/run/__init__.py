"""One run: its page, its lines on a terminal, its path as a picture."""
