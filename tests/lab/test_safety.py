"""docs/safety.md is what `make safety` writes, and a few of its trials again."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab.safety import __main__ as program
from lab.safety import draws, page, trial, trials, verbs

from lab import parts
from loadstone.cli import app
from tests.e2e.program import needs_engine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "safety.md"
ROWS = [
    tuple(cell.strip() for cell in line.strip("|\n ").split(" | "))
    for line in PAGE.read_text().partition("## Every case tried")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| target")
]


def test_the_words_are_those_of_the_program() -> None:
    assert PAGE.read_text().startswith(page.TEXT)
    assert program.PAGE == PAGE


def test_the_table_has_a_line_for_every_trial_and_no_other() -> None:
    assert len(ROWS) >= 150
    assert [row[:3] for row in ROWS] == [tuple(key) for key in trials.listed()]


def test_nothing_in_the_table_was_lost_without_consent() -> None:
    for target, holds, verb, happened, intact, *_ in ROWS:
        assert "wrong" not in happened, (target, holds, verb)
        if intact == "no":
            assert verb.endswith((", with consent", "LOADSTONE_FIO_OVERWRITE=1")), (target, holds, verb)


def test_every_kind_was_drawn_and_none_missed_more_often_than_stated() -> None:
    table = PAGE.read_text().partition("## Content drawn by kind and place")[2].partition("\n## ")[0]
    drawn = re.findall(r"^\| ([^|*]+?)(?: \*)? \| (\d+) \| (\d+) \| [\d.]+ \|$", table, re.MULTILINE)
    assert [name for name, *_ in drawn] == [*draws.KINDS, *draws.APART, *draws.LAYOUTS]
    assert {int(number) for name, number, _ in drawn if name not in draws.LAYOUTS} == {program.DRAWS}


def test_a_few_draws_again(tmp_path: Path) -> None:
    kinds, layouts = draws.tried(tmp_path, 2)
    assert all(tally.right for tally in (*kinds.values(), *layouts.values()))
    assert (layouts["at the end"].missed, layouts["at the beginning"].missed) == (0, 0)


def test_a_trial_is_not_forked_off_a_process_that_has_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a library's thread held was held in the child for ever: `make safety` hung."""
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked here"))
    code, said = trial.loadstone(["workloads"], tmp_path, {})
    assert code == 0
    assert "four-corners" in said


def staged_below(process: int) -> set[str]:
    """Folders in which grandchildren of a process work: verbs that are tried by its children."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = set()
    for one, parent in parents.items():
        if parents.get(parent) == process:
            with contextlib.suppress(OSError):
                found.add(str(Path(f"/proc/{one}/cwd").readlink()))
    return {folder for folder in found if folder.startswith("/dev/shm/loadstone-lab-")}


@pytest.mark.root
@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_what_is_staged_is_taken_down_when_it_is_stopped(number: signal.Signals) -> None:
    """Ctrl-C ended the programs that take down, went on with the next case, and left loops and mounts."""
    needs_engine()
    if (why := parts.missing()) is not None:
        pytest.skip(why)
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.safety", "mounted"],
        cwd=PAGE.parents[1],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    folders: set[str] = set()
    while not folders and process.poll() is None:
        time.sleep(0.05)
        folders = staged_below(process.pid)
    # As a terminal does it: to all that are in the foreground.
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=240)
    assert (process.returncode, b"stopping" in said) == (130, True), said.decode()
    used = Path("/proc/mounts").read_text().split()
    with contextlib.suppress(OSError):
        used += [one.read_text() for one in Path("/sys/block").glob("loop*/loop/backing_file")]
    left = [one for one in used for folder in folders if one.startswith(folder)]
    assert left + [folder for folder in folders if Path(folder).exists()] == []


AGAIN = {
    ("file", "a random key"): trial.ASKED,
    ("block device", "XFS, only its backup superblocks"): trial.ASKED,
    ("file", "the same, 4 bytes changed, times set back"): trial.ASKED,
    ("tree", "one with a hard link to a file elsewhere"): trial.REFUSED,
    ("file of the kernel's", "/proc/self/oom_score_adj"): trial.REFUSED,
}


def test_every_verb_has_rows_or_only_prints() -> None:
    """A verb that is added is tried, too: on data if it runs a load, else where it writes its output."""
    tried = {verb.replace(",", "").split()[0] for _, _, verb, *_ in ROWS}
    assert tried | verbs.PRINTING == set(app.VERBS)
    assert not tried & verbs.PRINTING
    for name in verbs.PRINTING:
        module = importlib.import_module(f"loadstone.cli.verbs.{name}")
        assert not {"output", "run_plan", "BundleWriter", "finish"} & set(vars(module)), name
        assert not re.search(r"\b(output\.|run_plan|write_text|write_bytes)", inspect.getsource(module)), name
    loads = {
        verb for verb in app.VERBS if verb not in verbs.PRINTING | {"report", "compare", "export", "hosts"}
    }
    on_data = {verb.split()[0].strip(",") for target, _, verb, *_ in ROWS if not target.startswith("output")}
    assert on_data == loads


@pytest.mark.in_turn
@pytest.mark.root
@pytest.mark.drawn(1)
@pytest.mark.parametrize("tried", range(len(AGAIN)), ids=["key", "xfs", "changed", "link", "kernel"])
def test_some_of_them_again(tried: int) -> None:
    """In a process of its own: what pytest has about warnings, threads and limits is not on trial."""
    needs_engine()
    if (why := parts.missing()) is not None:
        pytest.skip(why)
    again = dict([list(AGAIN.items())[tried]])
    words = [sys.executable, "-m", "lab.safety", *(" ".join(case) for case in again)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=PAGE.parents[1])
    rows = [line.strip("|\n ").split(" | ") for line in done.stderr.splitlines() if line.startswith("| ")]
    found = [row for row in rows if (row[0], row[1]) in again]
    assert done.returncode == 0, done.stderr
    assert {(row[0], row[1]) for row in found} == set(again)
    unexpected = [row for row in found if row[3] not in (again[row[0], row[1]], trial.READ)]
    assert unexpected == []


def test_what_processes_of_their_own_do_is_no_mains() -> None:
    """They were spawned, load no `__main__` of a package, and ended the program when all trials were done."""
    own = {name for name, one in vars(program).items() if getattr(one, "__module__", "") == program.__name__}
    assert own == {"main"}


def test_a_trial_that_could_not_be_staged_is_wrong() -> None:
    """It was taken for right, so a table in which hardly anything was tried said that all went well."""

    def fails(*_: object) -> Path:
        raise RuntimeError("the first run ended with 70")

    verb = verbs.RUN
    case = trials.SafetyCase(trials.FILE, "anything", (verb,), trial.ASKED, fails)
    assert [(row.happened, row.right, row.said) for row in trials.tried(case)] == [
        (trial.NOT_TRIED, False, "the first run ended with 70")
    ]
    absent = trials.SafetyCase(trials.FILE, "anything", (verb,), trial.ASKED, fails, needs="no-such-program")
    assert [(row.happened, row.right, row.said) for row in trials.tried(absent)] == [
        (trial.NOT_TRIED, True, "not installed: no-such-program")
    ]
