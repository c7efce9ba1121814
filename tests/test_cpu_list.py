"""The kernel's lists of CPUs, in every shape that its files have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadstone import cpu_list, environment

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("listed", "numbers"),
    [
        ("0", (0,)),
        ("0-2,5\n", (0, 1, 2, 5)),
        ("3,1-2", (3, 1, 2)),
        ("64-127,192-255", (*range(64, 128), *range(192, 256))),
        ("", ()),
        ("\n", ()),
    ],
)
def test_lists_are_read(listed: str, numbers: tuple[int, ...]) -> None:
    assert cpu_list.numbers(listed) == numbers


def test_a_core_has_as_many_threads_as_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "CPU", tmp_path)
    assert "threads_per_core" not in environment.cpu()
    topology = tmp_path / "cpu0" / "topology"
    topology.mkdir(parents=True)
    (topology / "thread_siblings_list").write_text("0-1,64-65\n")
    assert environment.cpu()["threads_per_core"] == 4


def test_nothing_else_reads_them() -> None:
    """They were read in four places, each with an idea of its own of what an empty one is."""
    readers = {
        str(path.relative_to(ROOT / "python" / "loadstone"))
        for path in (ROOT / "python" / "loadstone").rglob("*.py")
        if re.search(r"""range\(int\(\w+(?:\[0\])?\), int\(""", path.read_text())
    }
    assert readers == {"cpu_list.py"}
