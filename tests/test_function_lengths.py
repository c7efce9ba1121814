"""No function is longer than a screen.

Counted are the lines from `fn` or `def` to the last: signature, docstring and comments, no decorators.
Knows Rust as `cargo fmt` writes it: a function ends where a brace stands below its `fn`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
CRATES: Final = ROOT / "crates"
PYTHON: Final = ("python", "lab", "tests", "bench")
MOST_LINES: Final = 50
FUNCTION: Final = re.compile(
    r"( *)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?(?:extern \"C\" )?fn (\w+)"
)

DEF: Final = re.compile(r"( *)(?:async )?def ")


def lengths(text: str) -> dict[str, int]:
    """Return the lines of each function with a body of its own lines, from `fn` to its brace."""
    lines = text.splitlines()
    counts: dict[str, int] = {}
    for start, line in enumerate(lines):
        if (function := FUNCTION.match(line)) and not line.endswith((";", "}")):
            ends = {f"{function[1]}}}", f"{function[1]});", f"{function[1]};"}
            end = next((at for at in range(start, len(lines)) if lines[at] in ends), start)
            counts[function[2]] = max(counts.get(function[2], 0), end - start + 1)
    return counts


def python_lengths(text: str) -> dict[str, int]:
    """Return the lines of each function of a module, the longest of those of one name."""
    counts: dict[str, int] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            counts[node.name] = max(counts.get(node.name, 0), lines)
    return counts


def test_no_function_of_the_engine_is_longer_than_a_screen() -> None:
    every = {
        f"{file.relative_to(CRATES)}: {name}": lines
        for file in sorted(CRATES.rglob("*.rs"))
        for name, lines in lengths(file.read_text()).items()
    }
    assert len(every) > 1500
    assert {name: lines for name, lines in every.items() if lines > MOST_LINES} == {}


def may_be_long(text: str) -> bool:
    """Tell whether a function may be longer than a screen: no other begins beside or around it before that.

    Only such files are parsed: all of them take eight seconds of CPU time.
    """
    starts = [
        (line, len(match[1])) for line, text in enumerate(text.splitlines()) if (match := DEF.match(text))
    ]
    starts.append((text.count("\n") + 1, 0))
    return any(
        next(line for line, inner in starts[at + 1 :] if inner <= depth) - start > MOST_LINES
        for at, (start, depth) in enumerate(starts[:-1])
    )


@pytest.mark.parametrize("room", PYTHON)
def test_no_python_function_is_longer_than_a_screen(room: str) -> None:
    texts = {file: file.read_text() for file in sorted((ROOT / room).rglob("*.py"))}
    every = {
        f"{file.relative_to(ROOT)}: {name}": lines
        for file, text in texts.items()
        if may_be_long(text)
        for name, lines in python_lengths(text).items()
    }
    assert len(texts) > 10
    assert {name: lines for name, lines in every.items() if lines > MOST_LINES} == {}


def test_a_function_that_may_be_long_is_parsed() -> None:
    body = "    a = 1\n" * MOST_LINES
    assert may_be_long(f"def one():\n{body}")
    assert may_be_long(
        f"class A:\n    def one():\n{body}    def two():\n        pass\ndef three():\n    pass\n"
    )
    assert may_be_long(f"def one():\n    def two():\n        pass\n{body}")
    assert not may_be_long(f"def one():\n{body[: -len('    a = 1') - 1]}def two():\n    pass\n")


def test_a_python_function_is_counted_with_signature_docstring_and_those_inside_it() -> None:
    text = '@once\ndef one(\n    a: int,\n) -> int:\n    """Say.\n\n    More.\n    """\n'
    text += "    def two():\n        return a\n"
    assert python_lengths(text + "    return two()\n") == {"one": 10, "two": 2}


def test_a_function_is_counted_to_its_own_brace() -> None:
    text = (
        "impl A {\n    pub(crate) fn one(\n        a: u8,\n    ) -> u8 {\n        if a {\n        }\n    }\n"
    )
    text += "    fn two() {}\n}\nfn three() {\n    a\n}\n"
    assert lengths(text) == {"one": 6, "three": 3}
