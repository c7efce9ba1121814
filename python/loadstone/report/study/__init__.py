"""Several runs that belong together: their page, their lines on a terminal, their charts."""
