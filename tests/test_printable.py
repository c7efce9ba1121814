"""Nothing that a foreign name holds reaches a terminal, a page or a spreadsheet as more than text."""

from __future__ import annotations

import ast
import io
import json
import random
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.table import Table
from rich.text import Text

from loadstone import output, printable
from loadstone.cli.display import console
from loadstone.cli.main import main, show
from loadstone.errors import InputError, Where
from loadstone.screen import Screen
from tests.support.runs import MadeJob, make

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(printable.__file__).parent
HOSTILE = (
    "\x1b[2J", "\x1b]0;owned\x07", "\x1b]8;;http://x\x1b\\click\x1b]8;;\x1b\\",
    "\x9b31m", "\x90q\x9c", "\r", "\b\b", "\x00",
    "\u202eexe.fdp", "\u2066", "\u200b", "\u2028", "\ufeff", "\U000e0041", "\x7f", "\v\f", "\udc9b",
)  # fmt: skip
PLAIN = ("job", "täglich", "日本", "a=b", "-", "€", "𝄞", " ", "/dev/sda", "100%", "[bold]", "<b>")


def names(count: int, seed: int = 11) -> Iterator[str]:
    draw = random.Random(seed)
    for _ in range(count):
        parts = draw.choices((*HOSTILE, *PLAIN), k=draw.randint(1, 6))
        parts += [chr(draw.randrange(0x110000)) for _ in range(draw.randint(0, 3))]
        draw.shuffle(parts)
        yield "".join(parts)


def hidden(text: str) -> list[str]:
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [one for one in text if unicodedata.category(one) in kinds and one not in "\n\t"]


def test_of_ten_thousand_names_none_keeps_a_character_that_cannot_be_seen() -> None:
    for name in names(10_000):
        shown = printable.printable(name)
        assert hidden(shown) == []
        assert printable.printable(shown) == shown
        assert not hidden(name) or shown != name


def test_what_can_be_seen_stays_as_it_is() -> None:
    text = "".join(PLAIN) + "\tline\nanother ± · \u2009"
    assert printable.printable(text) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("![x](http://x/p.png)", "!\\[x](http://x/p.png)"),
        ("[id]: http://x", "\\[id]: http://x"),
        ("<b>&lt;|`", "&lt;b>&amp;lt;\\|\\`"),
    ],
)
def test_a_name_is_no_link_picture_or_tag_in_markdown(text: str, written: str) -> None:
    assert printable.markdown(text) == written


def test_nothing_in_a_block_of_markdown_ends_it() -> None:
    assert printable.fenced("a\n```\n# PASSED\n````") == "`````\na\n```\n# PASSED\n````\n`````"


def test_a_document_of_json_means_the_same_afterwards() -> None:
    for name in names(2_000, seed=5):
        document = {name: ["a", name]}
        text = json.dumps(document, ensure_ascii=False)
        assert json.loads(printable.printable(text)) == document


def test_a_screen_keeps_its_colours_and_no_others() -> None:
    for name in names(300, seed=3):
        out = io.StringIO()
        screen = Screen(file=out, force_terminal=True, color_system="standard", width=200, highlight=False)
        table = Table(box=None)
        table.add_column("name")
        table.add_row(Text(name.replace("\n", ""), "red"))
        screen.print(table)
        left = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
        assert hidden(left) == []


def test_a_line_of_talk_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("bundle: a\nerror: fake\x1b[2J")
    assert capsys.readouterr().err == "bundle: a\\nerror: fake\\x1b[2J\n"


def test_an_error_keeps_its_listing_and_no_faked_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(InputError("x\nloadstone: all is well\n  /dev/sda: in use", where=Where("a\nb"), hint="go\x1b[A"))
    said = capsys.readouterr().err
    assert said == "loadstone: a\\nb: x\\nloadstone: all is well\n  /dev/sda: in use\nhint: go\\x1b[A\n"


def test_no_verb_prints_an_escape_sequence_of_a_jobs_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "evil\x1b[2J\u202e"
    run = make(
        tmp_path / "b", MadeJob(name=name), MadeJob(name="=1+1"), seconds=2.0, text=b"[a\x1b[2J]\nrw=read\n"
    )
    for words in (
        ["export", "markdown"], ["export", "csv"], ["export", "prometheus"], ["audit"],
        ["audit", "--markdown"], ["audit", "--json"],
    ):  # fmt: skip
        verb, *more = words
        assert main([verb, str(run.path), *more]) == 0, capfd.readouterr().err
        said = capfd.readouterr()
        assert hidden(said.out + said.err) == [], words
    page = tmp_path / "r.html"
    assert main(["report", str(run.path), "-o", str(page)]) == 0
    assert hidden(page.read_text()) == []
    assert main(["run", str(tmp_path / "no\x1b[2Jsuch")]) == 2
    assert "\x1b" not in capfd.readouterr().err


def test_fio_prints_no_escape_sequence(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "a.fio"
    bad.write_bytes(b"[a\x1b[2J]\nrw=\x1b[31mred\n")
    assert main(["fio", str(bad)]) == 1
    assert main(["fio", "--\x1b[2J=1"]) == 1
    assert "\x1b" not in "".join(capfd.readouterr())


CELLS = {
    "=1+1": "'=1+1", "+cmd": "'+cmd", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1",
    "\r=1": "\\x0d=1",    "＝1": "'＝1",
    "-1": "-1", "+1.5e3": "+1.5e3", "-.5": "-.5", "job": "job", "": "", "a=1": "a=1", "1=1": "1=1",
    "-1 OR": "'-1 OR", "=": "'=", "-": "'-", "-inf": "'-inf",
}  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), CELLS.items())
def test_a_cell_is_no_formula_and_a_number_stays_one(given: str, expected: str) -> None:
    assert printable.cell(given) == expected


def test_of_ten_thousand_cells_none_is_a_formula() -> None:
    draw = random.Random(7)
    for name in names(10_000, seed=7):
        text = printable.cell(draw.choice("=+-@\t\r1a ") + name)
        assert "\n" not in text
        assert text[0] not in "=@\t\r"
        if text[0] in "+-":
            float(text)


def test_csv_of_a_run_has_no_formula(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make(tmp_path / "b", MadeJob(name="=HYPERLINK(1)"), seconds=2.0)
    assert main(["export", str(run.path), "csv"]) == 0
    table = capsys.readouterr().out
    assert "'=HYPERLINK(1)" in table
    assert not re.search(r"(^|,)\"?=", table, re.MULTILINE)


def test_a_cell_of_markdown_stays_in_its_cell() -> None:
    assert printable.markdown("a|b\nc<script>`x`\\|") == "a\\|b\\\\nc&lt;script>\\`x\\`\\\\\\|"


def test_a_text_file_is_printable(tmp_path: Path) -> None:
    output.write(tmp_path / "a", "\x1b[2J\u202e ok\n")
    assert (tmp_path / "a").read_text() == "\\x1b[2J\\u202e ok\n"


def test_no_module_makes_a_console_of_its_own() -> None:
    for path in PACKAGE.rglob("*.py"):
        if "Console" not in (text := path.read_text()):
            continue
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        made = [
            node for node in calls if getattr(node.func, "id", getattr(node.func, "attr", "")) == "Console"
        ]
        assert not made, path
