"""Several job files as one study: which files, in which order, under which names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadstone.api.jobs import job_files
from loadstone.api.jobs.job_changes import JobChanges
from loadstone.bundle import study as on_disk
from loadstone.cli.main import main
from loadstone.errors import InputError

FIO = "[a]\nioengine=null\nsize=1m\nrw={rw}\nfilename=x\nruntime=1\ntime_based\n"
VDB = """sd=sd1,lun=sim,size=8m
wd=wd1,sd=sd1,xfersize=4k
rd=rd1,wd=wd1,elapsed=2,interval=1,iorate=(10,20)
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "six"
    folder.mkdir()
    for name in ("b.fio", "a.fio", "c.job"):
        (folder / name).write_text(FIO.format(rw="read"))
    (folder / "d.vdb").write_text(VDB)
    (folder / "notes.txt").write_text("nothing to run")
    return folder


def names(words: list[Path], shuffle: int | None = None) -> list[str]:
    found = job_files.read([str(word) for word in words], JobChanges(), lambda _: None, shuffle)
    return [run.name for run in found.made().known()]


@pytest.mark.in_turn
def test_a_directory_gives_its_job_files_in_the_order_of_their_names(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(files), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "six"
    assert [Path(run["file"]).name for run in told["runs"]] == ["a.fio", "b.fio", "c.job", "d.vdb", "d.vdb"]
    assert [run["number"] for run in told["runs"]] == list(range(1, len(told["runs"]) + 1))


@pytest.mark.in_turn
def test_files_run_as_they_are_given_or_in_an_order_drawn_from_a_number(files: Path) -> None:
    given = [files / name for name in ("b.fio", "c.job", "a.fio")]
    assert names(given) == ["b", "c", "a"]
    orders = {tuple(names(given, seed)) for seed in range(12)}
    assert len(orders) > 1
    assert names(given, 5) == names(given, 5)


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.fio").write_text(FIO.format(rw="read"))
    (tmp_path / "a.job").write_text(FIO.format(rw="write"))
    given = [tmp_path / "x" / "a.fio", tmp_path / "y" / "a.fio", tmp_path / "a.job"]
    assert names(given) == ["a.fio 1", "a.fio 2", "a.job"]


def test_a_directory_without_job_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no job file"):
        job_files.files_of([str(tmp_path)], JobChanges())


def test_an_order_of_one_file_has_no_effect(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(files / "a.fio"), "--shuffle", "1"]) == 2
    assert "--shuffle: has no effect" in capsys.readouterr().err


@pytest.mark.in_turn
def test_several_files_are_one_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = []
    for name, rw in (("reads", "randread"), ("writes", "randwrite")):
        file = tmp_path / f"{name}.fio"
        file.write_text(FIO.format(rw=rw).replace("time_based\n", "").replace("runtime=1\n", ""))
        words.append(str(file))
    assert main(["run", *words, "--no-report", "--out", str(tmp_path / "study")]) == 0
    told = on_disk.read(tmp_path / "study")
    assert [point.name for point in told.points] == ["reads", "writes"]
    assert set(told.inputs) == set(words)
    assert "run 2 of 2: writes:" in capsys.readouterr().err


def test_what_is_wrong_with_any_file_is_told_of_each_and_nothing_runs(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "b.fio").write_text(FIO.format(rw="raed"))
    (files / "d.vdb").write_text(VDB.replace("sd1,xfersize", "sd2,xfersize"))
    out = tmp_path / "study"
    assert main(["run", str(files), "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert f"{files / 'b.fio'}:4: rw: found 'raed'" in told
    assert "hint: did you mean 'read'?" in told
    assert "d.vdb:2" in told
    assert not out.exists()


def test_each_name_that_is_no_file_is_told(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nothing.fio", str(files / "a.fio"), "neither.fio"]) == 2
    told = capsys.readouterr().err
    assert "'nothing.fio' is neither" in told
    assert "'neither.fio' is neither" in told


@pytest.mark.in_turn
def test_what_is_wrong_on_this_host_is_told_of_each_run_and_the_same_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, folder in (("a", "gone"), ("b", "lost")):
        text = FIO.format(rw="read").replace("ioengine=null", "ioengine=psync")
        (tmp_path / f"{name}.fio").write_text(text.replace("filename=x", f"filename=/proc/{folder}/x"))
    words = [str(tmp_path / f"{name}.fio") for name in ("a", "b")]
    assert main(["run", *words, "--repeat", "2", "--out", str(tmp_path / "study")]) == 2
    told = capsys.readouterr().err
    assert told.count("there is no directory /proc/gone") == 1
    assert told.count("there is no directory /proc/lost") == 1
