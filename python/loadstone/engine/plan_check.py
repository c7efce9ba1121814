"""What the engine says of a Plan before it runs: whether it accepts it, and the memory it needs.

Knows the engine's verbs `check` and `schema`. Runs nothing.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from loadstone.engine.binary import find, not_started, rebuild_hint
from loadstone.errors import EngineError, InputError
from loadstone.messages import make_error
from loadstone.plan import model
from loadstone.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

ACCEPTED = 0
REFUSED = 2
STANDARD_INPUT = "/proc/self/fd/0"
"""What /dev/stdin leads to, which chroots and small guests do not have."""


def memory_bytes(plan: model.Plan) -> int:
    """Return the memory a Plan needs.

    Raises `InputError` when it is too much, or the Plan not acceptable, `EngineError` for an engine that
    reads Plans of another version.
    """
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
    if done.returncode == ACCEPTED:
        return int(json.loads(done.stdout)["memory_bytes"])
    reply = _refusal(done.stdout)
    reason = reply["message"] if reply else done.stderr.decode(errors="replace").strip()
    if done.returncode == REFUSED and not reads_these_plans(program):
        raise make_error(
            EngineError,
            "engine.check.other_version",
            hint=rebuild_hint(),
            engine=program,
            version=__version__,
            reason=reason.partition("\n")[0],
        )
    if done.returncode != REFUSED or not reply:
        raise make_error(
            EngineError, "engine.check.code", hint=rebuild_hint(), code=done.returncode, reason=reason
        )
    raise InputError(reason, hint=reply["hint"] or None)


def reads_these_plans(program: Path) -> bool:
    """Return whether an engine is of the version that Plans are written for here."""
    done = subprocess.run([program, "schema", "plan"], capture_output=True, check=False)
    try:
        return done.returncode == 0 and schema_digest(done.stdout) == model.SCHEMA_DIGEST
    except ValueError:
        return False


def schema_digest(schema: bytes) -> str:
    """Return the digest of a JSON schema; what its fields are said to mean is no part of it.

    Raises `ValueError` for what is no JSON.
    """
    bare = json.dumps(_without_descriptions(json.loads(schema)), sort_keys=True)
    return blake3(bare.encode()).hexdigest()


def _without_descriptions(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_descriptions(one) for one in part]
    if not isinstance(part, dict):
        return part
    # A text is what is said of a part; an object of that name is a field.
    return {
        name: _without_descriptions(value)
        for name, value in part.items()
        if name != "description" or isinstance(value, dict)
    }


def _refusal(printed: bytes) -> dict[str, str] | None:
    """Return what the engine says of a Plan that it does not take; None where that is not to be read."""
    try:
        reply = json.loads(printed)
    except ValueError:
        return None
    return {"hint": "", **reply} if isinstance(reply, dict) and "message" in reply else None
