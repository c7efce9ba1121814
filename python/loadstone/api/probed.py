"""Probes between a run and its result: short extra runs that tell what lies behind its number.

Knows how long they may take, and where what they measured is kept. What is probed is decided in `probe`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone.audit.run import SealedFigures
from loadstone.bundle import layout
from loadstone.bundle.disk import Disk
from loadstone.errors import InputError, Where
from loadstone.formats.fio.numbers import SECOND_NS, Reading, time_ns
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.bundle.read import Bundle
    from loadstone.plan.safety.guard import Consent
    from loadstone.probe.after_run import MakeRunner
    from loadstone.probe.base import Base
    from loadstone.probe.probe_session import Runner
    from loadstone.session import Progress
    from loadstone.workload.model import Workload

DEFAULT: Final = "20s"
LEAST_S: Final = 2.0
MOST_S: Final = 3600.0


def budget_s(budget: str | float, where: Where) -> float:
    """Read how long all probes together may take. Raises `InputError`."""
    seconds = (
        time_ns(budget or DEFAULT, Reading(where), SECOND_NS) / 1e9
        if isinstance(budget, str)
        else float(budget)
    )
    if not LEAST_S <= seconds <= MOST_S:
        raise make_error(
            InputError,
            "api.amount.budget",
            where=where,
            found=str(budget),
            least=f"{LEAST_S:g}",
            most=f"{MOST_S / 60:g}",
        )
    return seconds


def on_this_host(consent: Consent, progress: Callable[[], Progress | None] = lambda: None) -> MakeRunner:
    """Return who runs probes here; `progress` makes who sees each of them."""

    def runner(bundle: Bundle, _: Base) -> Runner:
        from loadstone.probe import after_run

        return after_run.on_this_host(bundle, consent, progress)

    return runner


@dataclass
class ProbedFigures(SealedFigures):
    """A run that is probed before it is added up: its result has what the probes measured."""

    budget_s: float
    runner: MakeRunner
    """Makes who runs the probes."""
    tell: Callable[[str], None] = lambda _: None

    def document(self, bundle: Bundle) -> dict[str, Any]:
        """Probe, keep what was measured, and compute `result.json`."""
        from loadstone.probe.after_run import Wanted, after

        result = super().document(bundle)
        if bundle.status != "complete" or self.audited is None:
            return result
        probed = after(bundle, self.audited, Wanted(self.budget_s, self.runner, self.tell))
        if probed is None:
            return result
        if not any(one.seconds for one in probed.tried):
            reason = probed.left_out[-1].why if probed.left_out else probed.ended
            self.tell(say("probe.done.none", reason=reason))
        Disk().put(bundle.path / layout.PROBED, probed.model_dump_json(indent=2).encode() + b"\n")
        return super().document(type(bundle)(bundle.path, bundle.manifest, verified=bundle.verified))


def probe_workload(
    targets: Sequence[str],
    *,
    rw: str,
    bs: str,
    iodepth: int,
    runtime: str,
    size: str | None,
    asked_at: Where,
) -> Workload:
    """Return the load whose number is probed; `asked_at`: where the targets were named."""
    lines = [
        "[probe]",
        "ioengine=io_uring",
        "direct=1",
        f"rw={rw}",
        f"bs={bs}",
        f"iodepth={iodepth}",
        "time_based=1",
        f"runtime={runtime}",
        "filename=/placeholder",
        *([f"size={size}"] if size is not None else []),
    ]
    text = "\n".join(lines) + "\n"
    read = read_jobfiles([TextSource(text.encode(), name="probe.fio")]).with_targets(targets)
    # The targets were named by whoever asks for probes, and not in this text.
    jobs = tuple(
        job.model_copy(update={"set_at": {**job.set_at, "placement.targets": asked_at}}) for job in read.jobs
    )
    return read.model_copy(update={"jobs": jobs})
