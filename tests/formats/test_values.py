"""Distributions as fio takes them: their defaults, what is refused, and the real fio beside it."""

from __future__ import annotations

import math
import random
import shutil
import subprocess

import pytest

from loadstone.errors import InputError, LoadstoneError, Where
from loadstone.formats.fio import ReadOptions, TokenSource, read_jobfiles, values
from loadstone.formats.fio.numbers import Reading
from loadstone.plan import model
from loadstone.plan.pattern import blocks_of, pattern
from loadstone.plan.planning_notes import Notes
from loadstone.workload.addresses import AddressRequests, Distribution, ReadWriteMix
from loadstone.workload.block_sizes import SizeRequests, SizeTable, fixed
from loadstone.workload.blocks import BlockWork
from loadstone.workload.model import Job
from loadstone.workload.placement import Amount


def distribution(text: str, *, strict: bool = True) -> Distribution:
    return values.distribution(text, Reading(Where("job"), strict=strict))[0]


def order(job: Job, range_bytes: int = 1 << 20) -> model.RandomOrder:
    return pattern(job, Notes(), range_bytes).read.random


def job(**fields: object) -> Job:
    addresses = AddressRequests.model_validate(fields)
    work = BlockWork(mix=ReadWriteMix(rw="randread"), sizes=SizeRequests(bs=fixed(4096)), addresses=addresses)
    return Job(name="a", where=Where("job"), work=work)


@pytest.mark.parametrize(
    ("text", "kind", "parameter", "center"),
    [
        ("normal", "normal", 100 / 12, None),
        ("normal:0", "normal", 100 / 12, None),
        ("normal:7.5", "normal", 7.5, None),
        ("normal:7.5:0.25", "normal", 7.5, 0.25),
        ("zipf", "zipf", 1.1, None),
        ("zipf:0", "zipf", 0.0, None),
        ("zipf:1.3:1", "zipf", 1.3, 1.0),
        ("pareto", "pareto", 0.2, None),
        ("pareto:0.3:0.2:1", "pareto", 0.3, 0.2),
        ("random", "random", None, None),
    ],
)
def test_a_distribution_has_fios_defaults(
    text: str, kind: str, parameter: float | None, center: float | None
) -> None:
    found = distribution(text)
    assert (found.kind, found.center) == (kind, center)
    assert found.parameter == pytest.approx(parameter)


@pytest.mark.parametrize(
    "text",
    ["normal:", "zipf:", "zipf:1.2:", "pareto:", "normal:100", "normal:-1", "normal:5:2", "zipf:1", "zipf:a",
     "pareto:0", "pareto:1", "gauss", "Zipf", "sequence", "sequence:", "sequence:1,,2", "sequence:-1",
     "sequence:" + ",".join("1" * 65), "zoned", "zoned_abs"],
)  # fmt: skip
def test_what_fio_refuses_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        distribution(text)


def test_zipf_without_skew_is_uniform_with_repeats() -> None:
    assert order(job(random_distribution=values.distribution("zipf:0", Reading(Where("job"))))) == (
        model.RandomOrderUniform(repeat=True)
    )


def test_a_sequence_of_blocks_reaches_the_plan_and_must_fit() -> None:
    asked = values.distribution("sequence:2, 0,1", Reading(Where("job")))
    fixed = model.RandomOrderListed(blocks=(2, 0, 1), advance=False)
    assert order(job(random_distribution=asked)) == fixed
    moving = model.RandomOrderListed(blocks=(2, 0, 1), advance=True)
    assert order(job(random_distribution=asked, sequence_advances=True)) == moving
    with pytest.raises(InputError, match="block 2 of the sequence is beyond the range of 2 blocks"):
        order(job(random_distribution=asked), 8192)


def drawn(chance: random.Random) -> str:
    kind = chance.choice(["zipf", "pareto", "normal", "random", "normal", "zoned"])
    if kind == "zoned":
        shares = [chance.choice(["50", "30", "20", "", "0"]) for _ in range(chance.randint(0, 4))]
        return "zoned" + "".join(f":{share}/{chance.choice(['10', '40', '', '50'])}" for share in shares)
    numbers = [
        chance.choice(["0", "0.2", "0.5", "1", "1.0", "1.2", "2", "99.9", "100", "x", ""])
        for _ in range(chance.randint(0, 3))
    ]
    return ":".join([kind, *numbers])


@pytest.mark.in_turn
@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio beside it")
@pytest.mark.parametrize("seed", range(40))
def test_the_real_fio_takes_and_refuses_the_same(seed: int) -> None:
    text = drawn(random.Random(seed))
    words = ("--name=a", "--rw=randrw", "--size=1m", f"--random_distribution={text}")
    fio = subprocess.run(["fio", *words, "--parse-only"], capture_output=True, check=False).returncode == 0
    try:
        read_jobfiles([TokenSource(words)], options=ReadOptions(strict_fio_reading=True))
        here = True
    except LoadstoneError:
        here = False
    assert here == fio, text


def test_the_bell_without_a_deviation_is_that_of_twelve_uniform_numbers() -> None:
    chance = random.Random(1)
    means = [sum(chance.random() for _ in range(12)) / 12 for _ in range(20_000)]
    deviation = math.sqrt(sum((mean - 0.5) ** 2 for mean in means) / len(means))
    assert distribution("normal").parameter == pytest.approx(100 * deviation, rel=0.02)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--bs=4k/15:8k/85", "bssplit=4k/15:8k/85"),
        ("--bs=4k/15:", "bssplit=4k/15:"),
        ("--bssplit=1k-4k", "bsrange=1k-4k"),
        ("--size=1m-2m", "filesize=1m-2m"),
        ("--cpumask=0-3", "cpus_allowed=0-3"),
    ],
)
def test_a_value_of_another_option_is_told_its_name(words: str, names: str) -> None:
    with pytest.raises(InputError) as caught:
        read_jobfiles([TokenSource(("--name=a", words))], options=ReadOptions(strict_fio_reading=True))
    assert caught.value.hint == f"that is a value of {names.partition('=')[0]}: write {names}"


def test_two_sizes_with_a_dash_are_those_of_reads_and_writes_as_in_fio() -> None:
    words = ("--name=a", "--bs=4k-512k")
    found = read_jobfiles([TokenSource(words)], options=ReadOptions(strict_fio_reading=True))
    assert [block and block.bytes for block in blocks_of(found.jobs[0]).sizes.bs] == [4096, 524288, 524288]  # type: ignore[union-attr] # each is set
    assert "is no range" in found.notes[0].text
    with pytest.raises(InputError, match="expected one size"):
        read_jobfiles([TokenSource(words)])


def test_a_range_in_a_split_is_read_as_far_as_fio_reads_it() -> None:
    words = ("--name=a", "--bssplit=36k-60k/50:4k/50")
    found = read_jobfiles([TokenSource(words)], options=ReadOptions(strict_fio_reading=True))
    split = blocks_of(found.jobs[0]).sizes.bs[0]
    assert isinstance(split, SizeTable)
    assert [entry.bytes for entry in split.entries] == [36864, 4096]
    assert "fio reads 36k and leaves out -60k" in found.notes[0].text
    with pytest.raises(InputError, match="36k-60k"):
        read_jobfiles([TokenSource(words)])


def test_more_than_all_of_a_target_is_all_of_it_as_in_fio() -> None:
    found = read_jobfiles([TokenSource(("--name=a", "--size=200%"))])
    assert found.jobs[0].placement.size == Amount(percent=100.0)
    assert "more than 100%" in found.notes[0].text
    with pytest.raises(InputError, match="expected 0% to 100%"):
        read_jobfiles([TokenSource(("--name=a", "--offset=200%"))])
