"""One kind of damage on a real block device: what was injected, and what was found by whom.

Knows the device (nbdkit with our plugin, under FUSE, under a loop device), the jobs and how both
programs tell what they found. Knows no expectation.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.parts import LOADSTONE, Stage, unmount, until

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK: Final = 4096
KINDS: Final = ("lost_write", "torn_write", "misdirected_write", "stale_read", "bit_flip", "zeroed_block")
PLUGIN: Final = Path(__file__).with_name("plugin.py")


@dataclass(frozen=True, slots=True)
class DamageTrial:
    """What one kind of damage came to. Places are offsets of blocks."""

    kind: str
    injected: dict[int, int | None]
    """Block to where its write strayed, None for the other kinds."""
    found: dict[str, int]
    """Damaged blocks by the name they were given, as counted by Loadstone."""
    told: dict[int, str]
    """Place to name of those that were told one by one (100 at most)."""
    exit_code: int

    @property
    def damaged(self) -> set[int]:
        """Every place where data is wrong."""
        return set(self.injected) | {to for to in self.injected.values() if to is not None}


def has_plugin() -> bool:
    """Whether nbdkit can run plugins in Python."""
    return subprocess.run(["nbdkit", "python", "--version"], capture_output=True, check=False).returncode == 0


class Faulty(Stage):
    """A stage with a device that damages data."""

    def __enter__(self) -> Faulty:
        super().__enter__()
        return self

    def device(self, options: Mapping[str, object]) -> str:
        """A loop device over the plugin's disk, seen through FUSE."""
        size = int(str(options["size"]))
        socket, file = self.folder / "nbd.sock", self.folder / "nbd.file"
        arguments = [f"{name}={value}" for name, value in options.items()]
        self._program("nbdkit", "-f", "-U", socket, "python", PLUGIN, *arguments)
        until(socket.exists, "nbdkit's socket")
        file.touch()
        self._program("nbdfuse", file, f"nbd+unix:///?socket={socket}")
        until(lambda: file.stat().st_size == size, "nbdfuse's file")
        self._stack.callback(unmount, file)
        return self.loop_over(file)


def loadstone(kind: str, size_bytes: int, share: float) -> DamageTrial:
    """Let Loadstone write everything twice, and read it back: the second writing is damaged.

    For stale reads it reads twice, and the second reading is damaged.
    """
    with Faulty() as stage:
        log = stage.folder / "injected"
        device = stage.device(
            {"kind": kind, "size": size_bytes, "after": size_bytes, "share": share, "log": log}
        )
        job = stage.folder / "job.fio"
        job.write_text(_job(device, size_bytes, twice=kind == "stale_read"))
        bundle = stage.folder / "bundle"
        command = [*LOADSTONE, "run", job, "--out", bundle, "--no-report"]
        command += ["--no-calibration", "--i-accept-data-loss", device]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, timeout=600
        )
        events = bundle / "events.jsonl"
        if not events.exists():
            raise RuntimeError(done.stderr)
        records = [json.loads(line) for line in events.read_text().splitlines()]
        counts = next(event["found"] for event in records if event["type"] == "verified")
        places = {event["offset"]: event["kind"] for event in records if event["type"] == "damage"}
        return DamageTrial(kind, _log(log), counts, places, done.returncode)


def fio(kind: str, size_bytes: int, share: float) -> tuple[int, int]:
    """Do the same with fio; return the injections and the different blocks it called bad.

    fio checks what it just wrote with its own header (`verify=crc32c`), and goes on after an error.
    """
    with Faulty() as stage:
        log = stage.folder / "injected"
        device = stage.device(
            {"kind": kind, "size": size_bytes, "after": size_bytes, "share": share, "log": log}
        )
        job = stage.folder / "job.fio"
        job.write_text(
            _job(device, size_bytes, twice=kind == "stale_read", extra="continue_on_error=verify\n")
        )
        done = subprocess.run(
            ["fio", str(job)], cwd=stage.folder, capture_output=True, text=True, check=False, timeout=600
        )
        bad = re.findall(r"at file \S+ offset (\d+)", done.stderr + done.stdout)
        return len(_log(log)), len(set(bad))


def _job(device: str, size_bytes: int, *, twice: bool, extra: str = "") -> str:
    """Write everything in order, then once more at random, then read it back."""
    again = "[again]\nstonewall\nrw=randread\n" if twice else ""
    return f"""[global]
filename={device}
bs={BLOCK}
size={size_bytes}
ioengine=io_uring
iodepth=8
direct=1
verify=crc32c
verify_fatal=0
{extra}[fill]
rw=write
do_verify=0
[over]
stonewall
rw=randwrite
{again}"""


def _log(path: Path) -> dict[int, int | None]:
    lines = [line.split() for line in path.read_text().splitlines()]
    return {int(words[0]): int(words[1]) if len(words) > 1 else None for words in lines}
