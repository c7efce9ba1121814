"""fio's own test scripts, run with the real fio and with `loadstone fio` in its place.

    python -m lab.fio_scripts FIO_SOURCE --fio FIO [--only sequence.py,readonly.py] [--seconds 900]

FIO_SOURCE is a source tree of fio that is there already: nothing is fetched and nothing is built.
`--fio` is the fio to compare with. Prints a table in Markdown: how many of each script's tests
passed with either. Knows how each script is called and how it tells its counts; no test by name.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
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
    "verify-trim.py": (),
    "numberio_overlap.py": (),
}
"""Scripts that need no device of a certain kind, and their arguments."""
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
_FLAG: Final = {"steadystate_tests.py": None, "readonly.py": "-f", "jsonplus2csv_test.py": "-f"}
_WRAPPER: Final = '#!/bin/sh\nexec "{python}" -m loadstone.cli.main fio "$@"\n'


def main() -> int:
    """Run the scripts asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a source tree of fio")
    parser.add_argument("--fio", type=Path, required=True, help="the fio to compare with")
    parser.add_argument("--only", default="", help="scripts, with commas between")
    parser.add_argument("--seconds", type=int, default=900, help="most time for a script")
    asked = parser.parse_args()
    wanted = [name for name in asked.only.split(",") if name] or list(SCRIPTS)
    sys.stdout.write("| script | fio | here |\n|---|---|---|\n")
    with tempfile.TemporaryDirectory(prefix="loadstone-scripts-") as place:
        here = Path(place) / "fio"
        here.write_text(_WRAPPER.format(python=sys.executable))
        here.chmod(0o755)
        for name in wanted:
            script = asked.source / "t" / name
            if not script.exists():
                continue
            counts = [_run(script, fio, asked.seconds) for fio in (asked.fio.absolute(), here)]
            sys.stdout.write(f"| `{name}` | {counts[0]} | {counts[1]} |\n")
            sys.stdout.flush()
    for name, why in NOT_APPLICABLE.items():
        sys.stdout.write(f"| `{name}` | | {why} |\n")
    return 0


def _run(script: Path, fio: Path, most_s: int) -> str:
    """Run one script with a fio; return how many of its tests passed."""
    with tempfile.TemporaryDirectory(prefix="loadstone-script-") as place:
        flag = _FLAG.get(script.name, "-f")
        command = [
            sys.executable,
            str(script),
            *([flag] if flag else []),
            str(fio),
            *SCRIPTS.get(script.name, ()),
        ]
        try:
            done = subprocess.run(
                command, cwd=place, capture_output=True, text=True, timeout=most_s, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not done in {most_s} s"
    return told(done.stdout + done.stderr, done.returncode)


def told(text: str, code: int) -> str:
    """Read the counts a script prints at its end: `7 test(s) passed, 1 failed, 0 skipped` and the like."""
    found = re.search(r"(\d+) test\(?s?\)? passed, (\d+) failed", text)
    if found:
        return f"{found[1]} of {int(found[1]) + int(found[2])}"
    return "passed" if code == 0 else f"failed (exit code {code})"


if __name__ == "__main__":
    sys.exit(main())
