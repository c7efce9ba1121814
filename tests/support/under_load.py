"""The suite several times beside processes that spin: `make robust`.

A test that fails in some of these runs takes the host's speed for granted. Says of each run how many
passed, failed and were skipped, and which failed; at the end how often each of them did. Every run draws
its own sample of the long lists and of the costly tests, as if it were another day's.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = 3 * (os.cpu_count() or 1) // 2
"""As `make test` has them."""
PARTS = (
    ("side by side", ["-n", str(JOBS), "--dist", "worksteal", "-m", "not nightly and not serial"]),
    ("serial", ["-m", "serial and not nightly"]),
)


def spin() -> None:
    """Take a processor."""
    while True:
        pass


@contextlib.contextmanager
def spinning(count: int) -> Iterator[None]:
    """Let so many processes spin; end these and no other."""
    processes = [multiprocessing.Process(target=spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def run(words: list[str], report: Path, draw: int) -> tuple[dict[str, int], dict[str, str]]:
    """Run pytest; return how many tests had which end, and of those that failed what they said."""
    command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", *words]
    own = {**os.environ, "LOADSTONE_TESTS_DRAW": str(draw)}
    own.pop("PYTHONDONTWRITEBYTECODE", None)  # Hundreds of programs are started.
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=own)
    ends: dict[str, int] = defaultdict(int)
    failed: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        end = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
        ends["passed" if end is None else end.tag] += 1
        if end is not None and end.tag != "skipped":
            failed[name] = (end.get("message") or "").partition("\n")[0]
    return ends, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="number of the first run: what it draws")
    parser.add_argument("--spinning", type=int, default=2, help="processes")
    parser.add_argument("tests", nargs="*", default=[])
    given = parser.parse_args()
    often: dict[str, list[str]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as place, spinning(given.spinning):
        for number in range(given.first, given.first + given.times):
            for name, words in PARTS:
                begin = time.monotonic()
                ends, failed = run([*words, *given.tests], Path(place) / "report.xml", number)
                told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items())) or "no tests"
                sys.stdout.write(f"run {number}, {name}: {told}, {time.monotonic() - begin:.0f} s\n")
                for test, said in failed.items():
                    sys.stdout.write(f"  failed: {test}: {said}\n")
                    often[test].append(said)
                sys.stdout.flush()
    for test, each in sorted(often.items(), key=lambda one: -len(one[1])):
        sys.stdout.write(f"failed in {len(each)} of {given.times}: {test}: {each[0]}\n")
    return 1 if often else 0


if __name__ == "__main__":
    sys.exit(main())
