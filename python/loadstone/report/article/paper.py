"""An article as PDF on A4: text that can be searched, tables whose heads repeat, charts, page numbers.

Knows what the typesetter is given: the blocks as JSON, and the layout in `article.typ`. Nothing of
an article is ever the typesetter's own language.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import resources
from typing import TYPE_CHECKING, Any

from loadstone import printable, units
from loadstone.errors import RunError
from loadstone.messages import make_error, say
from loadstone.report.article.elements import ArticleTable, Diagram, Drawings
from loadstone.version import __version__

if TYPE_CHECKING:
    from loadstone.report.article.elements import Article, Block


def pdf(article: Article) -> bytes:
    """Return the PDF. Raises `RunError` where the typesetter, an extra, is not installed."""
    try:
        import typst
    except ImportError as error:
        raise make_error(RunError, "report.files.no_typesetter") from error

    layout = (resources.files("loadstone.report") / "article" / "article.typ").read_bytes()
    content = {
        "kicker": article.kicker,
        "title": article.title,
        "status": article.status,
        "footer": say("report.page.made_by_after", before=article.footer, version=__version__).lstrip(),
        "blocks": [_block(one) for one in article.blocks],
    }
    return bytes(
        typst.compile(layout, format="pdf", sys_inputs={"article": json.dumps(_printable_parts(content))})
    )


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Diagram | Drawings):
        below_heading = isinstance(block, Diagram)
        drawn = [
            {"title": one.title, "svg": one.untitled_svg if below_heading else one.svg}
            for one in block.figures
        ]
        columns = block.columns if isinstance(block, Drawings) else 1
        return {"block": Drawings.block, "columns": columns, "figures": drawn}
    if isinstance(block, ArticleTable):
        rows = [[asdict(one) for one in row] for row in block.cells]
        return {
            "block": block.block,
            "headings": list(block.headings),
            "rows": rows,
            "names": block.names,
            "title": block.title,
            "matrix": block.matrix,
        }
    return {"block": block.block, **asdict(block)}


def _printable_parts(value: Any) -> Any:
    if isinstance(value, str):
        return printable.printable(value).replace(units.THIN, " ")
    if isinstance(value, dict):
        return {key: one if key == "svg" else _printable_parts(one) for key, one in value.items()}
    return [_printable_parts(one) for one in value] if isinstance(value, list | tuple) else value
