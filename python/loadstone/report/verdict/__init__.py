"""A verdict and an audit in words, tables and charts."""
