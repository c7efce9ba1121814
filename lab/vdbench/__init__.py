"""Loadstone beside a vdbench that somebody has installed: lists, files, columns, mixes."""
