"""The test of the connection rate: targets closed and opened again, what is counted, what comes back."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e import program
from tests.support import devices

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """Version 1.1.0
'TEST SETUP ====
'Run Time
'\thours      minutes    seconds
\t0          0          2
'END test setup
'ACCESS SPECIFICATIONS ====
'Access specification name,default assignment
\tmix,ALL
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,100,{reads},100,{delay},1,4096,0
'END access specifications
'MANAGER LIST ====
'Manager ID, manager name
\t1,HOST
'Manager network address
\t127.0.0.1
{workers}'End manager
'END manager list
Version 1.1.0
"""
WORKER = """'Worker
\tWorker {number}
'Worker type
\tDISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection
\t{depth},{rate}
'Disk maximum size,starting sector
\t8192,0
'End default target settings for worker
'Assigned access specs
\tmix
'End assigned access specs
'Target assignments
{targets}'End target assignments
'End worker
"""
TARGET = "'Target\n\t{name}\n'Target type\n\tDISK\n'End target\n"


def written(*workers: tuple[int, str, str], reads: int = 50, delay: int = 0) -> str:
    """A configuration; a worker is depth, `ENABLED,N` or `DISABLED,1`, and its targets' letters."""
    parts = [
        WORKER.format(
            number=number,
            depth=depth,
            rate=rate,
            targets="".join(TARGET.format(name=f"{letter}:") for letter in letters),
        )
        for number, (depth, rate, letters) in enumerate(workers, start=1)
    ]
    return TEXT.format(workers="".join(parts), reads=reads, delay=delay)


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a results file of one run, by column; those of CPUs left out."""
    lines = path.read_text().splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("'Target Type"))
    rows = list(csv.DictReader(lines[begin:]))
    return [row for row in rows if row["'Target Type"] in ("ALL", "MANAGER", "WORKER", "DISK")]


def exported(out: Path, layout: str, to: Path) -> list[dict[str, str]]:
    """The table of a layout, which `audit` must not call wrong."""
    done = program.run("export", out, "iometer-csv", "--layout", layout, "-o", to, cwd=to.parent)
    assert done.code == 0, done.err
    verdict = program.run("audit", to, cwd=to.parent)
    assert "not valid" not in verdict.out, verdict.out
    return table(to)


def has_connections(row: dict[str, str], transactions: int) -> None:
    """Every connection that ended had as many I/Os; at most one more was open at the end."""
    ios = int(row["Read I/Os"]) + int(row["Write I/Os"])
    connections = int(row["Connections"])
    assert connections == pytest.approx(ios / transactions, abs=2)
    per_second = float(row["Connections per Second"])
    # Of the same time as the I/Os: on a busy host that is shorter than the run that was asked for.
    assert per_second == pytest.approx(float(row["IOps"]) / transactions, rel=0.05, abs=2)
    mean_ms, longest_ms = (float(row[f"{name} Connection Time"]) for name in ("Average", "Maximum"))
    assert 0 < mean_ms <= longest_ms
    if row["'Target Type"] == "ALL":
        return  # It has no raw times.
    total_ms = float(row["Total Raw Connection Time"]) / 1e6
    assert total_ms / connections == pytest.approx(mean_ms, rel=0.001)
    # One after the other, and hardly a moment between two.
    measured_ms = 1000 * connections / per_second
    assert 0.75 * measured_ms < total_ms < 1.1 * measured_ms


@pytest.mark.in_turn
@pytest.mark.parametrize(("depth", "transactions"), [(1, 1), (8, 40)])
def test_a_file_is_opened_for_so_many_ios_and_the_figures_come_back(
    tmp_path: Path, depth: int, transactions: int
) -> None:
    test = program.job(tmp_path / "t.icf", written((depth, f"ENABLED,{transactions}", "C")))
    (tmp_path / "drive").mkdir()
    out = tmp_path / "out"
    done = program.run("run", test, "--map", f"C:={tmp_path / 'drive'}", "--out", out, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "connection" in done.out
    rows = exported(out, "1.1", tmp_path / "new.csv")
    assert [row["'Target Type"] for row in rows] == ["ALL", "MANAGER", "WORKER", "DISK"]
    for row in rows:
        has_connections(row, transactions)
    # As Iometer has it, a target's row does not say it.
    told = [row["Transactions per Connection"] for row in rows]
    assert told == [str(transactions)] * 3 + ["-1"]
    old = exported(out, "2008", tmp_path / "old.csv")
    for row, same in zip(rows, old, strict=True):
        columns = [name for name in same if "onnection" in name]
        assert len(columns) == 7
        assert [same[name] for name in columns] == [row[name] for name in columns]
    (bundle,) = (out / "runs").iterdir()
    result = json.loads((bundle / "result.json").read_text())
    (job,) = result["jobs"]
    assert job["connection"]["operations"] == int(rows[0]["Connections"])
    assert abs(job["open"]["operations"] - job["close"]["operations"]) <= 1
    # No open and no close is an I/O, nor is it in the latency of one.
    assert job["operations"] == job["read"]["operations"] + job["write"]["operations"]
    assert job["bytes"] == 4096 * job["operations"]
    page = program.run("report", bundle, "-o", tmp_path / "page.html", cwd=tmp_path)
    assert page.code == 0, page.err
    assert "connection" in (tmp_path / "page.html").read_text()


@pytest.mark.in_turn
def test_on_a_device_each_worker_has_its_own_connection_and_others_have_none(tmp_path: Path) -> None:
    test = program.job(
        tmp_path / "t.icf",
        written((4, "ENABLED,10", "C"), (4, "ENABLED,25", "C"), (2, "DISABLED,1", "C"), reads=100),
    )
    with devices.attached(devices.empty(tmp_path / "disk", 8 << 20)) as device:
        out = tmp_path / "out"
        done = program.run("run", test, "--map", f"C:={device}", "--out", out, cwd=tmp_path)
        assert done.code == 0, done.err
        rows = exported(out, "1.1", tmp_path / "results.csv")
    workers = [row for row in rows if row["'Target Type"] == "WORKER"]
    has_connections(workers[0], 10)
    has_connections(workers[1], 25)
    assert (workers[2]["Connections"], workers[2]["Transactions per Connection"]) == ("0", "-1")
    assert float(workers[2]["Maximum Connection Time"]) == 0
    assert rows[0]["Transactions per Connection"] == "-1"
    assert int(rows[0]["Connections"]) == sum(int(row["Connections"]) for row in workers)


@pytest.mark.in_turn
def test_a_delay_that_targets_share_and_a_connection_of_each_are_refused_together(tmp_path: Path) -> None:
    test = program.job(tmp_path / "t.icf", written((1, "ENABLED,10", "CD"), delay=5))
    names = [("--map", f"{letter}:={tmp_path / letter}") for letter in "CD"]
    for verb in ("plan", "run"):
        done = program.run(verb, test, *names[0], *names[1], cwd=tmp_path)
        assert done.code == 2
        assert f"{test}:" in done.err
        assert "connection" in done.err
    assert not (tmp_path / "C").exists()
