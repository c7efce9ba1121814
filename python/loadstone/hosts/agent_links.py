"""A way to speak with the agent of one host: orders there, messages back.

`PipeLink` starts the agent as a process of this machine or through `ssh`, and speaks over its
standard streams. When this process dies the streams close, and the agent ends what it runs.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import math
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from loadstone.errors import RunError
from loadstone.hosts.clock_offset import Exchange, HostClockOffset, offset
from loadstone.hosts.heard import is_message
from loadstone.messages import say, template

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.hosts.hosts_file import HostEntry, RunSettings

PINGS: Final = 8
ASK_S: Final = 10.0
ALIVE_S: Final = 15
"""So long an ssh server may be silent at least; longer where a host may be."""
ALIVE_EVERY_S: Final = 5
FETCH_S: Final = 60.0
"""Most time for one answer while a bundle is brought here."""
CLOSE_S: Final = 3.0
LINE_BYTES: Final = 1 << 28
"""No message is longer: who sends more without an end is not our agent."""
TALK_BYTES: Final = 1 << 16
"""Of a line that is for people."""
WANTED_BY: Final = "LOADSTONE_WANTED_BY"
"""Of an agent's environment: a descriptor that ends with the coordinator, besides the agent's input."""


class Link(Protocol):
    """One host's agent, as the coordinator sees it."""

    name: str

    def open(self) -> None:
        """Begin to reach it; what comes of it is heard as a message (`lost` when nothing does)."""

    def tell(self, order: dict[str, Any]) -> None:
        """Send an order; its answer is heard."""

    def ask(self, order: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a question and wait for its answer. Raises `RunError` when none comes."""
        ...

    def close(self) -> None:
        """Let go of it."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """A host's clocks against ours: the monotonic one for the start, the other for people."""

    monotonic: HostClockOffset
    wall: HostClockOffset
    slowest_answer_ns: int = 0


def clocks(link: Link, *, pings: int = PINGS, ask_s: float = ASK_S) -> Clocks:
    """Return how a host's clocks lie to ours. Raises `RunError` when it does not answer."""
    monotonic, wall = [], []
    for _ in range(pings):
        asked_ns, asked_wall_ns = time.monotonic_ns(), time.time_ns()
        reply = link.ask({"do": "ping"}, ask_s)
        heard_ns, heard_wall_ns = time.monotonic_ns(), time.time_ns()
        monotonic.append(Exchange(asked_ns, int(reply["monotonic_ns"]), heard_ns))
        wall.append(Exchange(asked_wall_ns, int(reply["unix_ns"]), heard_wall_ns))
    first, second = offset(monotonic), offset(wall)
    if first is None or second is None:
        hint = say("hosts.bundle.clock_hint")
        raise RunError(f"{link.name}: " + say("hosts.bundle.clock"), hint=hint)
    return Clocks(first, second, max(one.round_trip_ns for one in monotonic))


def fetch(link: Link, directory: Path) -> None:
    """Bring the bundle of a host here, file by file. Raises `RunError` when it does not come whole."""
    listed = link.ask({"do": "list"}, FETCH_S)
    directory.mkdir(exist_ok=True)
    for name, size in listed["files"]:
        path = directory / name
        if ".." in path.parts or str(name).startswith("/"):
            reason = say("hosts.bundle.outside", path=repr(name))
            raise RunError(f"{link.name}: {reason}", hint=say("hosts.bundle.outside_hint"))
        for parent in reversed(path.relative_to(directory).parents[:-1]):
            # `directory` itself is not made again where somebody ended the collecting.
            (directory / parent).mkdir(exist_ok=True)
        with path.open("wb") as file:
            while file.tell() < size:
                piece = link.ask({"do": "read", "path": name, "offset": file.tell()}, FETCH_S)
                data = base64.b64decode(piece.get("data") or "")
                if piece.get("error") or not data:
                    why = piece.get("error") or say(
                        "hosts.bundle.short", read_bytes=file.tell(), size_bytes=size
                    )
                    text = say("hosts.bundle.part", path=name, reason=why)
                    raise RunError(f"{link.name}: {text}", hint=say("hosts.bundle.part_hint"))
                file.write(data)


class Waiting:
    """Questions without an answer yet."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any] | None] = {}
        self._changed = threading.Condition()
        self._broken: str | None = None

    def number(self) -> int:
        """Return a number for a question."""
        with self._changed:
            number = next(self._numbers)
            self._answers[number] = None
            return number

    def answered(self, message: dict[str, Any]) -> bool:
        """Take an answer; false when nobody waits for it."""
        number = message.get("id")
        with self._changed:
            if not isinstance(number, int) or number not in self._answers:
                return number is not None
            self._answers[number] = message
            self._changed.notify_all()
            return True

    def broke(self, why: str) -> None:
        """Let nobody wait any longer."""
        with self._changed:
            self._broken = why
            self._changed.notify_all()

    def wait(self, name: str, number: int, timeout_s: float) -> dict[str, Any]:
        """Wait for an answer."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._answers[number] is not None or self._broken is not None, timeout_s
            )
            reply = self._answers.pop(number)
        if reply is None:
            raise RunError(f"{name}: {self._broken or say('hosts.asked.silent', waited_s=float(timeout_s))}")
        return reply


class PipeLink:
    """An agent at the other end of two pipes."""

    def __init__(self, name: str, argv: list[str], heard: Callable[[str, dict[str, Any]], None]) -> None:
        self.name = name
        self._argv = argv
        self._heard = heard
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting = Waiting()
        self._lock = threading.Lock()
        self._closed = False
        self._said: list[str] = []

    def open(self) -> None:
        """Start the agent."""
        try:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A Ctrl-C of the terminal reaches us, and we decide.
                process_group=0,
            )
        except OSError as error:
            self._heard(self.name, {"type": "lost", "why": f"{self._argv[0]}: {error.strerror}"})
            return
        threading.Thread(target=self._read, name=f"{self.name} out", daemon=True).start()

    def tell(self, order: dict[str, Any]) -> None:
        """Send an order; one to an agent that is gone is lost with it."""
        line = json.dumps(order, separators=(",", ":")).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(line)
                self._process.stdin.flush()

    def ask(self, order: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a question and wait for its answer."""
        number = self._waiting.number()
        self.tell({**order, "id": number})
        return self._waiting.wait(self.name, number, timeout_s)

    def close(self) -> None:
        """Close the pipes: the agent ends by that; one that does not is not waited for."""
        self._closed = True
        process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(CLOSE_S)
            return
        process.terminate()

    def _read(self) -> None:
        process = self._process
        if process is None or process.stdout is None or process.stderr is None:
            return
        talk = threading.Thread(target=self._listen_to_talk, name=f"{self.name} talk", daemon=True)
        talk.start()
        endless = False
        while not endless and (line := process.stdout.readline(LINE_BYTES)):
            endless = len(line) == LINE_BYTES
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                # What a shell prints on the way in is not ours.
                message = None
            if not is_message(message):
                self._said.append(line[:TALK_BYTES].decode(errors="replace").strip())
                del self._said[:-20]
                continue
            if not self._waiting.answered(message):
                self._heard(self.name, message)
        process.stdout.close()
        talk.join(1.0)
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(0.0 if endless else 5.0)
        why = (
            say("hosts.ended.endless", most_bytes=LINE_BYTES)
            if endless
            else why_gone(code, self._said, ssh=self._argv[0].endswith("ssh"))
        )
        self._waiting.broke(why)
        if not self._closed:
            self._heard(self.name, {"type": "lost", "why": why})

    def _listen_to_talk(self) -> None:
        if self._process is None or self._process.stderr is None:
            return
        while line := self._process.stderr.readline(TALK_BYTES):
            text = line.decode(errors="replace").strip()
            if text:
                self._said.append(text)
                del self._said[:-20]
        self._process.stderr.close()


REASONS: Final = (
    (re.compile(r"permission denied", re.IGNORECASE), "key"),
    (re.compile(r"host key for .* has changed|identification has changed", re.IGNORECASE),
     "host_key_changed"),
    (re.compile(r"host key verification failed", re.IGNORECASE), "host_key"),
    (re.compile(r"could not resolve hostname", re.IGNORECASE), "name"),
    (re.compile(r"connection refused", re.IGNORECASE), "server"),
    (re.compile(r"no route to host|network is unreachable|timed out", re.IGNORECASE),
     "network"),
    (re.compile(r"command not found|not found$|no such file or directory|no module named", re.IGNORECASE),
     "install"),
)  # fmt: skip


def why_gone(code: int | None, said: list[str], *, ssh: bool) -> str:
    """Return in words why an agent is gone, from what was said last and the exit code."""
    last = [line for line in said if not line.startswith(("Warning: Permanently added", "hint:"))][-3:]
    words = "; ".join(last)
    if ssh and code in {255, 127, 1}:
        for pattern, reason in REASONS:
            if any(pattern.search(line) for line in last):
                return f"{template(f'hosts.gone.{reason}')} ({words})"
    if code is None or code == 255:
        ended = say("hosts.ended.connection")
    elif code < 0 or code > 128:
        ended = say("hosts.ended.agent_signal", number=-code if code < 0 else code - 128)
    else:
        ended = say("hosts.ended.agent_code", code=code)
    return f"{ended} ({words})" if words else ended


def agent_argv(host: HostEntry, run: RunSettings | None = None) -> list[str]:
    """Return the words that start an agent on a host."""
    if host.launch == "local":
        return [sys.executable, "-m", "loadstone.hosts.agent"]
    return [*ssh_argv(host, run), shlex.join([*host.program, "hosts", "agent"])]


def ssh_argv(host: HostEntry, run: RunSettings | None = None) -> list[str]:
    """Return the words of ssh up to the command; it is as patient as `run` is with a host."""
    connect_s = ALIVE_S if run is None else max(ALIVE_S, round(run.connect_s / 2))
    silent_s = ALIVE_S if run is None else max(ALIVE_S, run.lost_after_s)
    words = ["ssh", "-T", "-o", "BatchMode=yes"]
    # The first value of an option counts: what the user says goes before what we would say.
    for option in host.ssh_options:
        words += ["-o", option]
    words += ["-o", f"ConnectTimeout={connect_s}", "-o", f"ServerAliveInterval={ALIVE_EVERY_S}"]
    words += ["-o", f"ServerAliveCountMax={math.ceil(silent_s / ALIVE_EVERY_S)}"]
    if host.user is not None:
        words += ["-l", host.user]
    if host.port is not None:
        words += ["-p", str(host.port)]
    if host.identity_file is not None:
        words += ["-i", os.path.expanduser(host.identity_file)]  # noqa: PTH111 # a word for another program
    # An address that begins with a dash is an address, not an option.
    return [*words, "--", host.reached_by]
