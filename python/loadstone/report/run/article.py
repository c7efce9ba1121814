"""The report of one run as an article, for paper and for Markdown: what its page says, in blocks.

Knows which parts of the page go on paper and in which order. Computes nothing.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final

from loadstone import notes, units
from loadstone.messages import say
from loadstone.report.article.elements import (
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
from loadstone.report.pictures import charts, host_charts
from loadstone.report.run import answer, data_sheet, hosts, page, path_chart
from loadstone.report.run.sections import SECTIONS
from loadstone.report.run.summary_text import monitors
from loadstone.report.table_heads import table_heads
from loadstone.report.verdict import words as verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.report.article.elements import Block
    from loadstone.report.pictures.charts import Spec
    from loadstone.report.run.answer import PhaseAnswer, RunAnswer
    from loadstone.verdict import Audited

RESULT: Final = table_heads(
    "job", "op", "IOPS", "bandwidth", "latency_mean", "p50", "p99", "p99.9", "max", "errors"
)
RATES: Final = table_heads(
    "job", "op", "spacing", "asked", "achieved", "late_p50", "late_p99", "late_p999", "late_max", ""
)


def article(summary: Summary, audited: Audited | None = None) -> Article:
    """Return what the report says of a run."""
    bundle = summary.bundle
    run_answer = answer.answer(summary, audited)
    blocks: list[Block] = [Paragraph(bundle.doubt, "doubt")] if bundle.doubt else []
    blocks += _answer(run_answer)
    if bundle.status != "complete":
        blocks.append(Paragraph(page.STATUS[bundle.status]))
    blocks.append(Facts(page.facts(summary)))
    blocks += _drawn([page.rate_over_time(summary)], 1)
    blocks += _result(summary)
    blocks += _findings(audited) if audited is not None else []
    if summary.problems:
        blocks += [
            Heading(say("report.heading.problems")),
            Bullets([problem.message for problem in summary.problems]),
        ]
    limited_by = audited.verdict.limited_by if audited else None
    paths = _drawn(path_chart.of_hosts(hosts.paths(summary), limited_by), 1)
    blocks += [Heading(say("report.heading.path")), *paths] if paths else []
    blocks += _charts(summary)
    blocks += [block for section in SECTIONS for block in section(summary)]
    watched = monitors(summary.tool)
    if remarks := [*([watched] if watched else []), *(note.text for note, _ in notes.once(summary.notes))]:
        blocks += [Heading(say("report.heading.notes")), Bullets(remarks)]
    blocks += _redo_blocks(summary)
    return Article(
        kicker=say("report.page.run"),
        title=page.title(summary),
        blocks=blocks,
        status=bundle.status,
        footer=say("report.page.again_from_bundle"),
    )


def _answer(run_answer: RunAnswer) -> list[Block]:
    if not run_answer.phases:
        return [Paragraph(page.NOTHING, "answer")]
    lines = [_phase(one, several=len(run_answer.phases) > 1) for one in run_answer.phases]
    blocks: list[Block] = (
        [Paragraph(line, "answer") for line in lines[:1]] if len(lines) == 1 else [Bullets(lines)]
    )
    if run_answer.believe is not None:
        blocks.append(Verdicts([VerdictLine(run_answer.believe, run_answer.kind or "", run_answer.why)]))
    return blocks


def _phase(one: PhaseAnswer, *, several: bool) -> str:
    name = f"{one.name}: " if several else ""
    worth = [one.believe] if several and one.believe is not None else []
    return f"{name}{' · '.join([f'{one.number}{units.THIN}{one.unit}', *one.details, *worth])}"


def _result(summary: Summary) -> list[Block]:
    tables = [(say("report.heading.result"), say("report.column.job"), page.headline(summary))]
    if len(summary.totals("job")) > page.MAX_HEADLINE:
        tables.append(
            (
                say("report.heading.each_job"),
                say("report.column.job"),
                page.table(summary.totals("job"), summary),
            )
        )
    if len(summary.totals("target")) > 1:
        tables.append(
            (
                say("report.heading.each_target"),
                say("report.column.target"),
                page.result_rows(answer.by_phase(summary, "target")),
            )
        )
    if summary.totals("host"):
        tables.append(
            (
                say("report.heading.each_host"),
                say("report.column.host"),
                page.result_rows(answer.by_phase(summary, "host")),
            )
        )
    blocks: list[Block] = []
    for title, of, lines in tables:
        rows: list[list[TableCell | str]] = [
            [TableCell(name, strong=name == "total"), op, *cells] for name, op, cells, _ in lines
        ]
        if rows:
            blocks += [Heading(title), ArticleTable([of, *RESULT[1:]], rows, names=2)]
    rates = [
        [job, op, *cells, say("report.mark.held") if rate_held else say("report.mark.not_held")]
        for job, op, cells, rate_held in page.rates(summary)
    ]
    blocks += [Heading(say("report.heading.rates")), ArticleTable(RATES, rates, names=2)] if rates else []
    sheet = [data_sheet.cells(row) for row in summary.spec]
    sheet_rows = [[job, op, source, *values] for job, op, *values, source in sheet]
    blocks += (
        [
            Heading(say("report.heading.data_sheet")),
            ArticleTable(data_sheet.HEADINGS[1:], sheet_rows, names=3),
        ]
        if sheet_rows
        else []
    )
    return blocks


def _findings(audited: Audited) -> list[Block]:
    causes = verdict.page(audited, json.dumps)["causes"]
    rows = [
        [f"{one['title']} ({one['confidence']})", _cause_sentences(one), str(one["advice"])] for one in causes
    ]
    return (
        [
            Heading(say("report.heading.why")),
            ArticleTable(
                table_heads("finding", "what_found", "what_to_change"),
                rows,
                names=3,
            ),
        ]
        if rows
        else []
    )


def _cause_sentences(cause: dict[str, Any]) -> str:
    about = f"{cause['about']}: " if cause["about"] else ""
    more = say("report.page.more_like_it", count=len(cause["more"])) if cause["more"] else ""
    return f"{about}{cause['text']}{more}"


def _charts(summary: Summary) -> list[Block]:
    blocks: list[Block] = []
    other = charts.iops(summary) if page.large(summary) else charts.bandwidth(summary)
    overview = _drawn([other, charts.spread(summary), charts.distribution(summary)], 2)
    blocks += [Heading(say("report.heading.rate_and_latency")), *overview] if overview else []
    for by, total in page.sections(summary):
        drawn = _drawn([*page.of_line(summary, by, total)], 2)
        name = say("report.heading.all_jobs") if by == "all" else total.line.name
        blocks += [Heading(name), *drawn, Paragraph(page.about(summary, total), "soft")] if drawn else []
    host = _drawn([host_charts.host_cpu(summary), host_charts.host_memory(summary)], 2)
    return [*blocks, *([Heading(say("report.heading.host")), *host] if host else [])]


def _drawn(specs: Sequence[Spec | None], columns: int) -> list[Block]:
    known = [drawing(spec) for spec in specs if spec is not None]
    return [Drawings(known, columns)] if known else []


def _redo_blocks(summary: Summary) -> list[Block]:
    bundle = summary.bundle
    request: list[Any] = bundle.request.get("argv", [])
    blocks: list[Block] = [
        Heading(say("report.heading.redo")),
        Typed(f"loadstone rerun {shlex.quote(str(bundle.path))}", say("report.page.same_plan")),
    ]
    blocks += [Typed(shlex.join(map(str, request)), say("report.page.as_asked"))] if request else []
    blocks += [Typed(content.decode(errors="replace"), name) for name, content in bundle.inputs.items()]
    return blocks
