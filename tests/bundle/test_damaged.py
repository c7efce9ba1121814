"""Every verb that reads a bundle, on bundles that are damaged: no traceback, no hang, bounded memory.

What each must do is refuse by name or read what can be read; which of the two is tried elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.bundle import members
from loadstone.cli import main as program
from loadstone.errors import LoadstoneError
from tests.support import damage, runs
from tests.support.runs import Job

if TYPE_CHECKING:
    from collections.abc import Iterator

FAST = 10
"""Damaged bundles in every run of the tests, each with two verbs drawn for it."""
NIGHTLY = 480
"""Damaged bundles in a nightly run, each with every verb."""
SECONDS = 120
MEMORY_BYTES = 1 << 30
"""How much more than before all of it may take at any time."""
CODES = {0, 1, 2, 97, 98}
KINDS = ("fio-json", "fio-logs", "csv", "parquet", "prometheus", "markdown", "iometer-csv", "vdbench")


class WouldRunError(LoadstoneError):
    """The verb has read all it wants and would run a load now."""


def sources(place: Path) -> list[Path]:
    """Whole bundles and studies of several kinds."""
    place.mkdir(exist_ok=True)
    note = {"kind": "trap", "text": "read differently", "where": {"file": "job.fio", "line": 3}}
    events: list[dict[str, Any]] = [
        {"type": "io_error", "t_ns": 5, "stream": 0, "target": 0, "op": "read", "offset": 0, "errno": 5},
        {"type": "hung", "t_ns": 9, "stream": 0, "target": 0, "op": "read", "offset": 0, "age_ns": 10**10},
        {"type": "calibration", "ops": 1000, "cpu_user_ns": 10, "cpu_system_ns": 10,
         "stages": [{"stage": 0, "ceiling_iops": 1e6}]},
        {"type": "monitor_cost", "cpu_ns": 10**6, "rows": 4, "by_collector": {"cpu": 10**6},
         "failed": {"net": "gone"}},
        {"type": "target_state", "when": "begin", "target": 0, "size_bytes": 1 << 30, "allocated_bytes": 4096,
         "hole_bytes": 1 << 29, "unwritten_bytes": 0, "looked_at_bytes": 1 << 30, "extents": 1},
        {"type": "note", "text": "no fixed buffers", "target": 0},
        {"type": "tick", "t_ns": 10**9, "interval": 1, "cpu_user_ns": 10, "cpu_system_ns": 10, "rows": []},
        {"type": "verify_end", "t_ns": 10**9, "stream": 0, "checked": 9, "damaged": 1, "unverified": 0},
    ]  # fmt: skip
    two = (Job("a", {"read": 700.0, "write": 300.0}), Job("b", {"write": 50.0}, targets=(1,), ramp_s=1.0))
    paced = Job("p", {"read": 400.0}, paced=True, clones=2, keep_clones_apart=True)
    made = [
        runs.make(place / "one", *two, targets=2, notes=[note, "text"], extra_events=events).path,
        runs.make(place / "paced", paced, Job("q", stage=1, group=1), seconds=3).path,
        runs.make(place / "tree", Job("t", {"getattr": 90.0}, tree="getattr"), seconds=2).path,
        runs.make(place / "killed", *two, targets=2, seal=None, extra_events=events).path,
        runs.make(place / "killed-paced", paced, seconds=2, seal=None).path,
    ]
    return [_with_environment(path) for path in made]


def _with_environment(path: Path) -> Path:
    file = path / "environment.json"
    told = json.loads(file.read_text())
    layers = [
        {"name": "/mnt/test/data0", "kind": "file", "below": ["disk sda"], "facts": {"size_bytes": 1 << 30}},
        {"name": "disk sda", "kind": "disk", "facts": {"rotational": False}, "counters": "block.sda",
         "ceilings": [{"quantity": "iops", "op": "both", "per_s": 5e4, "kind": "limit", "source": "x"}]},
    ]  # fmt: skip
    told |= {
        "targets": [{"path": "/mnt/test/data0", "devices": ["sda"], "mount": {"file_system": "ext4"}}],
        "devices": {"sda": {"queue": {"nr_requests": "64", "rotational": "0", "write_cache": "write back"}}},
        "paths": [{"target": "/mnt/test/data0", "layers": layers, "gaps": ["what is below"]}],
        "same_sequence": [],
    }
    file.write_text(json.dumps(told))
    workload = '{"name": "w", "jobs": [{"name": "a", "filename": ["/mnt/test/data0"]}]}'
    with contextlib.suppress(ValueError):
        (path / "workload.json").write_text(workload)
    return path if path.name.startswith("killed") else runs.reseal(path)


def verbs(path: Path, good: Path, out: Path) -> list[list[str]]:
    """Command lines of every verb that reads a bundle, with what they write below `out`."""
    mine, other = str(path), str(good)
    lines = [
        ["report", mine, "-o", str(out / "r.html")],
        ["report", mine, "-o", str(out / "r.svg")],
        ["compare", other, mine, "--json"],
        ["compare", mine, other, "--html", str(out / "c.html")],
        ["audit", mine],
        ["audit", mine, "--json"],
        ["verify", mine, "--out", str(out / "v")],
        ["rerun", mine, "--out", str(out / "n")],
        *(["export", mine, kind, "-o", str(out / f"e-{kind}")] for kind in KINDS),
    ]
    return [[*line, "--unverified"] for line in lines] + [["report", mine, "-o", str(out / "s.html")]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sources(tmp_path_factory.mktemp("whole"))


@pytest.fixture(autouse=True)
def reading_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def would_run(*_args: object, **_named: object) -> None:
        raise WouldRunError("would run")

    monkeypatch.setattr("loadstone.cli.rerun.run_plan", would_run)
    monkeypatch.setattr("loadstone.cli.verify.run_plan", would_run)
    monkeypatch.setattr("loadstone.study.run.run_plan", would_run)


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    def too_long(_number: int, _frame: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tried(line: list[str]) -> str | None:
    """Run one verb; return what is wrong with how it ended."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with bounded(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = program.main(line)
    except BaseException as error:  # noqa: BLE001 - a panic of a library is no Exception
        return f"{type(error).__name__}: {str(error)[:300]}"
    if code not in CODES:
        return f"code {code}"
    if code == 2 and not err.getvalue().startswith("loadstone: "):
        return f"refused without a word: {err.getvalue()[:200]!r}"
    return None


def attacked(whole: list[Path], place: Path, seed: int, *, every: bool) -> list[str]:
    """Damage one bundle and give it to the verbs; return what went wrong, with the seed to find it again."""
    rng = random.Random(seed)
    source = whole[seed % len(whole)]
    path, out = place / f"d{seed}", place / f"o{seed}"
    out.mkdir()
    told = damage.damaged(source, path, seed, whole)
    lines = verbs(path, whole[0], out)
    chosen = lines if every else rng.sample(lines, 2)
    before = peak_bytes()
    found = [(line, wrong) for line in chosen if (wrong := tried(line)) is not None]
    if (more := peak_bytes() - before) > MEMORY_BYTES:
        found.append((chosen[0], f"{more >> 20} MiB of memory"))
    for directory in (path, out):
        shutil.rmtree(directory, ignore_errors=True)
    return [f"seed {seed}, {source.name}, {told}: {' '.join(line[:3])}: {wrong}" for line, wrong in found]


def test_verbs_refuse_or_read_damaged_bundles(whole: list[Path], tmp_path: Path) -> None:
    wrong = [one for seed in range(FAST) for one in attacked(whole, tmp_path, seed, every=False)]
    assert wrong == []


@pytest.mark.nightly
def test_every_verb_refuses_or_reads_many_damaged_bundles(whole: list[Path], tmp_path: Path) -> None:
    first = int(os.environ.get("LOADSTONE_SEED", "1000"))
    wrong = [
        one for seed in range(first, first + NIGHTLY) for one in attacked(whole, tmp_path, seed, every=True)
    ]
    assert wrong == []


def test_a_file_that_may_not_be_read_is_named(
    whole: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = members._descriptor

    def refused(directory: Path, name: str) -> int:
        if name == hidden:
            raise PermissionError(13, "Permission denied")
        return real(directory, name)

    monkeypatch.setattr(members, "_descriptor", refused)
    out = tmp_path / "out"
    out.mkdir()
    for source in (whole[0], whole[3]):
        names = [one.relative_to(source).as_posix() for one in damage.members(source)]
        for hidden in names:
            for line in verbs(source, whole[1], out)[4:9:4]:
                assert tried(line) is None, (hidden, line)


if __name__ == "__main__":
    import sys
    import tempfile

    first, last = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="loadstone-damaged-") as directory:
        patch = pytest.MonkeyPatch()
        reading_only.__wrapped__(patch)  # type: ignore[attr-defined]  # the fixture's own function
        bundles = sources(Path(directory) / "whole")
        for one_seed in range(first, last):
            for said in attacked(bundles, Path(directory), one_seed, every=True):
                print(said, flush=True)  # noqa: T201 - run by hand
        print("tried", first, last, "peak", peak_bytes() >> 20, "MiB")  # noqa: T201 - run by hand
