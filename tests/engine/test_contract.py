"""The generated contract files are what the engine prints."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engine.binary import find

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTRACT = Path(__file__).parents[2] / "contract"
PLANS = Path(__file__).parents[1] / "fuzz" / "plans"


@pytest.mark.parametrize("name", ["plan", "samples"])
def test_schema_is_fresh(name: str) -> None:
    printed = subprocess.run([find(), "schema", name], capture_output=True, text=True, check=True).stdout
    committed = (CONTRACT / f"{name}.schema.json").read_text()
    assert json.loads(printed) == json.loads(committed), (
        f"contract/{name}.schema.json is old: loadstone-engine schema {name} > contract/{name}.schema.json"
    )


def test_table_of_backends_is_fresh() -> None:
    printed = subprocess.run(
        [find(), "schema", "backends"], capture_output=True, text=True, check=True
    ).stdout
    committed = (CONTRACT / "backends.json").read_text()
    assert json.loads(printed) == json.loads(committed), (
        "contract/backends.json is old: loadstone-engine schema backends > contract/backends.json"
    )


EVENTS = Path(__file__).parents[2] / "crates" / "worker" / "src" / "events.rs"
INSIDE = re.compile(r"^        (\w+): ", re.MULTILINE)
FIELD = re.compile(r"^    pub (\w+): ", re.MULTILINE)


def events() -> Iterator[tuple[str, list[str]]]:
    """Return each event of the engine with its fields, as its source has them."""
    code = EVENTS.read_text()
    body = code.partition("pub enum Event {")[2].partition("\n}")[0]
    for name, struct, fields in re.findall(
        r"^    (\w+)(?:\((?:Box<)?(\w+)>?\)| \{(.*?)\n    \}),", body, re.DOTALL | re.MULTILINE
    ):
        apart = code.partition(f"pub struct {struct} {{")[2].partition("\n}")[0]
        kind = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        yield kind, FIELD.findall(apart) if struct else INSIDE.findall(fields)


def test_the_page_has_every_event_with_its_fields() -> None:
    page = (CONTRACT / "README.md").read_text()
    told = dict(events())
    assert len(told) > 20
    assert sum(len(fields) for fields in told.values()) > 120
    assert [kind for kind in told if not re.search(rf"^\| `{kind}` \|", page, re.MULTILINE)] == []
    assert sorted({one for fields in told.values() for one in fields if f"`{one}`" not in page}) == []


def places(part: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document where an object has a field."""
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in inside:
        if isinstance(part, dict):
            yield (*above, key)
        yield from places(value, (*above, key))


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["rich", "tree", "sim"])
def test_no_field_of_a_plan_may_be_absent_not_even_one_that_may_be_null(name: str, tmp_path: Path) -> None:
    text = (PLANS / f"{name}.json").read_text()
    path = tmp_path / "plan.json"
    path.write_text(text)
    assert check(path).returncode == 0
    tried: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for place in places(json.loads(text)):
        kind = tuple(key for key in place if isinstance(key, str))
        tried.setdefault(kind, place)
    assert len(tried) > 90
    for place in tried.values():
        document = json.loads(text)
        part = document
        for key in place[:-1]:
            part = part[key]
        del part[place[-1]]
        path.write_text(json.dumps(document))
        done = check(path)
        assert done.returncode == 2, place
        assert f"missing field `{place[-1]}`" in json.loads(done.stdout)["message"], place


def check(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find(), "check", path], capture_output=True, text=True, check=False)
