"""Results as vdbench writes them: the files and lines that parsers of its output read."""
