"""The generated contract files are what the engine prints."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from loadstone.engine.binary import find

CONTRACT = Path(__file__).parents[2] / "contract"


@pytest.mark.parametrize("name", ["plan", "samples"])
def test_schema_is_fresh(name: str) -> None:
    printed = subprocess.run([find(), "schema", name], capture_output=True, text=True, check=True).stdout
    committed = (CONTRACT / f"{name}.schema.json").read_text()
    assert json.loads(printed) == json.loads(committed), (
        f"contract/{name}.schema.json is old: loadstone-engine schema {name} > contract/{name}.schema.json"
    )
