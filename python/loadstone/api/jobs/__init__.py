"""Jobs prepared: what is to run is read, changed and resolved; nothing runs here."""
