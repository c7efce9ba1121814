"""Articles: what a page, a PDF and a Markdown file say, as blocks that each of the three can write."""
