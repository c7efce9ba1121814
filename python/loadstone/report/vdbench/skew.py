"""`skew.html`: what each workload, SD and host did in a run, and its share against what was asked for.

Knows the tables and their columns. Shares of a run without a rate are told too: as in vdbench they
mean nothing there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.report.vdbench import interval_lines_fs
from loadstone.report.vdbench.wording import FORMAT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.report.vdbench.interval_totals import Counted, IntervalTotals, PartTotals

_ABOVE: Final = ("i/o", "MB/sec", "bytes", "read", "resp", "read", "write", "resp", "resp", "queue")
_BELOW: Final = ("rate", "1024**2", "i/o", "pct", "time", "resp", "resp", "max", "stddev", "depth")
_WIDTHS: Final = (10, 8, 7, 6, 8, 8, 8, 8, 8, 5)
_SHOWN: Final = 0.1
"""Percent: a difference that is told."""
_FILE_LABEL: Final = 12
_SLAVE: Final = "localhost-0"
_FILLED_BY: Final = "SD_format_"
"""Before the name of an SD: the workload with which vdbench fills its file."""


def skew(run: Counted, time: str, ops: Sequence[str], filled: Collection[str]) -> list[str]:
    """Return the lines of a run; `time` stands before each, `ops` are the operations of the page.

    `filled`: the SDs whose files this run or one before it made. Their labels widen the column, too.
    """
    lines = _files(run, ops) if run.on_files else _raw(run, filled)
    return [f"{time} {text}" for text in lines]


def _raw(run: Counted, filled: Collection[str]) -> list[str]:
    labels = [_SLAVE, *(part.name for part in (*run.storages, *run.workloads))]
    width = max(map(len, [*labels, *(_FILLED_BY + name for name in filled)]))
    lines: list[str] = []
    whole = run.average(run.whole)
    if len(run.storages) > 1 or len(run.workloads) < 2:
        lines += ["", *_raw_head("SD:", width)]
        lines += [_raw_line(part.name, width, run.average(part)) for part in run.storages]
        lines.append(_raw_line("Total", width, whole))
    if len(run.workloads) > 1:
        lines += [
            "",
            f"Calculated versus requested workload skew. (Delta only shown if > {_SHOWN:.2f}% absolute)",
        ]
        lines.append("Note that for an Uncontrolled MAX run workload skew is irrelevant.")
        if run.facts["iorate"] in ("max", "curve") and run.facts.get("controlled") != "yes":
            lines.append("This was an Uncontrolled MAX run.")
        above, below = _raw_head("WD:", width)
        lines += ["", f"{above} {'skew':>9} {'skew':>8} {'skew':>7} "]
        lines.append(f"{below} {'requested':>9} {'observed':>8} {'delta':>7} ")
        shares = _shares(run)
        for part, share in zip(run.workloads, shares, strict=True):
            tally = run.average(part)
            observed = 100 * tally.both.count / whole.both.count if whole.both.count else 0.0
            delta = share - observed
            delta_text = f"{delta:6.2f}%" if abs(delta) >= _SHOWN else ""
            lines.append(f"{_raw_line(part.name, width, tally)} {share:8.2f}% {observed:7.2f}% {delta_text}")
        lines.append(f"{_raw_line('Total', width, whole)} {100:8.2f}% {sum(shares):7.2f}%")
    return lines


def _raw_head(kind: str, width: int) -> tuple[str, str]:
    above = "".join(f"{word:>{wide}} " for word, wide in zip(_ABOVE, _WIDTHS, strict=True))
    below = "".join(f"{word:>{wide}} " for word, wide in zip(_BELOW, _WIDTHS, strict=True))
    return f"{'':<{width}} {above}", f"{kind:<{width}} {below}"


def _raw_line(name: str, width: int, tally: IntervalTotals) -> str:
    both = tally.both
    return (
        f"{name:<{width}} {tally.rate:10.2f} {tally.mib_per_s:8.2f} {tally.bytes_per_io:7d}"
        f" {tally.read_percent:6.2f} {both.response_ms:8.3f} {tally.reads.response_ms:8.3f}"
        f" {tally.writes.response_ms:8.3f} {both.longest_ms:8.3f} {tally.deviation_ms:8.3f}"
        f" {tally.queue_depth:5.1f} "
    )


def _files(run: Counted, ops: Sequence[str]) -> list[str]:
    lines: list[str] = []
    tables: list[tuple[str, Sequence[PartTotals]]] = [("Host:", ()), ("FSD:", run.storages)]
    if not run.facts["rd"].startswith(FORMAT):
        tables.append(("FWD:", run.workloads))
    whole = run.average(run.whole)
    for kind, parts in tables:
        above, below = interval_lines_fs.short_header(ops)
        lines += ["", f"{'':<{_FILE_LABEL}} {above}", f"{kind:<{_FILE_LABEL}} {below}"]
        rows = [(part.name, run.average(part)) for part in parts] or [("localhost", whole)]
        if len(parts) > 1:
            rows.append(("Total", whole))
        lines += [f"{name:<{_FILE_LABEL}} {interval_lines_fs.short_line(tally, ops)}" for name, tally in rows]
    if len(run.workloads) > 1 and _requested_shares(run) and not run.facts["rd"].startswith(FORMAT):
        lines += _file_shares(run, whole)
    return lines


def _file_shares(run: Counted, whole: IntervalTotals) -> list[str]:
    lines = ["", "FWD skew requested vs. actual (Use 'abort_failed_skew=n.n' to abort when delta > n.n)"]
    lines.append(f"{'FWD':<12} {'ops/sec':>7} {'requested':>10} {'actual':>7} {'delta':>7}")
    total = whole.requested.count
    for part, share in zip(run.workloads, _shares(run), strict=True):
        tally = run.average(part)
        actual = 100 * tally.requested.count / total if total else 0.0
        delta = actual - share
        lines.append(f"{part.name:<12} {tally.rate:7.0f} {share:9.2f}% {actual:6.2f}% {delta:+6.2f}%")
    return lines


def _requested_shares(run: Counted) -> dict[str, float]:
    """Return the percentage each workload asks for, of those that do."""
    kind = "fwd" if run.on_files else "wd"
    requested_shares: dict[str, float] = {}
    for job in run.jobs:
        share = job["own_options"].get("skew")
        if share is not None:
            name = job["own_options"][kind]
            requested_shares[name] = requested_shares.get(name, 0.0) + float(share) / _streams(run, job)
    return requested_shares


def _shares(run: Counted) -> list[float]:
    """Return the percentage of each workload: what it asks for, or an even part of the rest."""
    requested_shares = _requested_shares(run)
    without = [part.name for part in run.workloads if part.name not in requested_shares]
    rest = (100 - sum(requested_shares.values())) / len(without) if without else 0.0
    return [requested_shares.get(part.name, rest) for part in run.workloads]


def _streams(run: Counted, job: Mapping[str, Any]) -> int:
    """Return how many jobs say the same share: the streams of one workload on one SD."""
    if run.on_files:
        return 1  # A share of one file system, and of one operation.
    own = job["own_options"]
    return sum(
        (one["own_options"].get("wd"), one["own_options"].get("sd")) == (own.get("wd"), own.get("sd"))
        for one in run.jobs
    )
