"""The writers against real fio: from fio's own figures they must write fio's own text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from loadstone.report.fio import document, normal, terse

from . import fio_reading

if TYPE_CHECKING:
    from pathlib import Path

FIO = shutil.which("fio")
pytestmark = pytest.mark.skipif(FIO is None, reason="fio is not installed")

NULL = ("--ioengine=null", "--size=1g")
CASES = {
    "short-read": ["--name=a", *NULL, "--rw=read"],
    "mixed-directions": ["--name=a", *NULL, "--rw=randrw", "--iodepth=8", "--norandommap=1"],
    "unified": ["--name=a", *NULL, "--rw=rw", "--unified_rw_reporting=1", "--lat_percentiles=1"],
    "trims-and-syncs": ["--name=a", *NULL, "--rw=trimwrite", "--fsync=64", "--slat_percentiles=1"],
    "windows": ["--name=a", *NULL, "--rw=write", "--time_based=1", "--runtime=2", "--rate_iops=2000"],
    "two-groups": [
        *("--name=a", *NULL, "--rw=read", "--bs=64k", "--description=what it is"),
        *("--name=b", *NULL, "--rw=randwrite", "--stonewall", "--continue_on_error=1"),
    ],
    "no-percentiles": ["--name=a", *NULL, "--clat_percentiles=0"],
    "file": ["--name=a", "--size=1m", "--rw=rw", "--filename=f", "--end_fsync=1", "--latency_percentile=50"],
}


def run_fio(args: list[str], where: Path, formats: str) -> str:
    done = subprocess.run(
        [str(FIO), f"--output-format={formats}", "--output=out", *args],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (where / "out").read_text()


def comparable(text: str) -> list[str]:
    """Lines without what cannot be in the JSON: the process id and two rounded shares."""
    text = re.sub(r"pid=\d+: .*", "pid=", text)
    text = re.sub(r"percentile=[\d.]+%", "percentile=", text)
    # the ranges fio counts exactly are counted by bucket here
    text = re.sub(r"  lat \(\wsec\)   : .*\n", "", text)
    # disk lines carry sectors since fio 3.34
    text = re.sub(r" sectors=\d+/\d+,", "", text)
    text = re.sub(r"(IO depths|submit|complete) +: .*", r"\1", text)
    # Times of a target have had units since fio 3.42.
    text = re.sub(r"target=[^,]*, window=[^,]*,", "target, window,", text)
    return [line for line in text.splitlines() if line.strip()]


def close(ours: str, theirs: str) -> bool:
    """Equal, but for the last digit of numbers that came through the JSON rounded."""
    if ours == theirs:
        return True
    numbers = re.compile(r"\d+(?:\.\d+)?")
    if numbers.sub("#", ours) != numbers.sub("#", theirs):
        return False
    pairs = zip(map(float, numbers.findall(ours)), map(float, numbers.findall(theirs)), strict=True)
    return all(abs(a - b) <= 0.011 + 1e-4 * abs(b) for a, b in pairs)


@pytest.mark.in_turn
@pytest.mark.parametrize("case", CASES)
def test_the_text_of_the_same_figures_is_fios(case: str, tmp_path: Path) -> None:
    out = run_fio(CASES[case], tmp_path, "normal,json+")
    start = out.index("{\n")
    end = out.rindex("\n}\n") + 3
    doc = json.loads(out[start:end])
    theirs = comparable(out[end:] if out[end:].strip() else out[:start])
    theirs = [line for line in theirs if not re.match(r"(Starting|fio-|.*: \(g=|\.\.\.|.*Laying out)", line)]
    ours = comparable(normal.text(fio_reading.report(doc)))
    assert len(ours) == len(theirs), "\n".join([*ours, "--", *theirs])
    for mine, his in zip(ours, theirs, strict=True):
        assert close(mine, his), f"{mine!r} is not {his!r}"


@pytest.mark.in_turn
@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("case", ["mixed-directions", "unified", "two-groups", "windows", "file"])
def test_the_terse_line_of_the_same_figures_is_fios(case: str, version: int, tmp_path: Path) -> None:
    out = run_fio([f"--terse-version={version}", *CASES[case]], tmp_path, "terse,json+")
    start = out.index("{\n")
    end = out.rindex("\n}\n") + 3
    doc = json.loads(out[start:end])
    theirs = [line for line in (out[:start] + out[end:]).splitlines() if ";" in line]
    ours = [row for text in terse.lines(fio_reading.report(doc), version) for row in text.splitlines()]
    assert len(ours) == len(theirs)
    for mine, his in zip(ours, theirs, strict=True):
        my_fields, his_fields = mine.split(";"), his.split(";")
        assert len(my_fields) == len(his_fields)
        for i, (a, b) in enumerate(zip(my_fields, his_fields, strict=True)):
            if a.startswith("fio-") or (b.endswith("%") and "=" not in b):
                continue  # shares: fio counts ranges exactly, here they come from buckets
            assert close(a, b), f"field {i}: {a} is not {b}"


@pytest.mark.in_turn
@pytest.mark.parametrize("case", ["mixed-directions", "unified", "trims-and-syncs", "file"])
@pytest.mark.parametrize("plus", [False, True])
def test_the_document_has_fios_keys_in_fios_order(case: str, plus: bool, tmp_path: Path) -> None:
    doc = json.loads(run_fio(CASES[case], tmp_path, "json+" if plus else "json"))
    with_bins = json.loads(run_fio(CASES[case], tmp_path, "json+"))
    ours = document.document(fio_reading.report(with_bins), plus=plus)
    newer = {
        "latency_target_ns",
        "latency_window_us",
        "job_start",
        "read_sectors",
        "write_sectors",
        "loadstone version",
        "loadstone notes",
    }

    def shape(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            if key == "bins":
                return "bins"
            return [(k, shape(v, k)) for k, v in value.items() if k not in newer]
        if isinstance(value, list):
            return [shape(v) for v in value]
        return type(value).__name__

    assert shape(json.loads(document.text(ours))) == shape(doc)
