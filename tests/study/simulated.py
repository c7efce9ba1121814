"""Studies of a simulated device, through the whole tool: engine, bundles, analysis.

Time is virtual, so a study of minutes takes a second and does not depend on how busy the
machine is. A job with ioengine=null is resolved as for a user; only its device is replaced.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from lab.steady_device import steady_device

from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.model import BackendSim, SimDevice
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import Resolution, resolve
from tests.e2e.program import needs_engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.study.controller import Next
    from loadstone.workload.model import Workload


def workload(seconds: float = 10, **options: Any) -> Workload:
    """One job of 4 KiB random reads; `options` are fio's."""
    given = {"rw": "randread", "bs": "4k", "size": "1g", "iodepth": 64} | options
    lines = [f"{name}={value}" for name, value in given.items()]
    text = "\n".join(["[job]", "ioengine=null", "time_based", f"runtime={seconds}s", *lines]) + "\n"
    return read_jobfiles([TextSource(text.encode(), name="job.fio")])


def device(service_ns: int = 100_000, servers: int = 1, **changes: Any) -> SimDevice:
    return steady_device(service_ns, servers=servers, **changes)


def on(made: SimDevice | Callable[[Next], SimDevice]) -> Callable[[Next], Resolution]:
    """Resolve runs for a simulated device, or for one that depends on the run."""
    needs_engine()

    def resolved(wanted: Next) -> Resolution:
        found = resolve(wanted.workload, options=ResolveOptions(rate=wanted.rate))
        backend = BackendSim(device=made if isinstance(made, SimDevice) else made(wanted))
        workers = tuple(worker.model_copy(update={"backend": backend}) for worker in found.plan.workers)
        return dataclasses.replace(found, plan=found.plan.model_copy(update={"workers": workers}))

    return resolved
