"""The report of a study, or of several curves beside each other: the answer first, then its evidence.

Knows which parts a study's report has, by its kind, and how they follow each other. Computes nothing.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from loadstone import output, units
from loadstone.analysis.study import run_figures
from loadstone.analysis.study.curve import curves
from loadstone.analysis.study.patterns import PREPARED, patterns
from loadstone.analysis.study.rounds import rounds
from loadstone.analysis.study.slo import slo_of
from loadstone.analysis.study.sweep import sweep
from loadstone.bundle import members
from loadstone.bundle import study as on_disk
from loadstone.errors import BundleError, InputError
from loadstone.messages import make_error, say
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
    Verdicts,
    drawing,
)
from loadstone.report.article.files import ENDINGS, as_file, ending_of
from loadstone.report.pictures import chart_images, charts
from loadstone.report.run import data_sheet, path_blocks
from loadstone.report.study import answer as study_answer
from loadstone.report.study import charts as study_charts
from loadstone.report.study import curve as study_curve
from loadstone.report.study import curve_charts as study_curve_charts
from loadstone.report.study import effects as study_effects
from loadstone.report.study import matrix as study_matrix
from loadstone.report.study import rounds as study_rounds
from loadstone.report.study import sweep as study_sweep
from loadstone.report.study.repeat_errors import by_run, told_lines
from loadstone.report.study.terminal import (
    HEADINGS,
    NO_DATA,
    REPEATED,
    apart,
    cells,
    held_against_a_sheet,
    many,
    notes,
    reached_by,
    repeated_rows,
)
from loadstone.report.table_heads import table_heads
from loadstone.report.verdict.words import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.analysis.study.curve import Curve
    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.analysis.study.slo import Slo
    from loadstone.analysis.study.sweep import Sweep
    from loadstone.bundle.study import StudyRecord
    from loadstone.report.article.elements import Block, VerdictLine
    from loadstone.report.pictures.charts import Spec

PICTURES: Final = (".svg", ".png")
REPORT: Final = "report.html"
MAX_SMALL: Final = 12
"""So many patterns are drawn over time; more are not looked at."""
RUNS_READ: Final = say("report.page.runs_read")
STATUS: Final = {
    "running": say("report.status.study_running"),
    "complete": say("report.status.study_complete"),
    "interrupted": say("report.status.study_interrupted"),
    "failed": say("report.status.study_failed"),
}
KINDS: Final = {
    "list": say("report.study.kind_list"),
    "repeat": say("report.study.kind_repeat"),
    "sweep": say("report.study.kind_sweep"),
    "curve": say("report.study.kind_curve"),
    "experiment": say("report.study.kind_experiment"),
}


@dataclass(frozen=True, slots=True)
class PageSection:
    """One part of the page."""

    title: str
    sentences: Sequence[str]
    tables: Sequence[ArticleTable]
    charts: Sequence[Spec]
    columns: int = 2


@dataclass(frozen=True, slots=True)
class StudyPage:
    """A study and its runs in numbers."""

    path: Path
    study: StudyRecord
    runs: Sequence[RunFigures]
    doubts: Sequence[str] = ()
    """Why these may not be the numbers that were measured, and what could not be read."""
    verified: bool | None = None


def read(path: Path, *, unverified: bool = False) -> StudyPage:
    """Read a study from disk, whole or as far as it got."""
    opened = on_disk.open_all(path, unverified=unverified)
    return StudyPage(path, opened.study, run_figures.runs(opened), opened.doubts, opened.verified)


def write(studies: Sequence[StudyPage], path: Path) -> None:
    """Write the page (`.html`), the same as PDF or Markdown, or all charts as one picture.

    Several studies are laid over each other and must be curves. Raises `InputError` for another
    ending, for a path that cannot be written, and for a picture with nothing to draw.
    """
    kind = ending_of(path, "run", (*ENDINGS, *PICTURES))
    if kind in PICTURES:
        doubt = next((one.doubts[0] for one in studies if one.doubts), None)
        output.write(path, _picture(_evidence(studies), kind, path, doubt))
    else:
        output.write(path, as_file(article(studies, path.resolve().parent), kind))


def article(studies: Sequence[StudyPage], directory: Path) -> Article:
    """Return what the page says: the answer, what it is worth, the matrix, the evidence, how to redo it.

    `directory` is where it will be: its links lead from there to the pages of runs.
    """
    first = studies[0]
    alone = len(studies) == 1
    blocks: list[Block] = [Paragraph(_answer(studies), "answer")]
    blocks += [Paragraph(doubt, "doubt") for one in studies for doubt in one.doubts]
    if alone and first.study.status != "complete":
        blocks.append(Paragraph(STATUS[first.study.status]))
    # Reasons and facts of several come with the runs of each: first is the answer.
    worth = [study_matrix.worth(one.runs, "" if alone else _label(one)) for one in studies]
    blocks += _verdicts(worth[0] if alone else [one[0] for one in worth if one])
    blocks += study_matrix.matrix(_named(studies))
    if alone:
        blocks.append(Facts(_facts(first)))
    for part in _evidence(studies):
        blocks += _section(part)
    shown: set[tuple[str, str]] = set()
    for one, lines in zip(studies, worth, strict=True):
        blocks += _course(one) if alone else []
        blocks += path_blocks.of_runs(one.runs) if alone else []
        blocks.append(
            Heading(say("report.heading.runs") if alone else say("report.heading.runs_of", study=_label(one)))
        )
        blocks += [] if alone else [*_verdicts(lines[1:]), Facts(_facts(one))]
        blocks += _runs(one, directory if alone else None)
        blocks += _redo(one, shown)
    return Article(
        kicker=say(
            "report.page.study", kind=KINDS[first.study.kind] if alone else say("report.study.kind_overlay")
        ),
        title=first.study.name if alone else " · ".join(_label(one) for one in studies),
        blocks=blocks,
        status=first.study.status if alone else "",
        footer=say("report.page.again_from_bundles"),
    )


def _verdicts(lines: Sequence[VerdictLine]) -> list[Block]:
    return [Verdicts(lines)] if lines else []


def _answer(studies: Sequence[StudyPage]) -> str:
    if len(studies) == 1:
        return study_answer.answer(studies[0].study, studies[0].runs)
    return study_answer.of_curves([curve for one in studies for curve in _curves_of(one)])


def _named(studies: Sequence[StudyPage]) -> list[tuple[str, StudyRecord, Sequence[RunFigures]]]:
    return [("" if len(studies) == 1 else _label(one), one.study, one.runs) for one in studies]


def _section(part: PageSection) -> list[Block]:
    if not (part.sentences or part.tables or part.charts):
        return []
    return [
        Heading(part.title),
        *([Bullets(part.sentences)] if part.sentences else []),
        *part.tables,
        *([Drawings([drawing(spec) for spec in part.charts], part.columns)] if part.charts else []),
    ]


def _evidence(studies: Sequence[StudyPage]) -> list[PageSection]:
    if len(studies) > 1:
        return [_overlay(studies)]
    return [*_parts(studies[0]), *_sheet(studies[0].runs)]


def _picture(parts: Sequence[PageSection], kind: str, path: Path, doubt: str | None) -> bytes:
    specs = [spec for part in parts for spec in part.charts]
    if not specs:
        raise make_error(InputError, "report.files.study_empty", hint=doubt, path=path)
    spec = charts.together(specs, doubt)
    if kind == ".svg":
        return chart_images.svg(spec).encode()
    return chart_images.png(spec)


def _parts(whole: StudyPage) -> list[PageSection]:
    study, runs = whole.study, whole.runs
    if study.kind == "repeat":
        return [_repeats(runs)]
    if study.kind == "sweep":
        return _sweep(whole)
    if study.settings.get("rounds"):
        return _rounds(whole)
    if study.settings.get("loops"):
        return [
            PageSection(
                say("report.heading.surfaces"), [], [], study_rounds.surfaces(runs, study.settings["loops"])
            )
        ]
    study_curves = [one for one in curves(runs, slo_of(study)) if len(one.loads) > 1]
    sections = _curves(study_curves, slo_of(study)) if study_curves else []
    if study.kind == "list":
        measured = [run for run in runs if run.point.role != PREPARED]
        specs = _some(study_charts.rate_of_runs(measured), study_charts.latency_of_runs(measured))
        sections.append(PageSection(say("report.heading.side_by_side"), [], [], specs))
        if found_repeats := by_run(run_figures.sound(runs)):
            sentences = [one for run, lines in found_repeats.items() for one in apart(lines, run)]
            rows = [row for run, lines in found_repeats.items() for row in repeated_rows(lines, run)]
            drawn = _some(study_effects.passes(patterns(runs)))
            table = ArticleTable(REPEATED, rows, names=2)
            sections.insert(
                0, PageSection(say("report.heading.all_passes"), sentences, [table], drawn, columns=1)
            )
    return sections


def _curves(all_curves: Sequence[Curve], slo: Slo | None) -> list[PageSection]:
    sections = []
    if len(all_curves) > 1:
        specs = [study_curve_charts.latency_of_curves(all_curves, series, slo) for series in ("mean", "p99")]
        sections.append(PageSection(say("report.heading.all_curves"), [], [], _some(*specs)))
    for curve in all_curves:
        specs = [
            study_curve_charts.latency_of_curves([curve], "mean", slo),
            study_curve_charts.percentiles_of_curve(curve, slo),
        ]
        table = ArticleTable(*study_curve.table(curve))
        sections.append(
            PageSection(
                curve.name or say("report.heading.curve"),
                study_curve.sentences(curve),
                [table],
                _some(*specs),
            )
        )
    return sections


def _sweep(whole: StudyPage) -> list[PageSection]:
    study = whole.study
    measured_sweep = sweep(whole.runs, study.settings)
    sentences = study_sweep.sentences(measured_sweep, float(study.settings["gain_share"]))
    if len(measured_sweep.axes) == 1:
        specs = _some(
            *(
                study_charts.lines_of_sweep(measured_sweep, (), quantity)
                for quantity in (*measured_sweep.rates, "p99")
            )
        )
        return [PageSection(say("report.heading.operate"), sentences, _steps(measured_sweep), specs)]
    sections = (
        [PageSection(say("report.heading.operate"), sentences, _steps(measured_sweep), [])]
        if sentences
        else []
    )
    for fixed, name in study_sweep.planes(measured_sweep):
        of = (*measured_sweep.rates, "p99")
        specs = _some(
            *(study_charts.map_of_sweep(measured_sweep, fixed, quantity) for quantity in of),
            *(study_charts.lines_of_sweep(measured_sweep, fixed, quantity) for quantity in of),
        )
        sections.append(PageSection(name or say("report.heading.result"), [], [], specs))
    return sections


def _steps(sweep_figures: Sweep) -> list[ArticleTable]:
    """Return what each step changes, where the combinations were repeated."""
    rows = study_effects.step_rows(sweep_figures)
    if not rows:
        return []
    return [ArticleTable(study_effects.STEP_HEADINGS, rows, names=2, title=say("report.heading.steps"))]


def _rounds(whole: StudyPage) -> list[PageSection]:
    measured_rounds = rounds(whole.runs, whole.study.settings)
    if measured_rounds is None:
        return []
    specs = _some(
        study_rounds.convergence(measured_rounds),
        study_rounds.window(measured_rounds),
        study_rounds.over_written(measured_rounds),
    )
    means = ArticleTable(*study_rounds.matrix(measured_rounds))
    drawn = _some(study_rounds.over_blocks(measured_rounds), study_rounds.bars(measured_rounds))
    longest = ArticleTable(*study_rounds.longest(measured_rounds))
    return [
        PageSection(say("report.heading.steady"), study_rounds.sentences(measured_rounds), [], specs),
        PageSection(say("report.heading.window_means"), [], [means], drawn),
        PageSection(say("report.heading.window_longest"), [], [longest], []),
    ]


def _repeats(runs: Sequence[RunFigures]) -> PageSection:
    lines = told_lines(run_figures.sound(runs))
    specs = [study_charts.rate_of_repeats(line) for line in lines]
    tables = [ArticleTable(REPEATED, repeated_rows(lines), names=2)] if lines else []
    specs.append(study_charts.latency_of_runs(runs))
    return PageSection(say("report.heading.all_runs"), apart(lines), tables, _some(*specs))


def _sheet(runs: Sequence[RunFigures]) -> list[PageSection]:
    """Return what was reached of each figure of a data sheet; empty without one."""
    best = [(run, *data_sheet.cells(row)) for run, row in data_sheet.best(runs)]
    # Words before numbers, as in every table of the page.
    rows = [[run, job, op, source, *values] for run, job, op, *values, source in best]
    if not rows:
        return []
    explanation = say("report.page.nearest")
    return [
        PageSection(
            say("report.heading.data_sheet"),
            [explanation],
            [ArticleTable(data_sheet.HEADINGS, rows, names=4)],
            [],
        )
    ]


def _overlay(studies: Sequence[StudyPage]) -> PageSection:
    named = [curve for whole in studies for curve in _curves_of(whole)]
    limits = {slo_of(whole.study) for whole in studies}
    slo = limits.pop() if len(limits) == 1 else None
    specs = [study_curve_charts.latency_of_curves(named, series, slo) for series in ("mean", "p99")]
    sentences = [f"{one.name}: {sentence}" for one in named for sentence in study_curve.sentences(one)]
    return PageSection(say("report.heading.all_curves"), sentences, [], _some(*specs))


def _label(whole: StudyPage) -> str:
    return whole.path.resolve().name


def _some(*specs: Spec | None) -> list[Spec]:
    return [spec for spec in specs if spec is not None]


def _facts(whole: StudyPage) -> list[tuple[str, str]]:
    facts = [(say("report.fact.started"), whole.study.started.replace("T", " ").replace("+00:00", " UTC"))]
    summary = next((run.summary for run in whole.runs if run.summary is not None), None)
    if summary is not None:
        # Of a list of runs each may have targets of its own.
        targets = list(
            dict.fromkeys(
                target.path
                for run in whole.runs
                if run.summary is not None
                for target in run.summary.measurement.plan.targets
            )
        )
        more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
        host = summary.bundle.environment.get("host", {})
        known = (host.get("host_name"), host.get("cpu", {}).get("model"), host.get("kernel"))
        facts.insert(0, (say("report.fact.on"), ", ".join(targets[:3]) + more))
        facts += (
            [(say("report.fact.host"), " · ".join(str(part) for part in known if part))] if any(known) else []
        )
    return [*facts, (say("report.fact.runs"), many(whole.study, len(whole.runs)))]


def _course(whole: StudyPage) -> list[Block]:
    """Return small multiples: each pattern over time, its passes laid over each other."""
    study_patterns = patterns(whole.runs, alike=whole.study.kind == "repeat")
    specs = _some(*(study_charts.over_time(one) for one in study_patterns[:MAX_SMALL]))
    if not specs:
        return []
    unit = "runs" if len(study_patterns) == len(whole.runs) else "patterns"
    few = say("report.study.first_of", count=MAX_SMALL, of=len(study_patterns), what=unit)
    return [
        Heading(say("report.heading.over_time")),
        *([Paragraph(few, "soft")] if len(study_patterns) > MAX_SMALL else []),
        Drawings([drawing(spec) for spec in specs], 3),
    ]


def _runs(whole: StudyPage, directory: Path | None) -> list[Block]:
    sheet = held_against_a_sheet(whole.runs)
    headings = [
        *table_heads("run", "verdict"),
        *HEADINGS,
        *([say("report.column.of_data_sheet")] if sheet else []),
    ]
    rows = [row for run in whole.runs for row in _rows(run, _page_of(whole, run, directory), sheet=sheet)]
    known = study_matrix.told_of_runs(whole.study, whole.runs)
    columns = [at for at, heading in enumerate(headings) if heading not in known]
    rows = [row if len(row) == 1 else [row[at] for at in columns] for row in rows]
    headings = [headings[at] for at in columns]
    names = sum(one in table_heads("run", "verdict") for one in headings)
    blocks: list[Block] = [ArticleTable(headings, rows, names=names)] if rows else []
    blocks.append(Paragraph(RUNS_READ, "soft"))
    study_notes = notes(whole.study)
    blocks += [Heading(say("report.heading.notes")), Bullets(study_notes)] if study_notes else []
    return blocks


def _page_of(whole: StudyPage, run: RunFigures, directory: Path | None) -> str:
    """Return the link from a directory to the page of a run, nothing where it has none."""
    if directory is None or run.point.bundle is None:
        return ""
    page = whole.path.resolve() / run.point.bundle / REPORT
    return quote(os.path.relpath(page, directory)) if page.is_file() else ""


def _rows(run: RunFigures, link: str, *, sheet: bool) -> list[list[TableCell | str]]:
    """Return a line for a run; one for each job and operation where it ran in phases."""
    lines = [run.whole] if run.whole is not None else list(run.lines)
    verdict = NAMES[run.point.verdict] if run.point.verdict else units.NONE
    name = TableCell(run.point.name, link=link)
    status = verdict + (f" · {run.point.error}" if run.point.error else "")
    reached = [data_sheet.share(reached_by(run))] if sheet else []
    empty = [units.NONE] * len(HEADINGS)
    silent: list[list[TableCell | str]] = [
        [TableCell(job), NO_DATA, *empty, *([""] * len(reached))] for job in run.silent
    ]
    if not lines:
        return [[name, status, *empty, *reached], *silent]
    rows: list[list[TableCell | str]] = []
    for at, line in enumerate(lines):
        texts = [TableCell(text, struck=not line.valid) for text in cells(line)]
        job = TableCell(f"{line.job} {line.op}") if len(lines) > 1 else name
        rows.append([job, status if not at else "", *texts, *(reached if not at else [""] * len(reached))])
    whole_run: list[list[TableCell | str]] = [[name]] if len(lines) > 1 else []
    return [*whole_run, *rows, *silent]


def _redo(whole: StudyPage, shown: set[tuple[str, str]]) -> list[Block]:
    """Return the commands and files; `shown`: files of the studies before it, which are not shown again."""
    study = whole.study
    request = shlex.join(str(word) for word in study.request.get("argv", []))
    blocks: list[Block] = [
        Heading(say("report.heading.redo")),
        Typed(f"loadstone rerun {shlex.quote(str(whole.path))}", say("report.page.same_plans")),
    ]
    blocks += [Typed(request, say("report.page.as_asked"))] if request else []
    for name, file in study.inputs.items():
        text = _input(whole.path, file)
        again = (name, text) in shown
        blocks.append(
            Paragraph(say("report.page.as_above", name=name), "soft") if again else Typed(text, name)
        )
        shown.add((name, text))
    return blocks


def _input(study: Path, file: str) -> str:
    """Return what the user gave, or why it cannot be read: the rest of the page stands without it."""
    try:
        return members.content(study, file).decode(errors="replace")
    except BundleError as error:
        return str(error)


def _curves_of(whole: StudyPage) -> list[Curve]:
    """Return the curves of a study under names that tell them from those of others."""
    study_curves = [one for one in curves(whole.runs, slo_of(whole.study)) if one.loads]
    if not study_curves:
        raise make_error(InputError, "report.files.no_curve", path=whole.path)
    return [study_curve.renamed(one, _label(whole)) for one in study_curves]
