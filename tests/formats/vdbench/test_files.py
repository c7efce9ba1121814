from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone import errors
from loadstone.formats.recognise import Language, recognise
from loadstone.formats.vdbench import (
    Given,
    ParameterFile,
    ParameterFileRun,
    ParameterText,
    expand,
    facts,
    lower,
    read,
)
from loadstone.plan.anchors import Found
from loadstone.plan.host_facts import AnchorFacts, HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.plan.resolve import resolve
from loadstone.report.vdbench.wording import run_line
from loadstone.workload.other_hosts import refuse_elsewhere
from tests.formats.vdbench import files

if TYPE_CHECKING:
    from loadstone.errors import LoadstoneError
    from loadstone.workload.model import Job

GIB = 1 << 30
EXAMPLE = Path(__file__).parents[3] / "examples" / "zfs-log-ssd" / "zfs-log-ssd.parm"


def parsed(path: Path) -> tuple[ParameterFile, list[ParameterFileRun]]:
    file = read([path], variables=files.variables(path))
    return file, expand(file)


def lower_all(path: Path) -> None:
    file, runs = parsed(path)
    for run in runs:
        refuse_elsewhere(lower(file, run))


def job(path: Path, wanted: files.Fields) -> Job:
    file, runs = parsed(path)
    run = runs[0] if wanted.run is None else next(run for run in runs if run.title == wanted.run)
    workload = lower(file, run, Given(rate_iops=1000.0, allow_exec=files.permits(path)))
    return next(one for one in workload.jobs if one.name == wanted.job)


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


def test_every_mistake_of_a_parameter_file_is_told_once() -> None:
    """Only the first one was. After an entity that is misplaced nobody knows whose the next words are."""
    text = b"""sd=sd1,lun=/x,sizes=1q,thread=zz
wd=wd1,sd=sd1,xfersise=4k,rdpct=500
rd=rd1,wd=wd1,iorate=10,elapsd=3
hd=one,banana=1
"""
    with pytest.raises(errors.SeveralMistakesError) as found:
        read([ParameterText(text, "p")])
    assert [(str(one.where), one.hint) for one in found.value.errors][:-1] == [
        ("p:1: sizes", "did you mean 'size'?"),
        ("p:1: thread", None),
        ("p:2: xfersise", "did you mean 'xfersize'?"),
        ("p:2: rdpct", None),
        ("p:3: elapsd", "did you mean 'elapsed'?"),
    ]
    assert str(found.value.errors[-1].where) == "p:4: hd"
    assert "must stand before" in found.value.errors[-1].message


def test_the_study_of_a_log_device_is_what_its_page_says() -> None:
    file = read([EXAMPLE], variables={"lun": "/dev/sdx"})
    runs = expand(file)
    titles = [run.title for run in runs]
    sizes = ["4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m"]
    shares = range(10, 101, 10)
    assert titles[0] == "SD_format"
    assert titles[1:19] == [f"{rd} xfersize={size}" for rd in ("read", "write") for size in sizes]
    for at, rd in ((19, "machines"), (30, "backups")):
        assert titles[at : at + 11] == [rd, *(f"{rd}_({share}%)" for share in shares)]
    assert len(titles) == 41
    jobs = [one for run in runs[1:] for one in lower(file, run, Given(rate_iops=1000.0)).jobs]
    assert {(one.durability.sync, one.engine.iodepth) for one in jobs} == {("dsync", 8)}


def test_there_are_enough_files() -> None:
    assert len(files.GOOD) >= 30
    assert len(files.BAD) >= 30


@pytest.mark.parametrize("path", files.GOOD, ids=names(files.GOOD))
def test_a_file_is_recognised_and_lists_its_runs(path: Path) -> None:
    assert recognise(path.read_bytes(), "unnamed") is Language.VDBENCH
    _, runs = parsed(path)
    expected = files.comments(path, "expect")
    if expected:
        assert [run_line(facts(run), "Simulating") for run in runs] == expected
    count = files.comments(path, "runs")
    assert expected or count, "the file does not say what is expected of it"
    assert not count or len(runs) == int(count[0])


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        pytest.param(path, one, id=f"{path.stem}-{one.run or 'first'}-{one.job}")
        for path in files.GOOD
        for one in files.jobs(path)
    ],
)
def test_a_job_has_the_fields_the_file_says(path: Path, wanted: files.Fields) -> None:
    found = job(path, wanted)
    assert {name: str(files.at(found, name)) for name in wanted.fields} == wanted.fields


@pytest.mark.parametrize("path", files.GOOD, ids=names(files.GOOD))
def test_the_jobs_of_a_run_are_those_the_file_says(path: Path) -> None:
    file, runs = parsed(path)
    for title, expected in files.job_names(path).items():
        run = next(run for run in runs if run.title == title)
        assert [one.name for one in lower(file, run, Given(rate_iops=100.0)).jobs] == expected


@pytest.mark.in_turn
@pytest.mark.parametrize("path", files.GOOD, ids=names(files.GOOD))
def test_every_run_can_be_planned(path: Path) -> None:
    file, runs = parsed(path)
    luns = {storage.lun for storage in file.storages}
    known = {lun: _facts(lun) for lun in luns}
    made = AnchorFacts(Found(exists=True, has_directories=True, has_files=True, first_file=1))
    anchors = {system.anchor: made for system in file.file_systems}
    host = HostFacts(known=known, known_anchors=anchors, memory_bytes=8 * GIB, cpus=(0, 1))
    for run in runs:
        workload = lower(file, run, Given(rate_iops=1000.0, allow_exec=files.permits(path)))
        plan = resolve(workload, host=host).plan
        assert Plan.model_validate_json(plan.model_dump_json()) == plan
        assert len(plan.streams) >= len(run.works) + len(run.file_works)


def _facts(lun: str) -> TargetFacts:
    if lun.startswith("/dev"):
        return TargetFacts(TargetKind.BLOCK, exists=True, size_bytes=100 * GIB)
    return TargetFacts(TargetKind.FILE, exists=True, size_bytes=16 * GIB)


def test_trees_have_as_many_files_as_the_file_says() -> None:
    path = next(path for path in files.GOOD if path.stem.endswith("file-systems"))
    file, _ = parsed(path)
    for system in file.file_systems:
        expected = files.comments(path, f"files of {system.name}")
        assert expected == [f"{system.directories} directories, {system.total_files} files"]


@pytest.mark.parametrize("path", files.BAD, ids=names(files.BAD))
def test_a_bad_file_is_refused_where_it_is_wrong(path: Path) -> None:
    kind, line, keyword, text = re.fullmatch(
        r"(\w+) (\d+|-) (\S+): (.*)", files.comments(path, "error")[0]
    ).groups()  # type: ignore[union-attr] # every file says so
    with pytest.raises(getattr(errors, kind)) as caught:
        lower_all(path)
    error: LoadstoneError = caught.value
    assert error.where is not None
    assert error.where.file == str(path)
    assert str(error.where.line or "-") == line
    assert (error.where.option or "-") == keyword
    assert text in f"{error} {error.hint}"
