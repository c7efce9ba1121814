"""Texts that are no TOML in ways the parser has no error for: each reader of ours refuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel, Field, ValidationError

from loadstone import toml_text
from loadstone.audit.foreign import published
from loadstone.errors import LoadstoneError
from loadstone.experiment import read_file
from loadstone.hosts import hosts_file
from loadstone.path import spec
from loadstone.watch import address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NONSENSE = {
    "digits": "x = " + "9" * 5000,
    "arrays": "x = " + "[" * 5000 + "]" * 5000,
    "tables": "a." * 3000 + "b = 1",
    "tables in the middle": "[" + "a." * 100 + "b]\nc = 1",
    "text": "x = ",
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_it_is_refused_in_one_way(kind: str) -> None:
    with pytest.raises(toml_text.TomlError):
        toml_text.parsed(NONSENSE[kind])


def test_a_line_is_told_where_the_parser_tells_one() -> None:
    with pytest.raises(toml_text.TomlError) as caught:
        toml_text.parsed("a = 1\nb = \n")
    assert caught.value.line == 2


@pytest.mark.parametrize("kind", NONSENSE)
@pytest.mark.parametrize(
    "read",
    [
        hosts_file.read_hosts_file,
        spec.read,
        published.read,
        address._secrets,
        lambda path: read_file.parse(path.read_bytes(), "x.toml"),
    ],
)
def test_no_reader_ends_in_a_mistake(kind: str, read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(NONSENSE[kind])
    path.chmod(0o600)
    with pytest.raises(LoadstoneError):
        read(path)


class Takes(BaseModel):
    some: tuple[int, ...] = Field((1, 2), min_length=2)
    whole: int = 0
    text: str = ""
    seconds: float = Field(1, gt=0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"some": [1]}, "expected at least 2 values, found 1"),
        ({"some": 1}, 'expected a list: ["one", "two"], found 1'),
        ({"some": {"a": 1}}, 'expected a list: ["one", "two"], or tables that begin with [[some]]'),
        ({"whole": []}, "expected a whole number, without quotes"),
        ({"text": 5}, "expected text, in quotes, found 5"),
        ({"seconds": 0}, "expected more than 0, found 0"),
    ],
)
def test_a_wrong_value_is_told_in_tomls_words(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        Takes.model_validate(given)
    assert toml_text.wrong_value(error.value.errors()[0]) == said
