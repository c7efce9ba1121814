"""Fuzz the job-file reader and the planner: no traceback, no hang, a reason for every refusal.

Makes job files from valid ones (lines dropped, doubled, mixed between files, values at
their limits, damaged bytes) and from nothing, reads each in both readings, resolves what
could be read against made-up targets, and checks that the Plan survives its JSON. Any
exception but a LoadstoneError is a finding, and so is a file that takes seconds.

    python -m tests.fuzz.fuzz_jobfile --minutes 10 --seed 1
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.formats.fio import ReadOptions, TextSource, TokenSource, read_jobfiles
from loadstone.formats.fio.table import BY_NAME
from loadstone.plan.host_facts import HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from tests.fuzz import driver

if TYPE_CHECKING:
    import random

MAX_FILES = 2000
"""Larger runs are only read: planning them takes seconds and tries nothing new."""
ROOT = Path(__file__).parents[1]
VALUES = [
    "0", "1", "-1", "4k", "4kib", " 8k", "1e9", "4.5k", "100%", "101%", "50%", "0x10", "0x", "(1+2)",
    "(((1)))", "(1/0)", "2^63", "(2^62*4)", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "1z", "k", "4k,8k", "4k,,16k", ",8k", "4k,", "1,2,3,4", "4k-8k", "8k-4k",
    "4k-8k,1k-2k", "4k/60:64k/", "4k/0", "4k/200", "/", ":", ",", "a:b", "zipf", "zipf:1.2", "zipf:1",
    "zipf:nan", "pareto:0.2", "pareto:inf", "normal:20:0.5", "zoned:60/10:30/20:10/70", "zoned:/:/",
    "zoned_abs:60/1g:40/1g", "random:8", "roundrobin:0", "read", "randrw", "randread:8", "read:-8k",
    "read:4k", "trimwrite", "randtrimwrite", "write", "randread:-1", "null", "libaio", "psync", "mmap",
    "io_uring", "posixaio", "external:x", "${HOME}", "${NO_SUCH}", "${", "$ncpus", "2*$ncpus", "$ncpus/0",
    "/dev/fuzz", "/dev/fuzz0:/dev/fuzz1", "../x", "data", "-", "\\:", "0-3", "0-", "9999", "0-4095",
    '"abc"', "0xdeadbeef", "0xabc", "'file'", "%o", "EIO", "EIO:ENOSPC,28", "E", "50:99.9", "1-2", "5s-10s",
    "1d", "999999999999d", "10us", "true", "no", "verify", "none", "both", "$jobname.$jobnum.$filenum", "é",
    "\ufeff", "65536", "100000", "65537", "2147483647", "4096", "1m", "1g", "7", "512",
]  # fmt: skip


def corpus() -> list[list[str]]:
    """Valid job files, as lines."""
    files = sorted([*(ROOT / "equivalence" / "jobs").glob("*.fio"), *(ROOT / "data" / "seed").glob("*.fio")])
    return [file.read_text().splitlines() for file in files]


def make(files: list[list[str]], rng: random.Random) -> bytes:
    """Return a job file, damaged or new."""
    lines = list(rng.choice(files)) if rng.random() < 0.7 else ["[job]"]
    for _ in range(rng.choice([1, 2, 3, 5, 20])):
        change(lines, files, rng)
    return driver.sometimes_damaged("\n".join(lines).encode("utf-8", "replace"), rng)


def accepts(name: str, value: str) -> bool:
    """Whether an option can be read with this value."""
    try:
        read_jobfiles([TextSource(f"[a]\n{name}={value}\n")], options=ReadOptions(allow_exec=True))
    except LoadstoneError:
        return False
    return True


def change(lines: list[str], files: list[list[str]], rng: random.Random) -> None:
    """Change a few lines in place."""
    at = rng.randrange(len(lines) + 1)
    what = rng.random()
    if what < 0.6:
        lines.insert(max(at, 1), option(rng))
    elif what < 0.7 and lines:
        lines[at - 1] = lines[at - 1].replace("=", rng.choice(["==", "", " = ", "=;", "=#"]), 1)
    elif what < 0.8 and lines:
        del lines[at - 1]
    elif what < 0.9:
        lines.insert(at, rng.choice(rng.choice(files)))
    else:
        lines.insert(
            at, rng.choice(["[global]", "[a]", "[", "[]", "[x]y", "; no", "include nothing", "stonewall"])
        )


NAMES = sorted(BY_NAME)
NUMBERS = [name for name in NAMES if BY_NAME[name].verdict == "honoured" and accepts(name, "2")]
"""Options that take a plain number: mostly these, so that many files reach the planner."""


def option(rng: random.Random) -> str:
    """Return a line with an option, three times of four one that can be read."""
    if rng.random() < 0.75:
        return f"{rng.choice(NUMBERS)}={rng.choice(['0', '1', '2', '7', '64', '4k', '1m', '50'])}"
    name = rng.choice(NAMES)
    equals = rng.choice(["=", "=", "=", " = ", "= ", " ="])
    return name if rng.random() < 0.1 else f"{name}{equals}{rng.choice(VALUES)}"


def host(rng: random.Random) -> HostFacts:
    """Return a made-up host whose devices are of any size."""
    size = rng.choice([0, 511, 512, 4096, 1 << 20, 1 << 30, 1 << 40, (1 << 63) - 512])
    block = TargetFacts(TargetKind.BLOCK, size_bytes=size, logical_block_bytes=rng.choice([512, 4096]))
    known = {f"/dev/fuzz{end}": block for end in ("", "0", "1")}
    known |= {f"/dev/sd{letter}": block for letter in "cdefghij"}
    return HostFacts(tuple(range(rng.choice([1, 2, 64]))), 64 << 30, known)


def one(data: bytes, rng: random.Random) -> str:
    """Read, resolve and write one file; return how it ended."""
    strict = rng.random() < 0.5
    options = ReadOptions(
        strict_fio_reading=strict, environment={"HOME": "/root"}, allow_exec=rng.random() < 0.5
    )
    if rng.random() < 0.1:
        words = [f"--{line}" for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        workload = read_jobfiles([TokenSource(tuple(words))], options=options)
    else:
        workload = read_jobfiles([TextSource(data, "fuzz.fio", Path("/nonexistent"))], options=options)
    workload.model_dump_json()
    if sum((job.schedule.numjobs or 1) * (job.placement.nrfiles or 1) for job in workload.jobs) > MAX_FILES:
        return "read"
    resolution = resolve(
        workload,
        host=host(rng),
        options=ResolveOptions(
            per_clone_units=strict, keep_ioengine=rng.random() < 0.3, base_directory="/tmp"
        ),
    )
    text = resolution.plan.model_dump_json()
    if Plan.model_validate_json(text) != resolution.plan:
        raise AssertionError("the Plan does not survive its JSON")
    for stream in resolution.plan.streams:
        shares = stream.pattern
        assert shares.read_percent + shares.write_percent + shares.trim_percent == 100
        assert stream.files
        assert all(use.length_bytes > 0 for use in stream.files)
    return "planned"


if __name__ == "__main__":
    known = corpus()
    sys.exit(driver.main(__doc__, "job files", lambda rng: make(known, rng), one))
