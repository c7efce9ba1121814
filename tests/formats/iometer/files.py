"""The `.icf` files of the tests, and what their drives are here."""

from __future__ import annotations

from pathlib import Path

from loadstone.formats.iometer import CommandLineChanges, TestRun, read_icf, runs

DATA = Path(__file__).parents[2] / "data" / "iometer"
NAMES = sorted(path.name for path in DATA.glob("*.icf"))
DRIVES = {f"{name}:": f"/dev/mapper/drive-{name.lower()}" for name in "CDEF1234"}
HEAD = "Version 1.1.0\n"
SPEC = (
    "'ACCESS SPECIFICATIONS ====\n"
    "'Access specification name,default assignment\n"
    "\tmix,{assigned}\n"
    "'size,% of size,% reads,% random,delay,burst,align,reply\n"
    "{rows}"
    "'END access specifications\n"
)
SETUP = "'TEST SETUP ====\n'Run Time\n'\thours minutes seconds\n\t0 0 30\n{more}'END test setup\n"
TAIL = "Version 1.1.0\n"


def made(name: str, asked: CommandLineChanges | None = None) -> list[TestRun]:
    """The runs of one of the files, its drives mapped where nothing else is asked for."""
    configuration = read_icf((DATA / name).read_bytes(), name)
    if asked is not None:
        return runs(configuration, asked)
    used = {
        target.name.partition(":")[0] + ":"
        for manager in configuration.managers
        for worker in manager.workers
        for target in worker.targets
        if not target.name.startswith("/")
    }
    if not configuration.managers:
        return runs(configuration, CommandLineChanges(targets=("/data/x",), runtime_ns=10**9))
    return runs(configuration, CommandLineChanges(mapping={drive: DRIVES[drive] for drive in used}))


def text(*rows: str, assigned: str = "ALL", more: str = "") -> bytes:
    """A small file without managers: one specification of these rows."""
    spec = SPEC.format(assigned=assigned, rows="".join(f"\t{row}\n" for row in rows))
    return (HEAD + SETUP.format(more=more) + spec + TAIL).encode()
