"""A bundle's results in other programs' formats.

Knows which format is which and where it goes: text to standard output or a file, tables and
logs to a path. fio's own formats are made in `report.fio`.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from loadstone import notes, output, printable, units
from loadstone.analysis.measurement import Measurement
from loadstone.analysis.series import series
from loadstone.analysis.summary import Summary, summarise
from loadstone.bundle.layout import LATENCIES, OPS
from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.report import fio
from loadstone.report.fio import document
from loadstone.report.run.terminal import cells
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.analysis.latency import Latency
    from loadstone.analysis.totals import Total
    from loadstone.bundle.read import Bundle

KINDS: Final = ("fio-json", "fio-logs", "csv", "parquet", "prometheus", "markdown")
DEFAULTS: Final = {"parquet": Path("samples-flat.parquet"), "fio-logs": Path()}
"""Where goes what is no text, when nobody says where."""


def export(bundle: Bundle, kind: str, out: Path | None) -> None:
    """Write one of `KINDS` to `out`; without it text goes to standard output, the rest to `DEFAULTS`.

    Raises `InputError` for another kind, or a path that cannot be written.
    """
    if kind not in KINDS:
        raise make_error(InputError, "report.export.unknown", name=repr(kind), known=", ".join(KINDS))
    out = out or DEFAULTS.get(kind)
    if kind.startswith("fio-"):
        refuse_trees(bundle, "fio's outputs have")
    if out is not None and kind in _FILES:
        _FILES[kind](bundle, out)
    else:
        put(_TEXTS[kind](bundle), out)


def refuse_trees(bundle: Bundle, what: str) -> None:
    """Raise InputError for operations on files by name, for which other tools' formats have no place."""
    if bundle.plan.trees:
        raise make_error(InputError, "report.export.trees", path=bundle.path, what=what)


def put(text: str, out: Path | None) -> None:
    """Write text to a file, or to standard output without one; raises what `output.write` does."""
    if out is None:
        sys.stdout.write(text)
    else:
        output.write(out, text)


def csv(bundle: Bundle) -> str:
    """Return one row per interval, job and operation: rates, latency mean, percentiles, maximum.

    Fields without a value (no I/O, or too few for the percentile) are empty.
    """
    table = series(Measurement(bundle), "job").drop("key").rename({"name": "job"})
    return as_csv(_marked(bundle, table))


def _marked(bundle: Bundle, table: pl.DataFrame) -> pl.DataFrame:
    """Add a column to what is read with `--unverified`, so that no row goes without the mark."""
    if bundle.verified is not False:
        return table
    return table.with_columns(pl.lit(value=False).alias("verified"))


def as_csv(table: pl.DataFrame) -> str:
    """Return a table as CSV that no spreadsheet computes, whatever the names in it are."""
    texts = pl.col(pl.String).map_elements(printable.cell, return_dtype=pl.String)
    return table.with_columns(texts).write_csv(float_precision=3)


def flat(bundle: Bundle) -> pl.DataFrame:
    """Return the samples with names in place of indexes, one row per (interval, cell, op).

    Columns of `samples.parquet`, with `job`, `clone`, `group` and `target` before them and
    `op` as a word. `clone` and `target` are null where several are counted together.
    """
    plan = bundle.plan
    names = pl.DataFrame(
        [
            (
                index,
                plan.units[cell.unit].name,
                plan.units[cell.unit].clone,
                plan.units[cell.unit].group,
                None if cell.target is None else plan.targets[cell.target].path,
            )
            for index, cell in enumerate(plan.cells)
        ],
        schema={
            "cell": pl.UInt32,
            "job": pl.String,
            "clone": pl.UInt32,
            "group": pl.UInt32,
            "target": pl.String,
        },
        orient="row",
    )
    word = pl.col("op").replace_strict(dict(enumerate(OPS)), return_dtype=pl.String)
    joined = bundle.samples().join(names, on="cell", how="left", maintain_order="left").with_columns(word)
    first = ["job", "clone", "group", "target", "op"]
    return joined.select(*first, pl.exclude(*first))


def markdown(bundle: Bundle) -> str:
    """Return the result as a table for an issue or a wiki."""
    summary = summarise(bundle)
    head = table_heads(
        "job", "op", "IOPS", "bandwidth", "latency_mean", "p50", "p99", "p99.9", "max", "errors"
    )
    rows = [head, ["---", "---", *["---:"] * 8]]
    jobs = summary.totals("job")
    named = [(total.line.name, total) for total in jobs]
    if summary.has_total:
        named.append(("**total**", summary.total))
    for name, total in named:
        rows += [[printable.markdown(name), op, *cells(stats)] for op, stats in total.ops.items()]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if bundle.doubt is not None:
        lines = [f"**{bundle.doubt}**", "", *lines]
    about = say("report.export.about", status=bundle.status, length=units.seconds(summary.duration_s))
    remarks = [f"- {printable.markdown(note.text)}" for note, _ in notes.once(summary.notes)] + [
        f"- **{printable.markdown(one.message)}**" for one in summary.problems
    ]
    return "\n".join([*lines, "", about, *([""] if remarks else []), *remarks]) + "\n"


def prometheus(bundle: Bundle) -> str:
    """Return gauges per job, target and in total, as Prometheus text.

    Readable by node_exporter's textfile collector. What is not known has no line.
    """
    registry = CollectorRegistry()
    summary = summarise(bundle)
    labels = ("scope", "name", "group", "op")
    gauges = {
        name: Gauge(f"loadstone_{name}", text, labels, registry=registry)
        for name, text in (
            ("operations", say("report.export.help_operations")),
            ("bytes", say("report.export.help_bytes")),
            ("errors", say("report.export.help_errors")),
            ("iops", say("report.export.help_iops")),
            ("iops_standard_error", say("report.export.help_iops_error")),
            ("bandwidth_bytes_per_second", say("report.export.help_bandwidth")),
        )
    }
    latency = Gauge(
        "loadstone_latency_seconds",
        say("report.export.help_latency"),
        (*labels, "kind", "statistic"),
        registry=registry,
    )
    for scope, group, total in _scopes(summary):
        for op, stats in total.ops.items():
            where = (scope, printable.line(total.line.name), group, op)
            gauges["operations"].labels(*where).set(stats.operations)
            gauges["bytes"].labels(*where).set(stats.bytes)
            gauges["errors"].labels(*where).set(stats.errors)
            if stats.iops is not None and stats.bandwidth is not None:
                gauges["iops"].labels(*where).set(stats.iops.value)
                gauges["bandwidth_bytes_per_second"].labels(*where).set(stats.bandwidth.value)
                if stats.iops.error is not None:
                    gauges["iops_standard_error"].labels(*where).set(stats.iops.error)
            for kind in LATENCIES:
                if (lat := stats.latencies.get(kind)) is not None:
                    for statistic, value_ns in _statistics_ns(lat).items():
                        if value_ns is not None:
                            latency.labels(*where, kind, statistic).set(value_ns / 1e9)
    _run_gauges(summary, registry)
    return generate_latest(registry).decode()


def _statistics_ns(lat: Latency) -> dict[str, float | None]:
    """Return a latency's figures by the value of the label `statistic`."""
    quantiles = {f"{p / 100:g}": lat.percentile(p) for p in (50.0, 90.0, 99.0, 99.9, 99.99)}
    return {"mean": lat.mean_ns, "min": lat.min_ns, "max": lat.max_ns, **quantiles}


def _run_gauges(summary: Summary, registry: CollectorRegistry) -> None:
    used = summary.cpu_of(summary.total)
    values: list[tuple[str, str, float | None]] = [
        ("duration_seconds", say("report.export.help_length"), summary.duration_s),
        (
            "start_time_seconds",
            say("report.export.help_first"),
            summary.started.timestamp() if summary.started else None,
        ),
        (
            "verified",
            say("report.export.help_verified"),
            None if summary.bundle.verified is None else float(summary.bundle.verified),
        ),
        ("complete", say("report.export.help_complete"), float(summary.status == "complete")),
    ]
    for name, value_ns in (
        ("user", used[0].user_ns_per_io if used else None),
        ("system", used[0].system_ns_per_io if used else None),
    ):
        text = say("report.export.help_cpu", kind=name.capitalize())
        values.append((f"cpu_{name}_seconds_per_io", text, None if value_ns is None else value_ns / 1e9))
    for name, text, value in values:
        if value is not None:
            Gauge(f"loadstone_{name}", text, registry=registry).set(value)


def _scopes(summary: Summary) -> list[tuple[str, str, Total]]:
    """Return scope, group (only jobs have one: two sections may share a name) and line."""
    scopes = [("total", "", summary.total)]
    scopes += [("job", str(summary.group_of(total)), total) for total in summary.totals("job")]
    return scopes + [("target", "", total) for total in summary.totals("target")]


def _parquet(bundle: Bundle, path: Path) -> None:
    rows = _marked(bundle, flat(bundle))
    # Polars would write the file itself, and has no reason for a footer that the system refuses.
    memory = io.BytesIO()
    rows.write_parquet(memory, compression="zstd")
    with output.opened(path) as file:
        file.write(memory.getbuffer())


def _fio_json(bundle: Bundle) -> str:
    return document.text(fio.json_document(bundle))


def _fio_logs(bundle: Bundle, directory: Path) -> None:
    with output.together():
        output.directory(directory)
        if bundle.doubt is not None:
            output.write(directory / "NOT-VERIFIED.txt", f"{bundle.doubt}\n")
        fio.write_logs(bundle, directory)


_FILES: Final[dict[str, Callable[[Bundle, Path], None]]] = {"parquet": _parquet, "fio-logs": _fio_logs}
_TEXTS: Final[dict[str, Callable[[Bundle], str]]] = {
    "fio-json": _fio_json,
    "csv": csv,
    "prometheus": prometheus,
    "markdown": markdown,
}
