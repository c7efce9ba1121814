from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import InputError, LoadstoneError, each
from loadstone.formats.vdbench import ParameterFileRun, ParameterText, expand, lower, read
from loadstone.formats.vdbench.expand import java_random
from loadstone.formats.vdbench.grammar import Parameter, parameters
from loadstone.formats.vdbench.lines import LineReader, ParameterLine
from loadstone.formats.vdbench.rundef import RD
from loadstone.formats.vdbench.values import Number, names, number, numbers, shown
from loadstone.formats.vdbench.workload import WD

PLAIN = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789_./:", min_size=1, max_size=12)
QUOTABLE = st.text("abcxyz019 ,=-()/_", min_size=1, max_size=16)


def one(line: str) -> Parameter:
    found = of(line)
    assert len(found) == 1
    return found[0]


def of(*lines: str) -> list[Parameter]:
    reader = LineReader({})
    return list(parameters(reader.text("\n".join(lines), "test", Path())))


@given(st.lists(st.tuples(PLAIN.map(lambda text: "k" + text), PLAIN), min_size=1, max_size=6), st.data())
@pytest.mark.in_turn
def test_a_line_may_be_broken_after_any_comma(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    words = [f"{keyword}={value}" for keyword, value in pairs]
    text = words[0]
    for word in words[1:]:
        text += (
            data.draw(st.sampled_from([",", ",\n", ", a comment\n   ", ",\n* a comment\n", ",\t# x\n"]))
            + word
        )
    found = of(*text.split("\n"))
    assert [(one.keyword, one.text) for one in found] == [(key.lower(), value) for key, value in pairs]


@given(QUOTABLE)
@pytest.mark.in_turn
def test_quotes_protect_what_would_mean_something(value: str) -> None:
    found = one(f'lun="{value}" a comment')
    assert found.text == value
    assert not found.listed


@given(st.lists(QUOTABLE, min_size=1, max_size=5))
@pytest.mark.in_turn
def test_quotes_protect_in_lists_too(values: list[str]) -> None:
    found = one("sd=(" + ",".join(f'"{value}"' for value in values) + ")")
    assert list(found.pieces) == values


@given(st.lists(PLAIN, min_size=2, max_size=6), st.integers(0, 5))
@pytest.mark.in_turn
def test_a_line_is_where_its_keyword_stands(words: list[str], empty: int) -> None:
    lines = [""] * empty + ["* a comment"]
    lines += [f"k{word}={word}," for word in words[:-1]] + [f"k{words[-1]}=x"]
    assert [found.where.line for found in of(*lines)] == [empty + 2 + n for n in range(len(words))]


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 500))
def test_a_range_is_what_counting_gives(first: int, last: int, step: int) -> None:
    text = f"kk=({first}-{last},{step})"
    if last < first:
        with pytest.raises(InputError, match="does not go up"):
            numbers(one(text))
        return
    assert [int(found.value) for found in numbers(one(text))] == list(range(first, last + 1, step))


@given(st.integers(1, 1 << 30), st.integers(1, 1 << 30))
@pytest.mark.in_turn
def test_doubling_stays_between_its_ends(first: int, last: int) -> None:
    found = [value.value for value in numbers(one(f"kk=({first}-{last},d)"))]
    assert found[0] == first
    low, high = min(first, last), max(first, last)
    assert all(low <= value <= high for value in found)
    factor = 2.0 if first < last else 0.5
    assert all(after == before * factor for before, after in itertools.pairwise(found))
    assert not low <= found[-1] * factor <= high or first == last


@given(st.integers(1, 999), st.sampled_from(["k", "m", "g", "t", "K", "M", "G", "T"]), st.booleans())
@pytest.mark.in_turn
def test_units_are_binary(value: int, unit: str, b: bool) -> None:
    power = "kmgt".index(unit.lower()) + 1
    found = number(one(f"size={value}{unit}{'b' if b else ''}"))
    assert found == Number(value * 1024.0**power)


@given(st.integers(1, 1023), st.sampled_from([1, 1 << 10, 1 << 20, 1 << 30]))
def test_what_is_shown_is_read_back(value: int, unit: int) -> None:
    assert number(one(f"kk={shown(value * unit)}")).value == value * unit


@given(st.integers(0, 500), st.integers(1, 500), PLAIN.map(lambda text: text + "x"))
@pytest.mark.in_turn
def test_names_count_up(first: int, more: int, stem: str) -> None:
    found = names(one(f"sd=({stem}{first}-{stem}{first + more})"))
    assert list(found) == [f"{stem}{n}" for n in range(first, first + more + 1)]


@pytest.mark.parametrize("table", [RD, WD])
def test_a_keyword_is_found_by_any_beginning_that_is_not_an_earlier_one(table: object) -> None:
    rows = table.rows  # type: ignore[attr-defined] # a Table
    for at, row in enumerate(rows):
        for length in range(2, len(row.name) + 1):
            word = row.name[:length]
            found = table.find(word)  # type: ignore[attr-defined] # a Table
            if row.exact and length < len(row.name):
                assert found is not row
            elif any(one.name == word or (not one.exact and one.name.startswith(word)) for one in rows[:at]):
                assert found in rows[:at]
            else:
                assert found is row


LINES = st.lists(
    st.sampled_from(
        [
            "sd=sd1,lun=/a,size=1g", "sd=sd2,lun=/b,count=(1,3)", "sd=default,threads=4", "hd=localhost",
            "wd=wd1,sd=sd*", "wd=wd2,sd=sd1,rdpct=50,seekpct=10", "wd=default,xfersize=8k", "compratio=2",
            "rd=rd1,wd=wd1,iorate=max", "rd=rd2,wd=wd*,iorate=curve,elapsed=10", "rd=default,elapsed=20",
            "rd=rd3,wd=wd1,iorate=(1-5,1),forthreads=(1-8,d)", "fsd=f1,anchor=/t", "fwd=w1,fsd=f1",
            "rd=rd4,fwd=w1,fwdrate=max", "eof", "skew=10,", "range=(1,2),", "size=(", '"', "loop=3",
        ]
    ),
    max_size=12,
)  # fmt: skip


def tried(text: str) -> list[ParameterFileRun] | LoadstoneError:
    try:
        return expand(read([ParameterText(text.encode("utf-8", "replace"))]))
    except LoadstoneError as error:
        return error


@given(LINES)
@pytest.mark.in_turn
def test_any_file_is_read_or_refused_with_a_reason(lines: list[str]) -> None:
    found = tried("\n".join(lines))
    if isinstance(found, LoadstoneError):
        assert found.message
    else:
        assert found
        assert len({run.title for run in found}) == len(found)


@given(st.text(max_size=200))
@pytest.mark.in_turn
def test_noise_is_refused_with_a_place(text: str) -> None:
    found = tried(text)
    assert isinstance(found, LoadstoneError)
    assert all(one.where is not None for one in each(found))


def test_a_host_is_put_into_every_entity_that_names_one() -> None:
    text = (
        b"hd=h1\nhd=h2\nsd=sd_$host,lun=/x/#host/#hosts\nsd=plain,lun=/y\nwd=w,sd=*\nrd=r,wd=w,iorate=max\n"
    )
    file = read([ParameterText(text)])
    assert [(one.name, one.lun) for one in file.storages] == [
        ("sd_h1", "/x/0/2"),
        ("sd_h2", "/x/1/2"),
        ("plain", "/y"),
    ]


def test_a_variable_without_effect_is_refused() -> None:
    text = ParameterText(b"sd=sd1,lun=$lun\nwd=w,sd=sd1\nrd=r,wd=w,iorate=max\n")
    assert read([text], variables={"lun": "/z"}).storages[0].lun == "/z"
    with pytest.raises(InputError, match="has no effect"):
        read([text], variables={"lun": "/z", "lum": "/y"})


def test_the_longest_variable_is_put_in_first() -> None:
    reader = LineReader({"a": "short", "ab": "long"})
    assert reader.text("kk=$ab,ll=$a", "test", None) == [
        ParameterLine("kk=long,ll=short", reader.text("x=1", "test", None)[0].where)
    ]


def test_sets_of_sds_are_drawn_as_java_draws() -> None:
    draw = java_random(0)
    # The first numbers of `new java.util.Random(0).nextInt(100)`.
    assert [draw(100) for _ in range(10)] == [60, 48, 29, 47, 15, 53, 91, 61, 19, 54]


def test_sets_of_sds_are_each_in_one_set() -> None:
    lines = [f"sd=sd{n},lun=/{n}" for n in range(1, 8)]
    text = "\n".join([*lines, "wd=default,xfersize=4k", "rd=r,sd=setsof3,iorate=max"])
    found = expand(read([ParameterText(text.encode())]))
    sets = [[work.storage.name for work in run.works] for run in found]
    assert [len(one) for one in sets] == [3, 3, 1]
    assert sorted(name for one in sets for name in one) == [f"sd{n}" for n in range(1, 8)]
    assert [run.name for run in found] == ["_".join(["r", *one]) for one in sets]


def test_a_size_of_streams_changes_nothing_as_in_vdbench_and_is_noted() -> None:
    text = "sd=sd1,lun=/x,size=64m,threads=4\nwd=wd1,sd=sd1,streams={}\nrd=r,wd=wd1,iorate=9,elapsed=3\n"
    plain, sized = (
        lower(file, expand(file)[0])
        for written in ("2", "(2,4m)")
        for file in (read([ParameterText(text.format(written).encode())]),)
    )
    assert [job.placement for job in sized.jobs] == [job.placement for job in plain.jobs]
    assert len(sized.jobs) == 2
    (note,) = [one for one in sized.notes if one not in plain.notes]
    assert (note.kind, note.where.line if note.where else None) == ("harmless", 2)
    assert "size in streams=" in note.text


@pytest.mark.parametrize("written", ["(2,x)", "(1,4m)", "(2,4m,8m)", "(x,4m)"])
def test_what_is_no_number_of_streams_is_told(written: str) -> None:
    text = f"sd=sd1,lun=/x,size=64m\nwd=wd1,sd=sd1,streams={written}\nrd=r1,wd=wd1,elapsed=3\n"
    with pytest.raises(InputError, match=r"found ") as error:
        read([ParameterText(text.encode())])
    assert error.value.where is not None
    assert error.value.where.line == 2


def test_an_included_file_with_a_name_that_no_file_can_have_is_refused_with_its_line() -> None:
    """A fuzzer's: `File name too long`, and no line of the parameter file."""
    with pytest.raises(InputError, match=r"cannot read the parameter file n+: File name too long") as raised:
        read([ParameterText(f"* a\ninclude={'n' * 300}\n".encode(), "long.parm", Path("/nonexistent"))])
    where = raised.value.where
    assert where is not None
    assert (where.file, where.line, where.option) == ("long.parm", 2, "include")
