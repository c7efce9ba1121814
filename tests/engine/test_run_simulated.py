"""Whole runs with a simulated clock, engine, user and disk: what is drawn by a seed happens again.

The coordinator is the real one (`session`, `engine.run_state`, `bundle.write`); what it is done with
(`session.Means`) is not. A seed draws what the engine says and when, how it dies or hangs, when the
user interrupts and which file operation fails. What must hold is held after each run (`_held`).
`LOADSTONE_SEEDS=A-B pytest tests/engine/test_run_simulated.py -m nightly` tries others.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import random
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from loadstone.bundle import layout
from loadstone.bundle.disk import Disk
from loadstone.bundle.read import Bundle
from loadstone.engine.process import EventLines
from loadstone.engine.watchdog import PREPARE_KILL_S
from loadstone.errors import EngineError, LoadstoneError
from loadstone.path.child import NoAnswerError
from loadstone.plan.model import Plan
from loadstone.session import Means, Outcome, RunRequest, run_plan
from tests.support import plans
from tests.support.runs import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.monitor.sampler import MonitoredPath

OPEN = Path("/proc/self/fd")
FAST = range(100)
LONG = range(4000)
SECOND_NS = 1_000_000_000
ERRNOS = [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EPERM, errno.ENOENT]
GARBAGE = [
    b"thread panicked at\n",
    b"[1]\n",
    b"\xff\xfe\x00\n",
    b'{"type":"start"}\n',
    b'{"type":"tick","rows":7}\n',
    b'{"type":"stream_end","stream":[1],"failed":3}\n',
    b'{"type":"end","t_ns":"x"}\n',
    b"{}\n",
]


@dataclass
class SimulatedWorld:
    """Time, and what was drawn of it."""

    rng: random.Random
    now_s: float = 1000.0
    signals: list[float] = field(default_factory=list)
    """When the user interrupts."""
    events: list[str] = field(default_factory=list)
    """What happened, for the comparison of two runs of one seed."""


def small_plan(rng: random.Random) -> Plan:
    """One to three streams in one or two stages, by time or by bytes."""
    streams = []
    stages = rng.choice([1, 1, 2])
    for number in range(rng.randint(1, 3)):
        timed = rng.random() < 0.7
        limits: dict[str, Any] = (
            {"runtime_ns": 5 * SECOND_NS, "time_based": True} if timed else {"bytes": 1 << 20}
        )
        streams.append(plans.stream(worker=number % stages, **limits))
    workers = [plans.worker({"type": "null"}, stage) for stage in range(stages)]
    target = plans.target("simulated", "virtual")
    used = {one["worker"] for one in streams}
    workers = workers[: max(used) + 1]
    document = plans.plan([target], streams, workers, interval_ns=SECOND_NS, grace_ns=SECOND_NS)
    return Plan.model_validate_json(json.dumps(document))


def script(world: SimulatedWorld, plan: Plan) -> list[tuple[float, bytes]]:
    """What an honest engine says: pauses in seconds, and bytes."""
    rng = world.rng
    said: list[tuple[float, bytes]] = []

    def say(pause_s: float, **event: Any) -> None:
        said.append((pause_s, json.dumps(event).encode() + b"\n"))

    say(rng.uniform(0.01, 0.3), type="hello", pid=4242)
    for _ in range(rng.choice([0, 0, 3])):
        say(rng.uniform(0.1, 30.0), type="layout", target=0, done_bytes=1, total_bytes=2)
    say(0.01, type="start", unix_ns=1_700_000_000 * SECOND_NS, startup_ns=1)
    t_ns = 0
    for stage in range(1 + max(worker.stage for worker in plan.workers)):
        mine = [n for n, one in enumerate(plan.streams) if plan.workers[one.worker].stage == stage]
        if stage:
            say(0.0, type="stage", t_ns=t_ns, stage=stage)
        begin_ns = t_ns
        for _ in range(5):
            t_ns += SECOND_NS
            rows = [{"cell": 0, "op": "read", "ramp": False, "ops": 100, "bytes": 409600, "errors": 0}]
            say(1.0, type="tick", t_ns=t_ns, rows=rows)
        for number in mine:
            reason = "runtime" if plan.streams[number].limits.runtime_ns else "bytes"
            say(
                0.0, type="stream_end", stream=number, reason=reason, started_ns=begin_ns, ended_ns=t_ns,
                failed=[0, 0, 0, 0],
            )  # fmt: skip
    say(0.01, type="end", t_ns=t_ns, reason="done")
    return said


@dataclass
class Fate:
    """What becomes of an engine. All that is honest about it is in `is_honest`."""

    kind: str
    at: int
    """The line of the script where it happens."""
    code: int = 0

    @property
    def is_honest(self) -> bool:
        return self.kind in ("well", "late", "slow_exit")


KINDS = ["well", "well", "late", "slow_exit", "killed", "torn", "silent", "hung", "garbage", "exits_zero"]
KINDS += ["exits_4", "stopped", "signal", "stream_lost", "stream_short", "fatal", "no_spawn"]


class SimulatedEngine:
    """Has the face of `EngineProcess`."""

    pid = 4242
    cpu_s = 0.0

    def __init__(self, world: SimulatedWorld, plan: Plan, fate: Fate, out: Path) -> None:
        if fate.kind == "no_spawn":
            raise EngineError("the engine cannot be started: Resource temporarily unavailable")
        self.world = world
        self.fate = fate
        self.alive = True
        self.code: int | None = None
        self.stopping = False
        self.began = False
        self.plan = plan
        self.said = self._bent(script(world, plan))
        self.interrupts: SimulatedInterrupts | None = None
        samples = _samples()
        (out / "samples.arrows").write_bytes(samples[: world.rng.randint(0, len(samples))])

    def _bent(  # noqa: C901 # a table of fates, one line or two each
        self, said: list[tuple[float, bytes]]
    ) -> list[tuple[float, bytes]]:
        fate = self.fate
        at = min(fate.at, len(said) - 1)
        match fate.kind:
            case "killed" | "exits_zero" | "exits_4":
                self.code = {"killed": -9, "exits_zero": 0, "exits_4": 4}[fate.kind]
                return said[:at]
            case "torn":
                self.code = -11
                return [*said[:at], (0.0, said[at][1][:-5])]
            case "silent" | "hung":
                return [*said[:at], (1e9, b"")]
            case "garbage":
                return [*said[:at], (0.1, self.world.rng.choice(GARBAGE)), *said[at:]]
            case "late":
                return [*said[:at], (self.world.rng.uniform(0, 9), said[at][1]), *said[at + 1 :]]
            case "stopped":
                return [*said[:at], (0.1, b'{"type":"end","t_ns":5,"reason":"stopped"}\n')]
            case "signal":
                told = b'{"type":"signal","signal":"SIGTERM","sender_pid":7,"sender_uid":0,"sender":"init"}\n'
                return [*said[:at], (0.1, told), (0.1, b'{"type":"end","t_ns":5,"reason":"stopped"}\n')]
            case "stream_lost":
                return [one for one in said if b'"stream_end"' not in one[1] or b'"stream": 0' not in one[1]]
            case "stream_short":
                return [(pause, self._short(line)) for pause, line in said]
            case "fatal":
                self.code = 3
                told = b'{"type":"fatal","code":3,"message":"cannot open","hint":"try"}\n'
                return [*said[: min(at, 1)], (0.1, told)]
        return said

    def _short(self, line: bytes) -> bytes:
        event = json.loads(line)
        if event["type"] == "stream_end" and event["stream"] == 0:
            event |= {"reason": "runtime", "ended_ns": event["started_ns"] + SECOND_NS}
            if not self.plan.streams[0].limits.runtime_ns:
                event["reason"] = "stopped"
        return json.dumps(event).encode() + b"\n"

    def events(self, tick_s: float) -> Iterator[dict[str, Any] | None]:
        lines = EventLines()
        waiting = list(self.said)
        while True:
            if not self.alive and self.fate.kind != "hung":
                return
            if self.stopping and self.fate.kind not in ("silent", "hung"):
                waiting = [(0.2, b'{"type":"end","t_ns":7,"reason":"stopped"}\n')]
                self.stopping = False
            if not waiting:
                if self.fate.kind == "slow_exit" and self.alive:
                    yield from self._pass(tick_s)
                    continue
                self.alive = False
                self.code = 0 if self.code is None else self.code
                return
            pause_s, piece = waiting[0]
            if pause_s > tick_s:
                waiting[0] = (pause_s - tick_s, piece)
                yield from self._pass(tick_s)
                continue
            waiting.pop(0)
            self._advance(pause_s)
            self.began |= b'"start"' in piece
            if piece:
                yield from lines.of(piece)

    def _pass(self, tick_s: float) -> Iterator[None]:
        self._advance(tick_s)
        yield None

    def _advance(self, pause_s: float) -> None:
        self.world.now_s += pause_s
        assert self.world.now_s < 1000 + 10 * PREPARE_KILL_S, "it waits for ever"
        if self.interrupts is not None:
            self.interrupts.look()

    def stop(self) -> None:
        self.stopping = True

    def end_stage(self, stage: int) -> None:
        raise AssertionError

    end_stream = end_stage

    def kill(self) -> None:
        if self.alive:
            self.alive = False
            self.code = -9

    def wait(self, _timeout_s: float) -> int | None:
        return None if self.fate.kind == "hung" else self.code

    def state(self) -> str | None:
        return "D" if self.fate.kind == "hung" else "S"

    def __enter__(self) -> SimulatedEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class SimulatedInterrupts:
    """Has the face of `Interrupts`; the user's signals are at times of the world."""

    def __init__(self, world: SimulatedWorld, first: Callable[[], None], second: Callable[[], None]) -> None:
        self.world = world
        self.count = 0
        self.told = (first, second)

    def look(self) -> None:
        while self.world.signals and self.world.signals[0] <= self.world.now_s:
            self.world.signals.pop(0)
            self.count += 1
            self.told[min(self.count, 2) - 1]()

    def __enter__(self) -> SimulatedInterrupts:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FailingDisk(Disk):
    """Fails one operation, or all from one on; a write may fail in the middle."""

    def __init__(self, rng: random.Random, *, at: int | None, sticks: bool) -> None:
        self.rng = rng
        self.at = at
        self.sticks = sticks
        self.count = 0
        self.failed = False

    def _maybe(self, path: Path | None = None) -> None:
        self.count += 1
        if self.at is not None and (self.count == self.at or (self.sticks and self.count > self.at)):
            self.failed = True
            number = self.rng.choice(ERRNOS)
            raise OSError(number, os.strerror(number), None if path is None else str(path))

    def mkdir(self, path: Path, *, above: bool = True) -> None:
        self._maybe(path)
        super().mkdir(path, above=above)

    def open(self, path: Path, flags: int) -> int:
        self._maybe(path)
        return super().open(path, flags)

    def write(self, file: int, content: bytes) -> int:
        try:
            self._maybe()
        except OSError:
            super().write(file, content[: len(content) // 2])
            raise
        return super().write(file, content[: self.rng.choice([len(content), max(1, len(content) // 3)])])

    def fsync(self, file: int) -> None:
        self._maybe()

    def replace(self, old: Path, new: Path) -> None:
        self._maybe(new)
        super().replace(old, new)

    def unlink(self, path: Path) -> None:
        self._maybe(path)
        super().unlink(path)

    def make(self, path: Path, how: Callable[[Path], None]) -> None:
        try:
            self._maybe(path)
        except OSError:
            path.write_bytes(b"half")
            raise
        super().make(path, how)


class NoSampler:
    """Has the face of `Sampler`: one row, and perhaps a full disk at the end."""

    def __init__(
        self, _plan: Plan, _pid: int, _origin_ns: int, write: Callable[..., None], _under: MonitoredPath
    ) -> None:
        self.write = write

    def start(self) -> None:
        pass

    def stop(self) -> dict[str, Any]:
        self.write({"t_ns": 1, "dt_ns": 1, "memory.total_bytes": 1})
        return {"cpu_ns": 1, "rows": 1, "by_collector": {}}


@functools.cache
def _samples() -> bytes:
    schema = arrow_schema(layout.SAMPLES)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as out:
        for number in range(4):
            row: dict[str, Any] = dict.fromkeys(layout.SAMPLES, 0) | {
                "interval": number,
                "ramp": False,
                "ops": 100,
            }
            row |= {name: [] for name in layout.SAMPLES if name.endswith(("_bucket", "_count"))}
            out.write_table(pa.Table.from_pylist([row], schema=schema))
    return bytes(sink.getvalue().to_pybytes())


@dataclass
class SimulatedRun:
    """One seed, run."""

    world: SimulatedWorld
    fate: Fate
    engine: SimulatedEngine | None
    disk: FailingDisk
    asked: int
    """How often the user had interrupted when the run was over."""
    outcome: Outcome | LoadstoneError
    result_fails: bool

    @property
    def began(self) -> bool:
        """Whether the engine said that the load began."""
        return self.engine is not None and self.engine.began


@dataclass(frozen=True)
class SimulatedResult:
    """What a run came to; where it `fails` there is no memory to compute it."""

    fails: bool

    def __call__(self, bundle: Bundle) -> dict[str, Any]:
        if self.fails:
            raise MemoryError
        return {"ops": int(bundle.samples()["ops"].sum()), "events": len(bundle.events)}


def simulate(seed: int, directory: Path) -> SimulatedRun:
    rng = random.Random(seed)
    world = SimulatedWorld(rng)
    plan = small_plan(rng)
    fate = Fate(rng.choice(KINDS), rng.randint(1, 15))
    if rng.random() < 0.3:
        world.signals = sorted(1000 + rng.uniform(0, 25) for _ in range(rng.randint(1, 3)))
    at = rng.randint(1, 90) if rng.random() < 0.4 else None
    disk = FailingDisk(rng, at=at, sticks=rng.random() < 0.5)
    answers = rng.random() > 0.1
    result = SimulatedResult(fails=rng.random() < 0.05)
    made: list[SimulatedEngine] = []
    user: list[SimulatedInterrupts] = []

    def engine(_plan: Path, out: Path) -> Any:
        made.append(SimulatedEngine(world, plan, fate, out))
        return made[-1]

    def interrupts(first: Callable[[], None], second: Callable[[], None]) -> Any:
        user.append(SimulatedInterrupts(world, first, second))
        made[-1].interrupts = user[-1]
        return user[-1]

    def look(
        work: Callable[[], Any], *, doing: str, silent_s: float = 20.0, give_up: Any = None, keep: Any = ()
    ) -> Any:
        if made and not answers:
            world.now_s += silent_s
            raise NoAnswerError(f"{doing}: no answer")
        return work()

    means = Means(
        monotonic=lambda: world.now_s,
        engine=engine,
        interrupts=interrupts,
        sampler=NoSampler,  # type: ignore[arg-type] # has its face
        look=look,
        disk=disk,
    )
    outcome: Outcome | LoadstoneError
    try:
        request = RunRequest({}, {"a.fio": b"[a]"}, "{}", [])
        outcome = run_plan(plan, request=request, out_dir=directory / "b", result=result, means=means)
    except LoadstoneError as error:
        outcome = error
    count = user[-1].count if user else 0
    return SimulatedRun(world, fate, made[-1] if made else None, disk, count, outcome, result.fails)


def _held(ran: SimulatedRun, directory: Path) -> str:
    """Hold a run to what must be true of every run; return what became of it."""
    outcome, fate, engine = ran.outcome, ran.fate, ran.engine
    assert engine is None or not engine.alive, "an engine was left running"
    # Before the load begins a silent engine has an hour: it may be in one long fsync.
    patience_s = 400 if ran.began else 400 + PREPARE_KILL_S
    assert ran.world.now_s < 1000 + patience_s, "it waited for ever"
    if isinstance(outcome, LoadstoneError):
        assert ran.disk.failed, f"refused for no reason: {outcome}"
        assert engine is None, "an error came out of the middle of a run"
        assert outcome.hint
        return "refused"
    assert (outcome.exit_code == 0) == (outcome.status == "complete"), outcome
    bundle = Bundle.open(directory / "b")
    events = bundle.events
    # After the manifest only the directory is brought to disk: where that fails, all is there, and said.
    not_on_disk = ran.disk.failed and "may be lost in a power failure" in str(outcome.error)
    assert bundle.status in (outcome.status, "partial") or not_on_disk
    if not_on_disk:
        assert (outcome.status, outcome.exit_code, bundle.verify()) == ("failed", 1, [])
        return "failed"
    if bundle.status != "partial":
        assert bundle.verify() == []
        assert not [path.name for path in bundle.path.iterdir() if path.name.endswith((".part", ".arrows"))]
        assert not (bundle.path / layout.HOST).exists()
        assert bundle.manifest["exit_code"] == outcome.exit_code
    unfinished = [path.name for path in bundle.path.iterdir() if path.name.endswith(".part")]
    assert not unfinished or ran.disk.failed
    if outcome.status == "complete":
        assert fate.is_honest, f"an engine that was {fate.kind} passed"
        assert not ran.disk.failed
        assert not ran.result_fails
        assert [event["type"] for event in events if event["type"] == "end"] == ["end"]
    if ran.disk.failed or ran.result_fails:
        assert outcome.status in ("failed", "partial")
    if outcome.status == "failed":
        assert outcome.exit_code
        assert outcome.error is not None
        if bundle.status == "partial":
            said = str(outcome.error)
            assert "measured until then" in said or "nothing was measured" in said
            assert outcome.error.hint
            ticks = sum(event["type"] == "tick" for event in events)
            assert ticks == 0 or "read: " in said
    if outcome.status in ("interrupted", "partial"):
        assert ran.asked
        assert outcome.exit_code == 130
    if ran.asked and fate.is_honest and not ran.disk.failed and not ran.result_fails:
        assert outcome.status in ("interrupted", "partial", "complete")
    return str(outcome.status)


def tried(seeds: range, directory: Path) -> Counter[tuple[str, str]]:
    """Run the seeds, each in a directory of its own; return how often each kind ended in which way."""
    found: Counter[tuple[str, str]] = Counter()
    descriptors = len(list(OPEN.iterdir()))
    for seed in seeds:
        place = directory / str(seed)
        place.mkdir()
        try:
            ran = simulate(seed, place)
            found[ran.fate.kind, _held(ran, place)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(place)
    assert len(list(OPEN.iterdir())) <= descriptors + 3, "files are left open"
    return found


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_hundred_runs(tmp_path: Path) -> None:
    found = tried(FAST, tmp_path)
    assert {kind for kind, _ in found} == set(KINDS)
    assert {status for _, status in found} == {"complete", "failed", "interrupted", "partial", "refused"}


@pytest.mark.nightly
def test_thousands_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, _, last = os.environ.get("LOADSTONE_SEEDS", "").partition("-")
    seeds = range(int(first), int(last or first) + 1) if first else LONG
    found = tried(seeds, tmp_path)
    lines = [f"{kind} {status}: {n}" for (kind, status), n in sorted(found.items())]
    with capsys.disabled():
        sys.stdout.write("\n  ".join([f"\n{len(seeds)} simulated runs", *lines]) + "\n")


@pytest.mark.parametrize("seed", [496, 533, 2744, 4089])
def test_seeds_that_found_something(tmp_path: Path, seed: int) -> None:
    """496: what was sealed was called partial. 533: of two failures only the first was said.

    2744: monitors whose rows could not be written were passed over.
    4089: a silent preparation was waited for without an end.
    """
    assert tried(range(seed, seed + 1), tmp_path).total() == 1


@pytest.mark.parametrize("seed", [3, 17, 40, 77])
@pytest.mark.in_turn
def test_a_seed_runs_the_same_way_again(tmp_path: Path, seed: int) -> None:
    runs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        ran = simulate(seed, tmp_path / name)
        told = ran.outcome.status if isinstance(ran.outcome, Outcome) else str(ran.outcome).replace(name, "")
        runs.append((told, ran.fate, ran.world.now_s, ran.disk.count))
    assert runs[0] == runs[1]
