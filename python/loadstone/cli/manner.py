"""How a study is run and shown, whatever is in it.

Knows the options that all verbs with several runs share. Runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.path.spec import Spec


@dataclass(frozen=True, slots=True)
class Manner:
    """The common options, as `loadstone run` has them."""

    out: Path
    i_accept_data_loss: Sequence[str] = ()
    json: bool = False
    progress: bool = True
    report: bool = True
    calibration: bool = True
    require_valid: bool = False
    """98 is the exit code when any run's verdict is worthless."""
    spec: Spec | None = None
    """What its data sheet says of the storage."""
    after_failure: Literal["stop", "go_on"] = "stop"
