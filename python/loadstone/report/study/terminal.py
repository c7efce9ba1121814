"""What a study says on a terminal.

Knows tables of runs and lines about them. Every number comes from the analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from loadstone import units
from loadstone.analysis.study import repeats, run_figures
from loadstone.analysis.study.curve import curves
from loadstone.analysis.study.slo import slo_of
from loadstone.analysis.study.sweep import sweep
from loadstone.errors import Where
from loadstone.messages import say
from loadstone.report.fit_width import fitted
from loadstone.report.run import data_sheet
from loadstone.report.run.terminal import STYLES
from loadstone.report.study import curve as study_curve
from loadstone.report.study import sweep as study_sweep
from loadstone.report.study.repeat_errors import by_run, told_lines
from loadstone.report.table_heads import table_heads
from loadstone.report.verdict.words import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.study.run_figures import LineFigures, RunFigures
    from loadstone.bundle.study import Point, StudyRecord
    from loadstone.verdict import Kind

REPEATED: Final = table_heads("", "", "of_all_runs", "interval", "lowest", "highest", "own_error")
SHOWN: Final = (50.0, 99.0, 99.9)
SPARE: Final = table_heads("p99.9", "p50", "max", "bandwidth", "mean", "verdict")
"""What goes where there is no room, in this order."""
MAX_ROWS: Final = 24
"""Of more jobs the total of each run is enough; the report and the JSON have them."""
NAMED: Final = 6
"""Runs named with a reason; the others are counted."""
NO_DATA: Final = say("report.mark.no_data")
"""In the row of a job that completed nothing."""
HEADINGS: Final = table_heads("IOPS", "bandwidth", "mean", "p50", "p99", "p99.9", "max")


def summary(study: StudyRecord, runs: Sequence[RunFigures], console: Console) -> None:
    """Print what a study measured."""
    console.print(
        Text.assemble(
            (study.status, STYLES.get(study.status, "")), f" · {study.name} · {many(study, len(runs))}"
        )
    )
    if any(run.lines for run in runs):
        _measured(study, runs, console)
        console.print(Text(say("report.legend.latency"), "dim"))
    else:
        console.print(say("report.results.nothing"))
    sound = run_figures.sound(runs)
    if study.kind == "repeat" and sound:
        _repeats({"": told_lines(sound)}, console)
    elif study.kind == "list" and (repeated := by_run(sound)):
        _repeats(repeated, console)
    for name, row in data_sheet.best(runs):
        console.print(Text(f"{name}: {data_sheet.line(row)}"))
    for run in runs:
        if run.point.error is not None:
            console.print(Text(f"{run.point.name}: {run.point.error}", "red"))
    for line in verdicts(runs):
        console.print(Text(line, "yellow"))
    for line in notes(study):
        console.print(Text(f"note: {line}"))


def notes(study: StudyRecord) -> list[str]:
    """Return each note once, with the first place that it is of and how many more there are."""
    places: dict[str, list[Where]] = {}
    for note in study.notes:
        of_text = places.setdefault(note["text"] if isinstance(note, dict) else str(note), [])
        if isinstance(note, dict) and note.get("where"):
            of_text.append(Where(**note["where"]))
    return [text + _places(where) for text, where in places.items()]


def _places(places: Sequence[Where]) -> str:
    if not places:
        return ""
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f" ({places[0]}{more})"


def _measured(study: StudyRecord, runs: Sequence[RunFigures], console: Console) -> None:
    """Print the numbers in the form of the study's kind."""
    if study.kind == "curve":
        for one in curves(runs, slo_of(study)):
            study_curve.terminal(one, console)
    elif study.kind == "sweep":
        gain_share = float(study.settings["gain_share"])
        study_sweep.terminal(sweep(runs, study.settings), gain_share, console)
    else:
        console.print(_table(runs, console.width), soft_wrap=True)


def _repeats(repeated: Mapping[str, Sequence[repeats.RepeatedLine]], console: Console) -> None:
    """Print what the repeats of each run say together, per line; the rate that says most first."""
    console.print()
    rows = [row for run, lines in repeated.items() for row in repeated_rows(lines, run)]
    table = fitted(
        REPEATED,
        rows,
        console.width,
        names=2,
        spare=table_heads("highest", "lowest"),
    )
    console.print(table, soft_wrap=True)
    for run, lines in repeated.items():
        for sentence in apart(lines, run):
            console.print(Text(sentence, "yellow"))


def repeated_rows(lines: Sequence[repeats.RepeatedLine], run: str = "") -> list[list[str]]:
    """Return rows of `REPEATED`, one per line and quantity; of one run of a list where it is named."""
    return [
        ["" if index else _line_name(line, run), quantity, *_repeated(value, kind)]
        for line in lines
        for index, (quantity, kind, value) in enumerate(_quantities(line))
    ]


def apart(lines: Sequence[repeats.RepeatedLine], run: str = "") -> list[str]:
    """Say which quantities differ from run to run by more than the runs' own errors."""
    differing = {
        _line_name(line, run): [quantity for quantity, _, value in _quantities(line) if value.differ]
        for line in lines
    }
    return [
        say("report.study.runs_differ", line=name, quantities=" and ".join(quantities))
        for name, quantities in differing.items()
        if quantities
    ]


def _line_name(line: repeats.RepeatedLine, run: str) -> str:
    """Name a line by its job and operation, and by its run where that is called otherwise."""
    of = "" if run in ("", line.job) else f"{run} "
    return f"{of}{line.job} {line.op}"


def verdicts(runs: Sequence[RunFigures]) -> list[str]:
    """Say which runs are not simply a measure of the storage and why, one sentence for each reason."""
    return [f"{NAMES[kind]}: {names}{f' {why}' if why else ''}" for kind, names, why in reasons(runs)]


def reasons(runs: Sequence[RunFigures]) -> list[tuple[Kind, str, str]]:
    """Return each reason once: the verdict, the runs it is of, and what was found in the first of them."""
    alike: dict[tuple[Kind, str | None], list[Point]] = {}
    for run in runs:
        if run.point.verdict not in {None, "measures_storage"}:
            alike.setdefault((run.point.verdict, run.point.decided_by), []).append(run.point)
    verdict_reasons = []
    for (kind, _), points in sorted(alike.items(), key=lambda item: -len(item[1])):
        names = ", ".join(point.name for point in points[:NAMED])
        more = f" and {len(points) - NAMED} more" if len(points) > NAMED else ""
        of = f" ({points[0].name})" if len(points) > 1 else ""
        why = f"{points[0].why}{of}" if points[0].why else ""
        verdict_reasons.append((kind, f"{names}{more}.", why))
    return verdict_reasons


def _quantities(line: repeats.RepeatedLine) -> list[tuple[str, str, repeats.RepeatedValue]]:
    rate = (
        (say("report.column.bandwidth"), "binary", line.bandwidth)
        if line.large_blocks
        else ("IOPS", "count", line.iops)
    )
    every = [rate, (say("report.column.mean_latency"), "time", line.mean_ns)]
    every += [
        (f"latency, p{percent:g}", "time", line.percentiles_ns[percent]) for percent in (50.0, 99.0, 99.9)
    ]
    return [(name, kind, value) for name, kind, value in every if value is not None]


def _repeated(repeated_value: repeats.RepeatedValue, kind: str) -> list[str]:
    write = {"count": units.count, "binary": units.bandwidth, "time": units.duration}[kind]
    share = repeated_value.half_width_share
    return [
        units.with_error(repeated_value.mean, kind),
        units.NONE if share is None else f"±{units.THIN}{units.digits(share * 100)}{units.THIN}%",
        write(repeated_value.low),
        write(repeated_value.high),
        units.NONE
        if repeated_value.within_error is None
        else f"±{units.THIN}{units.error(repeated_value.within_error, kind)}",
    ]


def in_short(run: RunFigures) -> str:
    """Say a run in a line: its name, rate and latency, or what went wrong."""
    parts = [run.point.name]
    shown = run.whole or (run.lines[0] if len(run.lines) == 1 else None)
    if run.point.error is not None:
        parts.append(run.point.error)
    elif shown is not None:
        rate = units.bandwidth(shown.bandwidth.value) if shown.large_blocks and shown.bandwidth else None
        parts.append(rate or f"{units.count(shown.iops.value if shown.iops else None)} IOPS")
        parts += [f"mean {units.duration(shown.mean_ns.value)}"] if shown.mean_ns else []
        if shown.percentiles_ns.get(99.0) is not None:
            parts.append(f"p99 {units.duration(shown.percentiles_ns[99.0])}")
        if shown.held is False:
            parts.append(say("report.mark.loud_rate_not_held"))
    elif not run.lines:
        parts.append(say("report.results.nothing"))
    if run.point.status not in {None, "complete"}:
        parts.append(str(run.point.status))
    if run.point.verdict == "not_valid" and parts[1:]:
        # While it can still be stopped: a study without a valid run may take hours.
        parts.append(
            say("report.mark.not_valid_by", rule=run.point.decided_by)
            if run.point.decided_by
            else say("report.mark.not_valid")
        )
    return f"{parts[0]}: {', '.join(parts[1:])}" if parts[1:] else parts[0]


def cells(line: LineFigures) -> list[str]:
    """Return the cells of `HEADINGS`."""
    return [
        units.with_error(line.iops, "count"),
        units.with_error(line.bandwidth if line.block_bytes else None, "binary"),
        units.with_error(line.mean_ns, "time"),
        *(units.duration(line.percentiles_ns[percent]) for percent in SHOWN),
        units.duration(line.max_ns),
    ]


def held_against_a_sheet(runs: Sequence[RunFigures]) -> bool:
    """Tell whether any run had a data sheet with a figure for what it did."""
    return any(reached_by(run) is not None for run in runs)


def reached_by(run: RunFigures) -> Estimate | None:
    """Return the share of the data sheet's figure that a run came nearest to."""
    return None if run.whole is None else run.whole.sheet_share


def _table(runs: Sequence[RunFigures], width: int) -> Text:
    by_job = any(len(run.lines) + len(run.silent) > 1 for run in runs) and not _totals_do(runs)
    judged = any(run.point.verdict not in {None, "measures_storage"} for run in runs)
    sheet = held_against_a_sheet(runs)
    headings = [say("report.column.run"), *(table_heads("job", "op") if by_job else ()), *HEADINGS]
    headings += [
        *([data_sheet.HEADING] if sheet else []),
        *((say("report.column.verdict"),) if judged else ()),
    ]
    rows: list[list[str]] = []
    whole: list[int] = []
    for run in runs:
        for index, line in enumerate(run.lines if by_job or run.whole is None else [run.whole]):
            verdict = [NAMES[run.point.verdict]] if judged and not index and run.point.verdict else []
            about = [line.job, line.op] if by_job else []
            reached = [] if not sheet else ["" if by_job else data_sheet.share(reached_by(run))]
            rows.append(["" if index else run.point.name, *about, *cells(line), *reached, *verdict])
        if by_job and len(run.lines) > 1 and run.whole is not None:
            whole.append(len(rows))
            reached = [data_sheet.share(reached_by(run))] if sheet else []
            rows.append(["", run.whole.job, run.whole.op, *cells(run.whole), *reached])
        for index, job in enumerate(run.silent if by_job else ()):
            rows.append(["" if index or run.lines else run.point.name, job, NO_DATA])
        if not run.lines and not (by_job and run.silent):
            rows.append([run.point.name])
    return fitted(headings, rows, width, names=3 if by_job else 1, spare=SPARE, bold=whole)


def _totals_do(runs: Sequence[RunFigures]) -> bool:
    """Tell whether the total of each run is enough: there are many jobs, and each ran beside the others."""
    many_rows = sum(len(run.lines) for run in runs) > MAX_ROWS
    return many_rows and all(run.whole is not None and not run.silent for run in runs if run.lines)


def many(study: StudyRecord, number: int) -> str:
    """Write how many runs there are, and of how many where some did not come."""
    whole = study.expected if study.expected is not None and study.expected > number else number
    of = f" of {whole}" if whole != number else ""
    return f"{number}{of} run{'' if whole == 1 else 's'}"
