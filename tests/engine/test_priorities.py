"""I/O priorities as the block layer sees them, and as the engine counts them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.devices import attached
from tests.support.plans import IO_URING, plan, stream, target, worker

from .runs import arrow_rows, finish, run, start

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE_BYTES = 1 << 20
REAL_TIME, IDLE, BEST_EFFORT = 0x2001, 0x6000, 0x4005
READS = {"op": "read", "block_bytes": None}


@contextlib.contextmanager
def traced(place: Path, event: str) -> Iterator[Path]:
    """A buffer of the kernel's trace of one kind of event; skips where there is none."""
    mount, instance = place / "trace", f"loadstone-test-{os.getpid()}"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tracefs", "nodev", str(mount)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"the kernel's trace cannot be had: {made.stderr.decode().strip()}")
    try:
        description = mount / "events" / event / "format"
        if not description.exists() or "ioprio" not in description.read_text():
            pytest.skip("this kernel's trace says no priorities (before Linux 6.11)")
        buffer = mount / "instances" / instance
        buffer.mkdir()
        try:
            (buffer / "events" / event / "enable").write_text("1")
            yield buffer
        finally:
            (buffer / "events" / event / "enable").write_text("0")
            buffer.rmdir()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


@contextlib.contextmanager
def loop(backing: Path) -> Iterator[str]:
    """A device of its own, so that its requests are ours."""
    backing.write_bytes(os.urandom(SIZE_BYTES))
    with attached(backing, "--direct-io=off") as device:
        try:
            yield device
        finally:
            (Path("/sys/block") / Path(device).name / "queue/nomerges").write_text("0")


@pytest.mark.root
@pytest.mark.parametrize("backend", [IO_URING, {"type": "libaio"}], ids=["io_uring", "libaio"])
def test_the_device_gets_the_priorities_that_are_counted(tmp_path: Path, backend: dict[str, Any]) -> None:
    if os.geteuid():
        pytest.skip("needs root")
    with loop(tmp_path / "backing") as device, traced(tmp_path, "block/block_rq_issue") as buffer:
        number = Path(device).stat().st_rdev
        # On a busy host requests wait and neighbours are merged; here each has to be seen.
        (Path("/sys/block") / Path(device).name / "queue/nomerges").write_text("2")
        shares = [
            READS | {"percent": 30.0, "priority": REAL_TIME},
            READS | {"percent": 20.0, "priority": IDLE},
        ]
        reads = stream(ops=400, repeat=True, priorities=shares, log_ios=True)
        place = target(device, "block", SIZE_BYTES, direct=True, read_only=True)
        outcome = run(plan([place], [reads], [worker(backend) | {"io_priority": BEST_EFFORT}]), tmp_path)
        assert outcome.code == 0, outcome.events
        name = f"{os.major(number)},{os.minor(number)} R "
        lines = [line for line in (buffer / "trace").read_text().splitlines() if name in line]
    seen = {
        REAL_TIME: sum(" rt,0,1 " in line for line in lines),
        IDLE: sum(" idle,0,0 " in line for line in lines),
        BEST_EFFORT: sum(" be,0,5 " in line for line in lines),
    }
    assert sum(seen.values()) == len(lines) == 400
    assert seen == {priority: outcome.total("ops", priority=priority) for priority in seen}
    # Six deviations of a binomial are 60 at most.
    assert abs(seen[REAL_TIME] - 120) < 60
    assert abs(seen[IDLE] - 80) < 60
    ticks = [[(row["cell"], row["op"]) for row in tick["rows"]] for tick in outcome.of("tick")]
    assert all(len(set(kinds)) == len(kinds) for kinds in ticks)
    assert sum(row["ops"] for tick in outcome.of("tick") for row in tick["rows"]) == 400
    each = [row["priority"] for row in arrow_rows(outcome.out / "ios.arrows", ["priority"])]
    assert {priority: each.count(priority) for priority in seen} == seen


def test_a_workers_nice_is_added_to_what_the_engine_was_started_with(tmp_path: Path) -> None:
    """As in fio: `nice -n 3` of the whole is not undone by a job that is nicer still."""
    (tmp_path / "data").write_bytes(bytes(SIZE_BYTES))
    reads = stream(repeat=True, runtime_ns=500_000_000, time_based=True)
    place = target(tmp_path / "data", "file", SIZE_BYTES, read_only=True)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    document = plan([place], [reads], [worker({"type": "psync"}) | {"nice": 2}])
    process = start(document, tmp_path)
    nices: set[int] = set()
    while process.poll() is None:
        for thread in Path(f"/proc/{process.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):
                name, _, fields = thread.read_text().partition("(")[2].rpartition(")")
                nices |= {int(fields.split()[16])} if name.startswith("worker") else set()
    assert finish(process, tmp_path).code == 0
    assert min(before + 2, 19) in nices


@pytest.mark.parametrize(
    ("path", "message", "changes", "of_worker"),
    [
        (
            "/streams/0/priorities",
            "have no effect",
            {"priorities": [READS | {"percent": 5.0, "priority": 1}]},
            {},
        ),
        (
            "/streams/0/priorities/0/percent",
            "at most 100",
            {"priorities": [READS | {"percent": 50.0, "priority": IDLE}] * 3},
            {"backend": IO_URING},
        ),
        (
            "/streams/0/priorities/0/op",
            "none of it",
            {"priorities": [{"op": "write", "block_bytes": None, "percent": 5.0, "priority": IDLE}]},
            {"backend": IO_URING},
        ),
        ("/workers/0/io_priority", "I/O priority 7/0/0", {}, {"io_priority": 7 << 13}),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(
    tmp_path: Path, path: str, message: str, changes: dict[str, Any], of_worker: dict[str, Any]
) -> None:
    virtual = target("", "virtual", 1 << 30) if not of_worker.get("backend") else target("/dev/zero", "char")
    document = plan([virtual], [stream(ops=10, **changes)], [worker({"type": "null"}) | of_worker])
    outcome = run(document, tmp_path)
    assert outcome.code == 2
    assert outcome.of("fatal")[0]["message"].startswith(f"{path}: ")
    assert message in outcome.of("fatal")[0]["message"]
