"""The blocks an article is made of: paragraphs, facts, verdicts, tables, figures, what was typed.

Knows what each block says. Does not know how one looks on a screen, on paper or as Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from loadstone.report.pictures import chart_images

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.pictures.charts import Spec

ParagraphStyle = Literal["plain", "answer", "soft", "doubt"]
CellKind = Literal["", "base", "better", "worse", "same", "unrepeated", "unknown", "none"]
FEW_ROWS: Final = 16
"""Of more a phone has no list but the table, which can be moved sideways."""
NAMING: Final = ("pattern", "run", "load")
"""Headings of names, which say what they are even where they begin with a number."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """What stands in one place of a table."""

    text: str
    kind: CellKind = ""
    """What its colour says."""
    struck: bool = False
    """Nothing may rest on it."""
    strong: bool = False
    below: str = ""
    """What stands below it, in small letters and a line or more: a change and its interval, single values."""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows."""

    text: str
    block: ClassVar[str] = "heading"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or several."""

    text: str
    style: ParagraphStyle = "plain"
    block: ClassVar[str] = "paragraph"


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences that stand by themselves."""

    items: Sequence[str]
    block: ClassVar[str] = "bullets"


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    pairs: Sequence[tuple[str, str]]
    block: ClassVar[str] = "facts"


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """What something is worth: of what, which verdict, how that is told, and why."""

    name: str
    kind: str
    told: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts, the worst first."""

    lines: Sequence[VerdictLine]
    block: ClassVar[str] = "verdicts"


@dataclass(frozen=True, slots=True)
class ArticleTable:
    """Headings and rows. A row of one cell is a heading of the rows below it."""

    headings: Sequence[str]
    rows: Sequence[Sequence[TableCell | str]]
    names: int = 1
    """So many columns at the left are words."""
    title: str = ""
    matrix: bool = False
    """It is the answer: as wide as the page."""
    block: ClassVar[str] = "table"

    @property
    def is_list_on_a_phone(self) -> bool:
        """Whether its columns are too many for a phone, and its rows few enough to be lists there."""
        return not self.matrix and len(self.headings) > 4 and len(self.rows) <= FEW_ROWS

    @property
    def numbers_of(self) -> str:
        """What the numbers at the left are of, a factor: a phone has no headings that would say it."""
        return "" if self.headings[0] in NAMING else self.headings[0]

    @property
    def cells(self) -> list[list[TableCell]]:
        """The rows, each place as a cell."""
        return [[one if isinstance(one, TableCell) else TableCell(one) for one in row] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: what it shows, and its specification; it is drawn when somebody looks."""

    title: str
    spec: Spec
    narrow: Spec | None = None
    """The same for a phone, where it is another one."""

    @property
    def svg(self) -> str:
        """Its drawing."""
        return chart_images.svg(self.spec)

    @property
    def untitled_svg(self) -> str:
        """Its drawing below a heading that says what it shows: with its subtitle alone, where it has one."""
        title = self.spec.get("title")
        subtitle = title.get("subtitle") if isinstance(title, dict) else None
        rest = {name: part for name, part in self.spec.items() if name != "title"}
        return chart_images.svg(rest | ({"title": subtitle} if subtitle else {}))

    @property
    def narrow_svg(self) -> str:
        """Its drawing for a phone; empty where it is the same."""
        return "" if self.narrow is None else chart_images.svg(self.narrow)


def drawing(spec: Spec, narrow: Spec | None = None) -> Drawing:
    """Return a chart with its own title."""
    title = spec.get("title", "")
    title_text = str(title if isinstance(title, str) else title["text"])
    return Drawing(title_text, spec, None if narrow == spec else narrow)


@dataclass(frozen=True, slots=True)
class Drawings:
    """Charts beside each other, so many in a row where there is room."""

    figures: Sequence[Drawing]
    columns: int = 2
    block: ClassVar[str] = "figures"


@dataclass(frozen=True, slots=True)
class Diagram:
    """A drawing below a heading, that a page has as HTML, paper as charts, and Markdown as words."""

    html: str
    figures: Sequence[Drawing] = ()
    pairs: Sequence[tuple[str, str]] = ()
    """Each part, and what is said of it."""
    block: ClassVar[str] = "diagram"


@dataclass(frozen=True, slots=True)
class Typed:
    """Text as it was typed or given: a command, a file."""

    text: str
    title: str = ""
    block: ClassVar[str] = "typed"


Block = Heading | Paragraph | Bullets | Facts | Verdicts | ArticleTable | Drawings | Diagram | Typed


@dataclass(frozen=True, slots=True)
class Article:
    """All of it. `kicker` says what kind of thing it is, `status` how the work ended."""

    kicker: str
    title: str
    blocks: Sequence[Block] = field(default_factory=list)
    status: str = ""
    footer: str = ""
