"""The results file of Iometer: columns, rows and what they add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from loadstone import exitcodes
from loadstone.analysis.histogram import BUCKETS, Histogram, lows_of
from loadstone.audit import foreign
from loadstone.bundle.read import Bundle
from loadstone.cli.main import main
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.report import iometer
from loadstone.workload.placement import Amount
from tests.formats.iometer.files import made
from tests.support import runs, simulated
from tests.support.realised import SERVICE_NS, realised

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, str]


def tables(text: str) -> list[list[Row]]:
    """The rows of each run, by column."""
    found: list[list[Row]] = []
    heading: list[str] | None = None
    for fields in (line.split(",") for line in text.splitlines()):
        if fields[0] == "'Target Type":
            heading = fields
            found.append([])
        elif fields[0].startswith("'"):
            heading = None
        elif heading is not None:
            assert len(fields) == len(heading) == 80
            found[-1].append(dict(zip(heading, fields, strict=True)))
    return found


def apart(text: str) -> list[Row]:
    """The rows of the only run without those of CPUs, which a short one may not have."""
    (rows,) = tables(text)
    return [row for row in rows if row["'Target Type"] != "PROCESSOR"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two managers, three workers, six targets, on a simulated device."""
    run = made("08-increment-parallel.icf")[-1]
    directory = tmp_path_factory.mktemp("iometer")
    realised(run.workload, directory, size=Amount(bytes=1 << 20), seconds=2.0)
    return iometer.export(directory / "run")[0]


def test_the_heading_is_iometers() -> None:
    """Compared by its length and its ends: 59 columns of numbers, 21 of bins."""
    columns = iometer.HEADING.split(",")
    assert len(columns) == 80
    assert columns[0] == "'Target Type"
    assert columns[58:60] == ["Segments Retransmitted/Second", "0 to 50 uS"]
    assert columns[-1] == " >= 10 s"
    assert len(iometer.BIN_EDGES_US) == 20


@pytest.mark.in_turn
def test_the_parts_of_the_file(text: str) -> None:
    lines = text.splitlines()
    keys = [line.split(",")[0] for line in lines if line.startswith("'")]
    assert keys == [
        "'Test Type",
        "'Version",
        "'Time Stamp",
        "'Access specifications",
        "'Access specification name",
        "'size",
        "'End access specifications",
        "'Results",
        "'Target Type",
        "'Time Stamp",
        "'End Test",
    ]
    assert lines[1] == "3,one more target on every manager"
    assert lines[3] == "1.1.0"
    assert "4096,100,100,100,0,1,4096,0" in lines


@pytest.mark.in_turn
def test_rows_go_from_all_to_each_target(text: str) -> None:
    (rows,) = tables(text)
    told = [(row["'Target Type"], row["Target Name"]) for row in rows]
    assert [one for one in told if one[0] != "PROCESSOR"] == [
        ("ALL", "All"),
        ("MANAGER", "ALPHA"),
        ("WORKER", "Worker 1"),
        ("DISK", '1: "VIRTUAL DISK 1"'),
        ("DISK", '2: "VIRTUAL DISK 2"'),
        ("WORKER", "Worker 2"),
        ("DISK", '3: "VIRTUAL DISK 3"'),
        ("DISK", '4: "VIRTUAL DISK 4"'),
        ("MANAGER", "BETA"),
        ("WORKER", "Worker 1"),
        ("DISK", '1: "VIRTUAL DISK 1"'),
        ("DISK", '2: "VIRTUAL DISK 2"'),
    ]
    rows = apart(text)
    assert (rows[0]["# Managers"], rows[0]["# Workers"], rows[0]["# Disks"]) == ("2", "3", "6")
    assert (rows[1]["# Managers"], rows[1]["# Workers"], rows[1]["# Disks"]) == ("", "2", "4")
    of_targets = [row for row in rows if row["'Target Type"] == "DISK"]
    assert {row["Access Specification Name"] for row in rows if row not in of_targets} == {
        "4 KiB random read"
    }
    assert {(row["Access Specification Name"], row["# Disks"]) for row in of_targets} == {("", "")}


@pytest.mark.in_turn
def test_rates_add_up_and_times_do_not(text: str) -> None:
    """Each target has one I/O of 20 us in flight: 50,000 a second."""
    rows = apart(text)
    disks = [row for row in rows if row["'Target Type"] == "DISK"]
    for row in disks:
        assert float(row["IOps"]) == pytest.approx(1e9 / SERVICE_NS, rel=0.01)
        assert float(row["Write IOps"]) == 0
        assert row["Queue Depth"] == "1"
    for column in ("IOps", "MiBps (Binary)", "Read MBps (Decimal)", "Transactions per Second"):
        assert float(rows[0][column]) == pytest.approx(sum(float(row[column]) for row in disks), rel=1e-6)
    assert int(rows[0]["Read I/Os"]) == sum(int(row["Read I/Os"]) for row in disks)
    assert float(rows[0]["MiBps (Binary)"]) == pytest.approx(float(rows[0]["IOps"]) * 4096 / 2**20)
    for row in rows:
        assert float(row["Average Response Time"]) == pytest.approx(SERVICE_NS / 1e6)
        assert float(row["Maximum Read Response Time"]) == pytest.approx(SERVICE_NS / 1e6)
        assert row["0 to 50 uS"] == row["Read I/Os"]
        assert row[" >= 10 s"] == "0"


@pytest.mark.in_turn
def test_names_stand_as_iometer_writes_them(tmp_path: Path) -> None:
    """Nothing is quoted there, so commas cannot stay."""
    (run,) = made("24-unaligned.icf")
    options = run.workload.global_options | {"test_description": "one, two"}
    realised(
        run.workload.model_copy(update={"global_options": options}),
        tmp_path,
        size=Amount(bytes=1 << 20),
        seconds=0.5,
    )
    lines = iometer.export(tmp_path / "run")[0].splitlines()
    assert lines[1] == "0,one; two"
    assert any(line.startswith("ALL,All,4 KiB; 100% Read; 100% random,1,1,1,") for line in lines)


def test_raw_times_and_the_processor_speed_give_seconds(text: str) -> None:
    rows = apart(text)
    worker = rows[2]
    seconds = int(worker["Total Raw Read Response Time"]) / float(worker["Processor Speed"])
    assert seconds == pytest.approx(int(worker["Read I/Os"]) * SERVICE_NS / 1e9)
    assert rows[0]["Processor Speed"] == rows[0]["Total Raw Run Time"] == ""


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("recorded", "kinds"),
    [
        ("0", {"ALL", "MANAGER", "WORKER", "DISK"}),
        ("1", {"ALL", "MANAGER", "WORKER"}),
        ("2", {"ALL", "MANAGER"}),
        ("3", {"ALL"}),
    ],
)
def test_what_is_recorded(tmp_path: Path, recorded: str, kinds: set[str]) -> None:
    (run,) = made("24-unaligned.icf")
    options = {**run.workload.global_options, "record_results": recorded}
    workload = run.workload.model_copy(update={"global_options": options})
    realised(workload, tmp_path, size=Amount(bytes=1 << 20), seconds=0.5)
    (rows,) = tables(iometer.export(tmp_path / "run")[0])
    assert {row["'Target Type"] for row in rows} - {"PROCESSOR"} == kinds


def test_bins_begin_at_their_edges() -> None:
    edges = [0.0, *iometer.BIN_EDGES_US]
    for place, edge in enumerate(edges):
        buckets = np.flatnonzero(lows_of(np.arange(BUCKETS)) >= edge * 1e3)[:1]
        counts = iometer.bins(Histogram.of(buckets, np.array([7])))
        assert counts[place] == 7
        assert sum(counts) == 7


def test_a_run_of_another_front_end(tmp_path: Path) -> None:
    job = runs.MadeJob(name="mixed", ops_hz={"read": 700.0, "write": 300.0}, targets=(0, 1))
    runs.make(tmp_path / "run", job, targets=2)
    (tmp_path / "run" / "workload.json").write_text('{"name": "other", "jobs": []}')
    runs.reseal(tmp_path / "run")
    (rows,) = tables(iometer.results([Bundle.open(tmp_path / "run")]))
    kinds = [row["'Target Type"] for row in rows]
    assert kinds == ["ALL", "MANAGER", "PROCESSOR", "PROCESSOR", "WORKER"]
    assert [row["Target Name"] for row in rows[2:4]] == ["CPU 0", "CPU 1"]
    for row in rows[2:4]:
        shares = [float(row[name]) for name in ("% User Time", "% Privileged Time", "% Interrupt Time")]
        assert float(row["% CPU Utilization"]) == pytest.approx(sum(shares), abs=1e-5)
        assert 25 < float(row["% CPU Utilization"]) < 75
        assert row["IOps"] == row[" >= 10 s"] == ""
    assert rows[0]["# Disks"] == "2"
    assert float(rows[0]["Read IOps"]) == pytest.approx(1400, rel=0.05)
    assert float(rows[0]["Read IOps"]) + float(rows[0]["Write IOps"]) == pytest.approx(float(rows[0]["IOps"]))


def test_phases_one_after_the_other_are_results_of_their_own(tmp_path: Path) -> None:
    reads = runs.MadeJob("reads", {"read": 1000.0})
    writes = runs.MadeJob("writes", {"write": 200.0}, stage=1, group=1)
    runs.make(tmp_path / "run", reads, writes)
    text = iometer.results([Bundle.open(tmp_path / "run")])
    first, second = tables(text)
    assert [row["Target Name"] for row in (*first, *second) if row["'Target Type"] == "WORKER"] == [
        "reads",
        "writes",
    ]
    assert float(first[0]["IOps"]) == float(first[0]["Read IOps"]) == pytest.approx(1000, rel=0.05)
    assert float(second[0]["IOps"]) == float(second[0]["Write IOps"]) == pytest.approx(200, rel=0.1)
    assert text.count("'Time Stamp") == 4


@pytest.mark.in_turn
def test_workers_of_one_name_are_two_rows(tmp_path: Path) -> None:
    """Iometer lets workers share a name, and managers too."""
    run = made("08-increment-parallel.icf")[-1]
    named = {"worker": "Worker 1", "manager": "ALPHA"}
    jobs = tuple(job.changed({"own_options": job.own_options | named}) for job in run.workload.jobs)
    workload = run.workload.model_copy(update={"jobs": jobs})
    realised(workload, tmp_path, size=Amount(bytes=1 << 20), seconds=0.5)
    rows = apart(iometer.export(tmp_path / "run")[0])
    kinds = [row["'Target Type"] for row in rows]
    assert (kinds.count("MANAGER"), kinds.count("WORKER"), kinds.count("DISK")) == (2, 3, 6)
    assert (rows[0]["# Managers"], rows[0]["# Workers"]) == ("2", "3")
    for column in ("IOps", "Read I/Os"):
        for kind in ("MANAGER", "WORKER", "DISK"):
            parts = sum(float(row[column]) for row in rows if row["'Target Type"] == kind)
            assert parts == pytest.approx(float(rows[0][column]), rel=1e-6)


@pytest.mark.parametrize(("depth", "told"), [(8, "4"), (3, iometer.AMBIGUOUS)])
@pytest.mark.in_turn
def test_the_depth_is_that_of_each_target(tmp_path: Path, depth: int, told: str) -> None:
    """The audit takes depth times targets for what is outstanding."""
    job = f"[j]\nrw=randread\nnrfiles=2\niodepth={depth}\ntime_based\nruntime=1\n"
    run = simulated.run(read_jobfiles([TextSource(job, "a.fio")]), tmp_path / "run")
    text = iometer.export(run)[0]
    assert {row["Queue Depth"] for row in apart(text) if row["'Target Type"] == "WORKER"} == {told}
    (tmp_path / "a.csv").write_text(text)
    (case,) = foreign.read(tmp_path / "a.csv").cases
    assert case.jobs[0].iodepth == (None if told == iometer.AMBIGUOUS else depth)
    assert case.host_cpu_percent is None  # The device's clock is not this host's.


@pytest.mark.in_turn
def test_the_layout_of_2008_has_56_columns(tmp_path: Path) -> None:
    run = made("08-increment-parallel.icf")[-1]
    realised(run.workload, tmp_path, size=Amount(bytes=1 << 20), seconds=0.5)
    new, old = (iometer.export(tmp_path / "run", layout)[0] for layout in ("1.1", "2008"))
    heading = next(line for line in old.splitlines() if line.startswith("'Target Type")).split(",")
    assert len(heading) == 56
    assert heading[6:13] == [
        *("IOps", "Read IOps", "Write IOps", "MBps", "Read MBps", "Write MBps", "Transactions per Second")
    ]
    assert heading[-1] == "Segments Retransmitted/Second"
    assert "\n2008.06.22-rc2\n" in old
    rows = [line.split(",") for line in old.splitlines() if line.startswith(("ALL,", "WORKER,", "DISK,"))]
    assert {len(row) for row in rows} == {56}
    first = dict(zip(heading, rows[0], strict=True))
    same = apart(new)[0]
    assert first["MBps"] == same["MiBps (Binary)"]
    assert first["Queue Depth"] == same["Queue Depth"]
    assert first["Read I/Os"] == same["Read I/Os"]
    (tmp_path / "new.csv").write_text(new)
    (tmp_path / "old.csv").write_text(old)
    (read_new,), (read_old,) = (foreign.read(tmp_path / f"{name}.csv").cases for name in ("new", "old"))
    assert read_old.total == read_new.total
    assert read_old.jobs == read_new.jobs


def test_a_layout_is_for_iometers_results_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs.make(tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "csv", "--layout", "2008"]) == exitcodes.USAGE
    assert "--layout: does not change csv" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "run"), "iometer-csv", "--layout", "1999"]) == exitcodes.USAGE
