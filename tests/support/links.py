"""Where a page leads: every link, picture and reference of a page must lead to something that exists."""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from pathlib import Path

LINK = re.compile(r"""\b(?:href|src)=["']([^"']*)["']|url\(["']?([^"')]*)["']?\)""", re.IGNORECASE)
ANCHOR = re.compile(r"""\b(?:id|name)=["']([^"']+)["']""", re.IGNORECASE)


def links(page: Path) -> list[str]:
    """Return all that a page refers to, data within the page left out."""
    text = page.read_text(errors="replace")
    found = (html.unescape(one or other) for one, other in LINK.findall(text))
    return [one for one in found if not one.startswith("data:")]


def dead(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere, or to one of two places of one name."""
    anchors = Counter(ANCHOR.findall(page.read_text(errors="replace")))
    return [one for one in links(page) if not _leads(page, one, anchors)]


def _leads(page: Path, link: str, anchors: Counter[str]) -> bool:
    file, _, place = link.partition("#")
    if file:
        return "://" not in file and (page.parent / unquote(file)).is_file()
    return anchors[place] == 1
