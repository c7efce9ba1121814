"""Arguments of the wrong type are refused before anything runs, whichever public function gets them."""

from __future__ import annotations

import inspect
import traceback
from typing import TYPE_CHECKING, Any

import pytest

import loadstone
from loadstone.api.argument_types import EXPECTED
from loadstone.api.jobs.job_changes import JobArguments
from loadstone.api.studying import HowArguments, StudyArguments

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READS = "[one]\nrw=randread\nbs=4k\nsize=64k\nfilename={}\n"
FUNCTIONS: list[Callable[..., Any]] = [
    value
    for name in loadstone.__all__
    if inspect.isroutine(value := getattr(loadstone, name)) and not isinstance(value, type)
]


def test_every_argument_of_every_public_function_has_its_type() -> None:
    named = {
        parameter.name
        for function in FUNCTIONS
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    of_types = (
        JobArguments.__optional_keys__ | HowArguments.__optional_keys__ | StudyArguments.__optional_keys__
    )
    assert named | of_types == EXPECTED.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": "{data}"}, "targets: found '{data}', expected a list of paths, such as ['/dev/sdb']"),
        ({"targets": [3]}, "targets: found [3], expected a list of paths, such as ['/dev/sdb']"),
        ({"accept_data_loss": "{data}"}, "accept_data_loss: found '{data}', expected a list of paths"),
        ({"sections": "one"}, "sections: found 'one', expected a list of names, such as ['reads']"),
        ({"runtime": True}, "runtime: found True, expected seconds, or a text such as '30s'"),
        ({"size": 65536}, "size: found 65536, expected a text"),
        ({"check": "no"}, "check: found 'no', expected True or False"),
        ({"progress": 3}, "progress: found 3, expected an object with begin"),
        ({"out": 7}, "out: found 7, expected a path"),
        ({"watch": "filer"}, "watch: found 'filer', expected a list such as ['filer=ssh://root@filer']"),
        ({"parameters": ["a"]}, "parameters: found ['a'], expected a dictionary"),
    ],
)
def test_a_wrong_type_names_what_was_expected(
    arguments: dict[str, object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    written = {key: str(data) if one == "{data}" else one for key, one in arguments.items()}
    with pytest.raises(loadstone.InputError) as raised:
        loadstone.run(READS.format(data), **written)  # type: ignore[arg-type] # that is what is tried
    assert f"loadstone: {message.replace('{data}', str(data))}" in str(raised.value)
    assert list(tmp_path.iterdir()) == [], "nothing may be written for a slip"


def test_a_curve_and_a_sweep_say_how_their_points_are_written(tmp_path: Path) -> None:
    job = READS.format(tmp_path / "data")
    with pytest.raises(loadstone.InputError, match="points: found 0, expected a text"):
        loadstone.curve(job, points=0)  # type: ignore[arg-type] # that is what is tried
    with pytest.raises(loadstone.InputError, match=r"iodepth: found \[1.5\], expected a list of numbers"):
        loadstone.sweep(job, iodepth=[1.5])  # type: ignore[list-item] # that is what is tried
    with pytest.raises(loadstone.InputError, match="expected the path of a job file, its text"):
        loadstone.plan_runs(job, 3)  # type: ignore[arg-type] # that is what is tried
    with pytest.raises(loadstone.InputError, match="results: found 3, expected a result, or the path of one"):
        loadstone.compare(tmp_path, 3)  # type: ignore[arg-type] # that is what is tried


def test_a_traceback_shows_the_remedy_too(tmp_path: Path) -> None:
    with pytest.raises(loadstone.InputError) as raised:
        loadstone.run("four-corner", targets=[tmp_path / "data"])
    shown = "".join(traceback.format_exception(raised.value))
    assert "'four-corner' is neither a job file nor a named workload\ndid you mean 'four-corners'?" in shown


@pytest.mark.in_turn
def test_consent_for_what_is_no_target_is_told_in_the_words_of_python(tmp_path: Path) -> None:
    job = READS.format(tmp_path / "data").replace("randread", "randwrite")
    with pytest.raises(loadstone.InputError) as raised:
        loadstone.run(job, accept_data_loss=[tmp_path / "other"], out=tmp_path / "run")
    assert str(raised.value).startswith("loadstone: accept_data_loss: ")
