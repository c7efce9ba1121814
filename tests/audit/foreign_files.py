"""Files of other tools' results whose content is known, and how tests read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit import foreign

if TYPE_CHECKING:
    from loadstone.audit.case import Case

DATA = Path(__file__).parents[1] / "data" / "foreign"
FIO = DATA / "fio"
KIB, MIB = 1 << 10, 1 << 20


def cases(path: Path) -> list[Case]:
    return list(foreign.read(path).cases)


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FIO / "shared.json").read_text())
    return loaded


def close(value: float | None, expected: float, relative: float = 1e-6) -> bool:
    return value is not None and value == pytest.approx(expected, rel=relative)
