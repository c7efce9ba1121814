"""Hold parameter files of vdbench against the real program: lists, files, header lines, columns, mixes.

    python -m lab.vdbench --vdbench DIR/vdbench --place /tmp/beside [--count 45] [--seed 1] [FILE...]

Draws files by seed and runs each with both programs on small files and trees below `--place`. FILEs are
listed by both and not run. The table goes to standard output, or into --table.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lab.vdbench import compare, draw

PATIENCE_S = 180
RUN_S = 2.0
"""What counts of a run that was drawn."""
_LISTED = re.compile(r"Simulating RD=.*")
_RATE = re.compile(r"I/O rate: [^;]*; ")
_ANCHOR = re.compile(r"\banchor=([^,\s]+)")


@dataclass(frozen=True, slots=True)
class VdbenchFileRow:
    """One file and what differs."""

    name: str
    kind: str
    apart: bool
    listed: int
    ran: bool
    found: compare.VdbenchDifference

    @property
    def cells(self) -> tuple[list[str], ...]:
        """Differences by what they are about."""
        difference = self.found
        return difference.lists, difference.files, difference.headers, difference.columns, difference.mixes

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not any(self.cells)


def call(*words: str | Path, cwd: Path) -> tuple[int, str]:
    """Run a program; return its exit code and all it said."""
    try:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, "it did not end"
    return done.returncode, done.stdout


def ours(*words: str | Path, cwd: Path) -> tuple[int, str]:
    """Run Loadstone."""
    return call(sys.executable, "-m", "loadstone.cli.main", *words, cwd=cwd)


def listed(vdbench: Path, file: Path, place: Path, difference: compare.VdbenchDifference) -> int:
    """List a file's runs with both programs, and say how they differ; return how many there are."""
    _, real = call(vdbench, "-s", "-f", file, "-o", place / "listed", cwd=place)
    code, text = ours("plan", file, cwd=place)
    left, right = _LISTED.findall(real), _LISTED.findall(text)
    if not left or not right:
        if left or right:
            difference.lists.append(_why(real if not left else text))
        return len(left)
    if len(left) != len(right):
        difference.lists.append(f"{len(left)} runs, ours {len(right)}")
    for one, other in zip(left, right, strict=False):
        if _known(one) != _known(other):
            difference.lists.append(f"{one[11:70]!r}, ours {other[11:70]!r}")
    if code:
        difference.lists.append(_why(text))
    return len(left)


def _known(line: str) -> str:
    """Return a line without the rate of a curve's point, and of a loop over rates.

    vdbench makes the first up, and of the second tells that of the first run; its loops tell the right one.
    """
    return _RATE.sub("", line) if "%)" in line or "iorate=" in line else line.rstrip()


def _why(said: str) -> str:
    lines = [line for line in said.splitlines() if "refused" in line or "RuntimeException" in line]
    return (lines or said.splitlines() or ["said nothing"])[0][:110]


def run(vdbench: Path, file: Path, place: Path, difference: compare.VdbenchDifference) -> bool:
    """Run a file with both programs, each on an empty place, and add what differs."""
    emptied(place, file)
    for name in ("real", "study", "mine"):
        shutil.rmtree(place / name, ignore_errors=True)
    code, output = call(vdbench, "-f", file, "-o", place / "real", cwd=place)
    if code:
        difference.files.append(f"vdbench: {_why(output)}")
        return False
    emptied(place, file)
    words = ("--no-calibration", "--no-report", "--no-progress", "--out", place / "study")
    code, output = ours("run", file, *words, "--vdbench-output", place / "mine", cwd=place)
    if code:
        difference.files.append(f"ours: {_why(output)}")
        return False
    sizes = "sizes=(" in file.read_text()
    compare.differences(
        compare.read(place / "real"), compare.read(place / "mine"), RUN_S, difference, sizes=sizes
    )
    return True


def emptied(place: Path, file: Path) -> None:
    """Make the place of a file's SDs and trees anew."""
    home = place / "data" / file.stem
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for anchor in _ANCHOR.findall(file.read_text()):
        Path(anchor).mkdir()  # vdbench makes those of formats only, and no target of copies.


def table(rows: list[VdbenchFileRow]) -> str:
    """Return what was found, as Markdown."""
    lines = ["| file | kind | apart | runs | same | what differs | known |", "|---|---|---|--:|---|---|---|"]
    for row in rows:
        differences = "; ".join(text for cell in row.cells for text in cell[:3]).replace("|", "/")
        known = "; ".join(row.found.known).replace("|", "/")
        apart, same = "yes" if row.apart else "", "yes" if row.is_same else "no"
        lines.append(
            f"| {row.name} | {row.kind} | {apart} | {row.listed} | {same} | {differences} | {known} |"
        )
    for heading, some in (
        ("tuned by", [r for r in rows if not r.apart]),
        ("apart", [r for r in rows if r.apart]),
    ):
        same = [sum(not cell for cell in column) for column in zip(*(row.cells for row in some), strict=True)]
        names = ("lists", "files", "header lines", "columns", "mixes")
        counts = ", ".join(f"{name} {count}" for name, count in zip(names, same or (0,) * 5, strict=True))
        runs = sum(row.listed for row in some)
        whole = sum(row.is_same for row in some)
        lines += ["", f"Files {heading}: {len(some)} with {runs} runs; the same: {counts}, in all {whole}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Draw, list, run, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vdbench", type=Path, required=True, help="the script of an installed vdbench")
    parser.add_argument("--place", type=Path, required=True, help="a new directory; its path without a dash")
    parser.add_argument("--count", type=int, default=45)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("tuned", "apart"))
    parser.add_argument("--list-only", action="store_true", help="run nothing")
    parser.add_argument("--table", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    options = parser.parse_args()
    vdbench, place = options.vdbench.resolve(), options.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    rows: list[VdbenchFileRow] = []
    for drawn in draw.drawn(options.seed, options.count, f"{place}/data"):
        if options.only and drawn.apart != (options.only == "apart"):
            continue
        file, difference = place / f"{drawn.name}.parm", compare.VdbenchDifference()
        file.write_text(drawn.text)
        emptied(place, file)
        count = listed(vdbench, file, place, difference)
        ran = not options.list_only and run(vdbench, file, place, difference)
        rows.append(VdbenchFileRow(drawn.name, drawn.kind, drawn.apart, count, ran, difference))
        print(f"{drawn.name} {drawn.kind}: {rows[-1].cells}", file=sys.stderr, flush=True)
    for file in options.files:
        difference = compare.VdbenchDifference()
        count = listed(vdbench, file.resolve(), place, difference)
        rows.append(VdbenchFileRow(file.name, "given", False, count, False, difference))
        print(f"{file.name}: {rows[-1].cells}", file=sys.stderr, flush=True)
    text = table(rows)
    if options.table is None:
        sys.stdout.write(text)
    else:
        options.table.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
