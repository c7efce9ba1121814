"""Runs that went over the same addresses are found beside a new one, and others are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loadstone.bundle.earlier_runs import same_sequence
from loadstone.plan.model import Plan
from tests.support.runs import MadeJob, plan_of

if TYPE_CHECKING:
    from pathlib import Path


def random_reads(seed: int = 0, *, percent: int = 100) -> Plan:
    plan = json.loads(plan_of((MadeJob(random_percent=percent),), 1, 1.0, 10**8).model_dump_json())
    plan["streams"][0]["seed"] = seed
    return Plan.model_validate_json(json.dumps(plan))


def keep(directory: Path, name: str, plan: Plan) -> Path:
    path = directory / name
    path.mkdir()
    (path / "plan.json").write_text(plan.model_dump_json())
    return path


def test_a_run_with_the_same_seed_on_the_same_place_is_named(tmp_path: Path) -> None:
    keep(tmp_path, "first", random_reads(seed=1))
    keep(tmp_path, "other-seed", random_reads(seed=2))
    assert same_sequence(random_reads(seed=1), tmp_path, tmp_path / "new") == ["first"]


def test_a_run_is_not_its_own_predecessor(tmp_path: Path) -> None:
    own = keep(tmp_path, "new", random_reads())
    assert same_sequence(random_reads(), tmp_path, own) == []


def test_another_target_is_another_sequence(tmp_path: Path) -> None:
    plan = json.loads(random_reads().model_dump_json())
    plan["targets"][0]["path"] = "/mnt/elsewhere"
    keep(tmp_path, "first", Plan.model_validate_json(json.dumps(plan)))
    assert same_sequence(random_reads(), tmp_path, tmp_path / "new") == []


def test_io_in_order_has_no_sequence_of_its_own(tmp_path: Path) -> None:
    keep(tmp_path, "first", random_reads(percent=0))
    assert same_sequence(random_reads(percent=0), tmp_path, tmp_path / "new") == []


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, "first", random_reads())
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "plan.json").write_text("{")
    assert same_sequence(random_reads(), tmp_path, tmp_path / "new") == ["first"]
    assert same_sequence(random_reads(), tmp_path / "missing", tmp_path / "new") == []
