"""Fuzz the reader of vdbench's parameter files: no traceback, no hang, a reason for every refusal.

Makes files from valid ones (lines dropped, doubled, mixed between files, keywords with values at
their limits, damaged bytes) and from nothing, reads and expands each, makes workloads of its runs,
plans them against made-up targets, and checks that the Plan survives its JSON. Any exception but a
LoadstoneError is a finding, and so is a file that takes seconds.

    python -m tests.fuzz.fuzz_vdbench --minutes 10 --seed 1
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.formats.vdbench import (
    Given,
    Overrides,
    ParameterText,
    expand,
    facts,
    lower,
    read,
    shape,
    workload_facts,
)
from loadstone.formats.vdbench.filesystem import FSD, FWD
from loadstone.formats.vdbench.general import GENERAL, HOST
from loadstone.formats.vdbench.rundef import RD
from loadstone.formats.vdbench.storage import SD
from loadstone.formats.vdbench.workload import WD
from loadstone.plan.anchors import Found
from loadstone.plan.host_facts import AnchorFacts, HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.plan.resolve import resolve
from loadstone.report.vdbench.wording import run_line
from tests.fuzz import driver

if TYPE_CHECKING:
    import random

MAX_PLANNED = 20
"""Runs of one file that are planned: the first ones."""
DATA = Path(__file__).parents[1] / "data" / "vdbench"
TABLES = {
    "": GENERAL,
    "hd=h,": HOST,
    "sd=s,lun=/a,": SD,
    "wd=w,": WD,
    "rd=r,": RD,
    "fsd=f,": FSD,
    "fwd=g,": FWD,
}
VALUES = [
    "0", "1", "-1", "2", "8", "50", "100", "101", "200", "201", "99999999999999999999", "1e9", "1e400",
    "nan", "4k", "4kb", "512", "513", "1m", "64m", "1g", "16t", "1h", "5m", ".1", "0.1", "100%", "200%",
    "-5%", "max", "curve", "yes", "no", "random", "seq", "seqnz", "eof", "poisson", "(poisson,3)",
    "(poisson,0)", "poisson-3", "(1,2)", "(2,1)", "(1-8,d)", "(8-1,d)", "(8,1,d)", "(1-10,1)", "(1-10)",
    "(1-1000000,1)", "(0-8,d)", "(,)", "()", "(1", "1)", "((1,2))", "(4k,50,8k,50)", "(4k,60,8k,50)",
    "(1k,4k,512)", "(512,2m,512)", "sd1", "sd*", "*", "(sd1-sd3)", "(sd01-sd03)", "(sd3-sd1)", "single",
    "range", "setsof2", "setsof0", "wd*", '"a,b=c-d e"', '"', '""', "o_direct", "(o_direct,o_sync)",
    "0x4000", "0xffffffff", "0x", "directio_off", "(d,variable)", "uniform", "spike", "deterministic",
    "(100,5,200,5)", "(100,5,200)", "default", "format", "/dev/fuzz", "/data/x", "$x", "!x", "=", "==", "-",
    "é", "\ufeff", "\ue000", "read", "write", "(read,write)", "create", "(only,limited)", "bottom", "all",
    "(10,90)", "(90,110)", "(0,100)", "(1g,2g)", "(60k,60k)", "3", "16", "10s", "30",
]  # fmt: skip


def corpus() -> list[list[str]]:
    """Valid and invalid parameter files, as lines."""
    return [file.read_text().splitlines() for file in sorted(DATA.rglob("*.parm"))]


def make(files: list[list[str]], rng: random.Random) -> bytes:
    """Return a parameter file, damaged or new."""
    lines = list(rng.choice(files)) if rng.random() < 0.9 else []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 20])):
        change(lines, files, rng)
    return driver.sometimes_damaged("\n".join(lines).encode("utf-8", "replace"), rng)


def change(lines: list[str], files: list[list[str]], rng: random.Random) -> None:
    """Change a few lines in place."""
    at = rng.randrange(len(lines) + 1)
    what = rng.random()
    if what < 0.5 and lines:
        own = [start for start in TABLES if start and lines[at - 1].lower().startswith(start[:2])]
        start = rng.choice(own or list(TABLES))
        lines[at - 1] = lines[at - 1].split(" ")[0].rstrip(",") + "," + parameter(start, rng)
    elif what < 0.6:
        start = rng.choice(list(TABLES))
        lines.insert(at, start + parameter(start, rng))
    elif what < 0.7 and lines:
        letters = [",", "(", ")", "=", " ", '"', "-", "*", "\t"]
        lines[at - 1] = lines[at - 1].replace(rng.choice(letters), rng.choice(letters), 1)
    elif what < 0.8 and lines:
        del lines[at - 1]
    elif what < 0.95:
        lines.insert(at, rng.choice(rng.choice(files)))
    else:
        lines.insert(at, rng.choice(["eof", "include=x", "loop=2", "hd=h2", "formatsds=yes", "sd=", ","]))


def parameter(start: str, rng: random.Random) -> str:
    """Return a keyword of a table, perhaps abbreviated, with a value."""
    name = rng.choice(TABLES[start].rows).name
    if rng.random() < 0.3:
        name = name[: rng.randint(1, len(name))]
    return f"{name}={rng.choice(VALUES)}"


def host(rng: random.Random, luns: set[str], anchors: set[str]) -> HostFacts:
    """Return a made-up host whose targets are of any size, and whose trees are there or not."""
    size = rng.choice([0, 511, 512, 4096, 1 << 20, 1 << 30, 1 << 40, (1 << 63) - 512])
    block = TargetFacts(TargetKind.BLOCK, size_bytes=size, logical_block_bytes=rng.choice([512, 4096]))
    file = TargetFacts(TargetKind.FILE, exists=rng.random() < 0.5, size_bytes=size)
    has_files = rng.random() < 0.7
    found = Found(True, has_files or rng.random() < 0.5, has_files, rng.choice([0, 1]) if has_files else None)
    tree = AnchorFacts(
        found, free_bytes=rng.choice([None, 1 << 20, 1 << 50]), free_files=rng.choice([None, 100])
    )
    return HostFacts(
        (0, 1),
        64 << 30,
        {lun: block if lun.startswith("/dev") else file for lun in luns},
        known_anchors=dict.fromkeys(anchors, tree),
    )


def one(data: bytes, rng: random.Random) -> str:
    """Read, expand, lower and plan one file; return how it ended."""
    file = read([ParameterText(data, "fuzz.parm", Path("/nonexistent"))])
    overrides = Overrides(elapsed=rng.choice([None, 4, 60]), interval=rng.choice([None, 1, 2]))
    runs = expand(file, overrides)
    assert len({run.title for run in runs}) == len(runs)
    luns = {f"/{storage.lun.strip('/')}" for storage in file.storages}
    anchors = {os.path.normpath(Path.cwd() / system.anchor) for system in file.file_systems}
    ended = "expanded"
    for run in runs[:MAX_PLANNED]:
        run_line(facts(run))
        for work in run.works:
            workload_facts(work, run)
        for file_work in run.file_works:
            shape(file_work.system, run.turn)
        observed = tuple(rng.random() for _ in run.works) if rng.random() < 0.3 else None
        workload = lower(file, run, Given(rng.choice([None, 10.0, 1e6]), observed, allow_exec=True))
        plan = resolve(workload, host=host(rng, luns, anchors)).plan
        if Plan.model_validate_json(plan.model_dump_json()) != plan:
            raise AssertionError("the Plan does not survive its JSON")
        assert all(use.length_bytes > 0 for stream in plan.streams for use in stream.files)
        assert all((stream.tree is None) == bool(stream.files) for stream in plan.streams)
        ended = "planned"
    return ended


if __name__ == "__main__":
    known = corpus()
    sys.exit(driver.main(__doc__, "parameter files", lambda rng: make(known, rng), one))
