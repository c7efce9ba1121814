"""What share of a run's I/Os each workload and SD had, against what was asked for.

Knows shares only. A share that nobody asked for has no difference to tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.report.vdbench.tally import Counted, Part


def skew(run: Counted) -> list[str]:
    """Return the lines of a run; with one workload on one SD there is nothing to say."""
    if len(run.workloads) < 2 and len(run.storages) < 2:
        if run.on_files:
            return ["Only one File system Workload Definition (FWD) and one File System Definition (FSD)."]
        return ["Only one Workload Definition (WD) and one Storage Definition (SD)."]
    asked: dict[str, float] = {}
    kind, place = ("fwd", "fsd") if run.on_files else ("wd", "sd")
    for job in run.jobs:
        share = job["own_options"].get("skew")
        if share is not None:
            wd = job["own_options"][kind]
            asked[wd] = asked.get(wd, 0.0) + float(share) / _streams(run, job)
    made: list[str] = []
    for what, parts, wanted in ((kind, run.workloads, asked), (place, run.storages, {})):
        if len(parts) > 1:
            made += _table(run, what.upper(), parts, wanted)
    return made


def _streams(run: Counted, job: dict[str, object]) -> int:
    """Return how many jobs say the same share: the streams of one workload on one SD."""
    if run.on_files:
        return 1  # A share of one file system, and of one operation.
    own = job["own_options"]
    assert isinstance(own, dict)  # noqa: S101 - the shape of a workload's JSON
    return sum(
        (one["own_options"].get("wd"), one["own_options"].get("sd")) == (own.get("wd"), own.get("sd"))
        for one in run.jobs
    )


def _table(run: Counted, what: str, parts: list[Part], asked: dict[str, float]) -> list[str]:
    rates = {part.name: run.average(part).rate for part in parts}
    whole = sum(rates.values())
    made = [f"{what + ':':<16} {'i/o rate':>10} {'requested':>10} {'observed':>10} {'delta':>10}"]
    for name, rate in rates.items():
        observed = 100 * rate / whole if whole else None
        wanted = asked.get(name)
        delta = None if wanted is None or observed is None else observed - wanted
        cells = "".join(
            f" {'n/a' if value is None else f'{value:.2f}%':>10}" for value in (wanted, observed, delta)
        )
        made.append(f"{name:<16} {rate:10.2f}{cells}")
    return [*made, f"{'Total':<16} {whole:10.2f}", ""]
