"""A page of help is what the parser of arguments would print, at any width."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import pytest
from cyclopts.help import DefaultFormatter
from rich.console import Console

from loadstone import exitcodes
from loadstone.cli import help_page
from loadstone.cli.app import VERBS, build, usage
from loadstone.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts.help import HelpPanel
    from rich.console import ConsoleOptions

PAGES = json.loads(help_page.FILE.read_text())


class _Paragraphs(DefaultFormatter):
    """Prints as the parser does, without the lines of docstrings."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        for entry in panel.entries:
            self._join(entry.description)
        super().__call__(console, options, panel)

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        self._join(description)
        super().render_description(console, options, description)

    @staticmethod
    def _join(description: Any) -> None:
        text = description.primary_renderable
        text.plain = re.sub(r"(?<!\n)\n(?!\n) *", " ", text.plain.strip())


def _printed_by_the_parser(verb: str, columns: int) -> list[str]:
    app = build([verb])
    app.help_formatter = _Paragraphs()
    if verb:
        app[verb].usage = f"Usage: loadstone {verb} {usage(app, verb)}"
    text = io.StringIO()
    with redirect_stdout(text):
        app.help_print([verb] if verb else [], console=Console(file=text, width=columns, color_system=None))
    return [line.rstrip() for line in text.getvalue().rstrip().splitlines()]


@pytest.mark.parametrize("verb", ["", "run", "plan", "audit", "controls", "completion"])
@pytest.mark.parametrize("columns", [60, 80, 203])
def test_lines_are_the_parsers(verb: str, columns: int) -> None:
    lines = help_page.page(PAGES[verb], columns).rstrip().splitlines()
    assert [line.rstrip() for line in lines] == _printed_by_the_parser(verb, columns)
    assert set(PAGES) == {"", *VERBS}


def test_a_paragraph_is_broken_where_the_terminal_ends_and_not_where_its_docstring_was() -> None:
    texts = [
        text
        for content in PAGES.values()
        for text in (
            content["description"],
            *(row["text"] for panel in content["panels"] for row in panel["rows"]),
        )
    ]
    assert [text for text in texts if "\n" in text.replace("\n\n", "")] == []
    assert [text for text in texts if "  " in text] == []
    lines = help_page.page(PAGES["run"], 80).splitlines()
    at = next(number for number, line in enumerate(lines) if "MORE  More job files" in line)
    assert [line.strip("│ ") for line in lines[at + 1 : at + 3]] == [
        "of all. Parameter files of vdbench alone go on where the first one",
        "ends.",
    ]
    assert "\n\nNothing is resolved" in PAGES["rerun"]["description"]  # paragraphs stay


@pytest.mark.parametrize("columns", [40, 80])
def test_colours_and_plain_letters_change_no_word(columns: int) -> None:
    plain = help_page.page(PAGES["run"], columns)
    coloured = help_page.page(PAGES["run"], columns, colour=True)
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain
    assert "\x1b[36m--repeat\x1b[0m" in coloured or "\x1b[36m--repeat INT\x1b[0m" in coloured
    ascii_only = help_page.page(PAGES["run"], columns, ascii_only=True)
    assert ascii_only.isascii()
    assert ascii_only.replace("+", "").split("\n", 1)[1:] != plain.split("\n", 1)[1:]
    assert len({len(line) for line in ascii_only.splitlines() if line.startswith("|")}) == 1


@pytest.mark.parametrize(
    ("words", "verb", "code"),
    [
        ([], "", exitcodes.USAGE),
        (["-h"], "", exitcodes.DONE),
        (["--help"], "", exitcodes.DONE),
        (["run", "a.fio", "--no-such", "-h"], "run", exitcodes.DONE),
    ],
)
def test_who_wants_help_gets_that_page(
    words: list[str],
    verb: str,
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(words) == code
    assert capsys.readouterr().out == help_page.page(PAGES[verb], 100)


def _on_a_terminal(words: Sequence[str], **environment: str) -> str:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment}
    program = "import sys; from loadstone.cli.main import main; main(sys.argv[1:])"
    subprocess.run([sys.executable, "-c", program, *words], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    return text


def test_a_terminal_has_colours_unless_it_wants_none() -> None:
    assert "\x1b[1mUsage: loadstone restore" in _on_a_terminal(["restore", "--help"], NO_COLOR="")
    assert "\x1b" not in _on_a_terminal(["restore", "--help"], NO_COLOR="1")
