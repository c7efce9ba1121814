"""The report of a study, or of several curves beside each other: a page that needs nothing else.

Knows which parts a study's page has, by its kind. Charts are drawn before the page is written.
Computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone import output, units
from loadstone.analysis.study import repeats, run_figures
from loadstone.analysis.study.curve import curves
from loadstone.analysis.study.rounds import rounds
from loadstone.analysis.study.slo import slo_of
from loadstone.analysis.study.sweep import sweep
from loadstone.bundle import study as on_disk
from loadstone.errors import InputError
from loadstone.report import templates
from loadstone.report.pictures import chart_images, charts
from loadstone.report.run import data_sheet
from loadstone.report.run.page import FORMATS
from loadstone.report.study import charts as study_charts
from loadstone.report.study import curve as study_curve
from loadstone.report.study import curve_charts as study_curve_charts
from loadstone.report.study import rounds as study_rounds
from loadstone.report.study import sweep as study_sweep
from loadstone.report.study.terminal import (
    HEADINGS,
    REPEATED,
    apart,
    cells,
    held_against_a_sheet,
    reached_by,
    repeated_rows,
    verdicts,
)
from loadstone.report.verdict.words import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.analysis.study.curve import Curve
    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.analysis.study.slo import Slo
    from loadstone.bundle.study import StudyRecord
    from loadstone.report.pictures.charts import Spec

STATUS: Final = {
    "running": "The study was killed or still runs; these are the runs it got to.",
    "complete": "All runs were done.",
    "interrupted": "The study was stopped by the user; these are the runs it got to.",
    "failed": "A run failed.",
}
KINDS: Final = {
    "list": "a list of runs",
    "repeat": "repeats",
    "sweep": "a sweep",
    "curve": "a latency curve",
    "experiment": "an experiment",
}


@dataclass(frozen=True, slots=True)
class PageTable:
    """Headings and rows; the first `names` columns are words."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1


@dataclass(frozen=True, slots=True)
class PageSection:
    """One part of the page."""

    title: str
    sentences: Sequence[str]
    tables: Sequence[PageTable]
    charts: Sequence[Spec]


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
    doubts = [*([opened.doubt] if opened.doubt else []), *opened.faults]
    return StudyPage(path, opened.study, run_figures.runs(opened), doubts, opened.verified)


def write(studies: Sequence[StudyPage], path: Path) -> None:
    """Write the page (`.html`), or all charts as one picture (`.svg`, `.png`, `.pdf`).

    Several studies are laid over each other and must be curves. Raises `InputError` for another
    ending, for a path that cannot be written, and for a picture with nothing to draw.
    """
    kind = path.suffix.lower()
    if kind not in FORMATS:
        found = f"ends in {kind!r}" if kind else "has no ending"
        raise InputError(f"{path}: {found}; a report is one of {', '.join(FORMATS)}")
    parts = [*_parts(studies[0]), *_sheet(studies[0].runs)] if len(studies) == 1 else [_overlay(studies)]
    doubt = next((one.doubts[0] for one in studies if one.doubts), None)
    output.write(path, _page(studies, parts) if kind == ".html" else _picture(parts, kind, path, doubt))


def _page(studies: Sequence[StudyPage], parts: Sequence[PageSection]) -> str:
    first = studies[0]
    return templates.render(
        "study/page.html",
        status=first.study.status if len(studies) == 1 else None,
        status_text=STATUS[first.study.status] if len(studies) == 1 else "",
        kind=KINDS[first.study.kind] if len(studies) == 1 else "curves laid over each other",
        title=first.study.name if len(studies) == 1 else " · ".join(_label(one) for one in studies),
        doubts=[doubt for one in studies for doubt in one.doubts],
        facts=_facts(first),
        judged=[said for one in studies for said in verdicts(one.runs)],
        parts=[(part, [_svg(spec) for spec in part.charts]) for part in parts],
        studies=[_study(one) for one in studies],
        headings=HEADINGS,
    )


def _svg(spec: Spec) -> tuple[str, str]:
    """Return what a chart shows, and its drawing."""
    return str(spec["title"]), chart_images.svg(spec)


def _picture(parts: Sequence[PageSection], kind: str, path: Path, doubt: str | None) -> bytes:
    specs = [spec for part in parts for spec in part.charts]
    if not specs:
        raise InputError(f"{path}: the study measured nothing, so there is nothing to draw")
    spec = charts.together(specs, doubt)
    if kind == ".svg":
        return chart_images.svg(spec).encode()
    if kind == ".png":
        return chart_images.png(spec)
    return chart_images.pdf(spec)


def _parts(whole: StudyPage) -> list[PageSection]:
    study, runs = whole.study, whole.runs
    if study.kind == "repeat":
        return [_repeats(runs)]
    if study.kind == "sweep":
        return _sweep(whole)
    if study.settings.get("rounds"):
        return _rounds(whole)
    if study.settings.get("loops"):
        return [PageSection("Surfaces", [], [], study_rounds.surfaces(runs, study.settings["loops"]))]
    found = [one for one in curves(runs, slo_of(study)) if len(one.loads) > 1]
    made = _curves(found, slo_of(study)) if found else []
    if study.kind == "list":
        specs = _some(study_charts.rate_of_runs(runs), study_charts.latency_of_runs(runs))
        made.append(PageSection("Runs side by side", [], [], specs))
        if found_repeats := repeats.by_run(runs):
            said = [one for run, lines in found_repeats.items() for one in apart(lines, run)]
            rows = [row for run, lines in found_repeats.items() for row in repeated_rows(lines, run)]
            made.append(
                PageSection("All passes together", said, [PageTable("", REPEATED, rows, names=2)], [])
            )
    return made


def _curves(found: Sequence[Curve], slo: Slo | None) -> list[PageSection]:
    made = []
    if len(found) > 1:
        specs = [study_curve_charts.latency_of_curves(found, series, slo) for series in ("mean", "p99")]
        made.append(PageSection("All curves", [], [], _some(*specs)))
    for curve in found:
        specs = [
            study_curve_charts.latency_of_curves([curve], "mean", slo),
            study_curve_charts.percentiles_of_curve(curve, slo),
        ]
        table = PageTable("", *study_curve.table(curve))
        made.append(PageSection(curve.name or "Curve", study_curve.sentences(curve), [table], _some(*specs)))
    return made


def _sweep(whole: StudyPage) -> list[PageSection]:
    study = whole.study
    found = sweep(whole.runs, study.settings)
    said = study_sweep.sentences(found, float(study.settings["gain_share"]))
    if len(found.axes) == 1:
        specs = _some(*(study_charts.lines_of_sweep(found, (), what) for what in (*found.rates, "p99")))
        return [PageSection("Result", said, [PageTable("", *study_sweep.table(found))], specs)]
    made = [PageSection("Where to operate", said, [], [])] if said else []
    for fixed, name in study_sweep.planes(found):
        of = (*found.rates, "p99")
        specs = _some(
            *(study_charts.map_of_sweep(found, fixed, what) for what in of),
            *(study_charts.lines_of_sweep(found, fixed, what) for what in of),
        )
        made.append(PageSection(name or "Result", [], [], specs))
    return made


def _rounds(whole: StudyPage) -> list[PageSection]:
    found = rounds(whole.runs, whole.study.settings)
    if found is None:
        return []
    specs = _some(
        study_rounds.convergence(found), study_rounds.window(found), study_rounds.over_written(found)
    )
    means = PageTable("", *study_rounds.matrix(found))
    drawn = _some(study_rounds.over_blocks(found), study_rounds.bars(found))
    longest = PageTable("", *study_rounds.longest(found))
    return [
        PageSection("Steady state", study_rounds.sentences(found), [], specs),
        PageSection("Means of the window", [], [means], drawn),
        PageSection("Longest latencies in the window", [], [longest], []),
    ]


def _repeats(runs: Sequence[RunFigures]) -> PageSection:
    lines = repeats.lines(runs)
    specs = [study_charts.rate_of_repeats(line) for line in lines]
    table = PageTable("", REPEATED, repeated_rows(lines), names=2)
    specs.append(study_charts.latency_of_runs(runs))
    return PageSection("All runs together", apart(lines), [table], _some(*specs))


def _sheet(runs: Sequence[RunFigures]) -> list[PageSection]:
    """Return what was reached of each figure of a data sheet; empty without one."""
    best = [(run, *data_sheet.cells(row)) for run, row in data_sheet.best(runs)]
    # Words before numbers, as in every table of the page.
    rows = [[run, job, op, source, *told] for run, job, op, *told, source in best]
    if not rows:
        return []
    said = "For each figure the run that came nearest to it. Units of 1000, as data sheets have them."
    return [
        PageSection("Against the data sheet", [said], [PageTable("", data_sheet.HEADINGS, rows, names=4)], [])
    ]


def _overlay(studies: Sequence[StudyPage]) -> PageSection:
    named: list[Curve] = []
    for whole in studies:
        found = [one for one in curves(whole.runs, slo_of(whole.study)) if one.loads]
        if not found:
            raise InputError(
                f"{whole.path} has no curve; only curves are laid over each other",
                hint="`loadstone compare` holds other results against each other",
            )
        named += [study_curve.renamed(one, _label(whole)) for one in found]
    limits = {slo_of(whole.study) for whole in studies}
    slo = limits.pop() if len(limits) == 1 else None
    specs = [study_curve_charts.latency_of_curves(named, series, slo) for series in ("mean", "p99")]
    said = [f"{one.name}: {sentence}" for one in named for sentence in study_curve.sentences(one)]
    return PageSection("All curves", said, [], _some(*specs))


def _label(whole: StudyPage) -> str:
    return whole.path.resolve().name


def _some(*specs: Spec | None) -> list[Spec]:
    return [spec for spec in specs if spec is not None]


def _facts(whole: StudyPage) -> list[tuple[str, str]]:
    facts = [("Started", whole.study.started.replace("T", " ").replace("+00:00", " UTC"))]
    summary = next((run.summary for run in whole.runs if run.summary is not None), None)
    if summary is not None:
        targets = [target.path for target in summary.measurement.plan.targets]
        more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
        host = summary.bundle.environment.get("host", {})
        known = (host.get("host_name"), host.get("cpu", {}).get("model"), host.get("kernel"))
        facts.insert(0, ("On", ", ".join(targets[:3]) + more))
        facts += [("Host", " · ".join(str(part) for part in known if part))] if any(known) else []
    return [*facts, ("Runs", str(len(whole.runs)))]


def _study(whole: StudyPage) -> dict[str, Any]:
    study = whole.study
    return {
        "name": _label(whole),
        "sheet": held_against_a_sheet(whole.runs),
        "runs": [_row(run) for run in whole.runs],
        "notes": [note["text"] if isinstance(note, dict) else str(note) for note in study.notes],
        "request": " ".join(str(word) for word in study.request.get("argv", [])),
        "inputs": [
            (name, (whole.path / file).read_text(errors="replace")) for name, file in study.inputs.items()
        ],
    }


def _row(run: RunFigures) -> dict[str, Any]:
    shown = run.whole or (run.lines[0] if len(run.lines) == 1 else None)
    return {
        "name": run.point.name,
        "bundle": run.point.bundle,
        "cells": cells(shown) if shown is not None else [units.NONE] * len(HEADINGS),
        "reached": data_sheet.share(reached_by(run)),
        "verdict": run.point.verdict,
        "verdict_text": NAMES[run.point.verdict] if run.point.verdict else units.NONE,
        "error": run.point.error,
    }
