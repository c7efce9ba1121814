"""Watching by a shell: over one SSH connection, or on this host. Nothing is installed there.

Knows how a shell is asked and answers. It looks once for each line it gets, so that it ends by
itself when the connection does. What it prints is read by the parser of its system.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

from loadstone.messages import make_error, say
from loadstone.watch import freebsd, illumos, linux
from loadstone.watch.malformed_lines import whole
from loadstone.watch.source import LASTING, HostReading, WallClock, WatchError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from loadstone.watch.address import WatchedAddress

SYSTEMS: Final[Mapping[str, ModuleType]] = {"Linux": linux, "FreeBSD": freebsd, "SunOS": illumos}
CLIENT: Final = "LOADSTONE_SSH"
"""Environment variable with the command to use for `ssh`, as `ssh -F FILE`."""
CONNECT_S: Final = 25.0
"""Before a run: a storage that is busy may take long to start a shell."""
MOST_BYTES: Final = 16 << 20
"""Of one answer: a host with thousands of disks stays below a tenth of it."""
BOOTED: Final = "/proc/stat:btime "
NANOSECONDS: Final = re.compile(r"(\d+)\.(\d{9})$")
TIMES: Final = re.compile(r"(\d+)m(\d+(?:\.\d*)?)s")
OPTIONS: Final = (
    "-T",
    "-x",
    "-o", "BatchMode=yes",
    "-o", "ConnectTimeout=5",
    "-o", "ServerAliveInterval=2",
    "-o", "ServerAliveCountMax=2",
    "-o", "ControlMaster=no",
    "-o", "ControlPath=none",
    "-o", "ClearAllForwardings=yes",
    "-o", "PermitLocalCommand=no",
)  # fmt: skip
"""`BatchMode`: a question nobody sees must not hold a run up."""
LOOP: Final = """
LC_ALL=C
export LC_ALL
PATH=$PATH:/sbin:/usr/sbin:/usr/local/sbin
export PATH
os=$(uname -s)
echo "@@system $os"
{functions}
while read -r order; do
  echo "@@begin"
  case $order in
    *clock*) echo "@@clock $(date +%s.%N)" ;;
  esac
  case $order in
    *facts*) look_facts ;;
  esac
  case $order in
    *sample*) look_sample ;;
  esac
  echo "@@times"
  times
  echo "@@end"
done
"""
UNKNOWN_SYSTEM: Final = "look_facts() { :; }\nlook_sample() { :; }"
FAULTS: Final = (
    ("Permission denied", "denied", True),
    ("Too many authentication failures", "too_many_keys", True),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "host_key_changed", True),
    ("Host key verification failed", "host_key", True),
    ("Could not resolve hostname", "unknown_name", True),
    ("Connection refused", "not_listening", False),
    ("timed out", "silent", False),
    ("No route to host", "no_route", False),
    ("Network is unreachable", "no_route", False),
    ("Connection closed by", "closed", False),
)
"""What OpenSSH's client says, the message of it, and whether trying again is of no use."""


class Shell:
    """A shell on a watched host."""

    def __init__(self, address: WatchedAddress, *, timeout_s: float | None = None) -> None:
        self._address = address
        self._timeout_s = timeout_s or max(5.0, 2 * address.interval_s)
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._system: ModuleType = linux
        self._reads = 0

    def connect(self) -> dict[str, Any]:
        """Start it, and ask what does not change."""
        self.close()
        command = _command(self._address)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C ends the run in order; a shell that got it, too, would be a gap before that.
                start_new_session=True,
            )
        except OSError as error:
            raise make_error(
                LASTING, "watch.shell.not_started", program=command[0], reason=error.strerror
            ) from error
        self._rest, self._reads = b"", 0
        functions = "\n".join(
            f'if [ "$os" = {name} ]; then\n{module.SCRIPT}\nfi' for name, module in SYSTEMS.items()
        )
        script = LOOP.replace("{functions}", f"{UNKNOWN_SYSTEM}\n{functions}").encode()
        self._send(f"{len(script)}\n".encode() + script)
        lines = self._answer_until("@@system", CONNECT_S)[0]
        system = lines[-1].partition(" ")[2].strip()
        if system not in SYSTEMS:
            raise make_error(
                LASTING, "watch.shell.system", found=system or "not known", known=", ".join(SYSTEMS)
            )
        self._system = SYSTEMS[system]
        text, _, _ = self._ask("facts", CONNECT_S)
        facts: dict[str, Any] = self._system.facts(text)
        return {"system": system, **facts}

    def read(self) -> HostReading:
        """Look once."""
        self._reads += 1
        # Asking for the time is a process of its own there: a few times tell enough.
        clock = self._reads <= 5 or self._reads % 30 == 0
        text, sent_ns, received_ns = self._ask("sample clock" if clock else "sample", self._timeout_s)
        counters, uptime_ns = self._system.counters(text)
        return HostReading(
            sent_ns,
            received_ns,
            counters,
            uptime_ns,
            clock=_clock(text),
            coarse_clock=_clock_of_boot(text, uptime_ns),
            there_cpu_ns=_times(text),
        )

    def close(self) -> int:
        """End the shell; what hangs is killed."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        used_ns = _ended(process)
        # On this host what the shell takes is told as what watching costs there.
        return 0 if self._address.kind == "local" else used_ns

    def _ask(self, order: str, timeout_s: float) -> tuple[list[str], int, int]:
        """Send an order; return the lines of the answer and when it was sent and began to come."""
        sent_ns = time.monotonic_ns()
        self._send(f"{order}\n".encode())
        first, received_ns = self._answer_until("@@begin", timeout_s)
        del first
        lines, _ = self._answer_until("@@end", timeout_s)
        return lines, sent_ns, received_ns

    def _send(self, data: bytes) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise make_error(WatchError, "watch.hosts.no_connection")
        try:
            process.stdin.write(data)
            process.stdin.flush()
        except OSError as error:
            raise self._lost() from error

    def _answer_until(self, mark: str, timeout_s: float) -> tuple[list[str], int]:
        """Return the lines up to one that begins with a mark, it included, and when that came."""
        process = self._process
        if process is None or process.stdout is None:
            raise make_error(WatchError, "watch.hosts.no_connection")
        until_s = time.monotonic() + timeout_s
        wanted = mark.encode()
        searched = 0
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                at = _line_at(self._rest, wanted, searched)
                if at is not None:
                    whole, self._rest = self._rest[:at], self._rest[at:]
                    return whole.decode(errors="replace").splitlines(), time.monotonic_ns()
                searched = max(0, self._rest.rfind(b"\n") - len(wanted) - 1)
                left_s = until_s - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    raise make_error(WatchError, "watch.hosts.silent", timeout=f"{timeout_s:.0f}")
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    raise self._lost()
                self._rest += data
                if len(self._rest) > MOST_BYTES:
                    raise make_error(LASTING, "watch.shell.too_long")

    def _lost(self) -> WatchError:
        """Say why the shell is gone, by what it said."""
        process = self._process
        stderr_text = ""
        if process is not None and process.stderr is not None:
            try:
                code = process.wait(1.0)
                stderr_text = process.stderr.read(1 << 16).decode(errors="replace").strip()
            except (subprocess.TimeoutExpired, OSError):
                code = None
        else:
            code = None
        to = shlex.join(_to(self._address))
        for words, fault, lasting in FAULTS:
            if words in stderr_text:
                return make_error(LASTING if lasting else WatchError, f"watch.ssh.{fault}", to=to)
        last = (
            stderr_text.splitlines()[-1][:200]
            if stderr_text
            else say("watch.shell.exit_code", code=code)
            if code is not None
            else say("watch.shell.no_reason")
        )
        return make_error(WatchError, "watch.shell.ended", reason=last)


def _command(address: WatchedAddress) -> list[str]:
    """Return what to start: a shell that reads how long its script is, and then that."""
    # No line ends and no exclamation mark: the user's shell there may be a csh.
    program = 'read -r n; eval "$(dd bs=1 count=$n 2>/dev/null)"'
    if address.kind == "local":
        return ["/bin/sh", "-c", program]
    client = shlex.split(os.environ.get(CLIENT, "")) or ["ssh"]
    return [*client, *OPTIONS, *_to(address), f"exec /bin/sh -c '{program}'"]


def _to(address: WatchedAddress) -> list[str]:
    port = ["-p", str(address.port)] if address.port else []
    user = ["-l", address.user] if address.user else []
    return [*port, *user, address.host]


def _line_at(data: bytes, mark: bytes, start: int) -> int | None:
    """Return the end of the first whole line that begins with a mark."""
    at = 0 if start == 0 and data.startswith(mark) else data.find(b"\n" + mark, max(0, start - 1)) + 1
    if at == 0 and not data.startswith(mark):
        return None
    end = data.find(b"\n", at)
    return None if end < 0 else end + 1


def _clock(lines: list[str]) -> WallClock | None:
    for line in lines:
        if line.startswith("@@clock "):
            text = line.partition(" ")[2].strip()
            exact = NANOSECONDS.match(text)
            seconds = whole(exact[1] if exact else text.partition(".")[0])
            if seconds is None:
                return None
            return WallClock(seconds * 10**9 + (int(exact[2]) if exact else 0), 0 if exact else 10**9)
    return None


def _clock_of_boot(lines: list[str], uptime_ns: int | None) -> WallClock | None:
    """Return Linux's wall clock to the second: when it booted, by that clock, and how long ago that is."""
    booted = next((whole(line.partition(" ")[2].strip()) for line in lines if line.startswith(BOOTED)), None)
    return None if booted is None or uptime_ns is None else WallClock(booted * 10**9 + uptime_ns, 10**9)


def _times(lines: list[str]) -> int | None:
    """Return the CPU time of the shell and what it started, as its `times` says."""
    try:
        at = lines.index("@@times")
    except ValueError:
        return None
    matches = [TIMES.findall(line) for line in lines[at + 1 : at + 3]]
    cpu_times = [(whole(minutes) or 0) * 60 + float(seconds) for line in matches for minutes, seconds in line]
    return round(sum(cpu_times) * 1e9) if len(cpu_times) == 4 and sum(cpu_times) < 1e9 else None


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process to end, kill it if it does not, and return the CPU time it took."""
    used_ns = _cpu_ns(process.pid)
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return used_ns


def _cpu_ns(pid: int) -> int:
    """Return what a child has used so far; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - procfs
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) * 10**9 // os.sysconf("SC_CLK_TCK")
