"""The chance of missing content, as docs/safety.md states it, held against drawn cases."""

from __future__ import annotations

import math
import random

import pytest

from loadstone.plan.safety import sampling
from loadstone.plan.safety.sampling import BLOCK_BYTES, Space, blocks, chance_of_missing

BLOCKS = 1 << 16
STRATA = 64
DRAWS = 1500


def misses(filled: set[int], seed: int) -> int:
    """How many of so many passes over a device see none of the filled blocks."""
    space = Space.of([(0, BLOCKS * BLOCK_BYTES)])
    draw = random.Random(seed)
    return sum(
        all(offset // BLOCK_BYTES not in filled for offset in blocks(space, STRATA, draw))
        for _ in range(DRAWS)
    )


def arrangements(count: int, draw: random.Random) -> dict[str, set[int]]:
    start = draw.randrange(BLOCKS - count)
    stretch = draw.randrange(count, BLOCKS)
    return {
        "scattered": set(draw.sample(range(BLOCKS), count)),
        "even": {BLOCKS * number // count for number in range(count)},
        "contiguous": set(range(start, start + count)),
        "at the end": set(range(BLOCKS - count, BLOCKS)),
        "clustered": set(draw.sample(range(BLOCKS - stretch, BLOCKS), count)),
        "across a boundary": set(range(BLOCKS // 2 - count // 2, BLOCKS // 2 + count - count // 2)),
    }


@pytest.mark.in_turn
@pytest.mark.parametrize("share", [0.002, 0.01, 0.03])
def test_no_arrangement_is_missed_more_often_than_stated(share: float) -> None:
    draw = random.Random(share)
    stated = chance_of_missing(share, STRATA)
    # Four standard deviations of the count above what the formula gives.
    most = DRAWS * stated + 4 * math.sqrt(DRAWS * stated * (1 - stated))
    for name, filled in arrangements(int(share * BLOCKS), draw).items():
        found = misses(filled, draw.randrange(1 << 30))
        assert found <= most, (name, found, most)
        if name == "even":
            assert found >= DRAWS * stated - 4 * math.sqrt(DRAWS * stated)  # The bound is reached.


def never_missed(strata: int) -> float:
    """Return the share from which contiguous content is always found by a pass."""
    return 2.0 / strata


def test_a_run_of_two_strata_is_never_missed() -> None:
    draw = random.Random(3)
    count = math.ceil(never_missed(STRATA) * BLOCKS)
    for _ in range(8):
        start = draw.randrange(BLOCKS - count)
        assert misses(set(range(start, start + count)), draw.randrange(1 << 30)) == 0


def test_the_stated_numbers() -> None:
    """docs/safety.md has these."""
    assert sampling.SAMPLES == 16384
    assert chance_of_missing(0.001, sampling.SAMPLES) < 1e-7
    assert chance_of_missing(0.001, sampling.PASSES[0]) == pytest.approx(0.359, abs=0.001)
    assert never_missed(sampling.PASSES[-1]) == 1 / 4096


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(20))
def test_a_space_knows_its_places(seed: int) -> None:
    draw = random.Random(seed)
    edges = sorted(draw.sample(range(1 << 20), 2 * draw.randrange(1, 20)))
    parts = [(low, high - low) for low, high in zip(edges[::2], edges[1::2], strict=True)]
    space = Space.of(parts)
    flat = [byte for low, length in parts for byte in range(low, low + length)]
    assert space.size_bytes == len(flat)
    for place in draw.sample(range(len(flat)), min(50, len(flat))):
        assert space.offset(place) == flat[place]
    each = draw.choice((512, 4096, 65536))
    assert list(space.pieces(each)) == sorted({byte // each * each for byte in flat})
