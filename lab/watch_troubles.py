"""Watched hosts in trouble: `python -m lab.watch_troubles [NAME ...]`.

A real sshd, snmpd and node_exporter of this machine, behind a relay that is slow or drips, and with counters
that restart, a clock that is stepped or metrics that change while a paced load runs. From outside is held:
the load does all its I/Os, the run ends within bounds, no rate is negative or more than the machine has, and
what was not seen is told. Needs root. Removes what it made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.request import urlopen

import polars as pl
from lab.parts import LOADSTONE, Stage, until
from lab.watch import configure_sshd, which

from loadstone.watch.address import COMMUNITY as COMMUNITY_IN

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
SSH, NODE, SNMP = 22822, 22910, 22161
RELAYED: Final = 1000
"""Added to a port: where the relay to it listens."""
COMMUNITY: Final = "loadstone-lab"
RUN_S: Final = 14
STRIKE_S: Final = 4.0
"""After the first look."""
IOPS: Final = 200
ENDS_WITHIN_S: Final = 12.0
"""Of a run, beyond its length: connecting, the last look and the figures on a busy machine."""
FAKED: Final = ("/proc/stat", "/proc/uptime", "/proc/diskstats")
JOB: Final = f"""[load]
ioengine=null
rw=randread
bs=4k
size=1g
filename=/tmp/nothing
rate_iops={IOPS}
runtime={RUN_S}
time_based=1
"""


@dataclass
class Trouble:
    """How a host behaves from the strike on; times in seconds."""

    name: str
    ways: str
    answer_s: float = 0.0
    """Each answer comes so much later."""
    drip_bytes_s: float = 0.0
    """An answer comes so fast; 0: at once."""
    reboots: bool = False
    keeps_connection: bool = False
    steps_s: float = 0.0
    """Its wall clock jumps by so much."""
    restarts: bool = False
    """Its agent is stopped, and started again after two seconds."""
    change: str = ""
    """What the exporter tells otherwise."""
    lost: bool = False
    """A gap must be told."""
    first_s: float | None = None
    """The strike comes so long after the relay is up; None: `STRIKE_S` after the first look."""


TROUBLES: Final = (
    Trouble("none", "http ssh snmp"),
    Trouble("answers after 3 s", "http ssh", answer_s=3.0),
    Trouble("answers after 3 s, agent", "snmp", answer_s=3.0, lost=True),
    Trouble("answers after 1.5 s", "snmp", answer_s=1.5),
    Trouble("answers after 30 s", "http ssh snmp", answer_s=30.0, lost=True),
    Trouble("answers after 30 s from the beginning", "http ssh snmp", answer_s=30.0, first_s=0.0),
    Trouble("drips 40 bytes a second", "http ssh", drip_bytes_s=40.0, lost=True),
    Trouble("drips from the beginning", "http ssh", drip_bytes_s=40.0, first_s=0.0),
    Trouble("reboots", "ssh snmp", reboots=True),
    Trouble("reboots between two looks", "http ssh", reboots=True, keeps_connection=True),
    Trouble("clock steps an hour ahead", "http ssh", steps_s=3600.0),
    Trouble("clock steps a minute back", "http ssh", steps_s=-60.0),
    Trouble("agent restarts", "snmp http ssh", restarts=True, lost=True),
    Trouble("a processor goes and comes back", "http", change="cpu"),
    Trouble("disks are renamed", "http", change="disk"),
    Trouble("numbers that are none", "http", change="nan"),
    Trouble("another format for three looks", "http", change="format", lost=True),
    Trouble("no metrics for three looks", "http", change="empty"),
)


class Relay(threading.Thread):
    """Bytes to and from a port of this machine, late or slowly on the way back."""

    def __init__(self, port: int, kind: int) -> None:
        super().__init__(daemon=True)
        self._to, self._kind = (HOST, port), kind
        self.answer_s = self.drip_bytes_s = 0.0
        self.cut = threading.Event()
        self._socket = socket.socket(socket.AF_INET, kind)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, port + RELAYED))
        if kind == socket.SOCK_STREAM:
            self._socket.listen()

    def run(self) -> None:
        """Take connections, or datagrams."""
        while True:
            try:
                if self._kind == socket.SOCK_DGRAM:
                    question, asker = self._socket.recvfrom(1 << 16)
                    self._start(self._answer, question, asker)
                else:
                    self._start(self._carry, self._socket.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        """Take no more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    @staticmethod
    def _start(doing: Callable[..., None], *words: Any) -> None:
        threading.Thread(target=doing, args=words, daemon=True).start()

    def _answer(self, question: bytes, asker: tuple[str, int]) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.settimeout(5)
            out.sendto(question, self._to)
            try:
                answer = out.recv(1 << 16)
                time.sleep(self.answer_s)
                self._socket.sendto(answer, asker)
            except OSError:
                return

    def _carry(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._to)
        except OSError:
            client.close()
            return
        waits = False
        with client, server:
            while not self.cut.is_set():
                ready, _, _ = select.select([client, server], [], [], 0.1)
                for one in ready:
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    if one is client:
                        server.sendall(data)
                        waits = True
                        continue
                    # Late is the answer, not each piece of it.
                    if not self._back(client, data, self.answer_s if waits else 0.0):
                        return
                    waits = False

    def _back(self, client: socket.socket, data: bytes, late_s: float) -> bool:
        time.sleep(late_s)
        piece = max(1, round(self.drip_bytes_s / 10)) if self.drip_bytes_s else len(data)
        for at in range(0, len(data), piece):
            try:
                client.sendall(data[at : at + piece])
            except OSError:
                return False
            if self.drip_bytes_s:
                time.sleep(0.1)
            if self.cut.is_set():
                return False
        return True


class ChangedExporter(BaseHTTPRequestHandler):
    """What node_exporter tells, otherwise from the strike on."""

    protocol_version = "HTTP/1.1"
    trouble: Trouble = TROUBLES[0]
    struck: threading.Event = threading.Event()
    base: str = ""
    looks = 0

    def do_GET(self) -> None:
        kind = type(self)
        text = urlopen(f"http://{HOST}:{NODE}/metrics").read().decode()
        if self.struck.is_set():
            kind.looks += 1
            text = self._changed(text, kind.looks)
        else:
            kind.base = text
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _changed(self, text: str, looks: int) -> str:
        trouble = self.trouble
        if trouble.steps_s:
            text = re.sub(
                r"(?m)^(node_time_seconds|node_boot_time_seconds) (\S+)",
                lambda match: f"{match[1]} {float(match[2]) + trouble.steps_s}",
                text,
            )
        if trouble.reboots:
            text = since(self.base, text)
        match trouble.change:
            case "cpu" if looks <= 3:
                text = re.sub(r'(?m)^node_cpu_seconds_total\{cpu="1".*\n', "", text)
            case "disk":
                text = text.replace('device="vda"', 'device="sdz"')
            case "nan":
                text = re.sub(r"(?m)^(node_network_receive_bytes_total\{[^}]*\}) \S+", r"\1 NaN", text)
                text = re.sub(r"(?m)^(node_disk_read_bytes_total\{[^}]*\}) \S+", r"\1 -5e300", text)
                text = re.sub(r"(?m)^(node_memory_MemFree_bytes) \S+", r"\1 +Inf", text)
            case "format" if looks <= 3:
                text = '{"status": "starting"}\nnode_cpu{{{ 7\n'
            case "empty" if looks <= 3:
                text = ""
            case _:
                pass
        return text

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def since(base: str, text: str) -> str:
    """Return counters as a host tells them that started when it told `base`."""
    before = dict(line.rsplit(" ", 1) for line in base.splitlines() if line and not line.startswith("#"))
    lines = []
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("node_boot_time_seconds"):
            lines.append(f"{name} {time.time() - 1}")
        elif "_total" in name and name in before:
            lines.append(f"{name} {max(0.0, float(value) - float(before[name]))}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


class FakedProc(threading.Thread):
    """Files in the place of those of /proc for sshd and snmpd: as they are, or as after a boot."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.base: dict[str, str] = {}
        self.step_s = 0
        """What the wall clock was set by: the time of the boot moves with it."""
        self.over = threading.Event()
        for path in FAKED:
            self.file(path).write_text(Path(path).read_text())

    def file(self, path: str) -> Path:
        """Return what is mounted over a file of /proc."""
        return self.folder / path.replace("/", "_")

    def reboot(self) -> None:
        """Count from now on."""
        self.base = {path: Path(path).read_text() for path in FAKED}

    def run(self) -> None:
        """Write them ten times a second."""
        while not self.over.wait(0.1):
            for path in FAKED:
                text = Path(path).read_text()
                if path in self.base:
                    text = less(text, self.base[path])
                text = re.sub(r"(?m)^btime (\d+)", lambda one: f"btime {int(one[1]) + self.step_s}", text)
                # In place: a mount is of the file.
                with self.file(path).open("r+") as out:
                    out.write(text)
                    out.truncate()


def less(text: str, base: str) -> str:
    """Return the numbers of a file of /proc less those it had."""
    lines = []
    for line, before in zip(text.splitlines(), base.splitlines(), strict=False):
        words = [
            word if not re.fullmatch(r"[\d.]+", word) or at < (3 if " vda" in line or "loop" in line else 0)
            else f"{max(0.0, float(word) - float(old)):.2f}" if "." in word
            else str(max(0, int(word) - int(old)))
            for at, (word, old) in enumerate(zip(line.split(), before.split(), strict=False))
        ]  # fmt: skip
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


class TroubledHost(Stage):
    """This machine, watched in three ways through relays."""

    def __init__(self) -> None:
        super().__init__()
        self.proc = FakedProc(self.folder)
        self.proc.start()
        self._stack.callback(self.proc.over.set)
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._sshd()
        (self.folder / "snmpd.conf").write_text(f"agentaddress udp:{HOST}:{SNMP}\nrocommunity {COMMUNITY}\n")
        self.offset = self.folder / "offset"
        self.offset.write_text("0")

    def in_proc(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """Run a program that sees the files in the place of those of /proc."""
        mounts = "".join(f"mount --bind {self.proc.file(path)} {path}; " for path in FAKED)
        return self._program("unshare", "-m", "sh", "-c", f'{mounts}exec "$@"', "sh", *words)

    def start(self, way: str) -> None:
        """Start an agent."""
        match way:
            case "ssh":
                agent = self.in_proc(which("sshd"), "-D", "-f", self.folder / "sshd.conf")
            case "snmp":
                agent = self.in_proc(
                    which("snmpd"), "-f", "-C", "-c", self.folder / "snmpd.conf", "-Lf",
                    self.folder / "snmpd.log", "-p", self.folder / "snmpd.pid",
                )  # fmt: skip
            case _:
                agent = self._program("prometheus-node-exporter", f"--web.listen-address={HOST}:{NODE}")
        self._agents[way] = agent

    def end(self, way: str) -> None:
        """End an agent, and the connections to it."""
        agent = self._agents.pop(way)
        agent.terminate()
        agent.wait(10)

    def _sshd(self) -> None:
        home = self.folder
        (home / "bin").mkdir()
        (home / "bin" / "date").write_text(
            f"#!/bin/sh\nnow=$(/bin/date +%s.%N)\nread -r more < {home}/offset\n"
            'echo "$((${now%.*} + more)).${now#*.}"\n'
        )
        (home / "bin" / "date").chmod(0o755)
        known_as = f"[{HOST}]:{SSH + RELAYED}"
        configure_sshd(home, f"{HOST}:{SSH}", known_as, f"SetEnv PATH={home}/bin:/usr/bin:/bin\n")


ADDRESSES: Final = {
    "ssh": f"nas=ssh://root@{HOST}:{SSH + RELAYED}",
    "http": f"nas=http://{HOST}:{NODE + RELAYED}/metrics",
    "snmp": f"nas=snmp://{HOST}:{SNMP + RELAYED}",
}
PORTS: Final = {"ssh": SSH, "http": NODE, "snmp": SNMP}


class OneTrouble:
    """A paced load while one host is in trouble."""

    def __init__(self, host: TroubledHost, trouble: Trouble, way: str) -> None:
        self.host, self.trouble, self.way = host, trouble, way
        self.struck = threading.Event()
        self.relay: Relay | None = None
        self.server: ThreadingHTTPServer | None = None
        self.said = ""

    def run(self) -> list[str]:
        """Run it, and return what is wrong."""
        out = self.host.folder / f"run{time.monotonic_ns()}"
        job = self.host.folder / "job.fio"
        job.write_text(JOB)
        self.host.proc.base.clear()
        self.host.proc.step_s = 0
        self.host.offset.write_text("0")
        self.host.start(self.way)
        time.sleep(1.0)
        self._listen()
        environment = {
            **os.environ, COMMUNITY_IN: COMMUNITY, "LOADSTONE_SSH": f"ssh -F {self.host.folder}/ssh.conf",
        }  # fmt: skip
        words = [*LOADSTONE, "run", str(job), "--json", "--out", str(out)]
        words += ["--no-report", "--no-calibration", "--watch", ADDRESSES[self.way]]
        if self.trouble.first_s is not None:
            self._strike()
        began_s = time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        if self.trouble.first_s is None:
            until(lambda: (out / "samples.arrows").exists() or process.poll() is not None, "the run")
            time.sleep(STRIKE_S)
            self._strike()
        printed, errors = process.communicate(timeout=180)
        took_s = time.monotonic() - began_s
        self._let_go()
        return self._judge(out, process.returncode, printed.decode(), errors.decode(), took_s)

    def _listen(self) -> None:
        if self.way == "http" and (self.trouble.change or self.trouble.reboots or self.trouble.steps_s):
            kind = type("Changed", (ChangedExporter,), {"trouble": self.trouble, "struck": self.struck})
            self.server = ThreadingHTTPServer((HOST, NODE + RELAYED), kind)
            self.server.daemon_threads = True
            threading.Thread(target=self.server.serve_forever, daemon=True).start()
            return
        kind_of_socket = socket.SOCK_DGRAM if self.way == "snmp" else socket.SOCK_STREAM
        self.relay = Relay(PORTS[self.way], kind_of_socket)
        self.relay.start()

    def _strike(self) -> None:
        trouble = self.trouble
        self.struck.set()
        if self.relay is not None:
            self.relay.answer_s, self.relay.drip_bytes_s = trouble.answer_s, trouble.drip_bytes_s
        if trouble.steps_s:
            self.host.offset.write_text(f"{trouble.steps_s:.0f}")
            self.host.proc.step_s = round(trouble.steps_s)
        if trouble.reboots:
            self.host.proc.reboot()
        if trouble.restarts or (trouble.reboots and not trouble.keeps_connection):
            self.host.end(self.way)
            relay = self.relay
            assert relay is not None
            relay.cut.set()
            time.sleep(2.0)
            relay.cut.clear()
            self.host.start(self.way)

    def _let_go(self) -> None:
        if self.relay is not None:
            self.relay.cut.set()
            self.relay.close()
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
        self.host.end(self.way)

    def _judge(self, out: Path, code: int, printed: str, errors: str, took_s: float) -> list[str]:
        if self.trouble.first_s is not None:
            self.said = errors.strip()
            wrong = [] if code == 1 and "hint" in errors else [f"code {code}"]
            return wrong + ([f"it took {took_s:.1f} s"] if took_s > 30 + ENDS_WITHIN_S else [])
        if code:
            return [f"code {code}: {errors[-400:]}"]
        result = json.loads(printed)
        watched = result["watched"]["nas"]
        gaps = watched["gaps"]
        rows = out / "watched" / "nas.parquet"
        lost = [(round(gap["from_s"], 1), gap["why"]) for gap in gaps]
        clock = f"{watched['clock_offset_s']} ± {watched['clock_error_s']}"
        aligned = watched["aligned_within_s"]
        notes = [one for one in notes_of(out) if "nas" in one]
        self.said = f"{took_s:.1f} s; gaps {lost}; clock {clock}; aligned within {aligned}; notes {notes}"
        wrong = ["a gap is not told"] if self.trouble.lost and not gaps else []
        wrong += [f"it took {took_s:.1f} s"] if took_s > RUN_S + ENDS_WITHIN_S else []
        operations = result["total"]["operations"]
        if abs(operations - IOPS * RUN_S) > 0.02 * IOPS * RUN_S:
            wrong.append(f"{operations} I/Os")
        return wrong + (absurd(pl.read_parquet(rows)) if rows.exists() else ["no rows"])


def notes_of(out: Path) -> list[str]:
    """Return the texts of a bundle's events."""
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    return [one["text"] for one in events if one.get("type") == "note"]


def absurd(rows: pl.DataFrame) -> list[str]:
    """Return rates that no machine has: each against the length of its row."""
    wrong = []
    cores = os.cpu_count() or 1
    for whole_row in rows.iter_rows(named=True):
        row = {name: value for name, value in whole_row.items() if value is not None}
        dt_ns = row["dt_ns"]
        wrong += [f"{name} is {value}" for name, value in row.items() if value < 0 and "celsius" not in name]
        used_ns = sum(value for name, value in row.items() if re.fullmatch(r"cpu\.all\.\w+_ns", name) and
                      name != "cpu.all.dt_ns")  # fmt: skip
        long_ns = row.get("cpu.dt_ns", dt_ns)
        if used_ns > 1.5 * cores * long_ns + 2e8:
            wrong.append(f"{used_ns / 1e9:.1f} s of {cores} CPUs in {long_ns / 1e9:.1f} s")
        for name, value in row.items():
            if name.endswith("busy_ns") and value > 1.5 * dt_ns + 2e8:
                wrong.append(f"{name} {value / 1e9:.1f} s in {dt_ns / 1e9:.1f} s")
            if name.endswith("_bytes") and name.startswith(("disk.", "net.")) and value > 2e10 * dt_ns / 1e9:
                wrong.append(f"{name} {value} in {dt_ns / 1e9:.1f} s")
    return list(dict.fromkeys(wrong))[:5]


def main() -> int:
    """Stage every trouble, or those whose names hold a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names, and ways (http, ssh, snmp)")
    names = parser.parse_args().names
    ways = {one for one in names if one in PORTS} or set(PORTS)
    parts = [one for one in names if one not in PORTS]
    failed = 0
    with TroubledHost() as host:
        for trouble in TROUBLES:
            if parts and not any(part in trouble.name for part in parts):
                continue
            for kind in [one for one in trouble.ways.split() if one in ways]:
                staged = OneTrouble(host, trouble, kind)
                wrong = staged.run()
                failed += bool(wrong)
                verdict = "WRONG" if wrong else "right"
                print(f"{verdict}  {kind:5}{trouble.name}: {'; '.join(wrong)}", flush=True)
                print(f"       {staged.said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
