"""`loadstone fio --sprandom`: what is really written, read from the log of every I/O."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import needs_engine, run

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS = 256
REGIONS = 10
REGION_BLOCKS = 32
"""A quarter more than the blocks, in ten parts."""


@pytest.mark.parametrize("cache", [(), ("--spr_cs=64k",)])
@pytest.mark.in_turn
def test_every_block_is_written_and_less_and_less_of_a_region_again(
    tmp_path: Path, cache: tuple[str, ...]
) -> None:
    needs_engine()
    words = ("--name=j", "--filename=data", "--size=1m", "--bs=4k", "--rw=randwrite", "--ioengine=psync")
    aging = ("--sprandom=1", f"--spr_num_regions={REGIONS}", "--spr_op=0.25", *cache)
    done = run("fio", *words, *aging, "--write_iolog=log", cwd=tmp_path)
    assert done.code == 0, done.err
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    written = [int(line[3]) // 4096 for line in lines if line[2:3] == ["write"]]
    assert len(written) == REGIONS * REGION_BLOCKS
    assert set(written) == set(range(BLOCKS))
    regions = [written[at : at + REGION_BLOCKS] for at in range(0, len(written), REGION_BLOCKS)]
    again = [len(set(one) & set(after)) for one, after in itertools.pairwise(regions)]
    assert sum(again) == len(written) - BLOCKS
    assert again[0] > again[-1]
    for one, after in itertools.pairwise(regions):
        repeats = [block in one for block in after]
        assert repeats == sorted(repeats, reverse=not cache)
