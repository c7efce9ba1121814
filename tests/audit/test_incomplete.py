"""No rule breaks on a case of which something is not known, or is zero."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit.case import Figure, LatencyFigures, OpMeasurement
from loadstone.audit.judge import judge_case
from tests.audit.cases import disk, file, job, run, writer

if TYPE_CHECKING:
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
    zero = OpMeasurement(0, 0, 0, Figure(0.0), Figure(0.0), LatencyFigures(0.0, "lat", 0, 0.0))
    for case in (READS, WRITES, run(targets=(disk(),))):
        none = replace(case, total=zero, ops=dict.fromkeys(case.ops, zero), by_job={}, seconds=0.0)
        assert judge_case(none).sentences
        assert judge_case(replace(none, series=None, host=None, traffic=None)).sentences
