"""What the engine says of a Plan before it runs: whether it accepts it, and the memory it needs.

Knows the engine's verb `check`. Runs nothing.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from loadstone.engine.binary import find, not_started
from loadstone.errors import EngineError, InputError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from loadstone.plan.model import Plan

ACCEPTED = 0
REFUSED = 2
STANDARD_INPUT = "/proc/self/fd/0"
"""What /dev/stdin leads to, which chroots and small guests do not have."""


def memory_bytes(plan: Plan) -> int:
    """Return the memory a Plan needs. Raises `InputError` when it is too much, or the Plan not acceptable."""
    program = find()
    try:
        done = subprocess.run(
            [program, "check", STANDARD_INPUT],
            input=plan.model_dump_json().encode(),
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise not_started(program, error) from error
    if done.returncode not in {ACCEPTED, REFUSED}:
        raise make_error(
            EngineError, "engine.check.code", code=done.returncode, reason=done.stderr.decode().strip()
        )
    reply = json.loads(done.stdout)
    if done.returncode == REFUSED:
        raise InputError(reply["message"], hint=reply["hint"] or None)
    return int(reply["memory_bytes"])
