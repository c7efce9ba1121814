"""`loadstone fio`: fio's own command line, for who asks for it by way of the list of verbs."""

from __future__ import annotations


def fio(*arguments: str) -> int:
    """Take fio's command line and write what fio writes; every word after `fio` is fio's."""
    from loadstone.cli.fio.program import main

    return main(list(arguments))
