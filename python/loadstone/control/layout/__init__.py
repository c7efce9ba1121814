"""Layouts: arrays, volumes and file systems built on devices for a while, and taken down again."""
