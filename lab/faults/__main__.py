"""`make faults`: damage data in every known way on a real device, and write docs/faults.md.

Knows the table and what counts as right: as many found as were injected, all of them under the
right name, and nothing else.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lab.faults import trial

from lab import parts

if TYPE_CHECKING:
    from lab.faults.trial import DamageTrial

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
SIZE_BYTES = 48 << 20
SHARE = 0.1
HEAD = (
    "# Damage that was injected, and who found it\n\n"
    "Written by `make faults`. A device of this host damages writes or returns old data, and logs what "
    "it did. It is nbdkit with the plugin `lab/faults/plugin.py`, under FUSE, under a loop device. "
    "Everything is written once, written again at random while the device does its damage, and read back. "
    "For stale reads it is read twice.\n\n"
    "*found*: damaged blocks that Loadstone told of; a misdirected write is wrong at two places. "
    "*rightly named*: those of them that got the name of what was done. *invented*: any other. "
    "fio ran the same jobs on the same faults (`verify=crc32c`, `continue_on_error=verify`): it "
    "says which blocks are bad and not what happened to them.\n\n"
    "| damage | injected | places damaged | found | rightly named | invented | fio: bad blocks |\n"
    "|---|---:|---:|---:|---:|---:|---:|\n"
)
AFTER = """
Faults of a simulated device, seeded and in virtual time, are in `crates/cli/tests/verified/main.rs`.
"""


def right(one: DamageTrial) -> bool:
    """Whether everything was found, named and nothing invented."""
    others = sum(count for kind, count in one.found.items() if kind != one.kind)
    return one.found[one.kind] == len(one.damaged) and not others and set(one.told) <= one.damaged


def main() -> int:
    """Run all kinds and write the page; return 1 when anything was not as it should be."""
    why = parts.missing() or (None if trial.has_plugin() else "nbdkit has no Python plugin")
    if why is not None:
        sys.stderr.write(f"nothing can be staged here: {why}\n")
        return 2
    rows = []
    sound = True
    for kind in trial.KINDS:
        one = trial.loadstone(kind, SIZE_BYTES, SHARE)
        beside = str(trial.fio(kind, SIZE_BYTES, SHARE)[1]) if shutil.which("fio") else "–"
        detected = sum(one.found.values())
        named = one.found[kind]
        invented = len(set(one.told) - one.damaged) + max(0, detected - len(one.damaged))
        cells = [
            kind.replace("_", " "),
            len(one.injected),
            len(one.damaged),
            detected,
            named,
            invented,
            beside,
        ]
        rows.append(f"| {' | '.join(str(cell) for cell in cells)} |\n")
        sys.stderr.write(rows[-1])
        sound = sound and right(one)
    PAGE.write_text(HEAD + "".join(rows) + AFTER)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
