"""The text of `docs/fio-options.md`, from the table.

Knows only how the table looks on a page. A test keeps the file fresh.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from loadstone.formats.fio.table import GROUPS, OPTIONS

if TYPE_CHECKING:
    from loadstone.formats.fio.option import Option

_HEAD = """# Every option of fio, and what Loadstone does with it

Written by `make docs` from the table the reader uses; a test
keeps it fresh. It has every option of fio 3.33 with all its engines, and some that came later.

- **honoured**: done, with fio's meaning.
- **harmless**: accepted; it changes nothing here, and the run says so.
- **refused**: an error that names file, line and option. Values that ask for nothing (such
  as `verify=0`) are accepted.

An option that is not in this table is an error with the nearest valid name.

"""


def page() -> str:
    """Return the document."""
    counts = Counter(option.verdict for option in OPTIONS)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("honoured", "harmless", "refused"))
    lines = [_HEAD, f"{len(OPTIONS)} options: {summary}.\n"]
    for title, options in GROUPS.items():
        lines.append(f"\n## {title}\n\n| option | verdict | remark |\n|---|---|---|\n")
        lines += [_row(option) for option in options]
    return "".join(lines)


def _row(option: Option) -> str:
    names = ", ".join(f"`{name}`" for name in (option.name, *option.aliases))
    engine = f"Engine {option.engine}. " if option.engine else ""
    accepted = f" Accepted: {', '.join(f'`{value}`' for value in option.off)}." if option.off else ""
    remark = (engine + option.why + accepted).replace("|", "\\|")
    return f"| {names} | {option.verdict} | {remark} |\n"
