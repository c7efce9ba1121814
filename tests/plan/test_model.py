from __future__ import annotations

import json
import os

import pytest
from pydantic import ValidationError

from loadstone.plan import model
from loadstone.plan.part import Part
from tests.support import plan_model


@pytest.mark.in_turn
def test_is_generated_from_the_engines_schema() -> None:
    fresh = plan_model.text()
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        plan_model.MODEL.write_text(fresh)
    assert plan_model.MODEL.read_text() == fresh, f"{plan_model.MODEL.name} is stale: run `make docs`"


def test_every_field_is_required_but_the_tag_of_a_variant() -> None:
    parts = [one for one in vars(model).values() if isinstance(one, type) and issubclass(one, Part)]
    assert len(parts) > 70
    optional = {
        (part.__name__, name)
        for part in parts
        for name, field in part.model_fields.items()
        if not field.is_required() and name not in {"type", "unit"}
    }
    assert optional == set()


def test_no_object_of_the_schema_lets_a_field_be_absent_or_unknown() -> None:
    schema = json.loads(plan_model.SCHEMA.read_text())
    objects = [schema]
    for definition in schema["$defs"].values():
        objects += [one for one in (definition, *definition.get("oneOf", ())) if "properties" in one]
    for one in objects:
        assert sorted(one["required"]) == sorted(one["properties"])
        assert one["additionalProperties"] is False


def test_refuses_unknown_fields_and_out_of_range_numbers() -> None:
    with pytest.raises(ValidationError):
        model.Cell.model_validate_json('{"unit": 0, "target": null, "extra": 1}')
    with pytest.raises(ValidationError):
        model.Cell(unit=2**32, target=None)
    with pytest.raises(ValidationError):
        model.Cell(unit=-1, target=None)


def test_refuses_to_be_changed_and_to_take_one_type_for_another() -> None:
    cell = model.Cell(unit=0, target=None)
    with pytest.raises(ValidationError):
        setattr(cell, "unit", 1)  # noqa: B010 - a type checker would not let it pass
    with pytest.raises(ValidationError):
        model.Cell.model_validate_json('{"unit": "0", "target": null}')


def test_unions_are_tagged_as_serde_tags_them() -> None:
    worker = model.Worker(
        stage=0, backend=model.BackendPsync(), cpus=(1,), nice=0, io_priority=0, force_async=0
    )
    assert json.loads(worker.model_dump_json()) == {
        "stage": 0,
        "backend": {"type": "psync"},
        "cpus": [1],
        "nice": 0,
        "io_priority": 0,
        "force_async": 0,
    }
    assert model.Worker.model_validate_json(worker.model_dump_json()) == worker
    assert json.loads(model.RateAmountOps(per_second=5.0).model_dump_json()) == {
        "unit": "ops",
        "per_second": 5.0,
    }
