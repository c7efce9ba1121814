"""What a run on many real agents costs the coordinator: `python -m lab.hosts.real_scale [--hosts 64]`.

Each host is a network namespace with an ssh server, an agent and an engine. The device is simulated
(`ioengine=null`, 100 IOPS), because all engines share this machine's CPUs. Prints what the coordinator and
what carries its words (ssh clients, or a scheduler of its own process) take of a CPU, how late a second is
shown, and how long the engines go on after Ctrl-C. Needs root and sshd. Removes what it made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts
from lab.hosts.standing import StandingScheduler
from lab.hosts.trial import EVERY_WAY, STANDING

from loadstone.api.jobs.job_changes import JobChanges
from loadstone.api.on_hosts import works_of_hosts
from loadstone.audit.run import SealedFigures
from loadstone.bundle.read import Bundle
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.hosts.coordinator import HostsRequest, run_on_hosts
from loadstone.hosts.greeting import new_number
from loadstone.hosts.hosts_file import read_hosts_file
from loadstone.hosts.kept_agents import KeptAgents
from loadstone.plan.safety.guard import Consent
from loadstone.session import RunRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from loadstone.plan.model import Plan

JOB = b"[r]\nioengine=null\nrw=randread\nbs=4k\nsize=1g\nrate_iops=100\ntime_based\nruntime=1d\n"
TICK_HZ = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 120.0


class CountingDisplay:
    """A display that notes when it was shown each second, and asks for the end after so many."""

    def __init__(self, hosts: NamespaceHosts, seconds: int, carriers: Callable[[], list[int]]) -> None:
        """`carriers`: the processes that carry words, besides this one."""
        self._hosts, self._seconds, self._carriers = hosts, seconds, carriers
        self.shown: list[tuple[int, int]] = []
        """Wall clock, and the second's end on the run's clock."""
        self.cpu: list[tuple[float, float, float]] = []
        """Time, and CPU time of this process and of the carriers, at the first second and the last."""
        self.engines = 0
        self.stopped_s: float | None = None

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Nothing is to be shown yet."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Note a second."""
        if event.get("type") != "tick" or self.stopped_s is not None:
            return
        self.shown.append((time.time_ns(), int(event["t_ns"])))
        if len(self.shown) in {1, self._seconds}:
            self.cpu.append((time.monotonic(), time.process_time(), cpu_s(self._carriers())))
        if len(self.shown) == self._seconds:
            threading.Thread(target=self._stop).start()

    def finish(self) -> None:
        """Nothing was shown."""

    def _stop(self) -> None:
        running = {pid for name in self._hosts.names for pid in self._hosts.engines(name)}
        self.engines = len(running)
        began_s = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
        while any(lives(pid) for pid in running) and time.monotonic() - began_s < PATIENCE_S:
            time.sleep(0.01)
        self.stopped_s = time.monotonic() - began_s


def children() -> list[int]:
    """Return the ssh clients of this process."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def cpu_s(pids: Iterable[int]) -> float:
    """Return the processor time of processes."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICK_HZ


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def measured(count: int, seconds: int, transport: str) -> dict[str, Any]:
    """Run on so many hosts for so many seconds."""
    with (
        NamespaceHosts(count, name="hostsscale") as hosts,
        tempfile.TemporaryDirectory(prefix="loadstone-hosts-scale-") as directory,
        StandingScheduler(hosts) if transport == STANDING else contextlib.nullcontext() as standing,
    ):
        # Their interpreters start on two CPUs; a host that is late is not lost.
        transport_line = f'transport = "{transport}"' if standing is None else standing.settings
        settings = f"{transport_line}\nconnect_s = 3000\nlost_after_s = 300\nlead_s = 20"
        file = read_hosts_file(hosts.hosts_toml(run=settings))
        workload = read_jobfiles([TextSource(JOB, name="scale.fio")])
        carriers = children if standing is None else standing.scheduler
        display = CountingDisplay(hosts, seconds, carriers)
        request = HostsRequest(
            asked=RunRequest(request={}, inputs={}, workload_json=workload.model_dump_json(), notes=[]),
            out_dir=Path(directory) / "out",
            consent=Consent(),
            holder=new_number(),
            progress=display,
            say=lambda text: print(text, file=sys.stderr),
        )
        began_s = time.monotonic()
        with KeptAgents(file) as agents:
            todo = works_of_hosts(workload, JobChanges(), file, {}, {}, rate=None, calibration=False)
            outcome = run_on_hosts(todo, file, agents.link, request, result=SealedFigures().document)
        whole_s = time.monotonic() - began_s
        return {
            "hosts": count,
            "transport": transport,
            "engines": display.engines,
            "status": outcome.status,
            "load_average": os.getloadavg()[0],
            "whole_s": round(whole_s, 1),
            **figures(display, Bundle.open(outcome.bundle_path)),
        }


def figures(seen: CountingDisplay, bundle: Bundle) -> dict[str, Any]:
    """Return what was noted as figures."""
    origin_ns = int((bundle.event("start") or {})["unix_ns"])
    late_s = [(at_ns - origin_ns - end_ns) / 1e9 for at_ns, end_ns in seen.shown]
    (first_s, own_s, carriers_s), (last_s, own_end_s, carriers_end_s) = seen.cpu
    length_s = last_s - first_s
    skews = [part.start_skew_ns or 0 for part in (bundle.hosts.hosts if bundle.hosts else ())]
    return {
        "seconds": round(length_s, 1),
        "coordinator_cpu_percent": round(100 * (own_end_s - own_s) / length_s, 2),
        "carriers_cpu_percent": round(100 * (carriers_end_s - carriers_s) / length_s, 2),
        "shown_late_s": {"median": round(statistics.median(late_s), 3), "most": round(max(late_s), 3)},
        "start_spread_ms": round(max(skews) / 1e6, 3),
        "engines_gone_after_s": None if seen.stopped_s is None else round(seen.stopped_s, 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--transport", choices=EVERY_WAY, default="dask")
    options = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not measured: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(json.dumps(measured(options.hosts, options.seconds, options.transport)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
