"""The example notebooks run, cell by cell, as a kernel would run them; none is needed for it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def shown(source: str, names: dict[str, Any]) -> Any:
    """Run a cell and return what it would show: the value of a last line that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    names: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "outputs are not committed"
            values.append(shown("".join(cell["source"]), names))
    assert "complete" in values
    assert list(tmp_path.iterdir()) == []


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["results.ipynb"]
