"""The text of `docs/vdbench-keywords.md`, from the tables.

Knows only how the tables look on a page. A test keeps the file fresh.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone.formats.vdbench import filesystem, general, rundef, storage, workload

if TYPE_CHECKING:
    from loadstone.formats.vdbench.keyword import Keyword

_HEAD: Final = """# Every keyword of vdbench, and what Loadstone does with it

Written by `make docs` from the tables the reader uses; a test keeps it fresh. A keyword may be
abbreviated to two letters and more, as in vdbench: the first row that fits counts. Those marked
*exact* must be written out.

- **honoured**: done, with vdbench's meaning; [vdbench.md](vdbench.md) says how.
- **harmless**: accepted; it changes nothing here, and the run says so.
- **refused**: an error that names file, line and keyword.

A keyword that is not in these tables is an error with the nearest valid name, or with the section it
belongs to.

"""
_VERDICTS: Final = ("honoured", "harmless", "refused")
_TABLES: Final = (
    ("General parameters", general.GENERAL),
    ("Hosts: `hd=`", general.HOST),
    ("Storage: `sd=`", storage.SD),
    ("Workloads: `wd=`", workload.WD),
    ("Runs: `rd=`", rundef.RD),
    ("File systems: `fsd=`", filesystem.FSD),
    ("File system workloads: `fwd=`", filesystem.FWD),
)


def page() -> str:
    """Return the document."""
    counts = Counter(_verdict(row) for _, table in _TABLES for row in table.rows)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _VERDICTS)
    lines = [_HEAD, f"{sum(counts.values())} keywords: {summary}.\n"]
    for title, table in _TABLES:
        lines.append(f"\n## {title}\n\n| keyword | verdict | remark |\n|---|---|---|\n")
        lines += [_row(row) for row in table.rows]
    return "".join(lines)


def _verdict(row: Keyword) -> str:
    return "refused" if row.refused else "harmless" if row.harmless else "honoured"


def _row(row: Keyword) -> str:
    name = f"`{row.name}`" + (" *exact*" if row.exact else "")
    loop = rundef.loop_of(row)
    remark = row.refused or row.harmless or ("" if loop is None else f"loop over {loop}")
    return f"| {name} | {_verdict(row)} | {remark.replace('|', chr(92) + '|')} |\n"
