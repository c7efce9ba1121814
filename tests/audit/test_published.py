"""Published figures: what is read from them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.audit import foreign
from loadstone.audit.judge import judge
from loadstone.errors import InputError
from loadstone.units import THIN

if TYPE_CHECKING:
    from loadstone.verdict import Phase

EXAMPLES = Path(__file__).parents[2] / "examples" / "published"
HEAD = 'format = 1\ntitle = "t"\nsource = "s"\n'
SYSTEM = '[[system]]\nname = "array"\nlinks = ["4 x 16GFC"]\nrotational = false\ndrives = 12\n'
RESULT = (
    '[[result]]\nname = "read"\nsystem = "array"\nop = "read"\naccess = "sequential"\nblock = "4k"\n'
    'jobs = 8\nnumjobs = 16\niodepth = 128\ndirect = true\nsize = "400 GB"\n'
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "figures.toml"
    path.write_text(HEAD + text)
    return path


def test_a_result_becomes_a_case(tmp_path: Path) -> None:
    path = written(tmp_path, SYSTEM + RESULT + 'iops = 1.4e6\nlatency = "8 ms"\n')
    (case,) = foreign.read(path).cases
    assert (case.name, case.source) == ("read", "published")
    (job,) = case.jobs
    assert (job.clones, job.iodepth, job.direct, job.block_bytes) == (128, 128, True, {4096: 1.0})
    assert (job.read_percent, job.random_percent, job.size_bytes) == (100.0, 0.0, 400 * 10**9)
    assert len(job.ranges) == 128
    assert len({clone[0].target for clone in job.ranges}) == 8
    assert case.total.bandwidth is not None
    assert case.total.bandwidth.value == pytest.approx(1.4e6 * 4096)
    assert case.total.latency is not None
    assert case.total.latency.mean_ns == pytest.approx(8e6)
    assert case.declared is not None
    assert case.declared.ceilings[0].per_s == pytest.approx(6.4e9)
    assert case.total.errors is None
    assert case.problems is None


def test_repeats_have_a_mean_and_its_error(tmp_path: Path) -> None:
    (case,) = foreign.read(written(tmp_path, SYSTEM + RESULT + "iops = [100, 110, 120]\n")).cases
    assert case.total.iops is not None
    assert case.total.iops.value == pytest.approx(110)
    assert case.total.iops.error == pytest.approx(10 / 3**0.5)
    assert [one.value for one in case.repeats] == [100, 110, 120]


def test_a_baseline_is_a_case_of_its_own(tmp_path: Path) -> None:
    text = SYSTEM + RESULT + 'iops = 1000\nbaseline = [{ name = "before", iops = 500 }]\n'
    first, second = foreign.read(written(tmp_path, text)).cases
    assert second.name == "read (before)"
    assert second.jobs[0].iodepth == 128
    assert [one.name for one in first.siblings] == ["read (before)"]


def test_a_matrix_is_a_case_for_each_cell_that_has_a_value(tmp_path: Path) -> None:
    text = (
        SYSTEM
        + '[[matrix]]\nname = "m"\nsystem = "array"\niodepth = 4\n'
        + 'column = [{name = "a", op = "read", block = "4k"}, {name = "b", op = "write", block = "8k"}]\n'
        + '[[matrix.row]]\nname = "one"\niops = [[10, 12], []]\n'
        + '[[matrix.row]]\nname = "two"\niodepth = 8\niops = [20, 30]\nauthor_says = "fine"\n'
    )
    cases = foreign.read(written(tmp_path, text)).cases
    assert [case.name for case in cases] == ["one: a", "two: a", "two: b"]
    assert [case.jobs[0].iodepth for case in cases] == [4, 8, 8]
    assert cases[2].jobs[0].write_block_bytes == {8192: 1.0}
    assert cases[2].declared is not None
    assert cases[2].declared.author_says == "fine"


def test_a_series_is_kept_interval_by_interval(tmp_path: Path) -> None:
    text = SYSTEM + RESULT + 'series = { interval = "30 s", iops = [100, 0, 50] }\n'
    (case,) = foreign.read(written(tmp_path, text)).cases
    assert case.series is not None
    assert case.series["iops"].to_list() == [100, 0, 50]
    assert case.series["end_ns"].to_list() == [30e9, 60e9, 90e9]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (RESULT + "iopz = 5\n", "result[0].iopz: is not a key here", "did you mean 'iops'?"),
        (RESULT + "iops = -5\n", "result[0].iops: expected more than 0, found -5", None),
        (RESULT + 'iops = "5k"\n', "result[0].iops: Input should be a valid number", None),
        (RESULT.replace("block", "Block-") + "iops = 1\n", "is not a key here", "did you mean 'block'?"),
        (RESULT.replace("= 16", "= 1000000000") + "iops = 1\n", "result[0].numjobs", None),
        (RESULT + 'bandwidth = "5"\n', "found the unit ''", None),
        (RESULT + 'bandwidth = "5 GBit"\n', "found the unit 'GBit'", None),
        (RESULT + 'latency = "soon"\n', "found 'soon', expected a time with its unit", None),
        (RESULT.replace("array", "arrey") + "iops = 1\n", "there is no system 'arrey': did you mean", None),
        (
            SYSTEM.replace("16GFC", "17GFC") + RESULT + "iops = 1\n",
            "found '4 x 17GFC', expected a link",
            None,
        ),
        (RESULT.replace('"sequential"', '"seq"') + "iops = 1\n", "result[0].access", None),
        ("", "has neither a [[result]] nor a [[matrix]]", None),
        (
            RESULT + "iops = 1\n" + RESULT + "iops = 1\n",
            "two of [[result or matrix]] are called 'read'",
            None,
        ),
        (
            '[[matrix]]\nname = "m"\ncolumn = [{name = "a"}]\n[[matrix.row]]\nname = "r"\niops = [[]]\n',
            "row 'r' has no value",
            None,
        ),
        (
            '[[matrix]]\nname = "m"\ncolumn = [{name = "a"}]\n[[matrix.row]]\nname = "r"\niops = [1, 2]\n',
            "row 'r' has 2 values of iops, expected 1: one for each column",
            None,
        ),
        ("[[result]\n", "is not TOML", None),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str, hint: str | None) -> None:
    body = text if "[[system]]" in text or "[[result]\n" in text or not text else SYSTEM + text
    path = written(tmp_path, body)
    with pytest.raises(InputError) as caught:
        foreign.read(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    if hint is not None:
        assert caught.value.hint == hint


def test_what_is_no_result_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind")
    with pytest.raises(InputError, match="is not a known result"):
        foreign.read(path)


# ---- the published figures themselves: what must be found in them


def phases(name: str) -> dict[str, Phase]:
    return {one.name: one for one in judge(foreign.read(EXAMPLES / f"{name}.toml").cases).phases}


def causes(phase: Phase) -> dict[str, str]:
    return {cause.rule: cause.text.replace(THIN, " ") for cause in phase.verdict.causes}


def test_large_and_small_blocks_are_the_same_link() -> None:
    found = phases("vostok")
    for name in ("4K sequential read", "128K sequential read"):
        assert found[name].verdict.limited_by == "4 x 16GFC"
    assert "90 % of the 6.40 GB/s" in causes(found["4K sequential read"])["link_ceiling"]
    assert "89 % of the 6.40 GB/s" in causes(found["128K sequential read"])["link_ceiling"]
    assert "read 16 times" in causes(found["4K sequential read"])["overlapping_clones"]
    assert "take 377 ms each, not 300 µs" in causes(found["128K sequential read"])["littles_law"]
    for name in ("4K random read", "4K random write"):
        assert "Rate, latency and depth agree" in causes(found[name])["littles_law"]


def test_one_gigabit_under_every_governor() -> None:
    found = phases("fio-governor")
    for governor in ("conservative", "performance", "powersave"):
        verdict = found[f"4K random write, iSCSI, {governor}"].verdict
        assert (verdict.kind, verdict.limited_by) == ("limited", "the iSCSI link")
        assert "98 % of the payload of 1 GbE" in verdict.causes[0].text


def test_the_raw_volume_cannot_be_told() -> None:
    verdict = phases("fio-governor")["16M random write, raw LVM volume on the FC LUN"].verdict
    assert verdict.kind == "cannot_tell"
    missing = [one.what for one in verdict.missing if one.essential]
    assert len(missing) == 1
    assert "number of spindles" in missing[0]
    assert "the link's bandwidth" in missing[0]
    assert any("cannot be compared" in cause.text for cause in verdict.causes)
    told = next(cause for cause in verdict.causes if cause.rule == "writeback_absorbed")
    assert told.effect == "note"
    assert told.evidence["explained_percent"] == pytest.approx(10)


def test_the_matrix_row_by_row() -> None:
    found = phases("iometer-nfs")
    for row in ("sync nfs drc", "async nfs nodrc", "async nfs drc"):
        read = causes(found[f"10GB {row}: 4K random read"])
        assert {"random_equals_sequential", "link_ceiling", "above_ceiling"} <= read.keys()
        assert "1GbE" in read["link_ceiling"]
    assert found["300GB local drc: 4K random read"].verdict.kind != "not_valid"
    assert "above_ceiling" in causes(found["10GB local drc: 4K random write"])
    assert "not_repeatable" in causes(found["300GB local nodrc: 4K random read"])


def test_the_same_drives_in_two_states() -> None:
    found = phases("vroc")
    told = causes(found["RAID0: 4K random write, 64 threads"])["state_differs"]
    assert "factor of 2.6" in told
    assert "RAID10 800k" in told


def test_the_drive_reaches_its_data_sheet() -> None:
    found = phases("hgst-ssd")
    read, write = causes(found["64K sequential read"]), causes(found["64K sequential write"])
    assert "97 %" in read["unit_mixup"]
    assert "it would be 92 %" in read["unit_mixup"]
    assert "is 90 % of the 765 MB/s" in write["above_ceiling"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('\ntitle = "t"\n', ":1: format: is missing"),
        ("\nformt = 1\n", ":2: formt: is not a key here"),
        ("# a\nformat = 2\n", ":2: format: found 2, expected 1"),
        ('format = "one"\n', ":1: format: found 'one', expected 1"),
    ],
)
def test_a_file_without_its_format_is_told_the_line_to_write(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "figures.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        foreign.read(path)
    assert str(caught.value) == f"{path}{said}"
    assert "`format = 1`" in str(caught.value.hint)
