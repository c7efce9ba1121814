"""Names in code: one name for one thing, and a noun for what a variable holds."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[1]
TREES: Final = ("python", "tests", "bench", "lab")
FORCED: Final[dict[str, str]] = {}
"""Class names that two modules have to share, each with its reason."""
SAYS_NOTHING: Final = {
    *("found", "made", "told", "asked", "given", "said", "kept", "seen", "held", "taken"),
    *("what", "mine", "here", "there", "way"),
}
"""A variable with such a name was each time something else: a bundle, lines, a count of bytes."""
DIALECT: Final = frozenset(
    (
        "said",
        "under",
        "solid",
        "course",
        "manner",
        "forgotten",
        "again",
        "kit",
        "conduct",
        "patience",
        "books",
    )
)
DEFINED: Final = re.compile(
    r"^\s*(?:async |unsafe |const |pub(?:\([^)]*\))? )*(?:def|class|fn|struct|enum|trait|mod) (\w+)",
    re.MULTILINE,
)
NO_MODULE: Final = DIALECT | {"found", "made", "told", "asked", "given", "what", "mine"}
NO_PARAMETER: Final = {"found", "made", "told", "asked", "given"}
DIGESTED: Final = ("python/loadstone/analysis/", "python/loadstone/audit/", "python/loadstone/explanations/")
"""Names are part of the rules' digest, which recorded results name: these keep theirs."""
SHARED_NOUNS: Final = {
    "steps of each language": "grammar lines lower read values",
    "parts of each report or document": "answer article charts document files page terminal words",
    "a verb and the room that does it": "compare curve doctor experiment hosts probe rerun run sweep verify",
    "a part of a machine that is set, looked at and sampled": (
        "block ceilings cgroup cpu layer_flows memory mounts nfs served time_structure watched"
    ),
    "a way to run": "controller matrix model one_run procedure repeats rounds",
    "a part of a load": "job_facts payload rows targets",
    "another tool": "iometer vdbench",
}
"""Nouns that several rooms treat, each in a module of that name: of them a reader asks which room's."""
RUST_TYPE: Final = re.compile(
    r"^(?:pub(?:\([^)]*\))? )?type (\w+)"
    r"|^\s*(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|trait|union) (\w+)",
    re.MULTILINE,
)
"""A type of a Rust file: `type` inside an `impl` is a part of a trait and is none."""
CLASS: Final = re.compile(r"^[ \t]*class (\w+)\s*[(:\[]", re.MULTILINE)
VAGUE: Final = "|".join(SAYS_NOTHING)
CAN_BE_VAGUE: Final = re.compile(rf"\b(?:{VAGUE})\b\s*(?:[-+*/|&]?=(?!=)|[:,)\]]|in\b)|def _(?:{VAGUE})\(")
"""A text without such a place stores nothing under these names, and need not be parsed."""
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def defined(root: Path, trees: Sequence[str] = ("",)) -> dict[str, list[str]]:
    """Return the modules that define a class of each name."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(file for tree in trees for file in (root / tree).rglob("*.py")):
        for name in CLASS.findall(file.read_text()):
            found[name].append(file.relative_to(root).as_posix())
    return found


def test_no_class_name_is_used_for_two_things() -> None:
    every = defined(ROOT, TREES)
    shared = {name: files for name, files in every.items() if len(files) > 1 and name not in FORCED}
    assert shared == {}


def test_a_second_class_of_the_same_name_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Line:\n    pass\n")
    (tmp_path / "b.py").write_text("def f():\n    class Line:\n        pass\n")
    assert defined(tmp_path)["Line"] == ["a.py", "b.py"]


def rust_types(root: Path) -> dict[str, list[str]]:
    """Return the Rust files that define a type of each name."""
    files: dict[str, list[str]] = defaultdict(list)
    for file in sorted(root.rglob("*.rs")):
        text = file.read_text()
        for name in sorted({either or other for either, other in RUST_TYPE.findall(text)}):
            files[name].append(file.relative_to(root).as_posix())
    return files


def test_no_name_of_a_rust_type_is_used_for_two_things() -> None:
    every = rust_types(ROOT / "crates")
    assert len(every) > 300
    assert {name: files for name, files in every.items() if len(files) > 1} == {}


def test_a_second_rust_type_of_the_same_name_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text("pub(crate) enum Line {}\nimpl A for B {\n    type Item = u8;\n}\n")
    (tmp_path / "b.rs").write_text("mod tests {\n    struct Line;\n}\ntype Item = u8;\n")
    assert rust_types(tmp_path) == {"Line": ["a.rs", "b.rs"], "Item": ["b.rs"]}


def says_nothing(tree: ast.Module) -> list[int]:
    """Return the lines where a function first stores something under such a name that is no parameter."""
    lines = []
    for function in (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)):
        inside = list(ast.walk(function))
        parameters = {node.arg for node in inside if isinstance(node, ast.arg)}
        stored = [node for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        lines += [node.lineno for node in stored if node.id in SAYS_NOTHING - parameters]
    return lines


def parameters_say_nothing(tree: ast.Module) -> list[int]:
    """Return the lines of parameters with such a name."""
    arguments = (node for node in ast.walk(tree) if isinstance(node, ast.arg))
    return [node.lineno for node in arguments if node.arg in NO_PARAMETER]


def functions_say_nothing(tree: ast.Module) -> list[int]:
    """Return the lines of private functions with such a name; a public one is named by who calls it, too."""
    every = (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))
    return [
        node.lineno for node in every if node.name.removeprefix("_") in SAYS_NOTHING and node.name[0] == "_"
    ]


@functools.cache
def vague() -> tuple[dict[str, list[int]], dict[str, list[int]], dict[str, list[int]]]:
    """Variables, parameters and functions of product, lab and bench that say nothing: files and lines."""
    variables, parameters, functions = {}, {}, {}
    for file in sorted(file for tree in ("python", "lab", "bench") for file in (ROOT / tree).rglob("*.py")):
        name, text = file.relative_to(ROOT).as_posix(), file.read_text()
        if not CAN_BE_VAGUE.search(text):
            continue
        tree = ast.parse(text)
        if lines := says_nothing(tree):
            variables[name] = lines
        if name.startswith(DIGESTED):
            continue
        if lines := parameters_say_nothing(tree):
            parameters[name] = lines
        if lines := functions_say_nothing(tree):
            functions[name] = lines
    return variables, parameters, functions


def test_variables_say_what_they_hold() -> None:
    assert vague()[0] == {}


def test_parameters_say_what_they_are_given() -> None:
    assert vague()[1] == {}


def test_private_functions_say_what_they_do() -> None:
    assert vague()[2] == {}


def test_modules_have_the_noun_they_hold() -> None:
    files = [*(ROOT / "python").rglob("*.py"), *(ROOT / "crates").glob("*/src/**/*.rs")]
    assert len(files) > 500
    assert [file.relative_to(ROOT).as_posix() for file in files if file.stem in NO_MODULE] == []


def named_in_dialect(text: str) -> list[str]:
    """Return the functions, methods and types of a file, Python's or Rust's, with such a name."""
    return [name for name in DEFINED.findall(text) if name.casefold() in DIALECT]


def test_modules_of_one_name_are_of_one_noun() -> None:
    """Two that hold different things under one name have names of their own."""
    names = [file.stem for file in (ROOT / "python").rglob("*.py") if not file.stem.startswith("__")]
    shared = {name for name in names if names.count(name) > 1}
    assert shared == {name for nouns in SHARED_NOUNS.values() for name in nouns.split()}


def test_no_function_or_type_has_a_name_of_the_dialect() -> None:
    files = [file for tree in (*TREES, "crates") for file in (ROOT / tree).rglob("*.*")]
    named = [
        (file.relative_to(ROOT).as_posix(), name)
        for file in files
        if file.suffix in (".py", ".rs")
        for name in named_in_dialect(file.read_text())
    ]
    assert [one for one in named if not one[0].startswith((*DIGESTED, "python/loadstone/path/spec.py"))] == []


def test_a_name_of_the_dialect_is_seen() -> None:
    text = "class Kit:\n    def again(self):\n        pass\n\n\ndef again_later(): pass\n"
    assert named_in_dialect(text) == ["Kit", "again"]
    assert named_in_dialect("impl A {\n    pub(crate) fn patience(&self) {}\n}\n") == ["patience"]


def test_a_function_that_says_nothing_is_seen() -> None:
    text = "class A:\n    def _told(self):\n        pass\n\n    def told(self):\n        pass\n"
    assert functions_say_nothing(ast.parse(text)) == [2]
    assert CAN_BE_VAGUE.search(text)


def test_a_parameter_that_says_nothing_is_seen() -> None:
    text = "def f(bundle, *, told=1):\n    return sorted(bundle, key=lambda found: found[told])\n"
    assert parameters_say_nothing(ast.parse(text)) == [1, 2]


def test_a_variable_that_says_nothing_is_seen() -> None:
    text = "def f(found):\n    found = [told for told in found]\n    return found\n"
    assert says_nothing(ast.parse(text)) == [2]


@pytest.mark.parametrize(
    "line",
    ["{} = 1", "{}: int = 1", "{} += 1", "a, {} = b", "*{}, a = b", "for {} in a: pass",
     "with a as {}: pass", "b = [{} for {} in a]", "if ({} := a): pass", "b = {{1: {} for {} in a}}"],
)  # fmt: skip
def test_a_text_that_is_not_parsed_stores_nothing_under_such_a_name(line: str) -> None:
    for name in SAYS_NOTHING:
        text = f"def f(a):\n    {line.format(name, name)}\n"
        assert says_nothing(ast.parse(text))
        assert CAN_BE_VAGUE.search(text)
