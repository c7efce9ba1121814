"""No two files of the engine use each other, directly or round a circle, and no two rooms.

Knows Rust's `use` lines as far as they name modules of the crate. A file's own tests may use what
they like.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "crates" / "engine" / "src"
USE = re.compile(r"^\s*(?:pub(?:\([a-z]+\))? )?use ((?:crate|super)::[^;]+);", re.MULTILINE)
ONLY_FOR_TESTS = {"tests", "journal_tests", "plain"}


def uses(root: Path) -> dict[str, set[str]]:
    """Modules of the crate, and which others each names."""
    texts = {}
    for file in root.rglob("*.rs"):
        parts = list(file.relative_to(root).with_suffix("").parts)
        parts = parts[:-1] if parts[-1] in ("mod", "lib") else parts
        if not ONLY_FOR_TESTS & set(parts):
            texts["::".join(parts)] = file.read_text().split("#[cfg(test)]\nmod tests {")[0]
    found: dict[str, set[str]] = {module: set() for module in texts}
    for module, text in texts.items():
        for line in USE.findall(text):
            head, _, tail = re.sub(r"\s+", "", line).partition("{")
            for item in tail.rstrip("}").split(",") if tail else [""]:
                target = named(absolute(module, head + item), texts)
                if target not in (None, module):
                    found[module].add(str(target))
    return found


def absolute(module: str, path: str) -> str:
    """The path from the crate's root."""
    base = module.split("::")
    while path.startswith("super::"):
        path, base = path.removeprefix("super::"), base[:-1]
    return path.removeprefix("crate::") if path.startswith("crate::") else "::".join([*base, path])


def named(path: str, modules: dict[str, str]) -> str | None:
    """The longest beginning of a path that is a module."""
    parts = path.split("::")
    beginnings = ("::".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((one for one in beginnings if one in modules), None)


def test_no_circle_between_files_of_the_engine() -> None:
    found = uses(SOURCE)
    assert len(found) > 100
    assert sum(map(len, found.values())) > 300
    TopologicalSorter(found).prepare()


def test_no_circle_between_rooms_of_the_engine() -> None:
    rooms: dict[str, set[str]] = {}
    for module, others in uses(SOURCE).items():
        used = rooms.setdefault(module.split("::")[0], set())
        used.update(other.split("::")[0] for other in others)
    for name, others in rooms.items():
        others.discard(name)
    assert len(rooms) > 40
    TopologicalSorter(rooms).prepare()


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "first.rs").write_text("use super::second::{Thing,\n    Other};\n")
    (tmp_path / "room" / "second.rs").write_text("pub(crate) use crate::third::Third;\n")
    (tmp_path / "third.rs").write_text(
        "use std::io;\n#[cfg(test)]\nmod tests {\n    use crate::room::first::X;\n}\n"
    )
    TopologicalSorter(uses(tmp_path)).prepare()
    (tmp_path / "third.rs").write_text("use crate::room::first::X;\n")
    with pytest.raises(CycleError):
        TopologicalSorter(uses(tmp_path)).prepare()
