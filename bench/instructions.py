"""Count the instructions of an I/O in user space, Loadstone's beside fio's, room by room.

    python bench/instructions.py [--seconds 4] [--only null,zero]

Needs valgrind; needs no quiet machine: what is counted does not depend on who else runs. Each
program runs a second and then longer under callgrind, and the difference is divided by the I/Os
there were more. Kernel instructions are not counted. Knows callgrind's format (callgrind-format,
valgrind manual) as far as it says what each source file cost.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import cases
import measure
import programs
from compare import markdown, named

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT_S = 1.0
COUNTED = tuple(case for case in cases.CASES if not case.needs)
"""Those without a target that must be made."""
ROOMS = 12
"""Most source files that are told each by itself."""
TOLD: dict[str, Callable[[str, programs.Job], programs.Program]] = {
    cases.FIO: programs.fio,
    cases.TUNED: programs.fio_tuned,
    cases.BARE: partial(programs.fio_tuned, latency=False),
}


def main() -> int:
    """Count and print."""
    options = _arguments()
    if shutil.which("valgrind") is None:
        print("valgrind is needed: apt-get install valgrind", file=sys.stderr)
        return 2
    with measure.scratch() as name:
        folder = Path(name)
        counts = {}
        for case in (case for case in COUNTED if case.name in options.only):
            ways = [*((mode, TOLD[mode](mode, case.options)) for mode in TOLD)]
            ring = case.options | {"registerfiles": ""}
            ways += [
                ("engine", programs.engine("engine", case.options, folder)),
                ("engine, ring", programs.engine("engine, ring", ring, folder)),
                ("engine, no I/O", programs.engine("engine, no I/O", case.options, folder, io=False)),
            ]
            for mode, program in ways:
                print(f"{case.name}: {mode}", file=sys.stderr)
                counts[case.name, mode] = per_io(program, folder, options.seconds)
    print(table(counts))
    return 0


def per_io(program: programs.Program, folder: Path, seconds: float) -> Counter[str]:
    """Instructions of one I/O by source file."""
    runs = [_run(program, folder, length) for length in (SHORT_S, seconds)]
    (few, first), (many, last) = runs
    if many <= few:
        message = f"{program.name}: {many} I/Os in the longer run, {few} in the shorter"
        raise RuntimeError(message)
    return Counter({room: (last[room] - first[room]) / (many - few) for room in last})


def _run(program: programs.Program, folder: Path, seconds: float) -> tuple[int, Counter[str]]:
    out = folder / "callgrind.out"
    command = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", *program.command(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = process.stdout.read()
    if process.returncode:
        message = f"{program.name}: valgrind ended with {process.returncode}; {program.shown(seconds)}"
        raise RuntimeError(message)
    return program.read(text).ios, by_file(out.read_text())


def by_file(text: str) -> Counter[str]:
    """Instructions of a profile by the name of their source file, what they call left out."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    room, is_call = "", False
    for line in text.splitlines():
        if line.startswith(("fl=", "fi=", "fe=", "cfl=", "cfi=")):
            key, _, value = line.partition("=")
            number, _, name = value.partition(" ")
            if name:
                names[number] = _room(name)
            room = room if key.startswith("c") else names[number]
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in "0123456789+-*" and line:
            if not is_call:
                counts[room] += int(line.split()[1])
            is_call = False
    return counts


def _room(path: str) -> str:
    """Short name of a source file: our own by where they lie, the rest by their library."""
    if "/crates/" in path:
        return path.split("/crates/", 1)[1].replace("/src/", "/", 1)
    return "Rust's library" if "/rustc/" in path else "other code"


def table(counts: dict[tuple[str, str], Counter[str]]) -> str:
    """All programs, then where Loadstone's are."""
    totals = [[case, mode, f"{sum(rooms.values()):,.0f}"] for (case, mode), rooms in counts.items()]
    ours = {key: rooms for key, rooms in counts.items() if key[1].startswith("engine")}
    sums: Counter[str] = Counter()
    for rooms in ours.values():
        sums.update(rooms)
    most = [room for room, _ in sums.most_common(ROOMS)]
    rows = [
        [f"`{room}`" if "." in room else room, *(f"{rooms[room]:,.1f}" for rooms in ours.values())]
        for room in most
    ]
    rest = [sum(rooms.values()) - sum(rooms[room] for room in most) for rooms in ours.values()]
    rows.append(["all others", *(f"{count:,.1f}" for count in rest)])
    heads = [f"{case}: {mode}" for case, mode in ours]
    parts = [
        markdown(["case", "program", "instructions per I/O"], totals),
        markdown(["source file", *heads], rows),
    ]
    return "\n\n".join(parts)


def _arguments() -> argparse.Namespace:
    names = [case.name for case in COUNTED]
    parser = argparse.ArgumentParser(description="Count instructions per I/O, Loadstone's beside fio's.")
    parser.add_argument("--seconds", type=float, default=4, help="length of the long runs (default 4)")
    parser.add_argument(
        "--only", default="null,zero", help=f"cases, of {','.join(names)} (default null,zero)"
    )
    options = parser.parse_args()
    options.only = named(parser, options.only, names, "case")
    if options.seconds <= SHORT_S:
        parser.error(f"--seconds must be above {SHORT_S:g}, the short run")
    return options


if __name__ == "__main__":
    sys.exit(main())
