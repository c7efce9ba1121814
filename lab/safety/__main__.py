"""`make safety`: try to have everything overwritten, and write docs/safety.md.

Knows the page. Ends with 1 when anything happened that should not.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lab.safety import draws, trials
from lab.safety.page import HEAD, TEXT

import loadstone
from lab import parts

if TYPE_CHECKING:
    from lab.safety.trial import Row
    from lab.safety.trials import Case

AT_ONCE = 4
DRAWS = 140
"""Of each kind of content."""
CASES: list[Case] = []
PAGE = Path(__file__).resolve().parents[2] / "docs" / "safety.md"


def _tried(number: int) -> list[Row]:
    """Try one case of the list, in a process of the pool's."""
    case = CASES[number]
    rows = []
    for row in trials.tried(case):
        sys.stderr.write(row.line())
        rows.append(row)
    return rows


def main() -> int:
    """Try all, or the cases whose names have a word in them."""
    why = parts.missing()
    if why is not None:
        sys.stderr.write(f"nothing can be staged here: {why}\n")
        return 2
    for module in pkgutil.walk_packages(loadstone.__path__, "loadstone."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # Once, for all that are forked.
    CASES[:] = [
        case
        for case in trials.cases()
        if not sys.argv[1:] or any(word in f"{case.target} {case.holds}" for word in sys.argv[1:])
    ]
    with ProcessPoolExecutor(AT_ONCE, multiprocessing.get_context("fork")) as pool:
        rows = [row for some in pool.map(_tried, range(len(CASES))) for row in some]
    wrong = sum(not row.right for row in rows)
    if sys.argv[1:]:
        sys.stderr.write(f"{len(rows)} trials, {wrong} wrong\n")
        return 1 if wrong else 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        kinds, layouts = draws.tried(Path(folder), DRAWS)
    beyond = sum(not tally.right for tally in (*kinds.values(), *layouts.values()))
    table = draws.table(kinds, layouts)
    PAGE.write_text(
        TEXT + table + HEAD.format(rows=len(rows), wrong=wrong) + "".join(row.line() for row in rows)
    )
    sys.stderr.write(f"{len(rows)} trials, {wrong} wrong; {beyond} kinds missed more often than stated\n")
    return 1 if wrong or beyond else 0


if __name__ == "__main__":
    sys.exit(main())
