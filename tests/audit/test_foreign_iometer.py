"""What Iometer writes of workers, managers and specifications, each row for what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit import foreign
from loadstone.audit.judge import judge_case
from loadstone.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.case import Case

COLUMNS = (
    *("Target Type", "Target Name", "Access Specification Name", "# Managers", "# Workers", "# Disks"),
    *("IOps", "Read IOps", "Write IOps", "MiBps (Binary)", "Read MiBps (Binary)", "Write MiBps (Binary)"),
    *("Average Response Time", "Average Read Response Time", "Average Write Response Time", "Errors"),
    *("Bytes Read", "Bytes Written", "Read I/Os", "Write I/Os", "Maximum Size", "Queue Depth"),
)
SECONDS = 30
MIB = 1 << 20
READS = ("64 KiB; 100% Read", "65536,100,100,0,0,1,0,0,")
MIXED = ("4 KiB; 50% Read", "4096,100,50,100,0,1,4096,0,")
WRITES = ("mix, of writes", "4096,75,0,100,0,1,0,0,\n8192,25,0,0,0,1,0,0,")


def row(
    kind: str,
    name: str,
    specification: str = "",
    *,
    reads: tuple[float, int] = (0.0, 0),
    writes: tuple[float, int] = (0.0, 0),
    depth: int = 8,
    disks: int = 1,
    workers: int | str = "",
) -> str:
    """A row. `reads`, `writes`: rate and mean size."""
    (read_hz, read_bytes), (write_hz, write_bytes) = reads, writes
    moved = (read_hz * read_bytes, write_hz * write_bytes)
    mean_ms = 1e3 * depth * disks / (read_hz + write_hz)
    values = (
        *(kind, name, specification.replace(",", ";"), "", workers, disks, read_hz + write_hz, read_hz),
        *(write_hz, sum(moved) / MIB, moved[0] / MIB, moved[1] / MIB, mean_ms, mean_ms, mean_ms, 0),
        *(moved[0] * SECONDS, moved[1] * SECONDS, read_hz * SECONDS, write_hz * SECONDS, 0, depth),
    )
    return ",".join(str(value) for value in values)


def section(*specifications: tuple[str, str]) -> str:
    head = "'size,% of size,% reads,% random,delay,burst,align,reply"
    each = "".join(
        f"'Access specification name,default assignment\n{name.replace(',', ';')},0\n{head}\n{lines}\n"
        for name, lines in specifications
    )
    return f"'Access specifications\n{each}'End access specifications\n"


def results(*rows: str) -> str:
    return f"'Results\n'{','.join(COLUMNS)}\n" + "\n".join(rows) + "\n'Time Stamp\n2020-01-01 10:00:00:000\n"


def read(tmp_path: Path, *parts: str) -> list[Case]:
    head = "'Test Type,Test Description\n0,test\n'Version\n1.1.0\n'Time Stamp\n2020-01-01 09:00:00:000\n"
    (tmp_path / "results.csv").write_text(head + "".join(parts))
    return list(foreign.read(tmp_path / "results.csv").cases)


def against(case: Case) -> set[str]:
    return {cause.rule for cause in judge_case(case).causes if cause.effect != "note"}


TWO = (
    row("ALL", "All", reads=(3000.0, 25_190), writes=(2000.0, 4096), disks=2, workers=2),
    row("MANAGER", "HOST", reads=(3000.0, 25_190), writes=(2000.0, 4096), disks=2, workers=2),
    row("WORKER", "Worker 1", READS[0], reads=(1000.0, 65_536)),
    row("DISK", "disk a", reads=(1000.0, 65_536)),
    row("WORKER", "Worker 2", MIXED[0], reads=(2000.0, 4096), writes=(2000.0, 4096)),
    row("DISK", "disk b", reads=(2000.0, 4096), writes=(2000.0, 4096)),
)


def test_each_worker_has_its_own_specification(tmp_path: Path) -> None:
    (case,) = read(tmp_path, section(READS, MIXED), results(*TWO))
    first, second = case.jobs
    assert (first.job, first.read_percent, first.block_bytes) == ("Worker 1", 100.0, {65_536: 1.0})
    assert (second.job, second.read_percent, second.random_percent) == ("Worker 2", 50.0, 100.0)
    assert [job.iodepth for job in case.jobs] == [8, 8]
    assert case.by_job["Worker 2"]["write"].operations == 60_000
    assert [target.path for target in case.targets] == ["disk a", "disk b"]
    assert case.name == "test: 64 KiB; 100% Read + 4 KiB; 50% Read, 16 outstanding"
    assert against(case) == set()


def test_a_worker_that_did_another_load_is_still_found(tmp_path: Path) -> None:
    wrong = [one.replace(MIXED[0], "x").replace(READS[0], MIXED[0]).replace("x", READS[0]) for one in TWO]
    (case,) = read(tmp_path, section(READS, MIXED), results(*wrong))
    assert "workload_drift" in against(case)


def test_specifications_of_later_results_are_those_before_them(tmp_path: Path) -> None:
    """A name may mean something else in the second test of a file."""
    again = (MIXED[0], "65536,100,100,0,0,1,0,0,")
    first, second = read(
        tmp_path,
        section(MIXED),
        results(
            row("ALL", "All", MIXED[0], reads=(500.0, 4096), writes=(500.0, 4096), workers=1),
            row("WORKER", "w", MIXED[0], reads=(500.0, 4096), writes=(500.0, 4096)),
        ),
        section(again),
        results(
            row("ALL", "All", MIXED[0], reads=(1000.0, 65_536), workers=1),
            row("WORKER", "w", MIXED[0], reads=(1000.0, 65_536)),
        ),
    )
    assert first.jobs[0].block_bytes == {4096: 1.0}
    assert second.jobs[0].block_bytes == {65_536: 1.0}
    assert against(first) | against(second) == set()


def test_reads_and_writes_have_sizes_of_their_own(tmp_path: Path) -> None:
    lines = ("both", "4096,50,100,100,0,1,0,0,\n65536,50,0,100,0,1,0,0,")
    done: dict[str, Any] = {"reads": (1000.0, 4096), "writes": (1000.0, 65_536)}
    (case,) = read(
        tmp_path,
        section(lines),
        results(row("ALL", "All", "both", **done, workers=1), row("WORKER", "w", "both", **done)),
    )
    (job,) = case.jobs
    assert (job.read_block_bytes, job.write_block_bytes) == ({4096: 1.0}, {65_536: 1.0})
    assert against(case) == set()


@pytest.mark.parametrize(
    ("lines", "reads", "sizes"),
    [
        ("4096,50,100,0,0,1,0,0,\n8192,50,0,0,0,1,0,0,", 50.0, 2),
        # A line is drawn for each burst, so that shares of I/Os are not shares of lines.
        ("4096,50,100,0,0,8,0,0,\n8192,50,0,0,0,1,0,0,", None, 0),
        ("4096,50,100,0,0,8,0,0,\n8192,50,100,0,0,1,0,0,", 100.0, 0),
        # Each read is answered by a write.
        ("4096,100,100,0,0,1,0,512,", None, 0),
    ],
)
def test_what_a_specification_does_not_fix_is_not_known(
    tmp_path: Path, lines: str, reads: float | None, sizes: int
) -> None:
    done: dict[str, Any] = {"reads": (700.0, 4096), "writes": (700.0, 8192)}
    (case,) = read(
        tmp_path,
        section(("x", lines)),
        results(row("ALL", "All", "x", **done, workers=1), row("WORKER", "w", "x", **done)),
    )
    assert case.jobs[0].read_percent == reads
    assert len(case.jobs[0].block_bytes) == sizes


def test_without_rows_of_workers_one_specification_is_known_and_two_are_not(tmp_path: Path) -> None:
    whole = row("ALL", "All", reads=(3000.0, 25_190), writes=(2000.0, 4096), disks=2, workers=2)
    (one,) = read(tmp_path, section(MIXED), results(whole))
    assert one.jobs[0].read_percent == 50.0
    (two,) = read(tmp_path, section(READS, MIXED), results(whole))
    assert two.jobs[0].read_percent is None
    assert against(two) == set()


def test_workers_of_one_name_in_two_managers_are_two(tmp_path: Path) -> None:
    rows = [*TWO[:4], row("MANAGER", "OTHER", workers=1, reads=(1.0, 512)), *TWO[4:]]
    rows = [one.replace("Worker 2", "Worker 1") for one in rows]
    (case,) = read(tmp_path, section(READS, MIXED), results(*rows))
    assert [job.job for job in case.jobs] == ["HOST Worker 1", "OTHER Worker 1"]
    assert case.by_job["OTHER Worker 1"]["read"].operations == 60_000


def test_a_comma_in_a_name_and_several_lines(tmp_path: Path) -> None:
    name = "mix; of writes"
    (case,) = read(
        tmp_path,
        section(WRITES).replace(name, "mix, of writes"),
        results(row("ALL", "All", name, writes=(1000.0, 5120), workers=1)).replace(name, '"mix, of writes"'),
    )
    assert case.jobs[0].block_bytes == {4096: 0.75, 8192: 0.25}
    assert against(case) == set()


def test_lines_of_a_specification_without_its_name_belong_to_none(tmp_path: Path) -> None:
    """Found by fuzzing as a KeyError: the name was that of a section before."""
    lines = section(MIXED).partition("\n'size")[2].partition("'End")[0]
    nameless = f"'Access specifications\n'size{lines}'End access specifications\n"
    moved = row("ALL", "All", MIXED[0], reads=(500.0, 4096), writes=(500.0, 4096), workers=1)
    (case,) = read(tmp_path, section(MIXED), nameless, results(moved))
    assert case.total.operations == 30_000


def test_the_measured_time_is_in_the_rates(tmp_path: Path) -> None:
    (case,) = read(tmp_path, section(READS, MIXED), results(*TWO))
    assert case.seconds == pytest.approx(SECONDS)


def test_a_cut_off_last_line_of_results_is_a_note(tmp_path: Path) -> None:
    text = section(MIXED) + results(row("ALL", "All", MIXED[0], reads=(5.0, 4096), workers=1))
    (tmp_path / "r.csv").write_text(text.partition("'Time Stamp")[0] + "WORKER,Wor")
    found = foreign.read(tmp_path / "r.csv")
    assert len(found.cases) == 1
    assert found.notes == ("line 10 is cut off and is left out",)


FAR = (
    row("ALL", "All", reads=(2000.0, 65_536), writes=(2000.0, 65_536), disks=1, workers=2),
    row("WORKER", "Worker 9", READS[0], reads=(2000.0, 65_536)),
    row("NETWORK", "HOST:10.0.0.1 >> HOST:10.0.0.1", reads=(2000.0, 65_536)),
    row("WORKER", "[Worker 9]", READS[0], writes=(2000.0, 65_536)),
)


@pytest.mark.parametrize("rows", [FAR, FAR[:2] + FAR[3:]], ids=["targets", "workers alone"])
def test_a_test_of_network_connections_is_no_measure_of_storage(
    tmp_path: Path, rows: tuple[str, ...]
) -> None:
    """The far end writes what the near one reads, so that half of all I/Os read whatever was asked for."""
    (case,) = read(tmp_path, section(READS, MIXED), results(*TWO), section(READS), results(*rows))
    assert case.name == "test: 64 KiB; 100% Read + 4 KiB; 50% Read, 16 outstanding"
    found = foreign.read(tmp_path / "results.csv")
    assert found.notes == ("tests of network connections are left out, because they measure no storage: 1",)
    with pytest.raises(InputError, match="measures network connections, and no storage"):
        read(tmp_path, section(READS), results(*rows))
