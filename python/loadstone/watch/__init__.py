"""The storage's own side: hosts that are watched while a run loads them."""
