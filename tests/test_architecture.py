"""ARCHITECTURE.md and its siblings are true: what they name is there, and the rooms are the code's."""

from __future__ import annotations

import graphlib
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

import grimp
import pytest

HERE: Final = Path(__file__).resolve()
ROOT: Final = HERE.parents[1]
PACKAGE: Final = ROOT / "python" / "loadstone"
DOCUMENTS: Final = ("ARCHITECTURE.md", "CONTRIBUTING.md", "contract/README.md")
SOURCES: Final = (".py", ".rs", ".toml", ".html", ".css", ".js", ".typ", ".sh", ".json", ".md")
PLACEHOLDER: Final = re.compile(r"\b[A-Z]{3,}\b")
"""`NAME`, `ROOM`: anything may stand there."""
NAMED: Final = re.compile(r"`([^`\n]+)`")
IDENTIFIER: Final = re.compile(r"\b(?:[a-z]\w*_\w+|[A-Z][a-z]\w*[A-Z]\w*)\b")
"""Words that are names of code and nothing else: with an underscore, or with a capital inside."""


@cache
def tracked() -> frozenset[str]:
    """Every file of the tree."""
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode:
        pytest.skip("not a git tree")
    return frozenset(told.stdout.splitlines())


@cache
def tails() -> frozenset[str]:
    """Every part of a path by which a document may call a file or a directory."""
    found: set[str] = set()
    for path in tracked():
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            found |= {"/".join(parts[start:end]) for start in range(end)}
    return frozenset(found)


@cache
def words() -> frozenset[str]:
    """Every word of the code; of this file, which names what is not there, none."""
    code = (ROOT / path for path in tracked() if path.endswith((".py", ".rs", ".toml", ".json", "Makefile")))
    text = "\n".join(path.read_text(errors="replace") for path in code if path.is_file() and path != HERE)
    return frozenset(re.findall(r"\w+", text)) | frozenset(re.findall(r'"([\w./-]+)"', text))


def missing_paths(text: str) -> list[str]:
    """Return the files and directories that are named and neither there nor written by the code."""
    named = {name for name in NAMED.findall(text) if re.fullmatch(r"[\w./-]+", name)}
    paths = [name for name in named if name.endswith((*SOURCES, "/")) and not PLACEHOLDER.search(name)]
    return sorted(one for one in paths if one.rstrip("/") not in tails() and one.rstrip("/") not in words())


def missing_names(text: str) -> list[str]:
    """Return the names of code that are nowhere in it."""
    named = [name for name in NAMED.findall(text) if not PLACEHOLDER.search(name)]
    found = {word for name in named for word in IDENTIFIER.findall(name)}
    return sorted(found - words() - {path.rpartition("/")[2].partition(".")[0] for path in tracked()})


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_named_is_there(document: str) -> None:
    text = (ROOT / document).read_text()
    assert missing_paths(text) == []
    assert missing_names(text) == []


def gone(text: str) -> list[str]:
    """Return what a page tells to run or to set and is not there: sources, modules, targets, variables."""
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"[\w-]+", makefile.partition(".PHONY:")[2].partition("\n")[0]))
    modules = set(re.findall(r"python -m ((?:lab|bench|tests)[\w.]*\w)", text))
    places = {one: one.replace(".", "/") for one in modules}
    return sorted(
        [
            *(one for one in missing_paths(text) if one.endswith((".py", ".rs"))),
            *(
                one
                for one, place in places.items()
                if not {f"{place}.py", f"{place}/__main__.py"} & tracked()
            ),
            *(one for one in re.findall(r"`make ([a-z][\w-]*)", text) if one not in targets),
            *(one for one in re.findall(r"\bLOADSTONE_[A-Z_]+\b", text) if one not in words()),
        ]
    )


PAGES: Final = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_what_a_page_tells_to_run_is_there(page: Path) -> None:
    assert gone(page.read_text()) == []


def test_what_is_gone_is_seen() -> None:
    names = "never_" + "was", "Never" + "Was"
    text = f"`analysis/totals.py` and `analysis/gone.py`; `added_up`, `{names[0]}` and `{names[1]}`"
    assert missing_paths(text) == ["analysis/gone.py"]
    assert missing_names(text) == sorted(names)
    text = "`worker/gone.rs`; `make nothing`; python -m lab.nowhere; LOADSTONE_" + "NEVER; `make lab`"
    assert gone(text) == ["LOADSTONE_" + "NEVER", "lab.nowhere", "nothing", "worker/gone.rs"]


def rooms() -> list[str]:
    """Return the rooms of the table, from its top."""
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("### The rooms of")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| ((?:`[\w/]+`(?:, )?)+) \|", table, re.MULTILINE)
    return [room.strip("/") for row in rows for room in re.findall(r"`([\w/]+)`", row)]


def layers() -> list[set[str]]:
    """Return the layers that imports are held to, the lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (told,) = (one["layers"] for one in contracts if one["type"] == "layers")
    return [set(layer.split(" | ")) for layer in reversed(told)]


def test_the_rooms_stand_in_the_order_of_their_imports() -> None:
    height = {room: number for number, layer in enumerate(layers()) for room in layer}
    told = [room for room in rooms() if room in height]
    assert set(told) == set(height)
    assert [height[room] for room in told] == sorted(height[room] for room in told)


def test_every_room_of_the_package_is_told() -> None:
    package = {
        path.split("/")[2].removesuffix(".py") for path in tracked() if path.startswith("python/loadstone/")
    }
    apart = {"__init__", "__main__", "py.typed"}
    assert package - apart == set(rooms())


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not when they are called; names that only type annotations need do not count."""
    graph = grimp.build_graph("loadstone", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 700
    graphlib.TopologicalSorter(imports).prepare()  # Raises CycleError with the circle.


def misplaced_files(text: str) -> list[str]:
    """The files of one I/O's way that are not where a reader looks: beside the row's last full path."""
    section = text.partition("### One I/O, from job file to report")[2].partition("\n### ")[0]
    lost: list[str] = []
    for row in re.findall(r"^\| \d+ \| (.+?) \|", section, re.MULTILINE):
        folder = Path()
        for name in NAMED.findall(row):
            roots = (ROOT, PACKAGE, folder)
            place = next((root / name for root in roots if (root / name).exists()), None)
            if place is None:
                lost.append(name)
            elif "/" in name and place != folder / name:
                folder = place.parent
    return lost


def test_the_files_of_one_ios_way_are_where_the_table_says() -> None:
    """`record.rs` was looked for beside `state/completion.rs`, and is one directory above."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert misplaced_files(text) == []
    moved = text.replace("`crates/worker/src/record.rs`", "`record.rs`")
    assert misplaced_files(moved.replace("src/state/completion.rs", "src/state/no.rs")) == [
        "crates/worker/src/state/no.rs",
        "record.rs",
        "histogram.rs",
    ]
