"""An article as Markdown, for a ticket or a text of one's own.

Knows how each block is written. Charts are left out: Markdown has no place for them in one file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from loadstone import printable, units
from loadstone.report.article.elements import (
    ArticleTable,
    Bullets,
    Diagram,
    Facts,
    Heading,
    Paragraph,
    TableCell,
    Typed,
    Verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.report.article.elements import Article, Block, VerdictLine


def markdown(article: Article) -> str:
    """Return the article."""
    status = f" ({article.status})" if article.status else ""
    parts = [f"# {_text(article.title)}", f"{_text(article.kicker)}{status}"]
    parts += [text for at, block in enumerate(article.blocks) if (text := _block(block, _next(article, at)))]
    parts += [_text(article.footer)] if article.footer else []
    return "\n\n".join(parts).replace(units.THIN, " ") + "\n"


def _next(article: Article, at: int) -> Block | None:
    """Return what follows a block and can be written; a heading over charts alone says nothing."""
    for one in article.blocks[at + 1 :]:
        if isinstance(one, Heading):
            return None
        if _block(one, one):
            return one
    return None


def _block(block: Block, following: Block | None) -> str:
    if isinstance(block, Heading):
        return f"## {_text(block.text)}" if following is not None else ""
    write = _WRITERS.get(block.block)
    return "" if write is None else write(block)


def _paragraph(block: Paragraph) -> str:
    text = _text(block.text)
    return f"**{text}**" if block.style in ("answer", "doubt") else text


def _bullets(block: Bullets) -> str:
    return "\n".join(f"- {_text(one)}" for one in block.items)


def _facts(block: Facts | Diagram) -> str:
    return "\n".join(f"- {_text(name)}{f': {_text(value)}' if value else ''}" for name, value in block.pairs)


def _verdicts(block: Verdicts) -> str:
    return "\n".join(f"- **{_text(one.name)}**: {_text(_verdict_text(one))}" for one in block.lines)


def _verdict_text(line: VerdictLine) -> str:
    """Return what is told and why, as sentences: what is told may be one of its own."""
    return f"{line.told.removesuffix('.')}. {line.why}" if line.why else line.told


def _table(table: ArticleTable) -> str:
    rule = ["---" if at < table.names else "---:" for at in range(len(table.headings))]
    lines = [_line([_text(one) for one in table.headings]), _line(rule)]
    for row in table.cells:
        spans = len(row) == 1 and len(table.headings) > 1
        whole = [replace(row[0], strong=True), *[TableCell("")] * (len(table.headings) - 1)] if spans else row
        lines.append(_line([_cell(one) for one in whole]))
    title = f"**{_text(table.title)}**\n\n" if table.title else ""
    return title + "\n".join(lines)


def _cell(cell: TableCell) -> str:
    text = _text(cell.text)
    text = f"~~{text}~~" if cell.struck and text else text
    text = f"**{text}**" if cell.strong and text else text
    if cell.below:
        strong = "**" if cell.kind in ("better", "worse") else ""
        below = ", ".join(cell.below.splitlines())
        text += f" ({strong}{_text(below)}{strong})"
    return text


def _typed(block: Typed) -> str:
    title = f"{_text(block.title)}\n\n" if block.title else ""
    return f"{title}{printable.fenced(block.text)}"


_WRITERS: Final[dict[str, Callable[[Any], str]]] = {
    Paragraph.block: _paragraph,
    Bullets.block: _bullets,
    Facts.block: _facts,
    Diagram.block: _facts,
    Verdicts.block: _verdicts,
    ArticleTable.block: _table,
    Typed.block: _typed,
}


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    return printable.markdown(text)
