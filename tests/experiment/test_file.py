"""An experiment's file: its schema, its parameters, and what is said of a mistake in it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from loadstone.api.experimenting import plan_experiment
from loadstone.errors import InputError, Where, each
from loadstone.experiment.file import ExperimentFile
from loadstone.experiment.read_file import line_of, parse

CONTRACT = Path(__file__).parents[2] / "contract" / "experiment.schema.json"
WHOLE = """title = "Depths"
repeats = 2
targets = ["/dev/shm/x"]

[parameters]
disks = ["/dev/sdb", "/dev/sdc"]
time = "5s"

[budget]
time = "30m"

[[patterns]]
name = "read"
options = { rw = "randread", runtime = "$time" }

[[patterns]]
name = "on all"
targets = ["$disks", "/dev/sdd"]
workload = "four-corners"

[[factors]]
name = "depth"
option = "iodepth"
levels = [1, 8]

[[factors]]
name = "cache"
kind = "page_cache"
levels = ["kept", "dropped", { name = "every 2 s", every = "2s" }]
"""
AIM = '[[aims]]\nmost = "iops"\nlimit = "lat_p99_ns"\nat_most = '


def schema() -> dict[str, Any]:
    """Return the schema that is committed."""
    made = ExperimentFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def text() -> str:
    return json.dumps(schema(), indent=2) + "\n"


def read(content: str, given: dict[str, str] | None = None) -> ExperimentFile:
    return parse(content.encode(), "x.toml", given)


def test_the_schema_is_fresh() -> None:
    assert CONTRACT.read_text() == text()


def test_a_whole_file_is_read() -> None:
    found = read(WHOLE)
    assert [one.name for one in found.patterns] == ["read", "on all"]
    assert found.patterns[0].options["runtime"] == "5s"
    assert found.patterns[1].targets == ("/dev/sdb", "/dev/sdc", "/dev/sdd")
    assert found.factors[0].level_names == ("1", "8")
    assert found.factors[1].level("every 2 s").every == "2s"


def test_parameters_are_set_from_outside() -> None:
    found = read(WHOLE, {"disks": "/dev/vdb", "time": "7s"})
    assert found.patterns[1].targets == ("/dev/vdb", "/dev/sdd")
    assert found.patterns[0].options["runtime"] == "7s"


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("option = ", "optoin = ", 23, "is not a known key", "did you mean 'option'?"),
        ('"kept", "dropped"', '"kept", "droped"', 29, "did you mean 'dropped'", None),
        ("levels = [1, 8]", "level = [1, 8]", 24, "is not a known key", "did you mean 'levels'?"),
        ("repeats = 2", "repeats = 0", 2, "expected at least 1, found 0", None),
        ("repeats = 2", 'repeats = "two"', 2, "expected a whole number, found 'two'", None),
        ("repeats = 2", 'order = "randon"', 2, "expected 'random' or 'given', found 'randon'", None),
        ('name = "on all"', 'name = "on/all"', 17, "found 'on/all', expected a name: a letter", None),
        ('"/dev/sdd"', '"{file}"', 3, "stand for volumes of a layout", None),
        (
            '[[patterns]]\nname = "read"',
            f'{AIM}2\n[[patterns]]\nname = "read"',
            15,
            "found 2.0, expected a time with its unit",
            None,
        ),
        (
            '[[patterns]]\nname = "read"',
            f'{AIM}"2 parsecs"\n[[patterns]]\nname = "read"',
            15,
            "found the unit 'parsecs'",
            None,
        ),
        ("repeats = 2", 'design = "ful"', 2, "found 'ful'", "did you mean 'full'?"),
        ("repeats = 2", 'studied = ["page_cache_reads"]', 2, "did you mean 'page_cache_read'?", None),
        ("repeats = 2", 'metrics = ["iop"]', 2, "found 'iop'", "did you mean 'iops'?"),
        ('time = "30m"', 'time = "30"', 10, "expected a time above 0 with its unit", None),
        ("levels = [1, 8]", "levels = [1]", 24, "at least 2 values, found 1", None),
        ("levels = [1, 8]", "levels = [8, 8]", 24, "has the level '8' twice", None),
        ('"iodepth"', '"iodepth"\ncontrol = "governor"', 21, "a factor varies one setting", None),
        ('"$time"', '"$tine"', 14, "there is no parameter 'tine'", "did you mean 'time'?"),
        ('runtime = "$time"', 'bs = "4k"', 7, "nothing refers to it", None),
        ('"/dev/sdd"', '"a$disks"', 18, "is a list and cannot stand inside a text", None),
        ("title = ", "title == ", 1, "is not TOML: invalid value at column 8", None),
        # A list of tables had no line, and what TOML's reader calls a table was told as Python's tuple.
        ("[[factors]]", "[[facotrs]]", 21, "is not a known key", "did you mean 'factors'?"),
        ("[budget]", "[parameters]", 9, "is not TOML: cannot declare [parameters] twice at column 12", None),
        ("repeats = 2", "wait_for_sync = 3", 2, "expected true or false, without quotes, found 3", None),
        ('workload = "four-corners"', "", 16, "has no load", None),
        ('name = "cache"', 'name = "depth"', 27, "two factors are called 'depth'", None),
        (
            'kind = "page_cache"',
            'kind = "page_cashe"',
            28,
            "found 'page_cashe'",
            "did you mean 'page_cache'?",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(
    old: str, new: str, line: int | None, message: str, hint: str | None
) -> None:
    assert old in WHOLE
    with pytest.raises(InputError) as caught:
        read(WHOLE.replace(old, new))
    assert message in caught.value.message
    assert caught.value.where is not None
    assert (caught.value.where.file, caught.value.where.line) == ("x.toml", line)
    assert hint is None or caught.value.hint == hint


def test_a_parameter_that_is_none_is_told() -> None:
    with pytest.raises(InputError, match="no parameter 'disk'") as caught:
        read(WHOLE, {"disk": "x"})
    assert caught.value.hint == "did you mean 'disks'?"


@pytest.mark.in_turn
def test_a_parameter_that_is_none_is_told_where_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(WHOLE)
    with pytest.raises(InputError, match=r"loadstone: parameters: the experiment has no parameter 'disk'"):
        plan_experiment(file, parameters={"disk": "x"})


def test_a_name_that_is_none_is_told_without_what_our_library_calls_a_key() -> None:
    with pytest.raises(InputError) as caught:
        read(WHOLE + '\n[layouts."RAID 0, bare"]\nmanager = "btrfs"\n')
    assert str(caught.value).startswith("x.toml:31: layouts.RAID 0, bare: found 'RAID 0, bare'")


def test_layouts_need_a_factor_and_a_target() -> None:
    layout = WHOLE + '\n[layouts.r0]\nmanager = "btrfs"\nraid = "0"\n'
    with pytest.raises(InputError, match="no factor has it as a level"):
        read(layout)
    used = layout + '[[factors]]\nname = "l"\nkind = "layout"\nlevels = ["r0", "r1"]\n'
    with pytest.raises(InputError, match=r"there is no \[layouts.r1\]"):
        read(used)
    both = used + '[layouts.r1]\nmanager = "md"\nraid = "1"\n'
    with pytest.raises(InputError, match="has no effect: no target is on"):
        read(both)
    with pytest.raises(InputError, match="thin has no effect with manager 'md'"):
        read(both + "thin = true\n")
    doubled = both.replace("repeats = 2", 'repeats = 2\ndevices = ["/dev/sdq", "/dev/sdr", "/dev/sdq"]')
    with pytest.raises(InputError, match="has /dev/sdq twice"):
        read(doubled)


def test_lines_are_found_in_tables_of_tables() -> None:
    assert line_of(WHOLE, ("patterns", 1, "targets", 0)) == 18
    assert line_of(WHOLE, ("factors", 1, "levels", 2, "every")) == 29
    assert line_of(WHOLE, ("budget", "written")) == 9
    assert line_of(WHOLE, ("nothing",)) is None


if __name__ == "__main__":
    sys.stdout.write(text())


BS = '[[factors]]\nname = "{}"\noption = "bs"\nlevels = ["4k", "8k"]\n'
SYSCTL = '[[factors]]\nname = "{}"\ncontrol = "sysctl"\nsubject = "{}"\nlevels = [1, 2]\n'
SET = '[[settings]]\ncontrol = "sysctl"\nsubject = "vm.x"\nvalue = 1\n'
DROPPED = '[[factors]]\nname = "{}"\nkind = "page_cache"\nlevels = ["kept", {{ name = "dropped"{} }}]\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (BS.format("a") + BS.format("b"), 12, "varies what the factor 'a' varies"),
        (SYSCTL.format("a", "vm.x") + SYSCTL.format("b", "vm.x"), 13, "varies what the factor 'a' varies"),
        (SYSCTL.format("a", "") + SYSCTL.format("b", "vm.x"), 13, "varies what the factor 'a' varies"),
        (DROPPED.format("a", "") + DROPPED.format("b", ""), 12, "varies what the factor 'a' varies"),
        (SET + SYSCTL.format("a", "vm.x"), 12, "`settings` sets for all runs"),
        (SET + SET, 11, "sets sysctl again"),
        (BS.format("a") + BS.format("a"), 11, "two factors are called 'a'"),
        (BS.format("a") + 'patterns = ["raed"]\n', 10, "there is no pattern 'raed': did you mean 'read'"),
    ],
)
def test_what_is_varied_twice_is_told_with_its_line(text: str, line: int, message: str) -> None:
    beginning = 'title = "x"\ntargets = ["x"]\n[[patterns]]\nname = "read"\noptions = { rw = "read" }\n'
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        parse((beginning + text).encode(), "x.toml")
    assert Where("x.toml", line) in [
        Where(one.where.file, one.where.line) for one in each(caught.value) if one.where
    ]


def test_different_things_of_one_kind_are_varied_together() -> None:
    beginning = 'title = "x"\ntargets = ["x"]\n[[patterns]]\nname = "read"\noptions = { rw = "read" }\n'
    for text in (
        SYSCTL.format("a", "vm.x") + SYSCTL.format("b", "vm.y"),
        DROPPED.format("here", "") + DROPPED.format("there", ', host = "root@server"'),
    ):
        assert len(parse((beginning + text).encode(), "x.toml").factors) == 2


def test_a_level_may_be_any_value() -> None:
    beginning = 'title = "x"\ntargets = ["x"]\n[[patterns]]\nname = "read"\noptions = { rw = "read" }\n'
    factors = '[[factors]]\nname = "a"\nkind = "target"\nlevels = ["/mnt/a", "/mnt/b"]\n'
    factors += '[[factors]]\nname = "b"\noption = "cpus_allowed"\nlevels = ["0-1,3", ":/x"]\n'
    made = parse((beginning + factors).encode(), "x.toml")
    assert made.factors[0].level("/mnt/b").value == "/mnt/b"
    assert made.factors[1].level("0-1,3").value == "0-1,3"


@pytest.mark.parametrize(
    ("levels", "options", "message"),
    [
        (
            "[[1, 1], 2]",
            "{ rw = 'read' }",
            "factors[1].levels[1]: expected text, a number, true, false or a table",
        ),
        (
            "[1, 2]",
            "{ rw = ['read'] }",
            "patterns[1].options.rw: expected text, a number, true or false, found",
        ),
    ],
)
def test_a_list_where_one_value_is_meant_is_told_so(levels: str, options: str, message: str) -> None:
    """Seen: `levels[1]: expected true or false, without quotes`, of the list `[1, 1]`."""
    text = f'title = "x"\ntargets = ["x"]\n[[patterns]]\nname = "read"\noptions = {options}\n'
    text += f'[[factors]]\nname = "a"\noption = "bs"\nlevels = {levels}\n'
    with pytest.raises(InputError) as caught:
        parse(text.encode(), "x.toml")
    assert message in str(caught.value)


SEVERAL = """title = "Several"
repaets = 2
runtime = "1s"
size = "four"
targets = ["FOLDER/x"]

[[patterns]]
name = "a"
options = { rw = "randraed", bs = "4k" }

[[patterns]]
name = "b"
workload = "for-corners"

[[factors]]
name = "block"
option = "bs"
levels = ["4k", "4096"]
patterns = ["c"]

[[patterns]]
name = "c"
options = { rw = "read", ioengine = "psync" }

[[factors]]
name = "depth"
option = "iodepht"
levels = [1, 8]
patterns = ["a"]

[[factors]]
name = "pressure"
control = "sysctrl"
subject = "vm.stat_interval"
levels = [1, 2]

[[factors]]
name = "cache"
kind = "page_cache"
levels = ["kept", "droped"]
"""


@pytest.mark.in_turn
def test_mistakes_of_all_kinds_are_told_in_one_round(tmp_path: Path) -> None:
    """A key, a value, a word of fio's, a name, a factor without effect, a control: each was a round."""
    path = tmp_path / "several.toml"
    path.write_text(SEVERAL.replace("FOLDER", str(tmp_path)))
    with pytest.raises(InputError) as caught:
        plan_experiment(path)
    lines = [one.where.line for one in each(caught.value) if one.where is not None]
    assert lines == [2, 4, 9, 13, 18, 27, 33, 40]
    hints = " ".join(f"{one.message} {one.hint}" for one in each(caught.value))
    for name in ("repeats", "randread", "four-corners", "iodepth", "sysctl", "dropped"):
        assert f"did you mean '{name}'" in hints
    assert "bs = 4k, 4096 makes no difference" in hints


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('name = "read"', 'name = "re/ad"'),
        ("levels = [1, 8]", "levels = [1, [8]]"),
        ('option = "iodepth"', 'option = "iodepth"\nsubject = "x"'),
        ('"$disks"', '"$dsk-s"'),
        ('time = "30m"', 'time = "30"'),
        ("repeats = 2", 'repeats = 2\nlayouts = { "a b/c" = { manager = "btrfs" } }'),
    ],
)
def test_what_follows_from_a_mistake_is_not_told_as_another(right: str, wrong: str) -> None:
    """A level left out makes a factor too short, a name that is none a pattern unknown."""
    assert right in WHOLE
    with pytest.raises(InputError) as caught:
        read(WHOLE.replace(right, wrong) + 'patterns = ["read"]\n')
    assert len(each(caught.value)) == 1
