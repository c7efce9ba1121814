"""`hosts install` to its end, and what it meets: `python -m lab.hosts.installing --wheels DIR`.

Each case is a host (a namespace with an ssh server) whose user has a home of its own: an empty one, one
with an older version, a full disk, a disk that cannot be written, no Python, one that is too old, one
without venv. What is installed must run afterwards, and what cannot be must be told and leave what was
there. DIR has the wheels of all packages (`pip download`): the hosts reach no index. Needs root and sshd.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts
from lab.parts import LOADSTONE

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = ".local/share/loadstone"
JOB = "[r]\nioengine=null\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=2\n"


@dataclass
class Home:
    """Where a host's user lives, and where programs are looked for first."""

    path: Path
    programs: Path

    def program(self, name: str, text: str) -> None:
        """Put a program before the system's."""
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)


def _plain(_: Home) -> None:
    return


def _older(home: Home) -> None:
    """A version that was installed before, in the same place, with a file of its own."""
    old = home.path / PLACE / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", old.parent], check=True)
    (old / "loadstone").write_text("#!/bin/sh\necho loadstone 0.0.9\n")
    (old / "loadstone").chmod(0o755)


def _full(home: Home) -> None:
    _mount(home, "size=20m")


def _read_only(home: Home) -> None:
    _mount(home, "size=1m,ro")


def _mount(home: Home, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "loadstone-install", home.path], check=True)


def _no_python(home: Home) -> None:
    home.program("python3", "echo 'sh: python3: not found' >&2; exit 127")


def _old_python(home: Home) -> None:
    home.program("python3", 'case "$*" in *version_info*) echo python 3.9;; *) exit 1;; esac')


def _no_venv(home: Home) -> None:
    """As on Debian without python3-venv."""
    home.program(
        "python3",
        'case "$*" in "-m venv"*) mkdir -p "$3/bin"; echo "ensurepip is not available" >&2; exit 1;; esac\n'
        'exec /usr/bin/python3 "$@"',
    )


CASES: dict[str, tuple[Callable[[Home], None], str]] = {
    "empty home": (_plain, ""),
    "older version there": (_older, ""),
    "disk full": (_full, "No space left"),
    "home cannot be written": (_read_only, "Read-only"),
    "no Python": (_no_python, "Python"),
    "Python too old": (_old_python, "3.9"),
    "no venv": (_no_venv, "ensurepip"),
}
"""How a home is made, and a word of what must be said; empty: it is installed."""


def main() -> int:
    """Try every case; say what became of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not tried: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wrong = 0
    with NamespaceHosts(1, name="install") as hosts:
        for name, (make, expected) in CASES.items():
            if options.only in name:
                wrong += not _tried(name, make, expected, hosts, options.wheels)
    return 1 if wrong else 0


def _tried(name: str, make: Callable[[Home], None], said: str, hosts: NamespaceHosts, wheels: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="loadstone-install-") as place:
        home = Home(Path(place) / "home", Path(place) / "bin")
        home.path.mkdir()
        home.programs.mkdir()
        try:
            make(home)
            return _installed(name, said, hosts, home, wheels)
        finally:
            subprocess.run(["umount", "-l", home.path], check=False, capture_output=True)


def _installed(name: str, said: str, hosts: NamespaceHosts, home: Home, wheels: Path) -> bool:
    hosts.stop_server("h1")
    hosts.force = (
        f"export HOME={home.path}; export PATH={home.programs}:/usr/bin:/bin:/usr/sbin; cd; "
        'exec sh -c "$SSH_ORIGINAL_COMMAND"'
    )
    hosts.start_server("h1")
    toml = hosts.hosts_toml(
        run='transport = "pipe"', hosts={"h1": f'program = ["{PLACE}/venv/bin/loadstone"]'}
    )
    done = _loadstone("hosts", "install", str(toml), "--wheels", str(wheels))
    reply = (done.stdout + done.stderr).strip()
    print(f"{name}: code {done.returncode}\n  " + "\n  ".join(reply.splitlines()))
    if said:
        right = done.returncode != 0 and said in reply
    else:
        job = home.path / "job.fio"
        job.write_text(JOB)
        run = _loadstone(
            "run", str(job), "--hosts", str(toml), "--out", str(home.path / "out"), "--no-report"
        )
        print(f"  a run with it: code {run.returncode} {run.stderr.strip()[-300:]}")
        right = done.returncode == 0 and run.returncode == 0
    print(f"  {'as it should' if right else 'WRONG'}", flush=True)
    return right


def _loadstone(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LOADSTONE, *words], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
