"""What a plan says of runs before there are any: those too short for a figure, and those that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone import units
from loadstone.api.experimenting import PlannedExperiment
from loadstone.bundle.study import StudyRecord
from loadstone.errors import InputError
from loadstone.experiment.announce import announce, check_levels
from loadstone.experiment.announcement_lines import lines
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare
from loadstone.experiment.run import StoppedExperiment
from loadstone.study.run import EarlierStudy

if TYPE_CHECKING:
    from pathlib import Path

FILE = """title = "x"
repeats = 2
runtime = "{runtime}"
ramp = "5s"
{more}

[[patterns]]
name = "p"
options = {{ ioengine = "null", rw = "randread", bs = "4k", size = "1m" }}

[[factors]]
name = "f"
{factor}
"""
DEPTH = 'option = "iodepth"\nlevels = [1, 2]'
COMMANDS = 'kind = "command"\nlevels = ["as is", { name = "on", do = "true", undo = "true" }]'


def file_of(folder: Path, runtime: str = "1s", factor: str = DEPTH, more: str = "") -> Path:
    path = folder / "x.toml"
    path.write_text(FILE.format(runtime=runtime, factor=factor, more=more))
    return path


@pytest.mark.in_turn
def test_runs_that_are_too_short_for_any_figure_are_said_before(tmp_path: Path) -> None:
    """All of them were done, and the page said then that none is valid."""
    prepared = prepare(file_of(tmp_path, "900ms"))
    announcement = announce(prepared)
    sentence = str(announcement.too_short)
    assert sentence.replace(units.THIN, " ") == (
        "TOO SHORT: 4 of 4 runs measure for 900 ms at most: below 1.00 s a run is not valid, and in no effect"
    )
    assert sentence in list(lines(announcement))
    assert announcement.document()["too_short"] == sentence
    told: list[str] = []
    check_levels(prepared, told.append)
    assert told == [sentence]


@pytest.mark.parametrize(
    ("runtime", "factor", "more", "short"),
    [
        ("1s", DEPTH, "", None),
        ("900ms", DEPTH, 'studied = ["too_few_samples"]', None),
        ("9s", 'option = "runtime"\nlevels = ["500ms", "2s"]', "", "2 of 4 runs measure for 500 ms at most"),
    ],
    ids=["as long as it takes", "studied", "a level"],
)
@pytest.mark.in_turn
def test_only_what_measures_too_short_is_said_to_be(
    tmp_path: Path, runtime: str, factor: str, more: str, short: str | None
) -> None:
    announcement = announce(prepare(file_of(tmp_path, runtime, factor, more)))
    if short is None:
        assert announcement.too_short is None
    else:
        assert short in str(announcement.too_short).replace(units.THIN, " ")


@pytest.mark.in_turn
def test_a_plan_of_what_is_missing_counts_no_rehearsal(tmp_path: Path) -> None:
    """Levels were set once when it began; `resume` does not set them again for that."""
    prepared = prepare(file_of(tmp_path, factor=COMMANDS), ReadOptionsOfExperiment(allow_exec=True))
    whole = PlannedExperiment(prepared)
    assert whole.document()["rehearsal"]["levels"] == 1
    assert sum("before the first run" in line for line in whole.lines) == 2
    study = StudyRecord(
        kind="experiment",
        name="x",
        front_end="experiment",
        loadstone_version="0",
        started="2026-01-01T00:00:00+00:00",
        request={},
        settings={},
    )
    stopped = StoppedExperiment(tmp_path, prepared.document, EarlierStudy(study, []))
    rest = PlannedExperiment(prepared, stopped)
    assert rest.document()["rehearsal"] == {"time_s": 0.0, "levels": 0, "layouts": 0, "commands": 0}
    assert not any("before the first run" in line for line in rest.lines)
    assert rest.missing == whole.runs


@pytest.mark.in_turn
def test_a_factor_without_effect_is_refused_in_a_fraction_too(tmp_path: Path) -> None:
    """No two runs of it differed in that factor alone, and so nothing was compared."""
    factors = [
        f'name = "{name}"\noption = "{name}"\nlevels = {levels}'
        for name, levels in (
            ("bs", '["4k", "8k"]'),
            ("numjobs", "[1, 2]"),
            ("iodepth", "[1, 2]"),
            ("norandommap", "[0, 1]"),
        )
    ]
    text = FILE.replace('name = "f"\n{factor}', "\n[[factors]]\n".join(factors))
    path = tmp_path / "x.toml"
    path.write_text(text.format(runtime="1s", more='design = "fraction"\n[budget]\ntime = "80s"'))
    announcement = announce(prepare(path))
    assert announcement.prepared.document.combinations == 5
    in_vain = path.read_text().replace("iodepth", "randrepeat").replace("levels = [1, 2]", "levels = [0, 1]")
    path.write_text(in_vain.replace("levels = [0, 1]", "levels = [1, 2]", 1))
    with pytest.raises(InputError, match="randrepeat = 0, 1 makes no difference"):
        announce(prepare(path))


@pytest.mark.in_turn
def test_what_a_pattern_moves_is_kept_beside_the_size_of_all(tmp_path: Path) -> None:
    """`size` of the experiment took io_size of a pattern away: each run wrote twice what its file says."""
    text = FILE.format(runtime="1s", more='size = "8m"', factor=DEPTH).replace('runtime = "1s"\n', "")
    path = tmp_path / "x.toml"
    path.write_text(text.replace('rw = "randread"', 'rw = "randwrite"'))
    assert announce(prepare(path)).most_written_bytes == 4 * (8 << 20)
    with_io_size = path.read_text().replace('size = "1m" }', 'size = "1m", io_size = "2m" }')
    path.write_text(with_io_size)
    assert announce(prepare(path)).most_written_bytes == 4 * (2 << 20)
    shares = 'kind = "cache_share"\nof = "64m"\nlevels = ["25%", "50%"]'
    path.write_text(with_io_size.replace(DEPTH, shares))
    prepared = prepare(path)
    assert announce(prepared).most_written_bytes == 4 * (2 << 20)
    sizes = {job.placement.size.bytes for one in prepared.nexts for job in one.workload.jobs}  # type: ignore[union-attr] # each has one
    assert sizes == {16 << 20, 32 << 20}


def test_a_factor_that_a_key_for_all_runs_overrides_is_told_so(tmp_path: Path) -> None:
    """*Vary something that the load uses*, it said: the load did, but `size` of the file was for all runs."""
    pattern = 'options = { ioengine = "null", rw = "randread", bs = "4k", size = "1m" }'
    text = FILE.replace("{{", "{").replace("}}", "}").replace(pattern, 'workload = "iometer-video-on-demand"')
    factor = 'parameter = "size"\nlevels = ["4m", "8m"]'
    path = tmp_path / "x.toml"
    more = f'size = "8m"\ntargets = ["{tmp_path}/data"]'
    path.write_text(text.replace("{runtime}", "1s").replace("{more}", more).replace("{factor}", factor))
    with pytest.raises(InputError, match="size = 4m, 8m makes no difference") as refusal:
        announce(prepare(path))
    assert (
        refusal.value.hint == "`size` of the file is for all runs, in place of size: leave one of the two out"
    )
