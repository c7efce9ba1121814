"""The pages that are held to docs/style.md, and what of it a program can see."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (
    "../README.md",
    "../ARCHITECTURE.md",
    "../CONTRIBUTING.md",
    "../CHANGELOG.md",
    "../contract/README.md",
    *sorted(page.name for page in DOCS.glob("*.md")),
    *sorted(f"../{page.relative_to(ROOT)}" for page in (ROOT / "examples").rglob("*.md")),
)
MOST_WORDS = 25
CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")


def sentences(text: str) -> list[str]:
    """The sentences of a page's prose, list items and table cells; quoted code is one word, a block none."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    prose = re.sub(r"(?<=\n\n)(?:(?: {4,}.*)?\n)+", "\n", prose)
    prose = CODE.sub("`code`", prose)
    lines = [""]
    for line in prose.splitlines():
        # What goes on in the next line is one text with it; a row, an item and a heading are not.
        goes_on = lines[-1].strip() and not re.match(r"\s*[#|]", lines[-1])
        if goes_on and not re.match(r"\s*([|#>]|[-*] |\d+\. |$)", line):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    parts = [cell for line in lines for cell in re.split(r"\||<br>", line)]
    return [one for part in parts for one in re.split(r"(?<=[.!?])\**\s+", part.strip()) if one]


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_is_longer_than_25_words(page: str) -> None:
    long = [one for one in sentences((DOCS / page).read_text()) if len(one.split()) > MOST_WORDS]
    assert not long


GENERATED = frozenset(("cli.md",))
"""Its words stand in docstrings."""
DIALECT = re.compile(
    r"\b(processors?|nobody|somebody|lies? apart|stands on|the like|at work|forgets|mend(ed|s)?|dearest"
    r"|gone over|went over|swallow(s|ed)?|as was|so manieth)\b"
)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in GENERATED])
def test_no_page_speaks_dialect(page: str) -> None:
    text = CODE.sub("", (DOCS / page).read_text())
    assert [one for one in sentences(text) if DIALECT.search(one)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text())
    assert [
        link for link in links if "://" not in link and not (DOCS / page).parent.joinpath(link).exists()
    ] == []


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "README.md").read_text()))
    assert listed == {page.name for page in DOCS.glob("*.md")} - {"README.md"}


def test_every_file_on_the_way_of_an_io_exists() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    table = page.partition("### One I/O")[2].partition("###")[0]
    missing: list[str] = []
    folders: set[Path] = set()
    for row in re.findall(r"^\| \d+ \| (.*?) \|", table, flags=re.MULTILINE):
        for name in re.findall(r"`([\w./]+)`", row):
            here = Path(name)
            roots = [ROOT, ROOT / "python/loadstone", *(ROOT / "crates").glob("*/src"), *folders]
            found = next((root / here for root in roots if (root / here).exists()), None)
            if found is None:
                missing.append(name)
            else:
                folders.add(found.parent)
    assert missing == []


def test_the_style_is_one_screen() -> None:
    assert len((DOCS / "style.md").read_text().splitlines()) <= 40


def test_the_glossary_is_in_order_and_names_each_term_once() -> None:
    rows = [line.split("|") for line in (DOCS / "glossary.md").read_text().splitlines() if line[:2] == "| "]
    terms = [row[1].strip().casefold() for row in rows[1:]]
    assert terms == sorted(terms)
    assert len(set(terms)) == len(terms) > 60
    whose = {owner.strip() for row in rows[1:] for owner in row[2].split(",")}
    assert {"fio", "vdbench", "Iometer", "SNIA", "kernel", "NVMe", "here"} <= whose


def test_the_page_of_libraries_names_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[<>=]", one)[0] for one in project["dependencies"]]
    page = (DOCS / "libraries.md").read_text()
    assert [name for name in names if name not in page] == []
    assert all("<" in one for one in project["dependencies"])
