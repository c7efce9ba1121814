"""A comparison for people and for programs: terminal, Markdown, pages, pictures, JSON."""
