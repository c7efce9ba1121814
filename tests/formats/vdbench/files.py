"""The parameter files of the tests, each with what is expected of it in its own comments.

`* expect: LINE` are the lines of the list of runs, in order; `* runs: N` their number.
`* job[ of RUN]: JOB FIELD=VALUE...` are fields of a job (of the first run without `of`), with dots
into what they hold; `* jobs of RUN: NAMES`, `* files of FSD: ...`, `* set: NAME=VALUE...`, `* exec`.
`* error: KIND LINE KEYWORD: TEXT` is what a file of `bad` is refused with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from loadstone.frozen_model import FrozenModel
from loadstone.workload.model import Job

DATA = Path(__file__).parents[2] / "data" / "vdbench"
GOOD = sorted(DATA.glob("*.parm"))
BAD = sorted((DATA / "bad").glob("*.parm"))


@dataclass(frozen=True)
class Fields:
    """Fields that a job of a run must have."""

    run: str | None
    job: str
    fields: dict[str, str]


def comments(path: Path, word: str) -> list[str]:
    """Return what follows `* word: ` on each line that has it."""
    start = f"* {word}: "
    return [line[len(start) :] for line in path.read_text().splitlines() if line.startswith(start)]


def permits(path: Path) -> bool:
    """Whether the file's commands may run."""
    return "* exec" in path.read_text().splitlines()


def variables(path: Path) -> dict[str, str]:
    """Return the variables a file is read with."""
    return dict(pair.split("=", 1) for line in comments(path, "set") for pair in line.split())


def jobs(path: Path) -> list[Fields]:
    """Return the fields that are expected of jobs."""
    found = []
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"\* job(?: of (.+?))?: (\S+) (.*)", line)
        if match:
            pairs = re.findall(r'([\w.]+)=("[^"]*"|\([^=]*\)|[^ ]+)', match[3])
            found.append(Fields(match[1], match[2], {name: value.strip('"') for name, value in pairs}))
    return found


def job_names(path: Path) -> dict[str, list[str]]:
    """Return the jobs that are expected of runs, in order."""
    found = {}
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"\* jobs of (.+?): (.*)", line)
        if match:
            found[match[1]] = match[2].split()
    return found


def at(value: object, path: str) -> object:
    """Follow dots: attributes, of the job, its work or one of its parts, and places in lists."""
    path = path.replace("tree.", "work.")
    first = path.partition(".")[0]
    if isinstance(value, Job) and first not in Job.model_fields:
        parts = [part for _, part in (*(value.blocks or ()), *value)]
        value = next(part for part in parts if isinstance(part, FrozenModel) and hasattr(part, first))
    for part in path.split("."):
        value = value[int(part)] if part.isdigit() else getattr(value, part)  # type: ignore[index] # checked by use
    return value
