"""One engine process: its pipes, its events, its end.

Knows how to start the program, read what it says without waking more often than it speaks,
ask it to stop or to end a part of the run, kill it. Knows no
meaning of an event beyond its `type`; what silence means is in `engine.watch`.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import subprocess
from typing import TYPE_CHECKING, Any

from loadstone import engine_groups, exit_cause, process_state
from loadstone.engine.binary import find, not_started, rebuild_hint
from loadstone.errors import EngineError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Event = dict[str, Any]
"""One JSON object of the engine's standard output (contract/README.md lists the types)."""

READ_BYTES = 1 << 20


class EventLines:
    """Pieces of a pipe into the events of its lines."""

    def __init__(self, read: Callable[[bytes], Event] | None = None) -> None:
        self._read = read or _event
        self.rest = b""
        """What came after the last line's end."""

    def of(self, data: bytes) -> Iterator[Event]:
        """Yield the events that this piece completes. Raises `EngineError` for what is none."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in filter(None, lines):
            yield self._read(line)


class EngineProcess:
    """A running engine. Use as a context manager: leaving it leaves no process behind."""

    def __init__(
        self,
        plan: Path,
        out: Path,
        *,
        program: Path | None = None,
        arm: bool = False,
        wanted_by: Sequence[int] = (),
    ) -> None:
        """Start `loadstone-engine run PLAN --out OUT`; raise `EngineError` if it cannot start.

        With `arm` it says `armed` when all is ready, and starts when `start_at` says. `wanted_by` are
        descriptors whose end, like ours, ends it: also while this process is stopped and sees nothing.
        """
        argv = [str(program or find()), "run", str(plan), "--out", str(out), *(["--arm"] if arm else [])]
        argv += [f"--wanted-by={descriptor}" for descriptor in wanted_by]
        self._children_s = _children_s()
        try:
            # A group of its own: a Ctrl-C of the terminal reaches us, and we decide.
            self._process = subprocess.Popen(
                engine_groups.inside(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
                pass_fds=wanted_by,
            )
        except OSError as error:
            raise not_started(argv[0], error) from error
        self._pipes = [
            pipe for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe
        ]

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """Processor time it took, once it has been waited for."""
        return _children_s() - self._children_s

    def events(self, tick_s: float) -> Iterator[Event | None]:
        """Yield events as they come, `None` after each `tick_s` seconds of silence.

        Ends when the engine closed its output. A line of standard error comes as an event
        `talk` with `text`. Raises `EngineError` for output that is not a JSON object.
        """
        out, talk = (pipe.fileno() for pipe in self._pipes[1:])
        lines = {out: EventLines(_event), talk: EventLines(_talk)}
        with selectors.DefaultSelector() as selector:
            for descriptor in lines:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(tick_s)
                if not ready:
                    yield None
                for key, _ in ready:
                    data = os.read(key.fd, READ_BYTES)
                    if not data:
                        selector.unregister(key.fd)
                        continue
                    yield from lines[key.fd].of(data)
        # A last line without its end is what a killed engine leaves: half an object, dropped.
        if lines[talk].rest:
            yield _talk(lines[talk].rest)

    def stop(self) -> None:
        """Ask for a clean end: stop issuing, drain, report."""
        self._order("stop")

    def end_stage(self, stage: int) -> None:
        """Ask for the end of a stage: drain it and go on with the next one."""
        self._order(f"end-stage {stage}")

    def end_stream(self, stream: int) -> None:
        """Ask for the end of one stream; the others of its stage go on."""
        self._order(f"end-stream {stream}")

    def start_at(self, monotonic_ns: int) -> None:
        """Let an armed engine start when the monotonic clock shows this."""
        self._order(f"start-at {monotonic_ns}")

    def end_unless_told_within(self, seconds: float) -> None:
        """Let it end by itself where it hears nothing more for so long, whatever may be the reason."""
        self._order(f"within {round(seconds * 1e9)}")

    def _order(self, line: str) -> None:
        try:
            # Unbuffered, because a signal handler may do this.
            os.write(self._pipes[0].fileno(), line.encode() + b"\n")
        except (BrokenPipeError, ValueError):
            # It ended between the decision and the write; its end is reported elsewhere.
            return

    def kill(self) -> None:
        """End it at once. What it has written stays."""
        self._process.kill()

    def wait(self, timeout_s: float) -> int | None:
        """Exit code as `subprocess` gives it, or `None` when it is still there after the time."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def state(self) -> str | None:
        """State letter of /proc/PID/stat (`D`: waits in the kernel), `None` when it is gone."""
        return process_state.state(self.pid) or None

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
            self.wait(1.0)
        for pipe in self._pipes:
            pipe.close()


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def probe(*, program: Path | None = None, timeout_s: float = 20.0) -> dict[str, Any]:
    """Return what the engine finds possible here: the document of `loadstone-engine probe`."""
    argv = [str(program or find()), "probe"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise make_error(
            EngineError, "engine.probe.failed", hint=rebuild_hint(), program=argv[0], reason=str(error)
        ) from error
    if done.returncode != 0:
        text = done.stderr.decode(errors="replace").strip()
        raise make_error(
            EngineError,
            "engine.probe.ended",
            hint=rebuild_hint(),
            program=argv[0],
            ending=exit_cause.of_exit(done.returncode, oom=None, cpu_s=0.0, cpu_limit_s=None),
            reason=text,
        )
    return _event(done.stdout)


def _event(line: bytes) -> Event:
    try:
        event = json.loads(line)
    except ValueError as error:
        shown = line[:200].decode(errors="replace")
        raise make_error(
            EngineError, "engine.contract.not_json", hint=rebuild_hint(), found=repr(shown)
        ) from error
    if not isinstance(event, dict):
        raise make_error(EngineError, "engine.contract.no_object", hint=rebuild_hint(), found=repr(event))
    return event


def _talk(line: bytes) -> Event:
    return {"type": "talk", "text": line.decode(errors="replace")}
