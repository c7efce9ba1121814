"""`experiment.json` is read as it was written, and what was altered is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.bundle import experiment
from loadstone.bundle.experiment import (
    DesignFactor,
    DesignPattern,
    ExperimentDocument,
    ExperimentRun,
    MachineSetting,
)
from loadstone.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path


def document() -> ExperimentDocument:
    """An experiment with a run whose scheduler somebody else has changed since."""
    setting = MachineSetting(control="io_scheduler", subject="sda", before="none", asked="bfq", after="bfq")
    left = setting.model_copy(update={"outcome": "changed_by_others", "why": "it is kyber"})
    run = ExperimentRun(name="1-a", block=0, pattern="a", levels={"scheduler": "bfq"}, settings=(left,))
    return ExperimentDocument(
        title="Schedulers",
        file="x.toml",
        file_blake3="0",
        factors=(DesignFactor(name="scheduler", kind="control", levels=("none", "bfq")),),
        patterns=(DesignPattern(name="a"),),
        design="full",
        combinations=2,
        full_combinations=2,
        order="random",
        seed=1,
        blocks=1,
        metrics=("iops",),
        runs=(run,),
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert not experiment.is_experiment(tmp_path)
    experiment.write(tmp_path, document())
    assert experiment.read(tmp_path) == document()
    assert [one.subject for one in document().still_changed] == ["sda"]


def test_what_was_altered_is_refused(tmp_path: Path) -> None:
    experiment.write(tmp_path, document())
    file = tmp_path / experiment.FILE
    file.write_text(file.read_text().replace("Schedulers", "Governors"))
    with pytest.raises(BundleError, match="was changed since it was written"):
        experiment.read(tmp_path)


@pytest.mark.parametrize("text", ["-1", "[]", "null", '"x"'])
def test_what_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    """760191: -1 ended in an AttributeError."""
    (tmp_path / experiment.FILE).write_text(text)
    with pytest.raises(BundleError, match="not a JSON object"):
        experiment.read(tmp_path)
