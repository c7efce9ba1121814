"""Fuzz the reader of Iometer's configurations: no traceback, no hang, a place for every refusal.

Makes files from valid ones (lines dropped, doubled, moved, mixed between files, values at their
limits, damaged bytes), reads each, makes its runs and resolves the first. Any exception but a
LoadstoneError is a finding, and so is a file that takes seconds.

    python -m tests.fuzz.fuzz_icf --minutes 10 --seed 1
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.formats.iometer import CommandLineChanges, read_icf, runs
from loadstone.plan.host_facts import HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.plan.resolve import resolve
from tests.fuzz import driver

if TYPE_CHECKING:
    import random

MAX_JOBS = 200
"""Larger runs are only made: planning them takes seconds and tries nothing new."""
DATA = Path(__file__).parents[1] / "data" / "iometer"
TARGET = "/dev/fuzz"
VALUES = [
    "0", "1", "-1", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808",
    "99999999999999999999", "1.5", "0x10", "1e9", "", " ", "one", "LINEAR", "EXPONENTIAL", "NUMBER_OF_CPUS",
    "ENABLED", "DISABLED", "ALL", "NONE", "DISK", "NETWORK,TCP", "NORMAL", "CYCLE_TARGETS",
    "CYCLE_OUTSTANDING_IOS", "CYCLE_OUTSTANDING_IOS_AND_TARGETS", "CYCLE_WORKERS_AND_TARGETS",
    "INCREMENT_TARGETS_SERIAL", "1 0 LINEAR", "0 1 LINEAR", "1 2 EXPONENTIAL", "1 1000000 1 LINEAR",
    "1 32 0 EXPONENTIAL", "0 0 0", "0 0 1", "0,0", "1,DISABLED,1", "1,DISABLED,1,ENABLED,7", "Idle",
    "4096,100,50,50,0,1,0,0", "512,1,100,100,5,8,512,0", "4096,99,0,0,0,1,0,0", "4096,100,0,0,0,1,0,512",
    "2048 100 67 100 0 1", "Version 1.1.0", "Version 1998.01.05", "'End worker", "'END manager list",
    "'Worker", "'Target", "'", "''", ",", ",,,,,,,", "\t", "\u00e9", "\ufeff", "C: \"\"", "\"", "[x]",
]  # fmt: skip


def make(files: list[list[str]], rng: random.Random) -> bytes:
    """Return a configuration, damaged."""
    lines = list(rng.choice(files))
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        change(lines, files, rng)
    return driver.sometimes_damaged("\n".join(lines).encode("utf-8", "replace"), rng)


def change(lines: list[str], files: list[list[str]], rng: random.Random) -> None:
    """Change a few lines in place."""
    at = rng.randrange(len(lines) + 1)
    what = rng.random()
    if what < 0.4 and at < len(lines):
        words = lines[at].split(",") if "," in lines[at] else lines[at].split()
        if words:
            words[rng.randrange(len(words))] = rng.choice(VALUES)
            lines[at] = "\t" + ("," if "," in lines[at] else " ").join(words)
    elif what < 0.55:
        lines.insert(at, rng.choice(["", "\t"]) + rng.choice(VALUES))
    elif what < 0.7 and at < len(lines):
        del lines[at : at + rng.choice([1, 1, 2, 10])]
    elif what < 0.85:
        other = rng.choice(files)
        begin = rng.randrange(len(other))
        lines[at:at] = other[begin : begin + rng.choice([1, 2, 5, 30])]
    elif at < len(lines):
        lines[at] = rng.choice([lines[at].lower(), lines[at].upper(), lines[at].strip(), lines[at].title()])


def judge(data: bytes, host: HostFacts) -> str:
    """Read, expand and resolve one file; return what became of it."""
    try:
        configuration = read_icf(data, "fuzz.icf")
    except LoadstoneError as error:
        if error.where is None:
            raise AssertionError(f"no place: {error}") from error
        return "refused"
    try:
        found = runs(configuration, CommandLineChanges(targets=(TARGET,), runtime_ns=10**9))
        assert len({run.name for run in found}) == len(found), "two runs have one name"
        if len(found[0].workload.jobs) > MAX_JOBS:
            return "large"
        made = resolve(found[0].workload, host=host).plan
    except LoadstoneError:
        return "refused later"
    assert Plan.model_validate_json(made.model_dump_json()) == made, "the Plan does not survive its JSON"
    return "planned"


if __name__ == "__main__":
    known = [path.read_text(encoding="cp1252").splitlines() for path in sorted(DATA.glob("*.icf"))]
    here = HostFacts.here()
    fact = TargetFacts(TargetKind.BLOCK, size_bytes=1 << 40)
    host = HostFacts(cpus=here.cpus, memory_bytes=here.memory_bytes, known={TARGET: fact})
    noun = "configurations"
    sys.exit(driver.main(__doc__, noun, lambda rng: make(known, rng), lambda data, _: judge(data, host)))
