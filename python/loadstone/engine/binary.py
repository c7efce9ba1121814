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

from loadstone.errors import EngineError

NAME = "loadstone-engine"
OVERRIDE = "LOADSTONE_ENGINE"
STATIC_OVERRIDE = "LOADSTONE_STATIC_ENGINE"
STATIC_TARGET = "x86_64-unknown-linux-musl"
_REINSTALL = "reinstall the package or run `make build`"
_MORE_FILES = "raise the limit on open files: ulimit -n 1024"
_REMEDIES = {
    errno.EMFILE: _MORE_FILES,
    errno.ENFILE: _MORE_FILES,
    errno.EAGAIN: "raise the limit on processes (ulimit -u, or pids.max of the control group)",
    errno.ENOMEM: "free memory, or raise the limit on it (ulimit -v, memory.max of the control group)",
    errno.ENOENT: _REINSTALL,
    errno.EACCES: _REINSTALL,
    errno.ENOEXEC: _REINSTALL,
}


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
        message = f"{OVERRIDE}={override} is not an executable file"
        raise EngineError(message, hint=f"unset {OVERRIDE}, or set it to a built {NAME}")
    places = _places()
    for place in places:
        if _runs(place):
            return place
    on_path = shutil.which(NAME)
    if on_path:
        return Path(on_path)
    looked = ", ".join(str(place) for place in places)
    message = f"{NAME} is not installed (looked at {looked} and PATH)"
    raise EngineError(message, hint="install the package with `pip install .`, or run `make build`")


def find_static() -> Path | None:
    """Return the engine that needs no C library, to be sent to other hosts; None where none was built.

    `LOADSTONE_STATIC_ENGINE` wins; otherwise it is beside the engine, or where `make static` builds it.
    Raises `EngineError` for one that takes other Plans than the engine here.
    """
    root = Path(__file__).resolve().parents[3]
    override = os.environ.get(STATIC_OVERRIDE)
    places = [Path(override)] if override else [find().with_name(f"{NAME}-static")]
    if not override and (root / "Cargo.toml").is_file():
        places.append(root / "target" / STATIC_TARGET / "release" / NAME)
    found = next((place for place in places if _runs(place)), None)
    if found is None:
        if override:
            raise EngineError(
                f"{STATIC_OVERRIDE}={override} is not an executable file", hint="unset it, or `make static`"
            )
        return None
    if _schema(found) != _schema(find()):
        raise EngineError(f"{found} is of another version than {find()}", hint="build it again: make static")
    return found


def not_started(program: Path | str, error: OSError) -> EngineError:
    """Return the error of a program that could not be started."""
    message = f"the engine {program} cannot be started: {error.strerror}"
    return EngineError(message, hint=_REMEDIES.get(error.errno or 0))


def _schema(engine: Path) -> bytes:
    done = subprocess.run([engine, "schema", "plan"], capture_output=True, check=False, timeout=60)
    if done.returncode:
        raise EngineError(f"{engine} does not run here: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _places() -> list[Path]:
    """Newest first when both exist: a source tree's own build beats an older installed copy."""
    installed = Path(sysconfig.get_path("scripts")) / NAME
    root = Path(__file__).resolve().parents[3]
    built = root / "target" / "release" / NAME
    places = [installed]
    if (root / "Cargo.toml").is_file():
        places.append(built)
    return sorted(places, key=_modified, reverse=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
