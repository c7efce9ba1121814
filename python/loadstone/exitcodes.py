"""The exit codes scripts may rely on, all of them, here only."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
"""Everything asked for was done."""
FAILED: Final = 1
"""The run failed: a target returned errors, or the engine broke."""
USAGE: Final = 2
"""Bad input, or refused."""
REGRESSION: Final = 97
"""`compare --gate` found a regression."""
NOT_VALID: Final = 98
"""Validity was required, and is not there or cannot be told; or a gate could not have seen a regression."""
INTERRUPTED: Final = 130
"""Interrupted by the user; the bundle holds what was measured."""
