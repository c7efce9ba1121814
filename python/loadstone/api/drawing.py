"""The renderer of charts, begun before there are any: it takes a second, in which their numbers are read.

Knows which results have a page that is drawn beside this process. Imports nothing that takes long.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from loadstone import file_kind
from loadstone.bundle import layout
from loadstone.report.pictures.drawer import started_early

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path


def early(*, wanted: bool) -> AbstractContextManager[None]:
    """Begin, where a page is wanted, for the next page that is written before the context ends."""
    return started_early() if wanted else nullcontext()


def early_of_run(result: Path, outputs: Iterable[Path]) -> AbstractContextManager[None]:
    """Begin for the page of a run; nothing for other results, which are drawn in this process."""
    return early(wanted=is_page(outputs) and file_kind.is_file(result / layout.MANIFEST))


def is_page(outputs: Iterable[Path]) -> bool:
    """Tell whether one of some files is a page by its ending."""
    return any(path.suffix == ".html" for path in outputs)
