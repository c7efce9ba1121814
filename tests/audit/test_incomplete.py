"""No rule breaks on a case of which something is not known, or is zero."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.latency import Latency
from loadstone.audit.case import Figure, OpMeasurement
from loadstone.audit.find_results import bundle
from loadstone.audit.judge import judge_case
from loadstone.bundle.read import Bundle
from loadstone.formats.fio.read import TextSource, read_jobfiles
from tests.audit.cases import disk, file, job, run, writer
from tests.support import runs, simulated

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.case import Case


def defaults(value: Any) -> dict[str, Any]:
    """What each field of a dataclass is when nobody says anything."""
    found: dict[str, Any] = {}
    for one in fields(value):
        if one.default is not MISSING:
            found[one.name] = one.default
        elif one.default_factory is not MISSING:
            found[one.name] = one.default_factory()
    return found


READS = run(targets=(file(),), jobs=(job(direct=False),))
WRITES = run(op="write", targets=(file(),), jobs=(writer(rate_iops=1000.0),))


def variants() -> list[tuple[str, Case]]:
    found: list[tuple[str, Case]] = []
    for name, case in (("reads", READS), ("writes", WRITES)):
        for key, value in defaults(case).items():
            found.append((f"{name} without {key}", replace(case, **{key: value})))
        asked, target = case.jobs[0], case.targets[0]
        for key, value in defaults(asked).items():
            found.append(
                (f"{name}, job without {key}", replace(case, jobs=(replace(asked, **{key: value}),)))
            )
        for key, value in defaults(target).items():
            found.append(
                (f"{name}, target without {key}", replace(case, targets=(replace(target, **{key: value}),)))
            )
    return found


@pytest.mark.parametrize(("name", "case"), variants(), ids=lambda one: one if isinstance(one, str) else "")
def test_what_is_not_known_is_missing_and_no_error(name: str, case: Case) -> None:
    assert judge_case(case).sentences


def test_nothing_at_all_cannot_be_told() -> None:
    case = run()
    bare = replace(case, **{**defaults(case), "jobs": (), "total": OpMeasurement(), "ops": {}})
    assert judge_case(bare).kind == "cannot_tell"


def test_zeros_are_divided_by_nowhere() -> None:
    zero = OpMeasurement(0, 0, 0, Figure(0.0), Figure(0.0), {"lat": Latency(0, 0.0, min_ns=0.0)})
    for case in (READS, WRITES, run(targets=(disk(),))):
        none = replace(case, total=zero, ops=dict.fromkeys(case.ops, zero), by_job={}, seconds=0.0)
        assert judge_case(none).sentences
        assert judge_case(replace(none, series=None, host=None, traffic=None)).sentences


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({}, "no I/O completed in the measured time"),
        ({"ramp_ios": 0}, "no I/O completed in the measured time"),
        ({"ramp_ios": 414}, "it ended in its ramp, in which 414 I/Os completed, and nothing was measured"),
        (
            {"ramp_ios": 414, "searched_depth": True},
            "the search for latency_target had not ended after 414 I/Os, and nothing was measured",
        ),
        ({"began": False}, "it ended before this load began"),
    ],
)
def test_why_there_is_no_number_is_told_and_nothing_beside_it(known: dict[str, Any], reason: str) -> None:
    verdict = judge_case(replace(READS, total=OpMeasurement(), ops={}, traffic=None, **known))
    assert verdict.sentences == f"Cannot tell whether {READS.name} measures the storage: {reason}."
    assert verdict.explanations == ()


def test_a_published_latency_without_a_rate_is_not_nothing() -> None:
    """Of a table with latencies alone it was said that no I/O completed."""
    latencies = {"lat": Latency(mean_ns=11e6)}
    verdict = judge_case(replace(READS, total=OpMeasurement(latencies=latencies), ops={}, traffic=None))
    assert "a latency is given, and neither IOPS nor bandwidth" in verdict.sentences


@pytest.mark.in_turn
def test_a_job_that_ends_in_its_ramp_has_done_something(tmp_path: Path) -> None:
    text = "[a]\nrw=randread\nramp_time=5\nnumber_ios=100\n[b]\nstonewall\nrw=randread\nnumber_ios=100\n"
    made = simulated.run(read_jobfiles([TextSource(text, "a.fio")]), tmp_path / "run")
    first, second = bundle(Bundle.open(made)).cases
    assert (first.began, first.ramp_ios, second.ramp_ios) == (True, 100, None)
    assert "in which 100 I/Os completed" in judge_case(first).sentences


@pytest.mark.in_turn
def test_a_search_that_has_not_ended_is_no_ramp(tmp_path: Path) -> None:
    """Its advice was a longer run than the ramp_time, which it had not."""
    text = "[a]\nrw=randread\niodepth=64\nlatency_target=1s\nlatency_window=1h\nnumber_ios=100\n"
    made = simulated.run(read_jobfiles([TextSource(text, "a.fio")]), tmp_path / "run")
    (case,) = bundle(Bundle.open(made)).cases
    assert "the search for latency_target had not ended after 100 I/Os" in judge_case(case).sentences


def test_a_run_whose_samples_are_lost_may_have_begun(tmp_path: Path) -> None:
    made = runs.make(tmp_path / "b", seconds=1, seal=None).path
    (made / "samples.arrows").unlink()
    (lost,) = bundle(Bundle.open(runs.begun_again(made))).cases
    events = made / "events.jsonl"
    events.write_text(
        "".join(
            line
            for line in events.read_text().splitlines(keepends=True)
            if json.loads(line)["type"] != "start"
        )
    )
    (before,) = bundle(Bundle.open(runs.begun_again(made))).cases
    assert (lost.began, before.began) == (True, False)
