"""Where the engine's program is, and what keeps it from being started.

Knows the places an installation may have put it. Starts no run.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from loadstone.errors import MORE_FILES, EngineError
from loadstone.messages import make_error, say

NAME = "loadstone-engine"
OVERRIDE = "LOADSTONE_ENGINE"
STATIC_OVERRIDE = "LOADSTONE_STATIC_ENGINE"
STATIC_TARGET = "x86_64-unknown-linux-musl"
_REMEDIES = {
    errno.EMFILE: MORE_FILES,
    errno.ENFILE: MORE_FILES,
    errno.EAGAIN: "raise the limit on processes (ulimit -u, or pids.max of the control group)",
    errno.ENOMEM: "free memory, or raise the limit on it (ulimit -v, memory.max of the control group)",
}
_NOT_A_PROGRAM = frozenset((errno.ENOENT, errno.EACCES, errno.ENOEXEC))
_ROOT = Path(__file__).resolve().parents[3]
"""Of a clone; an installation has no `Cargo.toml` there."""


def find() -> Path:
    """Return the engine's program.

    `LOADSTONE_ENGINE` wins and must then name an executable file. Otherwise the first of:
    the scripts directory of this Python (where `pip install` puts it), the build directory
    of a source tree, `PATH`. Raises `EngineError` naming every place looked at.
    """
    override = os.environ.get(OVERRIDE)
    if override:
        if _runs(Path(override)):
            return Path(override)
        raise make_error(
            EngineError, "engine.binary.override", variable=OVERRIDE, path=override, program=NAME
        )
    places = _places()
    for place in places:
        if _runs(place):
            return place
    on_path = shutil.which(NAME)
    if on_path:
        return Path(on_path)
    looked = ", ".join(str(place) for place in places)
    raise make_error(EngineError, "engine.binary.not_installed", program=NAME, places=looked)


def find_static() -> Path | None:
    """Return the engine that needs no C library, to be sent to other hosts; None where none was built.

    `LOADSTONE_STATIC_ENGINE` wins; otherwise it is beside the engine, or where `make static` builds it.
    Raises `EngineError` for one that takes other Plans than the engine here.
    """
    override = os.environ.get(STATIC_OVERRIDE)
    places = [Path(override)] if override else [find().with_name(f"{NAME}-static")]
    if not override and (_ROOT / "Cargo.toml").is_file():
        places.append(_ROOT / "target" / STATIC_TARGET / "release" / NAME)
    engine = next((place for place in places if _runs(place)), None)
    if engine is None:
        if override:
            raise make_error(
                EngineError, "engine.binary.static_override", variable=STATIC_OVERRIDE, path=override
            )
        return None
    if _schema(engine) != _schema(find()):
        raise make_error(EngineError, "engine.binary.other_version", static=engine, engine=find())
    return engine


def rebuild_hint() -> str:
    """Return how to get an engine of this version: by a variable, in a clone, or by an installation."""
    if os.environ.get(OVERRIDE):
        return say("engine.binary.rebuild_override", variable=OVERRIDE)
    if (_ROOT / "Cargo.toml").is_file():
        return say("engine.binary.rebuild_clone", root=_ROOT)
    return say("engine.binary.rebuild_installed")


def not_started(program: Path | str, error: OSError) -> EngineError:
    """Return the error of a program that could not be started."""
    hint = rebuild_hint() if error.errno in _NOT_A_PROGRAM else _REMEDIES.get(error.errno or 0)
    return make_error(
        EngineError, "engine.binary.not_started", hint=hint, program=program, reason=error.strerror
    )


def _schema(engine: Path) -> bytes:
    done = subprocess.run([engine, "schema", "plan"], capture_output=True, check=False, timeout=60)
    if done.returncode:
        raise make_error(
            EngineError,
            "engine.binary.cannot_run",
            engine=engine,
            reason=done.stderr.decode(errors="replace").strip(),
        )
    return done.stdout


def _places() -> list[Path]:
    """Newest first when both exist: a source tree's own build beats an older installed copy."""
    installed = Path(sysconfig.get_path("scripts")) / NAME
    built = _ROOT / "target" / "release" / NAME
    places = [installed]
    if (_ROOT / "Cargo.toml").is_file():
        places.append(built)
    return sorted(places, key=_modified, reverse=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
