"""The main job, for real, on temporary files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadstone.bundle.read import Bundle
from loadstone.engine import process
from loadstone.errors import BundleError

from .program import (
    INTERRUPT,
    READ_FOR,
    alive,
    engine_pid,
    events,
    finish,
    job,
    kinds,
    needs_engine,
    run,
    start,
    ticks,
    until,
)

BARE_DEV = (
    "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/zero c 1 5 || exit 99; "
    'exec "$@"'
)
WRITE_ONCE = "[writer]\nrw=write\nbs=64k\nsize=4m\nfilename={}/data\n"


@pytest.mark.root
@pytest.mark.in_turn
def test_a_run_needs_no_dev_stdin(tmp_path: Path) -> None:
    """In a small guest: *cannot be read: No such file or directory*, and nothing ran."""
    needs_engine()
    if os.geteuid() != 0:
        pytest.skip("a mount namespace needs root")
    file = job(tmp_path / "w.fio", WRITE_ONCE.format(tmp_path))
    words = [sys.executable, "-m", "loadstone", "run", str(file), "--out", "b", "--no-calibration"]
    inside = ["unshare", "--mount", "sh", "-c", BARE_DEV, "sh", *words]
    done = subprocess.run(inside, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("no mount namespaces here")
    assert done.returncode == 0, done.stderr
    assert Bundle.open(tmp_path / "b").status == "complete"


def test_a_write_job_moves_its_bytes_and_leaves_a_sealed_bundle(tmp_path: Path) -> None:
    done = run(
        "run",
        job(tmp_path / "w.fio", WRITE_ONCE.format(tmp_path)),
        "--out",
        "b",
        "--json",
        "--report",
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    document = done.document()
    assert document["total"]["bytes"] == 4 << 20
    assert document["total"]["write"]["operations"] == 64
    assert document["jobs"][0]["write"]["latency_ns"]["max"] > 0
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status == "complete"
    assert bundle.verify() == []
    assert (tmp_path / "data").stat().st_size == 4 << 20
    assert (tmp_path / "b" / "report.html").stat().st_size > 1000


def test_the_bundle_holds_what_the_user_gave_and_where_it_ran(tmp_path: Path) -> None:
    text = WRITE_ONCE.format(tmp_path)
    done = run("run", job(tmp_path / "w.fio", text), "--out", "b", "--no-report", cwd=tmp_path)
    assert done.code == 0, done.err
    bundle = Bundle.open(tmp_path / "b")
    assert text.encode() in bundle.inputs.values()
    assert bundle.request["front_end"] == "run"
    assert bundle.environment["host"]["kernel"] == os.uname().release
    assert bundle.environment["targets"][0]["path"] == str(tmp_path / "data")
    assert not (tmp_path / "b" / "report.html").exists()


def test_plan_prints_the_plan_and_touches_nothing(tmp_path: Path) -> None:
    one = job(tmp_path / "w.fio", WRITE_ONCE.format(tmp_path))
    told = run("plan", one, cwd=tmp_path)
    assert told.code == 0, told.err
    assert f"target {tmp_path}/" in told.out
    assert " write, iodepth " in told.out
    done = run("plan", one, "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.document()["streams"][0]["pattern"]["write_percent"] == 100
    assert [path.name for path in tmp_path.iterdir()] == ["w.fio"]


def test_a_second_run_on_its_own_file_needs_no_consent_and_a_strangers_does(tmp_path: Path) -> None:
    try:
        os.setxattr(tmp_path, "user.test", b"1")
    except OSError as error:
        pytest.skip(f"no user attributes in {tmp_path}: {error}")
    one = job(tmp_path / "w.fio", WRITE_ONCE.format(tmp_path))
    for name in ("first", "second"):
        done = run("run", one, "--out", name, "--no-report", cwd=tmp_path)
        assert done.code == 0, done.err
    os.removexattr(tmp_path / "data", "user.loadstone")
    (tmp_path / "data").write_text("somebody's notes\n" * 4096)
    refused = run("run", one, "--out", "third", "--no-report", cwd=tmp_path)
    assert refused.code == 2
    assert "was not created by Loadstone" in refused.err
    assert f"hint: if all of that may be lost, add: --i-accept-data-loss {tmp_path / 'data'}" in refused.err
    assert "Traceback" not in refused.err
    assert not (tmp_path / "third").exists()
    agreed = run(
        "run", one, "--out", "third", "--no-report", "--i-accept-data-loss", tmp_path / "data", cwd=tmp_path
    )
    assert agreed.code == 0, agreed.err


def test_reading_opens_read_only(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("3s", tmp_path))
    running = start("run", one, "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    pid = engine_pid(tmp_path / "b")
    modes = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if link.readlink() == tmp_path / "data":
            lines = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().splitlines()
            flags = next(line.split()[1] for line in lines if line.startswith("flags:"))
            modes.append(int(flags, 8) & os.O_ACCMODE)
    assert modes
    assert set(modes) == {os.O_RDONLY}
    assert finish(running).code == 0


def test_one_interrupt_keeps_and_reports_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("300s", tmp_path))
    running = start("run", one, "--out", "b", "--json", cwd=tmp_path)
    ticks(tmp_path / "b")
    running.send_signal(INTERRUPT)
    done = finish(running)
    assert done.code == 130, done.err
    assert done.document()["status"] == "interrupted"
    assert done.document()["total"]["operations"] > 0
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status == "interrupted"
    assert bundle.verify() == []
    assert {"stop", "end"} <= set(kinds(tmp_path / "b"))


def test_a_second_interrupt_leaves_at_once(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("300s", tmp_path))
    running = start("run", one, "--out", "b", cwd=tmp_path)
    ticks(tmp_path / "b")
    pid = engine_pid(tmp_path / "b")
    # The engine must not get to answer the first, or there is nothing to insist on.
    os.kill(pid, 19)
    running.send_signal(INTERRUPT)
    while running.poll() is None:
        # Again and again: one that follows the first at once is taken for the same.
        time.sleep(0.3)
        running.send_signal(INTERRUPT)
    done = finish(running)
    assert done.code == 130, done.err
    assert not alive(pid)
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status == "partial"
    assert bundle.samples().height > 0


def test_a_killed_coordinator_takes_the_engine_along_and_leaves_a_partial_bundle(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("300s", tmp_path))
    running = start("run", one, "--out", "b", cwd=tmp_path)
    ticks(tmp_path / "b")
    pid = engine_pid(tmp_path / "b")
    running.kill()
    finish(running)
    until(lambda: not alive(pid), "the engine to stop by itself")
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.status == "partial"
    assert bundle.samples()["ops"].sum() > 0


def test_what_a_killed_run_had_measured_cannot_be_altered_in_silence(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("300s", tmp_path))
    running = start("run", one, "--out", "b", cwd=tmp_path)
    bundle, samples = tmp_path / "b", tmp_path / "b" / "samples.arrows"

    def noted_bytes() -> int:
        ticks(bundle)
        noted = json.loads((bundle / "growth.json").read_text())["files"]
        return int(noted.get("samples.arrows", {"size_bytes": 0})["size_bytes"])

    at = until(noted_bytes, "a note of what was measured") - 1
    running.kill()
    finish(running)
    assert Bundle.open(bundle).status == "partial"
    content = samples.read_bytes()
    samples.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(BundleError, match=r"samples\.arrows was altered"):
        Bundle.open(bundle)


def test_a_killed_engine_is_told_and_what_it_measured_is_kept(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("300s", tmp_path))
    running = start("run", one, "--out", "b", "--json", cwd=tmp_path)
    ticks(tmp_path / "b")
    os.kill(engine_pid(tmp_path / "b"), 9)
    done = finish(running)
    assert done.code == 1
    assert "the engine was killed by SIGKILL" in done.err
    assert done.document()["status"] == "failed"
    assert Bundle.open(tmp_path / "b").samples()["ops"].sum() > 0


def test_rerun_runs_the_same_plan_again(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    text = f"[r]\nrw=randread\nbs=4k\nsize=8m\nfilename={tmp_path}/data\n"
    first = job(tmp_path / "r.fio", text), "--ramp-until-steady", "--out", "a", "--no-report"
    assert run("run", *first, cwd=tmp_path).code == 0
    done = run("rerun", "a", "--out", "b", "--json", "--no-report", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.document()["total"]["bytes"] == 8 << 20
    assert any("left out for settling" in note["text"] for note in done.document()["notes"])
    assert json.loads((tmp_path / "a/plan.json").read_text()) == json.loads(
        (tmp_path / "b/plan.json").read_text()
    )


@pytest.mark.in_turn
def test_a_rerun_that_is_refused_names_the_place_in_the_job_file(tmp_path: Path) -> None:
    """Of many jobs' targets it was not said which job to change."""
    text = f"[w]\nrw=write\nbs=4k\nsize=64k\nfilename={tmp_path}/data\n"
    one = job(tmp_path / "w.fio", text)
    assert run("run", one, "--out", "a", "--no-report", cwd=tmp_path).code == 0
    assert run("run", one, "--repeat", "2", "--out", "s", "--no-report", cwd=tmp_path).code == 0
    (tmp_path / "data").write_bytes(b"a letter to Ada\n" * 4096)
    for bundle in ("a", "s"):
        done = run("rerun", bundle, "--out", "b", "--no-report", cwd=tmp_path)
        assert done.code == 2, done.err
        first, second, *_ = done.err.splitlines()
        assert first == f"loadstone: {one}:5: filename: the run would destroy existing data"
        assert second.startswith(f"  {tmp_path}/data: it exists")
        assert not (tmp_path / "b").exists()
    assert (tmp_path / "data").read_bytes() == b"a letter to Ada\n" * 4096


def test_a_truncated_file_ends_the_run_and_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("300s", tmp_path))
    running = start("run", one, "--out", "b", "--json", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    os.truncate(tmp_path / "data", 4096)
    done = finish(running)
    assert done.code == 1, done.err
    assert f"{tmp_path / 'data'}: read of 4096 bytes at offset " in done.err
    assert Bundle.open(tmp_path / "b").samples()["ops"].sum() > 0


def test_monitors_and_their_cost_are_in_the_bundle(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    one = job(tmp_path / "r.fio", READ_FOR.format("2s", tmp_path))
    done = run("run", one, "--out", "b", "--no-report", cwd=tmp_path)
    assert done.code == 0, done.err
    host = Bundle.open(tmp_path / "b").host()
    assert host.height >= 2
    spent = host.select("engine.user_ns", "engine.system_ns").sum().row(0)
    assert sum(spent) > 0
    cost = [event for event in events(tmp_path / "b") if event["type"] == "monitor_cost"]
    assert cost[0]["rows"] == host.height


def test_the_engine_answers_a_probe() -> None:
    needs_engine()
    assert isinstance(process.probe(), dict)
