"""docs/seeds-audited.md is what the audit says of the published figures, and says what it must."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.cli.main import main
from loadstone.units import THIN

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "seeds-audited.md"
FIGURES = sorted((ROOT / "examples" / "published").glob("*.toml"))


def made(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["audit", *map(str, FIGURES), "--markdown"]) == 0
    return capsys.readouterr().out


def test_the_page_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    page = made(capsys)
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        PAGE.write_text(page)
    assert page == PAGE.read_text(), "docs/seeds-audited.md is stale: run `make docs`"


@pytest.mark.parametrize(
    "said",
    [
        ("5.73 GB/s is 90 % of the 6.40 GB/s that 4 x 16GFC can carry", "blocks 32 times as large"),
        ("16 clones on each of 8 targets read the same", "each block is read 16 times"),
        (
            "16384 outstanding I/Os at",
            "take 377 ms each, not 300 µs",
        ),
        ("118k IOPS times 8.00 ms is 944 I/Os outstanding, of 1.02k",),
        ("84.0k IOPS times 3.00 ms is 252 I/Os outstanding, of 256",),
        ("115 MB/s is 98 % of the payload of 1 GbE at MTU 1500 (118 MB/s)",),
        ("690 MB/s of random I/O takes at least 3", "the link's bandwidth"),
        ("2.00 GiB of cache can hold at most 10 % of the",),
        ("first pass over a new file at 50 % of a CPU", "cannot be compared"),
        ("10GB sync nfs drc: 4K random read moves 104 MB/s", "89 % of the 118 MB/s that 1GbE can carry"),
        ("700k IOPS here and 1.80M IOPS in RAID0", "differ by a factor of 2.6. The drives are the same"),
        ("1012.42 MiB/s is 1.06 GB/s, 97 % of the data sheet's 1.10 GB/s", "it would be 92 %"),
        ("691 MB/s is 90 % of the 765 MB/s",),
    ],
)
def test_what_an_expert_would_find_is_on_the_page(said: Sequence[str]) -> None:
    page = PAGE.read_text().replace(THIN, " ")
    assert any(all(part in line for part in said) for line in page.splitlines())
