"""A Workload and a Plan are no tool's: what a job-file language means is settled in `formats/`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "python" / "loadstone"
LANGUAGES: Final = re.compile(r"\b(?:fio|vdbench|iometer)\b", re.IGNORECASE)
FORMATS: Final = {
    "plan/anchors.py": "vdbench's control file, and its names of directories",
    "plan/safety/tree_mark.py": "vdbench's control file",
    "plan/verification/header_verification.py": "headers in the format of fio",
    "plan/verification/verify_state.py": "fio's files of a state",
    "workload/catalogue/__init__.py": "the title of a group of named workloads",
    "workload/job_parts.py": "headers in the format of fio",
}
"""Where a language is named, and the file format or title that is meant."""


def naming(package: Path) -> set[str]:
    """Return the modules of the neutral rooms that name a language."""
    files = [file for room in ("plan", "workload") for file in (package / room).rglob("*.py")]
    return {file.relative_to(package).as_posix() for file in files if LANGUAGES.search(file.read_text())}


def test_a_language_is_named_only_for_its_file_formats() -> None:
    assert naming(PACKAGE) == set(FORMATS)


def test_a_language_that_is_named_elsewhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "a.py").write_text('"""As in fio."""\n')
    (tmp_path / "plan" / "b.py").write_text('"""Of a .fiof file."""\n')
    assert naming(tmp_path) == {"plan/a.py"}
