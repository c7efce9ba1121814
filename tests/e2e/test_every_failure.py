"""Every operation of the coordinator fails once: each open, write, rename, spawn, allocation in its turn.

As SQLite's tests do it: the Nth fails, for every N, until a run passes in which nothing was left to
fail. After each run the same must hold (`_held`). The suite takes some of them, `make nightly` all. Of
verbs that do hundreds, each place in the program fails twice (`failing.at_places`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from loadstone.bundle.read import Bundle
from loadstone.errors import LoadstoneError
from tests.support import draw
from tests.support.failing import JOURNALED, KINDS, MADE, MADE_AGAIN, preloaded

from .program import needs_engine

QUIET = ("--out", "b", "--no-report", "--no-calibration")
RUN = ("run", "r.fio", *QUIET)
VERBS = {
    "run": RUN,
    "report": ("run", "r.fio", "--out", "b", "--no-calibration"),
    "fio": ("fio", "r.fio"),
    "study": (*RUN, "--repeat", "2"),
}
LATER_VERBS = {
    "watch": (*RUN, "--watch", "me=local"),
    "hosts": ("run", "h.fio", *RUN[2:], "--hosts", "hosts.toml"),
    "experiment": ("experiment", "run", "x.toml", *QUIET),
    "curve": ("curve", "r.fio", "--points", "50", *QUIET),
    "sweep": ("sweep", "r.fio", "--bs", "4k,8k", *QUIET),
    "probed": ("run", "r.fio", *QUIET, "--probe=2s"),
    "probe": ("probe", "data", "--runtime", "300ms", "--budget", "2s", *QUIET),
    "rerun": ("rerun", MADE, *QUIET),
    "verify": ("verify", JOURNALED, "--out", "b", "--no-report"),
    "tree": ("run", "t.parm", *QUIET, "--vdbench-output", "v"),
    "logs": ("fio", "r.fio", "--output=o", "--output-format=json", "--write_lat_log=l"),
    "page": ("report", MADE, "-o", "page.html"),
    "markdown": ("report", MADE, "-o", "page.md"),
    "pdf": ("report", MADE, "-o", "page.pdf"),
    "comparison": ("compare", MADE, MADE_AGAIN, "-o", "page.html"),
    "compared in markdown": ("compare", MADE, MADE_AGAIN, "-o", "page.md"),
    "compared on paper": ("compare", MADE, MADE_AGAIN, "-o", "page.pdf"),
    "export": ("export", MADE, "csv", "-o", "page.csv"),
    "export of samples": ("export", MADE, "parquet", "-o", "page.parquet"),
    "export of files": ("export", MADE, "vdbench", "-o", "page.files"),
    "export of logs": ("export", MADE, "fio-logs", "-o", "page.logs"),
}
WRITING = ("write", "fsync", "open", "mkdir", "rename", "remove", "spawn", "attribute", "change")
CHANGES_APART = 7
"""Between those that fail: libraries' calls have no place in the program. The day says which is the first."""


def tried(directory: Path, kind: str, words: tuple[str, ...], *order: int | str) -> Counter[str]:
    """Let operations of a kind fail one by one; return how the runs ended.

    `order` is what `tests.support.failing` takes: the first, a step and how many at most, or "places"
    and how many at most.
    """
    needs_engine()
    if kind == "change" and shutil.which("cc") is None:
        pytest.skip("needs a C compiler (cc)")
    found: Counter[str] = Counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.failing", kind, *map(str, order), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": _path(),
            "NO_COLOR": "1",
            "LOADSTONE_STATE": str(directory / "state"),
            **(preloaded(directory) if kind == "change" else {}),
        },
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            one = json.loads(line)
            place = directory / "runs" / str(one["run"])
            found[_written(one, place, kind) if "-o" in words else _held(one, place, kind)] += 1
            process.stdin.write("go\n")
            process.stdin.flush()
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()
    return found


def _path() -> str:
    root = Path(__file__).parents[2]
    return f"{root / 'python'}:{root}"


def _written(one: dict[str, Any], place: Path, kind: str) -> str:
    """Hold that a page is there whole, or not at all with a word about it."""
    what = f"the {one['n']}th {kind}: {one}"
    _no_mistake(one, what)
    pages = list(place.glob("page.*"))
    if not any(page.is_dir() for page in pages):
        assert len(pages) == (one["code"] == 0), what
    assert all(page.is_dir() or page.stat().st_size > 100 for page in pages), what
    assert [path.name for path in place.rglob("page.*/.*")] == [], what
    assert [path.name for path in place.iterdir() if path.name.startswith(".")] == [], what
    if not one["fired"]:
        assert one["code"] == 0, what
        return "nothing failed" if one["last"] else "not reached"
    assert one["code"] == 0 or one["err"].strip(), what
    return "told" if one["code"] else "did without"


def _no_mistake(one: dict[str, Any], what: str) -> None:
    assert one["code"] in (0, 1, 2, 130), what
    assert "Traceback" not in one["err"], what
    assert "mistake in the program" not in one["err"], what
    assert one["orphans"] == [], what


def _held(one: dict[str, Any], place: Path, kind: str) -> str:
    what = f"the {one['n']}th {kind}: {one}"
    _no_mistake(one, what)
    if not one["fired"]:
        assert one["code"] == 0, what
        return "nothing failed" if one["last"] else "not reached"
    shown = one["out"] + one["err"] + _text(place / "o")
    figures = "IOPS" in shown or '"iops"' in shown
    bundles = [path.parent for path in place.rglob("manifest.json")]
    if one["code"] == 0:
        assert figures, what
        for bundle in bundles:
            if bundle.parent.name == "probes" and " failed, and no other was run: " in one["err"]:
                continue
            assert Bundle.open(bundle).status == "complete", what
            assert Bundle.open(bundle).verify() == [], what
        return "did without"
    assert one["err"].strip() or one["out"].strip(), what
    for bundle in bundles:
        _opens(bundle, what)
        # The tick of a coordinator whose hosts never started tells of nothing measured.
        if all(f'"{event}"' in _text(bundle / "events.jsonl") for event in ("start", "tick")):
            assert figures, what
    return "told"


def _opens(bundle: Path, what: str) -> None:
    opened = Bundle.open(bundle)
    if opened.status != "partial":
        assert opened.verify() == [], what
    for name in ("result.json", "study.json"):
        if (bundle / name).exists():
            json.loads((bundle / name).read_bytes())
    try:
        assert opened.samples() is not None
        assert opened.events is not None
    except LoadstoneError as error:
        # What was never written is named.
        assert str(error), what  # noqa: PT017 # any of them will do


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.in_turn
@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("write", 5),
        ("fsync", 4),
        ("open", 11),
        ("mkdir", 1),
        ("rename", 1),
        ("remove", 1),
        ("spawn", 2),
        ("change", 9),
    ],
)
def test_some_failures_of_a_run(tmp_path: Path, kind: str, step: int) -> None:
    found = tried(tmp_path, kind, RUN, 1, step, 8)
    assert found["told"] or found["did without"]


@pytest.mark.nightly
def test_some_allocations_of_a_run(tmp_path: Path) -> None:
    assert tried(tmp_path, "allocation", RUN, 5, 397, 12)["told"]


@pytest.mark.nightly
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "allocation"])
def test_every_failure(tmp_path: Path, kind: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = tried(tmp_path, kind, VERBS[verb], 1, 1, 2000)
    with capsys.disabled():
        sys.stdout.write(f"\n{verb}, every {kind}: {dict(found)}\n")
    assert found["nothing failed"] == 1


@pytest.mark.nightly
@pytest.mark.parametrize("verb", LATER_VERBS)
@pytest.mark.parametrize("kind", WRITING)
def test_failures_of_what_writes(
    tmp_path: Path, kind: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    order: tuple[int | str, ...] = ("places", 2000)
    if "-o" in LATER_VERBS[verb]:
        order = (1, 1, 2000)
    elif kind == "change":
        order = (1 + draw.day() % CHANGES_APART, CHANGES_APART, 2000)
    found = tried(tmp_path, kind, LATER_VERBS[verb], *order)
    with capsys.disabled():
        sys.stdout.write(f"\n{verb}, failing {kind}: {dict(found)}\n")
    assert found["nothing failed"] == 1


@pytest.mark.nightly
@pytest.mark.parametrize("verb", VERBS)
def test_allocations_all_over(tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = tried(tmp_path, "allocation", VERBS[verb], 1, 101, 2000)
    with capsys.disabled():
        sys.stdout.write(f"\n{verb}, every 101st call without memory: {dict(found)}\n")
    assert found["nothing failed"] == 1
