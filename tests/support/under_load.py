"""The suite several times beside processes that spin: `make robust`.

A test that fails in some of these runs takes the host's speed for granted. Says of each run how many
passed, failed and were skipped, and at the end every test that failed, how often, and what it said.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
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

PARTS = (
    ("side by side", ["-n", "4", "--dist", "worksteal", "-m", "not nightly and not serial"]),
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


def run(words: list[str], report: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Run pytest; return how many tests had which end, and of those that failed what they said."""
    command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
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
    parser.add_argument("--spinning", type=int, default=2, help="processes")
    parser.add_argument("tests", nargs="*", default=[])
    given = parser.parse_args()
    often: dict[str, list[str]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as place, spinning(given.spinning):
        for number in range(1, given.times + 1):
            for name, words in PARTS:
                begin = time.monotonic()
                ends, failed = run([*words, *given.tests], Path(place) / "report.xml")
                told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items())) or "no tests"
                sys.stdout.write(f"run {number}, {name}: {told}, {time.monotonic() - begin:.0f} s\n")
                sys.stdout.flush()
                for test, said in failed.items():
                    often[test].append(said)
    for test, each in sorted(often.items(), key=lambda one: -len(one[1])):
        sys.stdout.write(f"failed in {len(each)} of {given.times}: {test}: {each[0]}\n")
    return 1 if often else 0


if __name__ == "__main__":
    sys.exit(main())
