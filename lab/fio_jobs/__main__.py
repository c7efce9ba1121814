"""Hold job files against the real fio: what both take, do, count and print.

    python -m lab.fio_jobs --place /tmp/beside [--count 300] [--seed 1] [--about places] [FILE...]

FILEs are cut to small files (`cut.py`); without any, job files are drawn by seed (`draw.py`). Each is run by
both programs in directories of their own. The table goes to standard output, or into --table.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lab.fio_jobs import compare, cut, draw
from tests.support import started

PATIENCE_S = 120
LOGS = "[global]\nwrite_lat_log=log\nlog_offset=1\n"
_TIMED = re.compile(
    r"^\s*(time_based|runtime|timeout|rate|ss|steadystate|latency_target|thinktime|flow|exitall)\b",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class FioFileRow:
    """One file and what differs."""

    name: str
    taken: tuple[bool, bool]
    told: tuple[str, ...]
    shapes: tuple[str, ...]
    why: str


def call(fio: str | None, directory: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Run fio, or else Loadstone in its place, in a directory; return its exit code and all it said."""
    environment = {**os.environ, **variables, "LOADSTONE_FIO_OVERWRITE": "1", "LOADSTONE_FIO_VERIFY": "3.33"}
    words = ["--output=out.txt", "--output-format=normal,terse,json", "job.fio"]
    start = subprocess.Popen if fio else started.StartedProgram
    with start(
        [fio or "fio", *words],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as program:
        try:
            output, _ = program.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            _end_jobs(directory)
            program.communicate()
            return 124, "it did not end"
    return program.returncode, output


def _end_jobs(directory: Path) -> None:
    """End what fio has left: its jobs have sessions of their own, work here and keep the pipe open."""
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (one / "cwd").readlink() == directory:
                os.kill(int(one.name), signal.SIGKILL)


def prepare(directory: Path, text: str) -> None:
    """Make a directory with a job file, and with files for what it reads and does not make."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "place").mkdir(parents=True)
    content = bytes(range(256)) * (cut.MOST_BYTES // 256)
    names = {
        name
        for line in re.findall(r"^\s*filename\s*=\s*(\S+)", text, re.MULTILINE)
        for name in line.split(":")
    }
    for name in {"target", *names}:
        if "/" not in name and "$" not in name and name != "-":
            for place in (directory, directory / "place"):
                (place / name).write_bytes(content)
    (directory / "job.fio").write_text(LOGS + text)


def hold(name: str, text: str, place: Path, *, fio: str) -> FioFileRow:
    """Run one job file by both programs."""
    variables = cut.environment(text)
    done = {}
    for who, program in (("fio", fio), ("ours", None)):
        directory = place / name / who
        prepare(directory, text)
        code, output = call(program, directory, variables)
        done[who] = compare.read(directory, code, output)
    real, ours = done["fio"], done["ours"]
    accepted = (bool(real.document), bool(ours.document))
    timed = bool(_TIMED.search(text))
    differences = compare.differences(real, ours, timed=timed, text=text)
    shapes = compare.shapes(real, ours) if all(accepted) else []
    why = "" if all(accepted) else f"fio: {_first(real)} | ours: {_first(ours)}"
    if not differences:
        shutil.rmtree(place / name, ignore_errors=True)
    return FioFileRow(name, accepted, tuple(differences), tuple(shapes), why)


def _first(done: compare.FioResult) -> str:
    lines = [line for line in done.said.splitlines() if line.strip()]
    return "taken" if done.document else " / ".join(lines[:2])[:200]


def table(rows: list[FioFileRow]) -> str:
    """Return what was found, as Markdown."""
    lines = ["| file | fio takes | ours takes | what differs | outputs |", "|---|---|---|---|---|"]
    for row in rows:
        remarks = "; ".join(text for text in (*row.told, row.why) if text)
        cells = [*("yes" if one else "no" for one in row.taken), remarks, "; ".join(row.shapes)]
        lines.append(f"| {row.name} | " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    both = [row for row in rows if all(row.taken)]
    lines += [
        "",
        f"Files: {len(rows)}; fio takes {sum(row.taken[0] for row in rows)}, "
        f"ours {sum(row.taken[1] for row in rows)}, both {len(both)}; "
        f"of these the same {sum(not row.told for row in both)}, "
        f"with outputs of one shape {sum(not row.shapes for row in both)}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Draw or cut, run, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--place", type=Path, required=True, help="a new directory")
    parser.add_argument("--fio", default="fio")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first drawn file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--about", choices=sorted(draw.ABOUT), default="all", help="options of the drawn files"
    )
    parser.add_argument("--table", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    options = parser.parse_args()
    place = options.place.resolve()
    if options.files:
        jobs = [(file.name, cut.cut(file.read_text(errors="replace"))) for file in options.files]
    else:
        numbers = range(options.first, options.first + options.count)
        jobs = [(f"{options.seed}-{at:03d}", draw.drawn(options.seed, at, options.about)) for at in numbers]
    rows = []
    for name, text in jobs:
        rows.append(hold(name, text, place, fio=options.fio))
        row = rows[-1]
        print(f"{name} {row.taken} {row.told} {row.shapes} {row.why}", file=sys.stderr, flush=True)
    if options.table is None:
        sys.stdout.write(table(rows))
    else:
        options.table.write_text(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
