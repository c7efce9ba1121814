"""Which rules judged a line: a digest of what they do, and of nothing else."""

from __future__ import annotations

import ast
import shutil
from typing import TYPE_CHECKING

import pytest
from lab.rules_digest import OF_PATH, ROOMS, ROOT, program, rules_digest

if TYPE_CHECKING:
    from pathlib import Path

RULE = """
def judge(case):
    lines = [one for one in case.lines if one]
    try:
        return max(lines), LIMIT
    except ValueError as error:
        return error
"""


def test_a_renamed_variable_a_comment_and_a_docstring_change_nothing() -> None:
    renamed = RULE.replace("lines =", "rows =").replace("max(lines)", "max(rows)").replace("one", "line")
    renamed = renamed.replace("error", "reason").replace("):\n", '):\n    """Judge."""  # so\n', 1)
    assert renamed != RULE
    assert program(renamed) == program(RULE)


def test_what_is_said_of_a_name_below_it_changes_nothing() -> None:
    """Regression: other words below a threshold made other rules of it."""
    said = 'LIMIT = 0.5\n"""So near."""\nclass Rule:\n    sure = 0.8\n    """How sure."""\n'
    assert program(said.replace("near", "close")) == program(said)
    assert program(said) == program("LIMIT = 0.5\nclass Rule:\n    sure = 0.8\n")
    assert program(said.replace("0.5", "0.6")) != program(said)


def test_what_it_does_changes_it() -> None:
    for before, after in (
        ("max", "min"),
        ("LIMIT", "OTHER"),
        ("case.lines", "case.rows"),
        ("max(lines)", "max(one)"),
    ):
        assert program(RULE.replace(before, after)) != program(RULE), after


@pytest.mark.in_turn
def test_it_is_of_all_that_the_rules_know(tmp_path: Path) -> None:
    known = set()
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        if "loadstone.path" not in (text := file.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "loadstone.path":
                known |= {one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("loadstone.path."):
                known.add((node.module or "").rpartition(".")[2])
    assert known == set(OF_PATH)
    same, other = tmp_path / "same", tmp_path / "other"
    for copy in (same, other):
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    rule = other / "audit" / "rules" / "generator_cpu.py"
    rule.write_text(rule.read_text().replace("STOLEN: Final = 0.05", "STOLEN: Final = 0.06"))
    assert rules_digest(same) == rules_digest() != rules_digest(other)
