"""The command that a verdict names would decide: of each explanation, and of each way to make a run."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

import polars as pl
import pytest

import loadstone
from loadstone.cli.main import main
from loadstone.explanations.choice import LEAST_BITS, Candidate, worth
from loadstone.explanations.names import BY_NAME, EXPLANATIONS, UNEXPLAINED, possible
from loadstone.explanations.weigh import hypotheses_of
from loadstone.probe import probe_session
from loadstone.probe.figures import COLUMNS
from loadstone.probe.probe_session import OVERHEAD_S, RuleFindings, offers, ranked
from tests.e2e.program import needs_engine
from tests.probe.test_arms import MIB, base

if TYPE_CHECKING:
    from pathlib import Path

READS: dict[str, object] = {"rw": "randread", "bs": "8k", "iodepth": 16, "size": "64m"}
WRITES = {**READS, "rw": "randwrite", "zero_buffers": 1}
JOBS: dict[str, dict[str, object]] = {
    "reads": READS,
    "writes": WRITES,
    "mix": {**READS, "rw": "randrw"},
    "paced": {**READS, "rate_iops": 100},
    "off the grid": {**READS, "bs": "8k", "offset": 512},
    "in order": {**READS, "rw": "read"},
    "two targets": READS,
}
NOT_BY_READING = {"unwritten"}
"""What was never written is told by a look at its content, or by writing it: no probe that reads tells it."""


@pytest.mark.in_turn
@pytest.mark.parametrize("job", JOBS)
def test_every_explanation_is_told_from_the_storage_by_a_probe_of_the_command(
    tmp_path: Path, job: str
) -> None:
    options = dict(JOBS[job])
    if job == "two targets":
        (tmp_path / "other").write_bytes(b"")
        os.truncate(tmp_path / "other", 256 * MIB)
        options["filename"] = f"{tmp_path / 'target'}:{tmp_path / 'other'}"
    start = base(tmp_path, options, size=256 * MIB, written_bytes=10**8)
    made, _ = offers(start)
    every = {one.name for one in possible(start.facts)}
    storage = "job_rate" if start.facts.paced else "medium"
    for name in sorted(every - {storage, "job_depth", UNEXPLAINED}):
        cells = hypotheses_of(start.facts, None, {}, (), without=frozenset(every - {storage, name}))
        best = worth(
            cells, [Candidate(one.probe.name, one.turns.seconds, one.probe.readings) for one in made]
        )
        decides = max(one.bits for one in best) >= LEAST_BITS
        assert decides or (name in NOT_BY_READING and not start.facts.writes), name


@pytest.mark.in_turn
def test_the_jobs_of_these_tests_are_of_all_explanations(tmp_path: Path) -> None:
    found = set[str]()
    for options in JOBS.values():
        found |= {one.name for one in possible(base(tmp_path, dict(options)).facts)}
    assert found | {"shared_limit"} == BY_NAME.keys()
    assert all(one.advice for one in EXPLANATIONS)


@pytest.mark.parametrize(
    ("options", "size", "explanation", "probe"),
    [
        (WRITES, 64 * MIB, "reduction", "payload"),
        (JOBS["off the grid"], 65 * MIB, "misaligned", "alignment"),
        (READS, 256 * MIB, "position", "position"),
    ],
)
def test_what_is_particular_to_a_job_is_probed_first_also_where_no_explanation_asks_for_it(
    tmp_path: Path, options: dict[str, object], size: int, explanation: str, probe: str
) -> None:
    made = base(tmp_path, options, size=size, written_bytes=10**8)
    offered, _ = offers(made)
    nothing = RuleFindings({}, ())
    order = ranked(made, offered, None, nothing, OVERHEAD_S, without=frozenset({explanation}))
    of_the_job = [one.probe.name for one in offered if one.probe.of_the_job]
    first = [one.candidate.name for one in order[: len(of_the_job)]]
    assert sorted(first) == sorted(of_the_job)
    assert probe in first
    assert len(order) == len(offered)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("made_by", "expected"),
    [
        ("program", "loadstone rerun {path} --probe"),
        ("repeats", "loadstone rerun {path}/runs/001-repeat-1 --probe"),
        ("trims", "loadstone run {job} --i-accept-data-loss {target} --no-report --repeat=3"),
    ],
)
def test_a_run_without_probes_names_a_command_that_is_taken(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    made_by: str,
    expected: str,
) -> None:
    needs_engine()
    target, file, out = tmp_path / "target", tmp_path / "job.fio", tmp_path / "run"
    target.write_bytes(os.urandom(MIB) * 16)
    kind = "randtrim" if made_by == "trims" else "randread"
    file.write_text(
        f"[job]\nioengine=io_uring\nrw={kind}\nbs=4k\nruntime=300ms\ntime_based=1\nfilename={target}\n"
    )
    if made_by == "program":
        verdict = loadstone.run(file, out=out, calibration=False, check=False).document()["verdict"]
    else:
        words = ["run", str(file), "--out", str(out), "--no-report"]
        words[2:2] = ["--i-accept-data-loss", str(target)] if made_by == "trims" else ["--repeat=2"]
        monkeypatch.setattr("sys.argv", ["loadstone", *words])
        assert main(words) == 0
        member = out if made_by == "trims" else out / "runs" / "001-repeat-1"
        verdict = json.loads((member / "result.json").read_text())["verdict"]
    assert verdict["to_decide"] == expected.format(path=out, job=file, target=target)
    again = shlex.split(verdict["to_decide"])[1:]
    monkeypatch.setattr("sys.argv", ["loadstone", *again])
    again = ["--probe=2s" if word == "--probe" else word for word in again]
    assert main([*again, "--out", str(tmp_path / "again")]) == 0
    capsys.readouterr()
    if made_by != "trims":
        told = json.loads((tmp_path / "again" / "result.json").read_text())["verdict"]
        assert told["probes"]


@pytest.mark.parametrize(
    ("failure", "ended"),
    [
        ("the bundle cannot be written: Input/output error", "probe {} failed, and no other was run: {}"),
        (None, "it was interrupted"),
    ],
)
def test_a_probe_that_fails_says_why_and_was_interrupted_by_nobody(
    tmp_path: Path, failure: str | None, ended: str
) -> None:
    """Its bundle could not be sealed: that it was interrupted was kept, and nothing was told."""
    heard: list[str] = []
    ran: list[str] = []

    def run(offer: probe_session.Offer, number: int) -> probe_session.Ran:
        ran.append(offer.probe.name)
        nothing = pl.DataFrame(schema={**dict.fromkeys(COLUMNS, pl.UInt64), "ramp": pl.Boolean})
        return probe_session.Ran(nothing, f"probes/{number}", complete=False, failure=failure)

    start = base(tmp_path, READS, size=64 * MIB)
    probed = probe_session.probe(start, run, RuleFindings({}, ()), tell=heard.append)
    assert len(ran) == 1
    expected = ended.format(ran[0], failure)
    assert probed.ended == expected
    assert {one.why for one in probed.left_out} >= {expected}
    assert (expected in heard) == (failure is not None)
