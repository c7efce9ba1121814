"""An experiment for people and for programs: terminal, Markdown, page, PDF, JSON."""
