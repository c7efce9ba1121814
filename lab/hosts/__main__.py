"""Stage every fault and write the table: `python -m lab.hosts [--missing | --only WORDS] [--transport ...]`.

A row is written when it was staged; the others stay as they were. `--missing` stages what the table does
not have, or has as not as it should be.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
from pathlib import Path

from lab.hosts import namespaces
from lab.hosts.faults import FAULTS, Fault
from lab.hosts.namespaces import NamespaceHosts
from lab.hosts.standing import StandingScheduler
from lab.hosts.trial import EVERY_WAY, STANDING, HostsTrial

PAGE = Path(__file__).parents[2] / "docs" / "hosts-faults.md"
HEAD = """# What goes wrong on several hosts, and what happens then

Look up here what a run with `--hosts` says, keeps and puts back when something fails on the way.
`make hosts` stages every row on two hosts that are network namespaces with ssh servers, and writes this
page. *As it should* says whether what must be true was. A fault before the load begins leaves no bundle.

| fault | transport | as it should | exit code | what is said | what is kept | afterwards |
|---|---|---|---|---|---|---|
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--transport", choices=EVERY_WAY)
    options = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not staged: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    known = _rows(PAGE)
    every = [
        (fault, transport) for transport in EVERY_WAY for fault in FAULTS if transport in fault.transports
    ]
    pending = [
        (fault, transport)
        for fault, transport in every
        if options.only in fault.name
        and options.transport in {None, transport}
        and not (options.missing and " | yes | " in known.get((fault.name, transport), ""))
    ]
    wrong = 0
    with NamespaceHosts(2) as hosts:
        for fault, transport in pending:
            row, right = staged(fault, hosts, transport)
            wrong += not right
            print(row, flush=True)
            known[fault.name, transport] = row
            outcomes = [known[one.name, by] for one, by in every if (one.name, by) in known]
            coverage = f"{len(outcomes)} of {len(every)} rows were staged."
            PAGE.write_text(HEAD + "\n".join(outcomes) + f"\n\n{coverage}\n")
    print(f"{len(pending)} rows, {wrong} not as they should be")
    return 1 if wrong else 0


def _rows(page: Path) -> dict[tuple[str, str], str]:
    """Return the rows of a page by fault and transport."""
    cells = [(line, line.split(" | ")) for line in page.read_text().splitlines() if line.startswith("| ")]
    return {(row[0].removeprefix("| "), row[1]): line for line, row in cells}


def staged(fault: Fault, hosts: NamespaceHosts, transport: str) -> tuple[str, bool]:
    with (
        tempfile.TemporaryDirectory(prefix="loadstone-hosts-fault-") as directory,
        StandingScheduler(hosts) if transport == STANDING else contextlib.nullcontext() as standing,
    ):
        trial = HostsTrial(hosts, Path(directory), transport, standing)
        try:
            fault.make(trial)
            right = fault.expect(trial)
        except Exception as error:  # noqa: BLE001 # a row that fails is a row
            trial.notes.append(f"{type(error).__name__}: {error}")
            right = False
        finally:
            if trial.process is not None and trial.process.poll() is None:
                trial.process.kill()
            if trial.process is not None and trial.code is None:
                trial.finish()
        trial.settle(12)
        back = trial.back()
        right = right and "LEFT" not in back
        cells = [
            fault.name,
            transport,
            "yes" if right else "**no**",
            str(trial.code),
            trial.last_words(),
            trial.kept(),
            "; ".join([*trial.notes, back]),
        ]
        for name in hosts.names:
            hosts.sweep(name)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |", right


if __name__ == "__main__":
    sys.exit(main())
