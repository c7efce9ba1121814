"""No two files of a crate of the engine use each other, directly or round a circle, and no two rooms.

Knows Rust's `use` lines as far as they name modules of the crate, and which crates a crate names:
ARCHITECTURE.md has the table. A file's own tests may use what they like.
"""

from __future__ import annotations

import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/src") if path.parent.name != "fuzz")
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


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_circle_between_files_of_a_crate(crate: Path) -> None:
    TopologicalSorter(uses(crate / "src")).prepare()


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_circle_between_rooms_of_a_crate(crate: Path) -> None:
    rooms: dict[str, set[str]] = {}
    for module, others in uses(crate / "src").items():
        used = rooms.setdefault(module.split("::")[0], set())
        used.update(other.split("::")[0] for other in others)
    for name, others in rooms.items():
        others.discard(name)
    TopologicalSorter(rooms).prepare()


def test_the_files_of_all_crates_are_looked_at() -> None:
    found = [uses(crate / "src") for crate in CRATES]
    assert sum(map(len, found)) > 130
    assert sum(len(others) for modules in found for others in modules.values()) > 200


def test_crates_use_each_other_as_the_architecture_says() -> None:
    table = re.findall(r"^\| `crates/(\w+)` \|[^|]*\| ([^|]*) \|", text_of("ARCHITECTURE.md"), re.MULTILINE)
    told = {name: set(re.findall(r"`(\w+)`", used)) for name, used in table}
    every = [manifest.parent for manifest in (ROOT / "crates").glob("*/Cargo.toml")]
    assert told == {crate.name: used_by(crate) for crate in every}


def used_by(crate: Path) -> set[str]:
    """Other crates of the engine that a crate is built from, by their folders."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    ours = (name.removeprefix("loadstone-") for name in manifest["dependencies"] if "loadstone" in name)
    return {"engine" if name == "engine-core" else name for name in ours}


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


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
