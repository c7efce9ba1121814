from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import InputError, Where
from loadstone.formats.fio import numbers
from loadstone.formats.fio.numbers import Reading


def reading(**kwargs: object) -> Reading:
    return Reading(Where("job.fio", 3, "x"), **kwargs)  # type: ignore[arg-type]  # keywords of Reading


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("1m", 1 << 20),
        ("1MB", 1 << 20),
        ("2g", 2 << 30),
        ("1t", 1 << 40),
        ("1p", 1 << 50),
        ("512b", 512),
        ("0x10", 16),
        ("0X1F", 31),
        ("0x1000", 4096),
        ("(2*2k)", 4096),
        ("(1m+512k)", (1 << 20) + (512 << 10)),
        ("(1k*(2+2))", 4096),
        ("(10/4)", 2),
        ("(2^3)", 8),
        ("(7%4)", 3),
        ("(-1+2)", 1),
    ],
)
def test_sizes(text: str, value: int) -> None:
    taken = reading()
    assert numbers.size(text, taken) == value
    assert taken.notes == []


@pytest.mark.parametrize(
    ("kb_base", "strict", "text", "value"),
    [
        (1024, True, "4kib", 4000),
        (1024, False, "4kib", 4096),
        (1000, True, "4k", 4000),
        (1000, False, "4k", 4000),
        (1000, True, "4kib", 4096),
        (1000, False, "4kib", 4096),
        (1000, False, "4kb", 4000),
        (1024, True, "4Ki", 4096),
        (1024, False, "4Ki", 4096),
        (1000, True, "4Ki", 4000),
        (1000, False, "4Ki", 4096),
        (1024, True, "(1Ki*4)", 4096),
    ],
)
def test_both_readings_of_k(kb_base: int, strict: bool, text: str, value: int) -> None:
    assert numbers.size(text, reading(kb_base=kb_base, strict=strict)) == value


def test_kib_says_what_fio_reads() -> None:
    taken = reading()
    numbers.size("4kib", taken)
    assert [(note.kind, "4000" in note.text, "4096" in note.text) for note in taken.notes] == [
        ("trap", True, True)
    ]


def test_ki_without_b_is_said_where_fio_reads_it_as_k() -> None:
    taken = reading()
    numbers.size("4Ki", taken)
    assert taken.notes == []
    taken = reading(kb_base=1000)
    numbers.size("4Ki", taken)
    assert ["4000" in note.text for note in taken.notes] == [True]


@pytest.mark.parametrize(("strict", "value"), [(True, 8), (False, 8192)])
def test_a_blank_before_the_value_drops_the_suffix_in_fio(strict: bool, value: int) -> None:
    taken = reading(strict=strict, blank_before=True)
    assert numbers.size("8k", taken) == value
    assert "drops the suffix" in taken.notes[0].text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k",
        "4x",
        "4kk",
        "4ki b",
        "1k2",
        "0x",
        "one",
        "1z",
        "-4k",
        "4 k",
        "(",
        "()",
        "(1",
        "1)",
        "(1/0)",
        "(1+)",
        "(2^64)",
        "(2^999)",
        "(1k 2k)",
        "9223372036854775808",
        "8388608t",
        "(" * 200 + "1" + ")" * 200,
    ],
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InputError) as caught:
        numbers.size(text, reading())
    assert caught.value.where == Where("job.fio", 3, "x")


def test_a_fraction_is_meant_as_written_and_noted() -> None:
    taken = reading()
    assert numbers.size("4.5k", taken) == 4608
    assert taken.notes[0].kind == "trap"


@pytest.mark.parametrize(
    ("text", "unit_ns", "value"),
    [
        ("30", 10**9, 30 * 10**9),
        ("30", 1000, 30_000),
        ("30s", 1000, 30 * 10**9),
        ("5m", 10**9, 300 * 10**9),
        ("2h", 10**9, 7200 * 10**9),
        ("1d", 10**9, 86400 * 10**9),
        ("250ms", 10**9, 250_000_000),
        ("250msec", 10**9, 250_000_000),
        ("10us", 10**9, 10_000),
        ("10usec", 10**9, 10_000),
        ("1.5s", 10**9, 1_500_000_000),
        ("(2*30)", 10**9, 60 * 10**9),
    ],
)
def test_times(text: str, unit_ns: int, value: int) -> None:
    assert numbers.time_ns(text, reading(), unit_ns) == value


@pytest.mark.parametrize("text", ["", "s", "5x", "-1", "1h30m", "99999999999999d"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InputError):
        numbers.time_ns(text, reading(), 10**9)


def test_amounts() -> None:
    assert numbers.amount("80%", reading()).percent == 80.0
    assert numbers.amount("80%", reading()).of(1000) == 800
    assert numbers.amount("12.5%", reading()).of(1000) == 125
    assert numbers.amount("1g", reading()).bytes == 1 << 30
    for wrong in ("101%", "-1%", "%", "x%"):
        with pytest.raises(InputError):
            numbers.amount(wrong, reading())


@given(st.integers(0, 10**6), st.sampled_from("kmgt"), st.sampled_from(["", "b", "B"]))
@pytest.mark.in_turn
def test_a_suffix_multiplies(number: int, suffix: str, tail: str) -> None:
    power = "kmgt".index(suffix) + 1
    assert numbers.size(f"{number}{suffix}{tail}", reading()) == number * 1024**power
    assert numbers.size(f"{number}{suffix.upper()}", reading()) == number * 1024**power
    assert numbers.size(f"{number}{suffix}", reading(kb_base=1000)) == number * 1000**power


@given(st.integers(0, 2**62))
def test_decimal_and_hexadecimal_agree(number: int) -> None:
    assert numbers.size(str(number), reading()) == numbers.size(hex(number), reading()) == number


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**6))
@pytest.mark.in_turn
def test_arithmetic_is_arithmetic(a: int, b: int, c: int) -> None:
    assert numbers.evaluate(f"({a}+{b}*{c})", reading()) == a + b * c
    assert numbers.evaluate(f"(({a}+{b})*{c})", reading()) == (a + b) * c
    assert numbers.evaluate(f"({a} - {b})", reading()) == a - b
    assert numbers.evaluate(f"({a}/{c})", reading()) == a // c


@given(st.text(max_size=30))
@pytest.mark.in_turn
def test_any_text_is_a_number_or_an_input_error(text: str) -> None:
    for read in (numbers.size, numbers.amount, numbers.evaluate):
        with contextlib.suppress(InputError):
            assert read(text, reading()) is not None


@given(
    st.integers(1, 10**6), st.sampled_from([("s", 10**9), ("ms", 10**6), ("us", 10**3), ("m", 60 * 10**9)])
)
def test_a_time_suffix_beats_the_default_unit(number: int, unit: tuple[str, int]) -> None:
    for default in (10**9, 1000):
        assert numbers.time_ns(f"{number}{unit[0]}", reading(), default) == number * unit[1]
