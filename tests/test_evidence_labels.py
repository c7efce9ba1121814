"""Each piece of evidence that a rule names has words in the catalogue, and the catalogue names no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import loadstone
from loadstone import messages

if TYPE_CHECKING:
    from collections.abc import Iterator

AUDIT: Final = Path(loadstone.__file__).parent / "audit"
FILES: Final = (
    *sorted((AUDIT / "rules").glob("*.py")),
    AUDIT / "reached_storage.py",
    AUDIT / "beside_others.py",
)
HOLES: Final = {
    "op": ("read", "write"),
    "unit": ("iops", "bytes_per_s"),
    "suffix": ("iops", "bytes_per_s"),
    "quantity": ("iops", "bytes_per_s"),
    "words": ("received", "sent"),
}
"""What a name with a hole in it may have there."""
LABELS: Final = {
    key.removeprefix("evidence."): text
    for key, text in messages.templates().items()
    if key.startswith("evidence.")
}


def test_each_piece_of_evidence_has_a_label() -> None:
    holes = {hole for file in FILES for key in keys(ast.parse(file.read_text())) for hole in holes_of(key)}
    assert holes <= set(HOLES)
    assert {name for name in named() if name not in LABELS} == set()


def test_each_label_is_of_a_piece_of_evidence() -> None:
    parts = [part for file in FILES for part in ast.walk(ast.parse(file.read_text()))]
    in_any = {name for one in parts if isinstance(one, ast.Dict) for key in one.keys for name in filled(key)}
    assert set(LABELS) - named() - in_any == set()


@pytest.mark.parametrize("word", ["asked", "told", "watched", "ios", "io", "cpu", "si", "its", "kept", "way"])
def test_no_label_speaks_dialect(word: str) -> None:
    assert [text for text in LABELS.values() if re.search(rf"\b{word}\b", text)] == []


def named() -> set[str]:
    """The keys of all that is passed as evidence, or put into it."""
    return {name for file in FILES for key in keys(ast.parse(file.read_text())) for name in filled(key)}


def keys(tree: ast.Module) -> Iterator[ast.expr | None]:
    for node in ast.walk(tree):
        match node:
            case (
                ast.keyword(arg="evidence", value=value)
                | ast.AnnAssign(target=ast.Name(id="evidence"), value=value)
            ):
                pass
            case ast.AugAssign(target=ast.Name(id="evidence"), value=value):
                pass
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="evidence"), slice=key)]):
                yield key
                continue
            case ast.Assign(targets=[ast.Name(id="evidence")], value=value):
                pass
            case _:
                continue
        for part in ast.walk(value) if value is not None else ():
            if isinstance(part, ast.Dict):
                yield from part.keys


def holes_of(key: ast.expr | None) -> list[str]:
    parts = key.values if isinstance(key, ast.JoinedStr) else []
    return [ast.unparse(part.value) for part in parts if isinstance(part, ast.FormattedValue)]


def filled(key: ast.expr | None) -> list[str]:
    if isinstance(key, ast.Constant):
        return [str(key.value)]
    if not isinstance(key, ast.JoinedStr):
        return []
    names = [""]
    for part in key.values:
        if isinstance(part, ast.Constant):
            names = [name + str(part.value) for name in names]
        elif isinstance(part, ast.FormattedValue):
            names = [name + one for name in names for one in HOLES.get(ast.unparse(part.value), ())]
    return names
