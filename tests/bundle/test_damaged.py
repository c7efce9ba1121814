"""Every verb that reads a bundle, on bundles that are damaged: no traceback, no hang, bounded memory.

What each must do is refuse by name or read what can be read; which of the two is tried elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.bundle import members
from loadstone.bundle import study as on_disk
from loadstone.cli import main as program
from loadstone.engine import binary
from loadstone.errors import EngineError, LoadstoneError
from loadstone.formats.fio.read import TextSource, read_jobfiles
from tests.support import damage, runs, started
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from collections.abc import Iterator

FAST = 10
"""Damaged bundles in every run of the tests, each with two verbs drawn for it."""
NIGHTLY = int(os.environ.get("LOADSTONE_DAMAGED", "480"))
"""Damaged bundles and studies in a nightly run, each with every verb. `LOADSTONE_SEED` is the first seed."""
FIRST = int(os.environ.get("LOADSTONE_SEED", "1000"))
PART = 40
"""So many are a test, of some 2 minutes of CPU time: what was found is shown then, and `-n 2` shares them."""
SEALED_SHARE = 0.5
SECONDS = 120
MEMORY_BYTES = 256 << 20
"""For all verbs on one damaged bundle, beyond what the process had before."""
"""How much more than before all of it may take at any time."""
CODES = {0, 1, 2, 97, 98}
EXPERIMENT = """title = "Depth"
repeats = 2
runtime = "1s"
size = "1g"

[[patterns]]
name = "read"
options = { ioengine = "null", rw = "randread", bs = "4k" }

[[factors]]
name = "depth"
option = "iodepth"
levels = [1, 4]
"""
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
    two = (
        MadeJob("a", {"read": 700.0, "write": 300.0}),
        MadeJob("b", {"write": 50.0}, targets=(1,), ramp_s=1.0),
    )
    paced = MadeJob("p", {"read": 400.0}, paced=True, clones=2, keep_clones_apart=True)
    made = [
        runs.make(place / "one", *two, targets=2, notes=[note, "text"], extra_events=events).path,
        runs.make(place / "paced", paced, MadeJob("q", stage=1, group=1), seconds=3).path,
        runs.make(place / "tree", MadeJob("t", {"getattr": 90.0}, tree="getattr"), seconds=2).path,
        runs.make(place / "killed", *two, targets=2, seal=None, extra_events=events).path,
        runs.make(place / "killed-paced", paced, seconds=2, seal=None).path,
    ]
    return [*(_with_environment(path) for path in made), *studies(place / "studies")]


def studies(place: Path) -> list[Path]:
    """Whole studies of every kind, one of which was killed."""
    place.mkdir(exist_ok=True)
    closed = {"rate_percent": None, "repeat": 1}
    loads: list[dict[str, Any]] = [{"rate_percent": percent, "repeat": 1} for percent in (25, 50, 90)]
    depths: list[dict[str, Any]] = [{"iodepth": depth, "bs": 4096} for depth in (1, 4, 16)]
    gain = {"axes": [["iodepth", [1, 4, 16]], ["bs", [4096]]], "gain_share": 0.1}
    return [
        _study(place / "repeated", "repeat", [{"repeat": number} for number in (1, 2, 3)], {"until": None}),
        _study(place / "swept", "sweep", depths, gain),
        _study(place / "curved", "curve", [closed, *loads], {"slo": "p99<1ms"}),
        _study(place / "listed", "list", [{}, {}], {}),
        _study(place / "killed-study", "repeat", [{"repeat": 1}, {"repeat": 2}], {}, whole=False),
    ]


def _study(
    path: Path, kind: Any, factors: list[dict[str, Any]], settings: dict[str, Any], *, whole: bool = True
) -> Path:
    told = on_disk.StudyRecord(
        kind=kind,
        name=path.name,
        front_end="fio",
        loadstone_version="0",
        started="2026-01-01T00:00:00+00:00",
        request={"argv": ["loadstone"], "cwd": "/", "options": {}},
        settings=settings,
    )
    told = on_disk.begin(path, told, {"job.fio": b"[job]\nrw=randread\n"})
    points = []
    for number, one in enumerate(factors, start=1):
        name = f"runs/{number:03}-job"
        at_maximum = kind == "curve" and one["rate_percent"] is None
        percent = one.get("rate_percent") or 100
        job = MadeJob("job", {"read": 9.0 * percent + 10 * number}, paced=kind == "curve" and not at_maximum)
        last = number == len(factors)
        sealed = whole or not last
        runs.make(path / name, job, seconds=2, seed=number, seal="complete" if sealed else None)
        (path / name / "workload.json").write_text(_workload("job"))
        (runs.reseal if sealed else runs.begun_again)(path / name)
        points.append(
            on_disk.Point(
                name=f"run{number}",
                factors=one,
                role="maximum" if at_maximum else "prepare" if kind == "list" and number == 1 else "measure",
                bundle=name,
                status="complete" if sealed else None,
                seal=on_disk.seal_of(path / name) if sealed else None,
            )
        )
    points.append(on_disk.Point(name="never", error="it never began"))
    status: Any = "complete" if whole else "running"
    on_disk.write(path, told.model_copy(update={"points": tuple(points), "status": status}))
    return path


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
    (path / "workload.json").write_text(_workload(*"abpqt"))
    return (runs.begun_again if path.name.startswith("killed") else runs.reseal)(path)


def _workload(*names: str) -> str:
    """What was asked for, as a front end reads it: exports and reruns begin with it."""
    text = "".join(f"[{name}]\nfilename=/mnt/test/data0\nrw=randrw\nsize=1m\n" for name in names)
    return read_jobfiles([TextSource(text, "job.fio")]).model_dump_json()


def real(place: Path) -> list[Path]:
    """Runs of the engine: one with a journal to verify by, and repeats. None where it is not built."""
    try:
        binary.find()
    except EngineError:
        return []
    place.mkdir()
    (place / "w.fio").write_text(
        f"[w]\nfilename={place}/w\nrw=randwrite\nsize=1m\nioengine=psync\nverify=crc32c\ndo_verify=0\n"
    )
    (place / "r.fio").write_text(
        f"[job]\nfilename={place}/r\nrw=randrw\nsize=1m\nioengine=psync\ntime_based\nruntime=1\n"
    )
    (place / "h.fio").write_text(
        f"[job]\nfilename={place}/h.$jobnum\nrw=randread\nsize=1m\nioengine=null\ntime_based\nruntime=1\n"
    )
    quiet = ("--no-report", "--no-progress", "--no-calibration", "--out")
    hosts = [
        "[run]\nconnect_s = 300",
        *(f'[[host]]\nname = "{one}"\nlaunch = "local"\ndirectory = "{place}/{one}"' for one in ("a", "b")),
    ]
    (place / "hosts.toml").write_text("\n".join(hosts) + "\n")
    (place / "x.toml").write_text(EXPERIMENT)
    # Other tests have this machine as a host at the same time.
    environment = os.environ | {"LOADSTONE_STATE": str(place / "state")}
    for words in (
        ("run", "w.fio", "--journal", *quiet, "journal"),
        ("run", "r.fio", "--repeat", "2", *quiet, "again"),
        ("run", "r.fio", "--watch", "me=local", *quiet, "watched"),
        ("run", "r.fio", "--probe=3s", *quiet, "probed"),
        ("run", "h.fio", "--hosts", "hosts.toml", *quiet, "hosts"),
        ("experiment", "run", "x.toml", *quiet, "experiment"),
    ):
        done = started.run(list(words), cwd=place, timeout=300, env=environment)
        assert done.returncode == 0, (words, done.stderr)
    return [place / name for name in ("journal", "again", "watched", "probed", "hosts", "experiment")]


def verbs(path: Path, good: Path, out: Path, *, unverified: bool = True) -> list[list[str]]:
    """Command lines of every verb that reads a bundle, with what they write below `out`."""
    mine, other = str(path), str(good)
    lines = [
        ["report", mine, "-o", str(out / "r.html")],
        ["report", mine, "-o", str(out / "r.svg")],
        ["report", mine, "-o", str(out / "r.md")],
        ["compare", other, mine, "--json"],
        ["compare", mine, other, "--html", str(out / "c.html")],
        ["compare", other, mine, "--gate", "--markdown"],
        ["audit", mine],
        ["audit", mine, "--json"],
        ["verify", mine, "--out", str(out / "v")],
        ["rerun", mine, "--out", str(out / "n")],
        *(["export", mine, kind, "-o", str(out / f"e-{kind}")] for kind in KINDS),
    ]
    sealed = [
        ["report", mine, "-o", str(out / "s.html")],
        ["runs", str(path.parent)],
        ["experiment", "report", mine, "-o", str(out / "x.html"), "-o", str(out / "x.md")],
        ["experiment", "resume", mine],
    ]
    return [[*line, *(["--unverified"] if unverified else [])] for line in lines] + sealed


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sources(tmp_path_factory.mktemp("whole"))


@pytest.fixture(autouse=True)
def reading_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def would_run(*_args: object, **_named: object) -> None:
        raise WouldRunError("would run")

    # Where it is called: a module that is first imported now would keep what stands in the session.
    for caller in ("api.one_run", "cli.fio.run_jobs", "probe.after_run", "study.run_maker"):
        monkeypatch.setattr(f"loadstone.{caller}.run_plan", would_run)


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


class Peak:
    """How much memory this process takes more than it had when this was made."""

    def __init__(self) -> None:
        # The high-water mark begins anew (proc(5)): getrusage's is of all that was before.
        Path("/proc/self/clear_refs").write_text("5")
        self._before_bytes = self._status_bytes("VmRSS")

    def more_bytes(self) -> int:
        return self._status_bytes("VmHWM") - self._before_bytes

    @staticmethod
    def _status_bytes(name: str) -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise LookupError(name)


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
    # Of several results what cannot be read is left out: the answer is of the others, and says so.
    left_out = any(words in out.getvalue() for words in ("left out", "was not read", '"broken": true'))
    refused = any(line.startswith("loadstone: ") for line in err.getvalue().splitlines())
    if code == 2 and not refused and not left_out:
        return f"refused without a word: {err.getvalue()[:200]!r}"
    return None


def attacked(whole: list[Path], place: Path, seed: int, *, every: bool) -> list[str]:
    """Damage one bundle and give it to the verbs; return what went wrong, with the seed to find it again."""
    rng = random.Random(seed)
    source = whole[seed % len(whole)]
    path, out = place / f"d{seed}" / "run", place / f"o{seed}"
    out.mkdir()
    path.parent.mkdir()
    # Every second as whoever means it would leave it: with hashes that are right.
    sealed = rng.random() < SEALED_SHARE
    told = damage.damaged(source, path, seed, whole, sealed=sealed)
    lines = verbs(path, source, out, unverified=not sealed)
    chosen = lines if every else rng.sample(lines, 2)
    peak = Peak()
    found = [(line, wrong) for line in chosen if (wrong := tried(line)) is not None]
    if (more := peak.more_bytes()) > MEMORY_BYTES:
        found.append((chosen[0], f"{more >> 20} MiB of memory"))
    for directory in (path.parent, out):
        shutil.rmtree(directory, ignore_errors=True)
    return [f"seed {seed}, {source.name}, {told}: {' '.join(line[:3])}: {wrong}" for line, wrong in found]


@pytest.mark.in_turn
@pytest.mark.slow
def test_verbs_refuse_or_read_damaged_bundles(whole: list[Path], tmp_path: Path) -> None:
    wrong = [one for seed in range(FAST) for one in attacked(whole, tmp_path, seed, every=False)]
    assert wrong == []


@pytest.fixture(scope="module")
def every_kind(whole: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [*whole, *real(tmp_path_factory.mktemp("made") / "real")]


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(FIRST, FIRST + NIGHTLY, PART))
def test_every_verb_refuses_or_reads_many_damaged_bundles(
    every_kind: list[Path], tmp_path: Path, first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = range(first, min(first + PART, FIRST + NIGHTLY))
    wrong = [one for seed in seeds for one in attacked(every_kind, tmp_path, seed, every=True)]
    with capsys.disabled():
        sys.stdout.write(f"\n{len(seeds)} damaged bundles and studies, {len(wrong)} wrong\n")
    assert wrong == []


@pytest.mark.in_turn
@pytest.mark.slow
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


@pytest.mark.in_turn
@pytest.mark.parametrize("total", [None, {"iops": "many"}, {"iops": 10**400}, {"latency_ns": [1]}])
def test_a_sealed_result_of_another_shape_is_listed_as_unreadable(
    whole: list[Path], tmp_path: Path, total: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """999004: a result without a status was a KeyError of `runs`."""
    run = tmp_path / "run"
    shutil.copytree(whole[0], run)
    result: dict[str, Any] = {"a": None} if total is None else {"status": "complete", "total": total}
    (run / "result.json").write_text(json.dumps(result))
    runs.reseal(run)
    assert program.main(["runs", str(tmp_path)]) == 0
    assert "unreadable" in capsys.readouterr().out


@pytest.mark.in_turn
def test_an_input_that_is_a_device_is_named_on_the_page_of_a_study(whole: list[Path], tmp_path: Path) -> None:
    """740107: `/dev/zero` in place of a job file was read until memory ended."""
    source = next(one for one in whole if one.name == "repeated")
    study = tmp_path / "study"
    shutil.copytree(source, study)
    given = next((study / "input").iterdir())
    given.unlink()
    given.symlink_to("/dev/zero")
    page = tmp_path / "page.html"
    assert program.main(["report", str(study), "-o", str(page), "--unverified"]) == 0
    assert f"{given.name}: is a symbolic link, not a file of the bundle" in page.read_text()


PROBES: dict[str, Any] = {
    "stage": 0,
    "budget_s": 10.0,
    "tried": [],
    "left_out": [{"name": "flushes", "why": "it only reads"}, {"name": "sizes"}],
    "ended": "all were done",
}


@pytest.mark.parametrize(
    ("probes", "place"),
    [(PROBES, "left_out.1"), (PROBES | {"stage": "first"}, "stage"), (PROBES | {"tried": [1]}, "tried.0")],
)
@pytest.mark.in_turn
def test_what_probes_left_in_another_shape_is_named_and_the_rest_is_read(
    whole: list[Path], tmp_path: Path, probes: object, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """113053: a probe that was left out without a reason was a traceback of every report."""
    run = tmp_path / "run"
    shutil.copytree(whole[0], run)
    (run / "probes.json").write_text(json.dumps(probes))
    runs.reseal(run)
    assert program.main(["audit", str(run)]) == 0
    assert f"probes.json: {place} cannot be read" in "".join(capsys.readouterr())
    page = tmp_path / "page.html"
    assert program.main(["report", str(run), "-o", str(page)]) == 0
    assert "<html" in page.read_text()


@pytest.mark.in_turn
def test_a_study_whose_notes_are_of_another_shape_is_run_again(whole: list[Path], tmp_path: Path) -> None:
    """113129: words in place of a note were a traceback of `rerun`."""
    study = tmp_path / "study"
    shutil.copytree(next(one for one in whole if one.name == "killed-study"), study)
    run = study / "runs" / "002-job"
    (run / "notes.json").write_text(json.dumps(["words", {"kind": "heard", "text": "of no kind"}]))
    runs.begun_again(run)
    assert tried(["rerun", str(study), "--out", str(tmp_path / "again")]) is None
