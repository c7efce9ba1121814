"""What tests and trials look for must be known to `tests/wanted.py`: its command is to install all of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lab.safety import contents, trials

from tests import wanted

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[1]
LOOKED_FOR = re.compile(r'which\("([\w.-]+)"')


def test_every_program_that_a_safety_row_needs_is_wanted() -> None:
    needed = {case.needs for case in trials.cases()} | {kind.needs for kind in contents.KINDS}
    assert "cryptsetup" in needed
    assert needed - {None} - set(wanted.PROGRAMS) == set()


def test_every_program_that_a_test_looks_for_is_wanted() -> None:
    looked_for = {
        name for file in (ROOT / "tests").rglob("*.py") for name in LOOKED_FOR.findall(file.read_text())
    }
    assert "pdftotext" in looked_for
    assert looked_for - set(wanted.PROGRAMS) == set()


def test_the_command_has_the_package_of_a_program_that_is_not_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in set(wanted.PROGRAMS) - {"cryptsetup", "vgcreate", "lvm"}:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(wanted, "PATH", str(tmp_path))
    monkeypatch.setattr(wanted, "FILES", {})
    assert wanted.missing_packages() == ["cryptsetup-bin", "lvm2"]
