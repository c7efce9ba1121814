"""Names in code: one name for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[1]
TREES: Final = ("python", "tests", "bench", "lab")
FORCED: Final[dict[str, str]] = {}
"""Class names that two modules have to share, each with its reason."""


def defined(root: Path, trees: Sequence[str] = ("",)) -> dict[str, list[str]]:
    """Return the modules that define a class of each name."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(file for tree in trees for file in (root / tree).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(file.relative_to(root).as_posix())
    return found


def test_no_class_name_is_used_for_two_things() -> None:
    every = defined(ROOT, TREES)
    shared = {name: files for name, files in every.items() if len(files) > 1 and name not in FORCED}
    assert shared == {}


def test_a_second_class_of_the_same_name_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Line:\n    pass\n")
    (tmp_path / "b.py").write_text("def f():\n    class Line:\n        pass\n")
    assert defined(tmp_path)["Line"] == ["a.py", "b.py"]
