"""Tables of text that fit a terminal by leaving columns out, never by cutting a number.

Knows widths. What is in the columns, and which of them can be spared, the caller says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from loadstone.printable import line

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

GAP = "  "


def fitted(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    names: int = 1,
    spare: Sequence[str] = (),
    bold: Collection[int] = (),
) -> Text:
    """Return a table: the first `names` columns are words, on the left; the others end alike.

    Columns named in `spare` go in that order until the rest fits; where nothing is left to
    spare the lines are longer than the terminal. `bold`: indexes of rows.
    """
    shown = list(range(len(headings)))
    dropped = list(spare)
    while True:
        # As they go out: what is escaped takes more room.
        every = [[line(row[at]) if at < len(row) else "" for at in shown] for row in (headings, *rows)]
        widths = [max(cell_len(row[at]) for row in every) for at in range(len(shown))]
        if not dropped or sum(widths) + len(GAP) * (len(shown) - 1) <= width:
            break
        name = dropped.pop(0)
        shown = [at for at in shown if headings[at] != name]
    lines = [
        Text(_joined(row, widths, names), "bold" if index == 0 or index - 1 in bold else "")
        for index, row in enumerate(every)
    ]
    return Text("\n").join(lines)


def _joined(line: Sequence[str], widths: Sequence[int], names: int) -> str:
    pads = [" " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)]
    cells = zip(line, pads, strict=True)
    return GAP.join(cell + pad if at < names else pad + cell for at, (cell, pad) in enumerate(cells)).rstrip()
