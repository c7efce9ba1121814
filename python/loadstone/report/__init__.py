"""Results for people and other programs: pages, charts, tables, exports.

Reads what the analysis says and never a sample itself, except to pass it on.
"""
