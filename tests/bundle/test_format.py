"""The number of a bundle's format goes up with what stands in its files."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from loadstone.bundle import layout
from loadstone.plan.model import Plan
from loadstone.workload.model import Workload

FORMAT, FIELDS = 10, "4f89b1bcadd9f4a8"
"""Of a format and of the fields that are written. Where one changed: raise `layout.FORMAT`, and both here."""
SAID = frozenset(("title", "description", "default"))
"""What a schema says of a field besides its type."""


def fields(schema: Any) -> Any:
    if isinstance(schema, list):
        return [fields(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        word: {name: fields(part) for name, part in value.items()}
        if word in ("properties", "$defs")
        else fields(value)
        for word, value in schema.items()
        if word not in SAID
    }


def test_format_is_raised_with_the_fields_of_workload_and_plan() -> None:
    schemas = [fields(model.model_json_schema(mode="serialization")) for model in (Workload, Plan)]
    digest = hashlib.blake2b(json.dumps(schemas, sort_keys=True).encode(), digest_size=8).hexdigest()
    assert (layout.FORMAT, digest) == (FORMAT, FIELDS)
