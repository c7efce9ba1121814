"""A LUN that two hosts share: one export of nbdkit, a loop device of it on each of two namespace hosts.

`python -m lab.hosts.shared_lun` tries what a run that writes it does without consent, with that of one
host, without and with `--divide`; the server's own log says which host wrote where. Needs root, sshd,
nbdkit, nbdfuse and losetup.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts
from lab.hosts.programs import Programs
from lab.parts import LOADSTONE

PROGRAMS: Final = {"nbdkit": "nbdkit", "nbdfuse": "libnbd-bin", "losetup": "mount"}
SIZE_BYTES: Final = 8 << 20
JOB: Final = """hd=default,shell=ssh,user=root
{hosts}
sd=sd1,host=({names}),lun=({devices}),threads=8,openflags=o_direct
wd=wd1,sd=sd1,xfersize=4k,rdpct=0,seekpct=100
rd=rd1,wd=wd1,iorate=400,elapsed=3,interval=1
"""
WRITE: Final = re.compile(r"connection=(\d+) Write .*?offset=0x([0-9a-f]+) count=0x([0-9a-f]+)")


@dataclass(frozen=True)
class SharedRun:
    """One run: its exit code, what it said, and which bytes each host wrote meanwhile."""

    code: int
    said: str
    written: dict[str, list[tuple[int, int]]]


def missing() -> str | None:
    """Return why it cannot be had here; None: it can."""
    if (why := namespaces.missing()) is not None:
        return why
    return next(
        (
            f"{program} is not installed (package {package})"
            for program, package in PROGRAMS.items()
            if shutil.which(program) is None and not Path(f"/usr/sbin/{program}").exists()
        ),
        None,
    )


class SharedLun(Programs):
    """While entered, `devices` has the path of the LUN on each host."""

    def __init__(self, hosts: NamespaceHosts, directory: Path) -> None:
        super().__init__(directory)
        self.hosts = hosts
        self.devices: dict[str, str] = {}

    def __exit__(self, *_: object) -> None:
        for device in self.devices.values():
            subprocess.run(["losetup", "-d", device], capture_output=True, check=False)
        for name in self.hosts.names:
            subprocess.run(["umount", "-l", self._file(name)], capture_output=True, check=False)
        super().__exit__()

    @property
    def image(self) -> Path:
        return self.directory / "image"

    def attempt(self, *words: str) -> SharedRun:
        """Let both hosts write the LUN, with more words on the command line."""
        names = self.hosts.names
        job = self.directory / "job.vdbench"
        job.write_text(
            JOB.format(
                hosts="\n".join(f"hd={name},system={self.hosts.address(name)}" for name in names),
                names=",".join(names),
                devices=",".join(self.devices[name] for name in names),
            )
        )
        began = len(self._server_log())
        out = Path(tempfile.mkdtemp(dir=self.directory)) / "out"
        run = [*LOADSTONE, "run", str(job), "--hosts", str(self.hosts_file())]
        run += ["--out", str(out), "--no-report", "--no-calibration", *words]
        done = subprocess.run(run, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        written: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
        for connection, offset, count in WRITE.findall(self._server_log()[began:]):
            first = int(offset, 16)
            written[names[int(connection) - 1]].append((first, first + int(count, 16)))
        return SharedRun(done.returncode, done.stderr, written)

    def hosts_file(self) -> Path:
        """What no host can find out: a loop device has no name that two of them know."""
        path = self.hosts.hosts_toml()
        targets = ", ".join(f'{name} = "{device}"' for name, device in self.devices.items())
        path.write_text(f'{path.read_text()}[[shared]]\nname = "lun1"\ntargets = {{ {targets} }}\n')
        return path

    def _begin(self) -> None:
        self.image.write_bytes(bytes(range(1, 256)) * (SIZE_BYTES // 255 + 1))
        with self.image.open("r+b") as file:
            file.truncate(SIZE_BYTES)
        listening = self.directory / "nbdkit.pid"
        self.start(
            "nbdkit", "--foreground", "--ipaddr", self.hosts.coordinator, "--port", "10809",
            f"--pidfile={listening}",
            "--filter=log", "file", str(self.image), f"logfile={self.directory / 'nbd.log'}",
        )  # fmt: skip
        self.wait_until(listening.exists, "nbdkit that listens")
        for name in self.hosts.names:
            # One connection each, in this order: so the server tells the hosts apart.
            Path(self._file(name)).touch()
            uri = f"nbd://{self.hosts.coordinator}:10809"
            lun = self._file(name)
            self.start(*self.hosts.argv(name), "nbdfuse", "-C", "1", lun, uri)
            self.wait_until(partial(_is_as_large, Path(lun)), f"LUN at {lun}")
            attached = subprocess.run(
                ["losetup", "-f", "--show", "--direct-io=on", self._file(name)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            self.devices[name] = attached.stdout.strip()

    def _file(self, name: str) -> str:
        return str(self.directory / f"lun-{name}")

    def _server_log(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.directory / "nbd.log").read_text()
        return ""


def _is_as_large(file: Path) -> bool:
    with contextlib.suppress(OSError):
        return file.stat().st_size == SIZE_BYTES
    return False


def wrong(lun: SharedLun) -> list[str]:
    """Try it in all ways; return what is not as it should be."""
    consent = [f"--i-accept-data-loss={name}:{device}" for name, device in lun.devices.items()]
    before = lun.image.read_bytes()
    mistakes = []
    for words, named in (
        (consent, "--divide"),
        (["--divide"], consent[0].partition("=")[2]),
        (["--divide", consent[0]], consent[1].partition("=")[2]),
    ):
        tried = lun.attempt(*words)
        print(f"{' '.join(words)}: code {tried.code}: {tried.said.strip()}", flush=True)
        if tried.code != 2 or named not in tried.said or any(tried.written.values()):
            mistakes.append(f"{words}: code {tried.code}, {tried.written}: {tried.said}")
    if lun.image.read_bytes() != before:
        mistakes.append("a run that was refused changed the LUN")
    tried = lun.attempt("--divide", *consent)
    spans = {
        name: (len(parts), min(low for low, _ in parts), max(high for _, high in parts))
        for name, parts in tried.written.items()
        if parts
    }
    print(
        f"--divide with consent: code {tried.code}: writes, first and last byte by host: {spans}", flush=True
    )
    if tried.code or len(spans) < len(lun.devices):
        mistakes.append(f"code {tried.code}, {spans}: {tried.said}")
    borders = sorted(span[1:] for span in spans.values())
    if any(high > low for (_, high), (low, _) in itertools.pairwise(borders)):
        mistakes.append(f"the hosts wrote over each other: {spans}")
    after = lun.image.read_bytes()
    changed = [at for at in range(0, SIZE_BYTES, 4096) if after[at : at + 4096] != before[at : at + 4096]]
    logged = {at for parts in tried.written.values() for low, high in parts for at in range(low, high, 4096)}
    if not changed or set(changed) - logged:
        mistakes.append(
            f"{len(changed)} blocks changed, of which {len(set(changed) - logged)} are not in the log"
        )
    return mistakes


def main() -> int:
    if (why := missing()) is not None:
        print(f"not tried: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (
        tempfile.TemporaryDirectory(prefix="loadstone-hosts-lun-") as directory,
        NamespaceHosts(2, name="hostslun") as hosts,
        SharedLun(hosts, Path(directory)) as lun,
    ):
        mistakes = wrong(lun)
    print("\n".join(mistakes) or "as it should")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
