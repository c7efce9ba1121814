"""`hosts install`: this version of Loadstone on every host, in a place of its own.

Knows how the installed package becomes a wheel again, what a host must have for it (Python, a C
library that is new enough for the engine), and the steps there. Says what it did.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.metadata
import io
import re
import shlex
import stat
import subprocess
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.engine import binary
from loadstone.errors import RunError
from loadstone.hosts.agent_links import ssh_argv, why_gone
from loadstone.messages import say
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.hosts.hosts_file import HostEntry

PLACE: Final = ".local/share/loadstone"
"""Below the home directory there."""
PYTHON: Final = (3, 11)
SSH_FAILED: Final = 255
"""Exit code of ssh where it did not reach the command."""
LOOK_S: Final = 60.0
"""A host must answer a question within."""
TIMEOUT_S: Final = 900.0
"""Copying and installing take as long on a slow link."""
MACHINE: Final = "x86_64"
"""What the engine here is made for."""
LOOK: Final = """echo "machine $(uname -m)"
python3 -c 'import sys; print("python %d.%d" % sys.version_info[:2])' 2> /dev/null
getconf GNU_LIBC_VERSION 2> /dev/null
true"""
PUT_IN_PLACE: Final = """cd {place} || exit 1
ours() {{ [ ! -L "$1" ] && [ -f "$1/pyvenv.cfg" ] && [ -f "$1/bin/loadstone-engine" ]; }}
before=$(readlink venv)
case "$before" in
  versions/*) ;;
  ?*) echo {not_ours} >&2; exit 1 ;;
  *) if ours venv; then
       before=versions/before-{mark}
       mv venv "$before" || exit 1
     elif [ -e venv ]; then
       echo {not_ours} >&2; exit 1
     fi ;;
esac
ln -sfn versions/{mark} venv || exit 1
for one in incoming-*-*; do
  [ -L "$one" ] || rm -f "$one"/*.whl
  rmdir "$one"
done 2> /dev/null
for one in versions/*; do
  [ "$one" = versions/{mark} ] || [ "$one" = "$before" ] || ! ours "$one" || rm -rf "$one"
done"""
"""An agent of the version before may run still: its files stay until the next one is installed."""
_NEEDS: Final = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def engine_to_send() -> Path:
    """Return the engine that goes to other hosts: one without a C library where there is one."""
    return binary.find_static() or binary.find()


def wheel() -> tuple[str, bytes]:
    """Return name and content of a wheel of what runs here: the package and its engine."""
    tag = "py3-none-linux_x86_64"
    info = f"loadstone-{__version__}.dist-info"
    files: dict[str, bytes] = {}
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[f"loadstone/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    engine = engine_to_send().read_bytes()
    files[f"loadstone-{__version__}.data/scripts/loadstone-engine"] = engine
    distribution = importlib.metadata.distribution("loadstone")
    files[f"{info}/METADATA"] = (distribution.read_text("METADATA") or "").encode()
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\nloadstone = loadstone.cli.start:main\n"
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: loadstone\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    )
    record = "".join(f"{name},sha256={_hash(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            # Without the kind of file `pip` takes no notice of the mode, and the engine could not be run.
            mode = stat.S_IFREG | (0o755 if "/scripts/" in name else 0o644)
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
    return f"loadstone-{__version__}-{tag}.whl", out.getvalue()


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def engine_needs() -> tuple[int, int]:
    """Return the version of the C library that the engine needs, (0, 0) where it needs none."""
    versions = {(int(one[1]), int(one[2])) for one in _NEEDS.finditer(engine_to_send().read_bytes())}
    return max(versions, default=(0, 0))


def install(host: HostEntry, *, extra: str, wheels: Path | None = None) -> Iterator[str]:
    """Install on one host; yield what was done. Raises `RunError` with what the host said.

    `wheels` is a directory of the packages it needs, for hosts that reach no index.
    """
    name, content = wheel()
    needs = engine_needs()
    host_facts = _looked_at(host, needs)
    sent = f"the engine needs glibc {needs[0]}.{needs[1]}" if any(needs) else "the engine needs no C library"
    library = f"glibc {host_facts['glibc']}" if host_facts.get("glibc") else "no glibc"
    yield f"Python {host_facts['python']}, {library}; {sent}"
    place = f'"$HOME"/{PLACE}'
    mark = f"{__version__}-{int(time.time()):x}"
    new, incoming = f"{place}/versions/{mark}", f"{place}/incoming-{mark}"
    try:
        _run_on_host(host, f"mkdir -p {incoming} && cat > {incoming}/{name}", content)
        yield f"copied {name} ({len(content) / 1e6:.1f} MB)"
        index = ""
        if wheels is not None:
            for one in sorted(wheels.glob("*.whl")):
                _run_on_host(host, f"cat > {incoming}/{shlex.quote(one.name)}", one.read_bytes())
            yield say("hosts.install.packages", folder=wheels)
            index = f"--no-index --find-links {incoming}"
        requirement = f"loadstone{extra} @ file://$HOME/{PLACE}/incoming-{mark}/{name}"
        _run_on_host(
            host,
            f"python3 -m venv {new} && {new}/bin/pip install --quiet --disable-pip-version-check "
            f'{index} "{requirement}"',
            hint=None if wheels is not None else say("hosts.install.wheels_hint"),
        )
        # Both programs must run before they take the place of others.
        version = _run_on_host(
            host,
            f"{new}/bin/loadstone-engine probe > /dev/null && {new}/bin/loadstone --version",
            timeout_s=LOOK_S,
        ).strip()
        _run_on_host(host, put_in_place(place, mark), timeout_s=LOOK_S)
    except BaseException:
        # What was there before stays as it was.
        with contextlib.suppress(RunError):
            _run_on_host(host, f"rm -rf {incoming} {new}", timeout_s=LOOK_S)
        raise
    yield say("hosts.install.installed", version=version, place=PLACE)
    yield say("hosts.install.program", place=PLACE)


def put_in_place(place: str, mark: str) -> str:
    """Return the command that has a version take the place of others; what is none of ours stays."""
    not_ours = shlex.quote(say("hosts.install.not_ours", place=f"~/{PLACE}/venv"))
    return PUT_IN_PLACE.format(place=place, mark=mark, not_ours=not_ours)


def _looked_at(host: HostEntry, needs: tuple[int, int]) -> dict[str, str]:
    """Return what a host has; raise `RunError` where that is not enough."""
    facts = dict(
        line.split(maxsplit=1)
        for line in _run_on_host(host, LOOK, timeout_s=LOOK_S).splitlines()
        if " " in line
    )
    if facts.get("machine") != MACHINE:
        actual = facts.get("machine", "not told")
        text = say("hosts.install.machine", found=actual, needed=MACHINE)
        raise RunError(f"{host.name}: {text}", hint=say("hosts.install.machine_hint"))
    python = facts.get("python", "")
    if _version(python) < PYTHON:
        raise RunError(
            f"{host.name}: "
            + say(
                "hosts.install.python",
                found=f"Python {python}" if python else "no Python",
                needed=f"{PYTHON[0]}.{PYTHON[1]}",
            )
        )
    if any(needs) and _version(facts.get("glibc", "")) < needs:
        actual = facts.get("glibc", "not glibc")
        raise RunError(
            f"{host.name}: " + say("hosts.install.library", found=actual, needed=f"{needs[0]}.{needs[1]}"),
            hint=say("hosts.install.library_hint"),
        )
    return facts


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _run_on_host(
    host: HostEntry,
    command: str,
    digest: bytes = b"",
    *,
    timeout_s: float = TIMEOUT_S,
    hint: str | None = None,
) -> str:
    argv = (
        ["sh", "-c", command]
        if host.launch == "local"
        else [*ssh_argv(host), f"exec sh -c {shlex.quote(command)}"]
    )
    try:
        done = subprocess.run(argv, input=digest, capture_output=True, check=False, timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{host.name}: " + say("hosts.asked.silent", waited_s=timeout_s)) from error
    except OSError as error:
        raise RunError(f"{host.name}: {error}") from error
    if done.returncode == SSH_FAILED and host.launch == "ssh":
        last_lines = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise RunError(f"{host.name}: {why_gone(done.returncode, last_lines, ssh=True)}")
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [""]
        reason = say("hosts.install.failed", code=done.returncode, said=last[0][:300])
        raise RunError(f"{host.name}: {reason}", hint=hint)
    return done.stdout.decode(errors="replace")
