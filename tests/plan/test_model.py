from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from loadstone.plan import headers, model, patterns, payloads, priorities, rates, sims, trees

PARTS = (model, headers, patterns, payloads, priorities, rates, sims, trees)
SCHEMA = Path(__file__).parents[2] / "contract" / "plan.schema.json"


def engine_definitions() -> dict[str, dict[str, Any]]:
    """Name -> object schema of the engine's types; variants named as here."""
    if not SCHEMA.exists():
        pytest.skip("contract/plan.schema.json is not generated yet")
    root = json.loads(SCHEMA.read_text())
    found: dict[str, dict[str, Any]] = {"Plan": root}
    for name, definition in (root.get("$defs") or root["definitions"]).items():
        variants = definition.get("oneOf", [])
        if variants and "properties" in variants[0]:
            for variant in variants:
                tag = variant["properties"].get("type") or variant["properties"]["unit"]
                value = tag.get("const") or tag["enum"][0]
                camel = "".join(part.capitalize() for part in value.split("_"))
                found[name + camel] = variant
        elif "properties" in definition:
            found[name] = definition
        else:
            found[name] = {
                "values": definition.get("enum") or [v.get("const") or v["enum"][0] for v in variants]
            }
    return found


def test_has_the_engines_types_and_fields() -> None:
    definitions = engine_definitions()
    for name, definition in definitions.items():
        mine = next(vars(part)[name] for part in PARTS if name in vars(part))
        if "values" in definition:
            assert sorted(definition["values"]) == sorted(member.value for member in mine), name
        else:
            assert set(definition["properties"]) == set(mine.model_fields), name


def test_has_no_type_the_engine_lacks() -> None:
    definitions = engine_definitions()
    mine = {
        name
        for part in PARTS
        for name, value in vars(part).items()
        if isinstance(value, type) and value.__module__ == part.__name__
    }
    assert mine == set(definitions)


def test_refuses_unknown_fields_and_out_of_range_numbers() -> None:
    with pytest.raises(ValidationError):
        model.Cell.model_validate_json('{"unit": 0, "target": null, "extra": 1}')
    with pytest.raises(ValidationError):
        model.Cell(unit=2**32, target=None)
    with pytest.raises(ValidationError):
        model.Cell(unit=-1, target=None)


def test_unions_are_tagged_as_serde_tags_them() -> None:
    worker = model.Worker(stage=0, backend=model.BackendPsync(), cpus=(1,), nice=0)
    assert json.loads(worker.model_dump_json()) == {
        "stage": 0,
        "backend": {"type": "psync"},
        "cpus": [1],
        "nice": 0,
        "io_priority": 0,
        "force_async": 0,
    }
    assert model.Worker.model_validate_json(worker.model_dump_json()) == worker
    assert json.loads(rates.RateAmountOps(per_second=5.0).model_dump_json()) == {
        "unit": "ops",
        "per_second": 5.0,
    }
