"""An error of Loadstone as fio would print it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from loadstone.errors import LoadstoneError, told
from loadstone.printable import message

if TYPE_CHECKING:
    from collections.abc import Mapping

FAILED: Final = 1
"""fio's exit code for it."""


def say(error: LoadstoneError, names: Mapping[str, str] | None = None) -> None:
    """Print an error to standard error as fio does: `fio: ...`, the remedy on the next line.

    `names`: of files as the jobs have them, by their paths.
    """
    for one in told(error):
        text = str(one)
        if names:
            from loadstone.cli.fio.file_names import as_given

            text = as_given(text, names)
        sys.stderr.write(message(f"fio: {text}") + "\n")
        if one.hint:
            sys.stderr.write(message(one.hint) + "\n")
    sys.stderr.flush()
