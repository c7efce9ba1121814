"""fio's own test scripts, run with the real fio and with `loadstone fio` in its place.

    python -m lab.fio_scripts FIO_SOURCE --fio FIO [--only sequence.py,readonly.py] [--keep DIR]

FIO_SOURCE is a source tree of fio that is there already: nothing is fetched and nothing is built.
`--fio` is the fio to compare with. Prints a table in Markdown: how many of each script's tests
passed with either, and below it the tests that did not pass with one of them. Knows how each script
is called and how it tells its tests; no test by name. A script that wants a device is given a loop
device that is made for it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from lab import parts

DEVICE: Final = "{device}"
SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
    "run-fio-tests.py": ("-s", *map(str, range(1000, 1026))),
    "readonly.py": (),
    "steadystate_tests.py": (),
    "strided.py": (),
    "random_seed.py": (),
    "sequence.py": (),
    "sprandom.py": (),
    "latency_percentiles.py": (),
    "log_compression.py": (),
    "jsonplus2csv_test.py": (),
    "verify.py": (),
    "verify_state_save.py": (),
    "verify-trim.py": ("--dut", DEVICE),
    "numberio_overlap.py": (),
}
"""Scripts that need no device of a certain kind, and their arguments.

The tests from 1000 on of run-fio-tests.py are programs in C and the other scripts.
"""
NOT_APPLICABLE: Final = {
    "client_server.py": "client and server are refused",
    "io_uring_cmd.py": "needs an NVMe device",
    "io_uring_pi.py": "needs a device with protection information",
    "nvmept_*.py": "need an NVMe device",
    "sgunmap-*.py": "need a SCSI device",
    "one-core-peak.sh": "tunes a host and measures t/io_uring",
    "zbd/": "zoned block devices are not supported",
    "fiotestlib.py, fiotestcommon.py": "are no tests",
}
_WITHOUT_FLAG: Final = "steadystate_tests.py"
_WRAPPER: Final = '#!/bin/sh\nexec "{python}" -m loadstone.cli.main fio "$@"\n'
_DEVICE_MIB: Final = 64


@dataclasses.dataclass(frozen=True)
class ScriptOutcome:
    """What a script told of its tests; `words` where it told no counts."""

    passed: int = 0
    skipped: int = 0
    failed: tuple[str, ...] = ()
    words: str = ""

    def __str__(self) -> str:
        """Say it as a cell of the table."""
        if self.words:
            return self.words
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} of {self.passed + len(self.failed)}{skipped}"


def main() -> int:
    """Run the scripts asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a source tree of fio")
    parser.add_argument("--fio", type=Path, required=True, help="the fio to compare with")
    parser.add_argument("--only", default="", help="scripts, with commas between")
    parser.add_argument("--seconds", type=int, default=3600, help="most time for a script")
    parser.add_argument("--keep", type=Path, help="a folder for what the scripts print and make")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name] or list(SCRIPTS)
    failed = []
    sys.stdout.write("| script | fio | here |\n|---|---|---|\n")
    with tempfile.TemporaryDirectory(prefix="loadstone-scripts-") as place:
        shim = Path(place) / "fio"
        shim.write_text(_WRAPPER.format(python=sys.executable))
        shim.chmod(0o755)
        for name in wanted:
            script = (options.source / "t" / name).absolute()
            if not script.exists():
                continue
            cells = []
            for who, fio in (("fio", options.fio.absolute()), ("here", shim)):
                folder = (options.keep or Path(place)).absolute() / f"{script.stem}-{who}"
                folder.mkdir(parents=True)
                outcome = _run(script, fio, folder, options.seconds)
                cells.append(str(outcome))
                failed += [f"- `{name}`, {who}: {line}" for line in outcome.failed]
            sys.stdout.write(f"| `{name}` | {' | '.join(cells)} |\n")
            sys.stdout.flush()
    for name, why in NOT_APPLICABLE.items():
        sys.stdout.write(f"| `{name}` | | {why} |\n")
    if failed:
        sys.stdout.write("\nNot passed:\n\n" + "".join(f"{line}\n" for line in failed))
    return 0


def _run(script: Path, fio: Path, folder: Path, most_s: int) -> ScriptOutcome:
    """Run one script with a fio in a folder; return what it told."""
    flag = () if script.name == _WITHOUT_FLAG else ("-f",)
    arguments = SCRIPTS.get(script.name, ())
    with contextlib.ExitStack() as stack:
        environment = dict(os.environ)
        if DEVICE in arguments:
            if why := parts.missing():
                return ScriptOutcome(words=f"not run: {why}")
            device = stack.enter_context(parts.Stage()).loop(_DEVICE_MIB, written=False)
            arguments = tuple(device if word == DEVICE else word for word in arguments)
            environment["LOADSTONE_ACCEPT_DATA_LOSS"] = device
        command = [sys.executable, str(script), *flag, str(fio), *arguments]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=most_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ScriptOutcome(words=f"not done in {most_s} s")
    (folder / "printed").write_text(done.stdout + done.stderr)
    return told(done.stdout + done.stderr, done.returncode)


def told(text: str, code: int) -> ScriptOutcome:
    """Read what a script prints of its tests: a line each, or at least counts at its end."""
    tests = re.findall(r"^\**Test (.+?) (PASSED|FAILED|SKIPPED)\b(.*)$", text, re.MULTILINE | re.IGNORECASE)
    if not tests:
        tests = [("", word, rest) for word, rest in re.findall(r"^(PASSED|FAILED) (.+)$", text, re.MULTILINE)]
    if tests:
        by_word = [(name, word.upper(), rest.strip(" :*,")) for name, word, rest in tests]
        return ScriptOutcome(
            sum(word == "PASSED" for _, word, _ in by_word),
            sum(word == "SKIPPED" for _, word, _ in by_word),
            tuple(f"{name} {rest}".strip() for name, word, rest in by_word if word == "FAILED"),
        )
    counts = re.findall(r"(\d+) test\(?s?\)? passed, (\d+) (?:test\(?s?\)? )?failed", text, re.IGNORECASE)
    if counts:
        passed, failed = map(int, counts[-1])
        return ScriptOutcome(passed, failed=("a test without a name",) * failed)
    return ScriptOutcome(words="passed" if code == 0 else f"failed (exit code {code})")


if __name__ == "__main__":
    sys.exit(main())
