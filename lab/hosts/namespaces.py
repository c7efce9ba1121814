"""Hosts that are network namespaces of this machine, each with its own name and ssh server.

Needs root, iproute2 and OpenSSH's server. What is made carries a number of this process and is
removed when it is left, also after a failure.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lab.parts import loadstone_with

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = {"sshd": "openssh-server", "ssh": "openssh-client", "ip": "iproute2", "nsenter": "util-linux"}


def missing() -> str | None:
    """Return why namespace hosts cannot be had here; None: they can."""
    if os.geteuid() != 0:
        return "namespace hosts need root"
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None and not Path(f"/usr/sbin/{program}").exists():
            return f"{program} is not installed (package {package})"
    return None


class NamespaceHosts:
    """While entered, `count` hosts can be reached by ssh from here.

    `own_mounts`: what is mounted on one of them is there and nowhere else (`inside`).
    """

    def __init__(
        self, count: int, *, name: str = "hosts", rate: str | None = None, own_mounts: bool = False
    ) -> None:
        self.count = count
        self._rate = rate
        self._own_mounts = own_mounts
        self._mark = f"{name}{os.getpid() % 10000}"
        self._net = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
        self._made: list[Sequence[str]] = []
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self.environment: dict[str, str] = {}
        """Of Loadstone on the hosts, beside what it needs to be found."""
        self.force = ""
        """A command that servers started from now on run in the place of what is asked."""
        self.directory = Path()

    def __enter__(self) -> NamespaceHosts:
        self.directory = Path(tempfile.mkdtemp(prefix=f"loadstone-{self._mark}-"))
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    # What a test does with them.

    def space(self, name: str) -> str:
        return f"{self._mark}-{name}"

    def address(self, name: str) -> str:
        return f"{self._net}.{10 + self.names.index(name)}"

    @property
    def coordinator(self) -> str:
        return f"{self._net}.1"

    def argv(self, name: str) -> list[str]:
        """Words before a command that shall run on a host."""
        words = ["nsenter", f"--net=/run/netns/{self.space(name)}"]
        if self._own_mounts and name in self._servers:
            words.append(f"--mount=/proc/{self._servers[name].pid}/ns/mnt")
        return words

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.argv(name), *words], capture_output=True, text=True, check=False)

    def inside(self, name: str, *words: str | Path) -> str:
        """Do something on a host, with what is mounted there."""
        server = f"--target={self._servers[name].pid}"
        return _run("nsenter", server, "--net", "--uts", "--mount", *map(str, words))

    def link(self, name: str, state: str) -> None:
        """Take a host's link `down`, or bring it `up`."""
        _run("ip", "link", "set", self._port(name), state)

    def stop_server(self, name: str) -> None:
        server = self._servers.pop(name)
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()

    def agents(self, name: str) -> list[int]:
        """Processes of agents on a host."""
        return [pid for pid in self.processes(name) if _is_agent(pid)]

    def engines(self, name: str) -> list[int]:
        """Processes of engines on a host."""
        return [pid for pid in self.processes(name) if _is_engine(pid)]

    def processes(self, name: str) -> list[int]:
        """All processes of a host, its ssh server among them."""
        space = Path(f"/run/netns/{self.space(name)}").stat().st_ino
        pids = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and (entry / "ns" / "net").stat().st_ino == space:
                    pids.append(int(entry.name))
        return pids

    def sweep(self, name: str) -> None:
        """Remove what a trial left on a host: processes, and bundles that were not collected."""
        for pid in [*self.agents(name), *self.engines(name)]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.directory / name, ignore_errors=True)
        (self.directory / name).mkdir()

    def hosts_toml(self, *, run: str = "", hosts: dict[str, str] | None = None) -> Path:
        """Write a hosts file of all hosts; `hosts` has more lines for some."""
        key = self.directory / "key"
        options = [
            "StrictHostKeyChecking=no",
            f"UserKnownHostsFile={self.directory / 'known'}",
            "LogLevel=ERROR",
            "IdentitiesOnly=yes",
        ]
        environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")} | self.environment
        program = loadstone_with(**environment)
        if "connect_s" not in run:
            # Where a host is there, this machine may take long to let it answer.
            run += "\nconnect_s = 300"
        lines = ["[run]", run, "[defaults]", 'user = "root"', f'identity_file = "{key}"']
        lines += [f"ssh_options = {options!r}".replace("'", '"'), f"program = {program!r}".replace("'", '"')]
        for name in self.names:
            lines += ["[[host]]", f'name = "{name}"', f'address = "{self.address(name)}"']
            if "directory" not in (hosts or {}).get(name, ""):
                lines.append(f'directory = "{self.directory / name}"')
            lines.append((hosts or {}).get(name, ""))
        path = self.directory / "hosts.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    # How they are made.

    def _port(self, name: str) -> str:
        return f"v{self._mark[-6:]}{name}"

    def _make(self) -> None:
        bridge = f"b{self._mark[-8:]}"
        key, host_key = self.directory / "key", self.directory / "host_key"
        for path in (key, host_key):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
        authorized = self.directory / "authorized_keys"
        authorized.write_bytes((self.directory / "key.pub").read_bytes())
        Path("/run/sshd").mkdir(exist_ok=True)
        self._add(["ip", "link", "add", bridge, "type", "bridge"], ["ip", "link", "del", bridge])
        _run("ip", "addr", "add", f"{self.coordinator}/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        for name in self.names:
            space, port = self.space(name), self._port(name)
            self._add(["ip", "netns", "add", space], ["ip", "netns", "del", space])
            self._add(
                ["ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space],
                ["ip", "link", "del", port],
            )
            _run("ip", "link", "set", port, "master", bridge)
            _run("ip", "link", "set", port, "up")
            inside = self.argv(name)
            _run(*inside, "ip", "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            _run(*inside, "ip", "link", "set", "eth0", "up")
            _run(*inside, "ip", "link", "set", "lo", "up")
            if self._rate is not None:
                shape = ["root", "tbf", "rate", self._rate, "burst", "128kb", "latency", "20ms"]
                _run("tc", "qdisc", "add", "dev", port, *shape)
                _run(*inside, "tc", "qdisc", "add", "dev", "eth0", *shape)
            self.start_server(name)
        for name in self.names:
            self._await(name)

    def start_server(self, name: str) -> None:
        (self.directory / name).mkdir(exist_ok=True)
        conf = self.directory / f"{name}.sshd"
        conf.write_text(
            f"ListenAddress {self.address(name)}\nHostKey {self.directory / 'host_key'}\n"
            f"AuthorizedKeysFile {self.directory / 'authorized_keys'}\nUsePAM no\nStrictModes no\n"
            f"PidFile none\nPermitRootLogin yes\nMaxStartups 100\n"
            + (f"ForceCommand {self.force}\n" if self.force else "")
        )
        mounts = ["--mount"] if self._own_mounts else []
        words = [*self.argv(name), "unshare", "--uts", *mounts, "sh", "-c"]
        words.append(f"hostname {name}; exec /usr/sbin/sshd -D -e -f {conf}")
        with (self.directory / f"{name}.log").open("ab") as log:
            self._servers[name] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _await(self, name: str) -> None:
        until_s = time.monotonic() + 20
        log = self.directory / f"{name}.log"
        while time.monotonic() < until_s:
            if "Server listening" in log.read_text(errors="replace"):
                return
            time.sleep(0.02)
        raise RuntimeError(f"{name}: sshd did not come up: {log.read_text(errors='replace')}")

    def _add(self, make: Sequence[str], remove: Sequence[str]) -> None:
        _run(*make)
        self._made.append(remove)

    def _remove(self) -> None:
        for name in self.names:
            with contextlib.suppress(OSError):
                for pid in [*self.agents(name), *self.engines(name)]:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
        for server in self._servers.values():
            with contextlib.suppress(OSError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        for words in reversed(self._made):
            subprocess.run(words, capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _is_agent(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    # A worker of a standing scheduler (`dask worker`) is of the host, and stays.
    is_worker = b"worker" in words and b"loadstone" in words
    return b"python" in words[0] and (is_worker or b"agent" in words or b"loadstone.hosts.agent" in words)


def _is_engine(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("loadstone-eng")
    except OSError:
        return False
