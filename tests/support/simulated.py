"""A Workload run on a simulated device, in a bundle: its rates, ramps and stages as they are.

The device has a virtual clock, so that a minute takes a moment and the same seed gives the same run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lab.steady_device import steady_device

from loadstone.plan import model as plan
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.resolve import resolve
from loadstone.session import RunRequest, run_plan
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.plan.model import SimDevice
    from loadstone.workload.model import Job, Workload

DEVICE = steady_device(2_000_000, servers=16, write_ns=4_000_000)


def run(
    workload: Workload,
    path: Path,
    *,
    device: SimDevice = DEVICE,
    size_bytes: int = 1 << 30,
    inputs: Mapping[str, bytes] | None = None,
) -> Path:
    """Run a Workload at `path`; returns the bundle. Jobs keep all but their targets and engine."""
    jobs = tuple(on_the_device(job, size_bytes) for job in workload.jobs)
    changed = workload.model_copy(update={"jobs": jobs, "needs_targets": False})
    # What was asked for, the engine and targets too, is what exports repeat.
    return run_changed(changed, workload, path, device, inputs)


def run_changed(
    changed: Workload,
    asked: Workload,
    path: Path,
    device: SimDevice,
    inputs: Mapping[str, bytes] | None = None,
) -> Path:
    """Run a Workload whose jobs have no target, in a bundle that says what was `asked`."""
    here = HostFacts.here()
    # One thread: each has a virtual clock of its own.
    resolved = resolve(changed, host=replace(here, cpus=here.cpus[:1]))
    simulated = plan.BackendSim(device=device)
    workers = tuple(worker.model_copy(update={"backend": simulated}) for worker in resolved.plan.workers)
    request = RunRequest(
        request={"argv": [], "cwd": "/", "front_end": "run", "options": {}},
        inputs=dict(inputs or {}),
        workload_json=asked.model_dump_json(),
        notes=[],
    )
    outcome = run_plan(resolved.plan.model_copy(update={"workers": workers}), request=request, out_dir=path)
    assert outcome.error is None, outcome.error
    return outcome.bundle_path


def on_the_device(job: Job, size_bytes: int) -> Job:
    return job.changed(
        {
            "engine.ioengine": "null",
            "engine.direct": None,
            "placement.targets": (),
            "placement.directories": (),
            "placement.offset": None,
            "placement.size": Amount(bytes=size_bytes),
        }
    )
