"""What may lie behind a number, and how probable each of it is after what was tried.

Pure: values in, values out. Knows no bundle, no engine and no rule of the audit.
"""
