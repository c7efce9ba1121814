"""fio's command line, read."""

from __future__ import annotations

import pytest

from loadstone.cli.fio import args as fio_args
from loadstone.errors import InputError, RefusedError


def test_own_options_job_options_and_files_are_told_apart() -> None:
    asked = fio_args.parse(
        [
            "--output=o.json",
            "--name=a",
            "--rw",
            "randread",
            "--time_based",
            "--output-format",
            "json",
            "x.fio",
            "-",
        ]
    )
    assert asked.job_tokens == ["--name=a", "--rw=randread", "--time_based"]
    assert asked.job_files == ["x.fio", "-"]
    assert asked.output == "o.json"
    assert asked.formats == {"json"}


@pytest.mark.parametrize(
    ("words", "formats"),
    [
        ([], {"normal"}),
        (["--minimal"], {"terse"}),
        (["--append-terse"], {"normal", "terse"}),
        (["--output-format=json+"], {"json", "json+"}),
        (["--output-format=normal,json"], {"normal", "json"}),
        (["--output-format=csv"], {"terse"}),
    ],
)
def test_formats(words: list[str], formats: set[str]) -> None:
    assert fio_args.parse(words).formats == formats


def test_one_dash_and_unambiguous_beginnings_are_enough() -> None:
    asked = fio_args.parse(["-name=a", "--parse", "--norandom", "--group_rep=1"])
    assert asked.parse_only
    assert asked.job_tokens == ["--name=a", "--norandommap", "--group_reporting=1"]


def test_a_flag_does_not_eat_the_job_file() -> None:
    asked = fio_args.parse(["--time_based", "job.fio", "--", "--odd.fio"])
    assert asked.job_tokens == ["--time_based"]
    assert asked.job_files == ["job.fio", "--odd.fio"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10.0), ("500ms", 0.5), ("2m", 120.0), ("250000us", 0.25), ("1h", 3600.0)]
)
def test_times_are_seconds_unless_said(text: str, seconds: float) -> None:
    assert fio_args.parse([f"--status-interval={text}"]).status_interval_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sise=1g"], "unrecognized option '--sise=1g'"),
        (["--output"], "requires an argument"),
        (["--minimal=1"], "doesn't allow an argument"),
        (["--output-format=jsn"], "invalid output format jsn"),
        (["--terse-version=9"], "bad terse version format"),
        (["--eta=sometimes"], "--eta"),
        (["--eta-interval=10ms"], "too short"),
        (["--status-interval=soon"], "failed parsing time"),
        (["--section=global"], "can't use global"),
        (["--debug=everything"], "debug mask everything not found"),
    ],
)
def test_what_cannot_be_read_is_said(words: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        fio_args.parse(words)


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(InputError) as caught:
        fio_args.parse(["--ouptut-format=json"])
    assert caught.value.hint == "Did you mean output-format?"


@pytest.mark.parametrize("option", sorted(fio_args.REFUSED))
def test_what_is_not_done_is_refused_with_a_remedy(option: str) -> None:
    word = f"--{option}" if fio_args.OWN_OPTIONS[option] == fio_args.NONE else f"--{option}=x"
    with pytest.raises(RefusedError) as caught:
        fio_args.parse([word])
    assert caught.value.hint


def test_every_own_option_is_done_or_refused() -> None:
    assert set(fio_args.OWN_OPTIONS) == set(fio_args.REFUSED) | set(fio_args._ACTIONS)


def test_a_question_ends_the_reading_as_in_fio() -> None:
    assert fio_args.parse(["--version", "--no-such-option"]).question == ("version", "")
    assert fio_args.parse(["--cmdhelp=bs"]).question == ("cmdhelp", "bs")
    assert fio_args.parse(["--debug=help"]).question == ("debug", "help")


@pytest.mark.parametrize("words", [["-F", "json", "-o", "x", "-j", "4"], ["-Fjson", "-ox", "-j4"]])
def test_one_letter_stands_for_one_of_fios_own_options(words: list[str]) -> None:
    asked = fio_args.parse([*words, "a.fio"])
    assert (asked.formats, asked.output, asked.job_files) == ({"json"}, "x", ["a.fio"])
    assert not asked.job_tokens


def test_more_than_one_letter_behind_a_dash_is_a_long_name_where_one_begins_so() -> None:
    asked = fio_args.parse(["-minimal", "-size=1m", "-rw=read", "-bs", "4k"])
    assert (asked.formats, asked.job_tokens) == ({"terse"}, ["--size=1m", "--rw=read", "--bs=4k"])


def test_letters_name_options_that_exist() -> None:
    assert set(fio_args.LETTERS.values()) == set(fio_args.OWN_OPTIONS)
