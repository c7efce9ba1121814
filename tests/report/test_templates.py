"""Templates are compiled once, as Python's modules are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import jinja2
import pytest

from loadstone.report import templates

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "run/path_diagram.html"


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep compiled templates in a directory of this test, and return the names of those compiled."""
    names: list[str] = []
    compile_template = jinja2.Environment.compile

    def counted(self: jinja2.Environment, source: str, name: str, *rest: object) -> object:
        names.append(name)
        return compile_template(self, source, name, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    return names


def load_anew() -> None:
    templates._environment.__wrapped__().get_template(PAGE)


def test_a_template_is_compiled_once_and_can_be_read_by_everybody(
    compiled: list[str], tmp_path: Path
) -> None:
    load_anew()
    load_anew()
    assert compiled == [PAGE]
    (kept,) = tmp_path.rglob("*.cache")
    assert kept.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("damaged", [b"", b"no template", b"j2"])
def test_a_template_of_other_bytes_is_compiled_anew(
    damaged: bytes, compiled: list[str], tmp_path: Path
) -> None:
    load_anew()
    (kept,) = tmp_path.rglob("*.cache")
    whole = kept.read_bytes()
    for content in (damaged, whole[: len(whole) // 2], whole[:30] + bytes(8) + whole[38:]):
        kept.write_bytes(content)
        load_anew()
        assert kept.read_bytes() == whole
    assert compiled == [PAGE] * 4


def test_nothing_is_kept_where_python_keeps_no_modules(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    load_anew()
    load_anew()
    assert compiled == [PAGE, PAGE]
    assert list(tmp_path.rglob("*.cache")) == []


def test_a_directory_that_cannot_be_made_costs_nothing_but_time(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "file"))
    load_anew()
    assert compiled == [PAGE]
