"""The report of one run as an article, for paper and for Markdown: what its page says, in blocks.

Knows which parts of the page go on paper and in which order. Computes nothing.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final

from loadstone import notes, units
from loadstone.report.article.blocks import (
    Article,
    ArticleTable,
    Bullets,
    Drawings,
    Facts,
    Heading,
    Paragraph,
    TableCell,
    Typed,
    VerdictLine,
    Verdicts,
    drawing,
)
from loadstone.report.pictures import charts
from loadstone.report.run import answer, data_sheet, hosts, page, path_chart
from loadstone.report.run.sections import SECTIONS
from loadstone.report.run.summary_text import monitors
from loadstone.report.verdict import words as verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.report.article.blocks import Block
    from loadstone.report.pictures.charts import Spec
    from loadstone.report.run.answer import PhaseAnswer, RunAnswer
    from loadstone.verdict import Audited

RESULT: Final = (
    "job", "op", "IOPS", "bandwidth", "latency mean", "p50", "p99", "p99.9", "max", "errors",
)  # fmt: skip
RATES: Final = (
    "job",
    "op",
    "spacing",
    "asked",
    "achieved",
    "late p50",
    "late p99",
    "late p99.9",
    "late max",
    "",
)


def article(made: Summary, audited: Audited | None = None) -> Article:
    """Return what the report says of a run."""
    bundle = made.bundle
    found = answer.answer(made, audited)
    blocks: list[Block] = [Paragraph(bundle.doubt, "doubt")] if bundle.doubt else []
    blocks += _answer(found)
    if bundle.status != "complete":
        blocks.append(Paragraph(page.STATUS[bundle.status]))
    blocks.append(Facts(page.facts(made)))
    blocks += _drawn([page.rate_over_time(made)], 1)
    blocks += _result(made)
    blocks += _findings(audited) if audited is not None else []
    if made.problems:
        blocks += [Heading("What went wrong"), Bullets([problem.message for problem in made.problems])]
    limited_by = audited.verdict.limited_by if audited else None
    paths = _drawn(path_chart.of_hosts(hosts.paths(made), limited_by), 1)
    blocks += [Heading("Data path"), *paths] if paths else []
    blocks += _charts(made)
    blocks += [block for section in SECTIONS for block in section(made)]
    watched = monitors(made.tool)
    if said := [*([watched] if watched else []), *(note.text for note, _ in notes.once(made.notes))]:
        blocks += [Heading("Notes"), Bullets(said)]
    blocks += _asked(made)
    return Article(
        kicker="Loadstone report",
        title=page.title(made),
        blocks=blocks,
        status=bundle.status,
        footer="Everything here can be computed again from the run's bundle.",
    )


def _answer(found: RunAnswer) -> list[Block]:
    if not found.phases:
        return [Paragraph(page.NOTHING, "answer")]
    lines = [_phase(one, several=len(found.phases) > 1) for one in found.phases]
    blocks: list[Block] = (
        [Paragraph(line, "answer") for line in lines[:1]] if len(lines) == 1 else [Bullets(lines)]
    )
    if found.believe is not None:
        blocks.append(Verdicts([VerdictLine(found.believe, found.kind or "", found.why)]))
    return blocks


def _phase(one: PhaseAnswer, *, several: bool) -> str:
    name = f"{one.name}: " if several else ""
    worth = [one.believe] if several and one.believe is not None else []
    return f"{name}{' · '.join([f'{one.number}{units.THIN}{one.unit}', *one.details, *worth])}"


def _result(made: Summary) -> list[Block]:
    tables = [("Result", "job", page.headline(made))]
    if len(made.totals("job")) > page.MAX_HEADLINE:
        tables.append(("Each job", "job", page.table(made.totals("job"), made)))
    if len(made.totals("target")) > 1:
        tables.append(("Each target", "target", page.result_rows(answer.by_phase(made, "target"))))
    if made.totals("host"):
        tables.append(("Each host", "host", page.result_rows(answer.by_phase(made, "host"))))
    blocks: list[Block] = []
    for title, of, found in tables:
        rows: list[list[TableCell | str]] = [
            [TableCell(name, strong=name == "total"), op, *cells] for name, op, cells, _ in found
        ]
        if rows:
            blocks += [Heading(title), ArticleTable([of, *RESULT[1:]], rows, names=2)]
    asked = [[job, op, *cells, "held" if held else "NOT HELD"] for job, op, cells, held in page.rates(made)]
    blocks += [Heading("Rates"), ArticleTable(RATES, asked, names=2)] if asked else []
    sheet = [data_sheet.cells(row) for row in made.spec]
    told = [[job, op, source, *values] for job, op, *values, source in sheet]
    blocks += (
        [Heading("Against the data sheet"), ArticleTable(data_sheet.HEADINGS[1:], told, names=3)]
        if told
        else []
    )
    return blocks


def _findings(audited: Audited) -> list[Block]:
    causes = verdict.page(audited, json.dumps)["causes"]
    rows = [[f"{one['title']} ({one['confidence']})", _found(one), str(one["advice"])] for one in causes]
    return (
        [Heading("Why"), ArticleTable(["finding", "what was found", "what to change"], rows, names=3)]
        if rows
        else []
    )


def _found(cause: dict[str, Any]) -> str:
    about = f"{cause['about']}: " if cause["about"] else ""
    more = f" And {len(cause['more'])} more like it." if cause["more"] else ""
    return f"{about}{cause['text']}{more}"


def _charts(made: Summary) -> list[Block]:
    blocks: list[Block] = []
    other = charts.iops(made) if page.large(made) else charts.bandwidth(made)
    overview = _drawn([other, charts.spread(made), charts.distribution(made)], 2)
    blocks += [Heading("Rate and latency"), *overview] if overview else []
    for by, total in page.sections(made):
        drawn = _drawn([*page.of_line(made, by, total)], 2)
        name = "All jobs" if by == "all" else total.line.name
        blocks += [Heading(name), *drawn, Paragraph(page.about(made, total), "soft")] if drawn else []
    host = _drawn([charts.host_cpu(made), charts.host_memory(made)], 2)
    return [*blocks, *([Heading("Host"), *host] if host else [])]


def _drawn(specs: Sequence[Spec | None], columns: int) -> list[Block]:
    known = [drawing(spec) for spec in specs if spec is not None]
    return [Drawings(known, columns)] if known else []


def _asked(made: Summary) -> list[Block]:
    bundle = made.bundle
    request: list[Any] = bundle.request.get("argv", [])
    blocks: list[Block] = [
        Heading("How to redo it"),
        Typed(f"loadstone rerun {shlex.quote(str(bundle.path))}", "With the same Plan:"),
    ]
    blocks += [Typed(shlex.join(map(str, request)), "As it was asked:")] if request else []
    blocks += [Typed(content.decode(errors="replace"), name) for name, content in bundle.inputs.items()]
    return blocks
