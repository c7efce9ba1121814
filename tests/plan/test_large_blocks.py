"""Blocks of 2 GiB and more: moved in parts of a size the kernel can move."""

from __future__ import annotations

import pytest

from loadstone.errors import InputError, RefusedError
from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles
from loadstone.plan import model as plan
from loadstone.plan.resolve import resolve

GIB = 1 << 30


def resolved(text: str) -> plan.Plan:
    workload = read_jobfiles(
        [TextSource(f"[a]\nfilename=/dev/zero\n{text}")],
        options=ReadOptions(strict_fio_reading=True, environment={}),
    )
    return resolve(workload).plan


@pytest.mark.parametrize(
    ("bs", "part", "parts"),
    [
        ("2147479553", None, 0),
        ("2147483647", None, 0),
        ("2g", GIB, 2),
        ("3g", GIB, 3),
        ("5000m", 1_048_576_000, 5),
        ("16g", GIB, 16),
    ],
)
def test_a_block_the_kernel_cannot_move_is_equal_parts(bs: str, part: int | None, parts: int) -> None:
    text = f"bs={bs}\nsize=70g\nrw=read\nnumber_ios=3\n"
    if part is None:
        with pytest.raises(RefusedError, match="equal parts of whole pages"):
            resolved(text)
        return
    [stream] = resolved(text).streams
    assert stream.pattern.read.sizes == plan.SizesFixed(bytes=part)
    assert stream.limits.ops == 3 * parts
    assert stream.limits.bytes == 70 * GIB - 70 * GIB % (part * parts)


def test_the_largest_block_the_kernel_moves_stays_whole() -> None:
    [stream] = resolved("bs=2147479552\nsize=4g\n").streams
    assert stream.pattern.read.sizes == plan.SizesFixed(bytes=2_147_479_552)


def test_random_blocks_stay_together_and_are_touched_once() -> None:
    [stream] = resolved("bs=4g\nsize=16g\nrw=randread\n").streams
    read = stream.pattern.read
    assert (read.run_length, read.align_bytes, read.sizes) == (4, 4 * GIB, plan.SizesFixed(bytes=GIB))
    assert read.random == plan.RandomOrderUniform(repeat=False)


def test_a_large_size_of_a_direction_that_is_not_used_is_left_out() -> None:
    [stream] = resolved("bs=4k,8g\nsize=16m\nrw=read\n").streams
    assert stream.pattern.read.sizes == plan.SizesFixed(bytes=4096)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bs=2g,4k\nrw=rw\nsize=8g\n", "beside another size"),
        ("bs=2g\nrw=read:1g\nsize=8g\n", "rw=read:"),
    ],
)
def test_what_cannot_be_moved_in_parts_is_refused(text: str, says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        resolved(text)


def test_sizes_that_vary_end_below_2_gib() -> None:
    with pytest.raises(InputError, match="out of range, expected 1 to 2147483647 bytes"):
        resolved("bsrange=4k-2g\nsize=8g\n")
