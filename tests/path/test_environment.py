"""The record of where a run was, and the doctor that reads it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from loadstone import doctor, engine_groups, environment
from loadstone.path import facts
from loadstone.path.layers import DataPath
from tests.guard.plans import plan, target

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_is_described_and_can_be_written_as_json(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * 5000)
    found = environment.describe(plan(target(str(tmp_path / "data")), target("null", "virtual")))
    assert json.loads(json.dumps(found)) == found
    assert found["host"]["kernel"] == os.uname().release
    assert found["host"]["cpu"]["usable"] == len(os.sched_getaffinity(0))
    assert [one["path"] for one in found["targets"]] == [str(tmp_path / "data")]
    assert found["targets"][0]["size_bytes"] == 5000
    assert found["targets"][0]["mount"]["file_system"]
    assert set(found["devices"]) == set(found["targets"][0]["devices"])
    paths = [DataPath.model_validate(path) for path in found["paths"]]
    assert [path.target for path in paths] == [str(tmp_path / "data")]
    assert paths[0].layers[0].facts["size_bytes"] == 5000


def test_cpus_that_may_be_used_are_those_of_the_group_that_engines_begin_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPUs of this process were recorded, which is not in the group."""
    first = min(os.sched_getaffinity(0))
    (tmp_path / "cpuset.cpus").write_text(f"{first}\n")
    monkeypatch.setattr(engine_groups, "_JOINED", {"cpuset": tmp_path})
    assert environment.cpu()["usable"] == 1


@pytest.mark.in_turn
def test_of_many_targets_the_first_are_followed_and_the_rest_are_counted(tmp_path: Path) -> None:
    found = environment.describe(plan(*(target(str(tmp_path / f"f{at}")) for at in range(70))))
    assert len(found["paths"]) == environment.MAX_PATHS
    assert "the layers under 6 more targets: only the first 64 are followed" in found["paths"][0]["gaps"]


def test_nothing_is_recorded_as_none(tmp_path: Path) -> None:
    def check(value: Any, place: str) -> None:
        assert value is not None, place
        if isinstance(value, dict):
            for key, inner in value.items():
                check(inner, f"{place}.{key}")

    check(environment.host(), "host")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    found = facts.target(str(tmp_path / "new"))
    assert found["missing"] == "No such file or directory"
    assert found["mount"]["point"]


def test_a_character_device_has_no_mount() -> None:
    found = facts.target("/dev/null")
    assert (found["kind"], found["device_number"]) == ("char", "1:3")
    assert "mount" not in found


@pytest.mark.parametrize(
    ("text", "found"), [("a [b] c", "b"), ("always madvise [never]", "never"), ("x", "x"), (None, None)]
)
def test_the_chosen_of_several(text: str | None, found: str | None) -> None:
    assert environment.chosen(text) == found


def check_of(checks: list[doctor.Check]) -> doctor.Check:
    assert len(checks) == 1
    return checks[0]


@pytest.mark.parametrize(
    ("source", "state"),
    [("tsc", "ok"), ("kvm-clock", "ok"), ("hpet", "fail"), ("acpi_pm", "fail"), (None, "unknown")],
)
def test_the_clock(source: str | None, state: str) -> None:
    assert check_of(doctor._clock({"source": source})).state == state


@pytest.mark.parametrize(
    ("governors", "state"), [(["performance"], "ok"), (["powersave"], "warn"), ([], "unknown")]
)
def test_the_governor(governors: list[str], state: str) -> None:
    assert check_of(doctor._governor({"governors": governors})).state == state


def test_a_quota_is_a_warning_and_a_period_alone_is_not() -> None:
    assert check_of(doctor._throttles({"cpu:/x/cpu.cfs_period_us": "100000"})).state == "ok"
    found = check_of(doctor._throttles({"/x/cpu.max": "50000 100000"}))
    assert found.state == "warn"
    assert "50000 100000" in found.found


def test_io_uring_is_what_the_engine_says() -> None:
    assert check_of(doctor._io_uring({"io_uring": {"available": True}})).state == "ok"
    assert check_of(doctor._io_uring({})).state == "unknown"
    refused = check_of(doctor._io_uring({"io_uring": {"available": False, "error": "EPERM"}}))
    assert (refused.state, refused.found) == ("warn", "EPERM")
    assert refused.remedy
