"""What is said of a Plan that the engine does not take: whose fault it is, and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from loadstone import doctor
from loadstone.engine import binary, plan_check
from loadstone.errors import EngineError, InputError
from loadstone.plan.model import SCHEMA_DIGEST, Plan
from tests.support import plans

if TYPE_CHECKING:
    from pathlib import Path

OTHER_SCHEMA: Final = """sed 's/"grace_ns"/"patience_ns"/g'"""


def engine(tmp_path: Path, to_plan: str, to_schema: str) -> Path:
    """The engine of this version behind filters, so that it takes Plans as one of another version does."""
    real = binary.find()
    path = tmp_path / "engine"
    path.write_text(
        f"""#!/bin/sh
case "$1" in
check) {to_plan} | {real} check /proc/self/fd/0 ;;
schema) {real} schema plan | {to_schema} ;;
*) exec {real} "$@" ;;
esac
"""
    )
    path.chmod(0o755)
    return path


def plan() -> Plan:
    written = plans.plan([plans.target("null", "virtual")], [plans.stream()])
    return Plan.model_validate_json(json.dumps(written))


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ("""sed 's/^{/{"of_tomorrow":1,/'""", "unknown field `of_tomorrow`"),
        ("""sed 's/"grace_ns":[0-9]*,//'""", "missing field `grace_ns`"),
        ("""sed 's/"version":1/"version":2/'""", "this engine reads 1"),
    ],
    ids=["older", "newer", "other number"],
)
def test_an_engine_of_another_version_is_told_from_a_wrong_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filters: str, reason: str
) -> None:
    path = engine(tmp_path, filters, OTHER_SCHEMA)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(path))
    with pytest.raises(EngineError) as error:
        plan_check.memory_bytes(plan())
    assert reason in error.value.message
    assert "is of another version than loadstone" in error.value.message
    assert str(path) in error.value.message
    assert "unset LOADSTONE_ENGINE" in str(error.value.hint)
    assert "make build" in str(error.value.hint)
    (check,) = (one for one in doctor.examine(tmp_path) if one.name == "engine")
    assert (check.state, check.remedy) == ("fail", error.value.hint)
    assert "another version" in check.found


def test_an_engine_that_has_no_such_verb_is_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "engine"
    path.write_text("#!/bin/sh\necho \"error: unrecognized subcommand '$1'\" >&2\nexit 2\n")
    path.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(path))
    assert not plan_check.reads_these_plans(path)
    with pytest.raises(EngineError, match=r"another version.*unrecognized subcommand 'check'"):
        plan_check.memory_bytes(plan())


def test_a_wrong_plan_is_not_taken_for_an_engine_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = engine(tmp_path, """sed 's/"interval_ns":[0-9]*/"interval_ns":1/'""", "cat")
    monkeypatch.setenv("LOADSTONE_ENGINE", str(path))
    with pytest.raises(InputError, match="interval_ns"):
        plan_check.memory_bytes(plan())


def test_the_remedy_is_the_one_of_this_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOADSTONE_ENGINE", raising=False)
    monkeypatch.setattr(binary, "_ROOT", tmp_path)
    assert "pip install --force-reinstall" in binary.rebuild_hint()
    (tmp_path / "Cargo.toml").touch()
    assert binary.rebuild_hint() == f"run `make build` in {tmp_path}"


def test_the_digest_is_of_what_a_plan_may_hold_and_not_of_what_is_said_of_it() -> None:
    schema = {"description": "a Plan", "properties": {"description": {"type": "string"}}}
    digest = plan_check.schema_digest(json.dumps(schema).encode())
    same = schema | {"description": "orders"}
    assert plan_check.schema_digest(json.dumps(same).encode()) == digest
    assert plan_check.schema_digest(b'{"properties": {}}') != digest
    assert len(SCHEMA_DIGEST) == len(digest)
