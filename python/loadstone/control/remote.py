"""Settings of another host through ssh(1): kernel files that hold one value.

Knows the few places whose files are settings, and that a host that has booted since has none of ours.
Keys, users and jump hosts are ssh's own business (ssh_config(5)); it never asks for a password here.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import Final

from loadstone.control import orphans
from loadstone.control.control_kind import Control
from loadstone.errors import RefusedError
from loadstone.messages import make_error, say

PATIENCE_S: Final = 30
DROP: Final = "sync; echo 1 > /proc/sys/vm/drop_caches"
ALLOWED: Final = (
    r"/proc/sys/(vm|fs|net|sunrpc)/[\w./-]+",
    r"/proc/fs/nfsd/threads",
    r"/sys/block/[\w!-]+/queue/[\w/]+",
    r"/sys/devices/system/cpu/cpufreq/policy\d+/\w+",
)
DOES_SOMETHING: Final = ("/proc/sys/vm/drop_caches", "/proc/sys/vm/compact_memory")


class RemoteFile(Control):
    """One value in a file of another host: of `user@server:/proc/sys/vm/dirty_ratio`."""

    by_name = True
    name, title, source = "remote_file", "kernel file of another host, through ssh", "ssh(1)"
    volatile, by_program = False, True

    def resolve(self, subject: str) -> list[str]:
        """Return host and file."""
        host, path = _parts(subject)
        allowed = any(re.fullmatch(one, path) for one in ALLOWED) and ".." not in path
        if not allowed or path in DOES_SOMETHING:
            raise make_error(RefusedError, "control.remote.not_set", path=path, host=host)
        shown = over_ssh(host, f"cat {shlex.quote(path)}")
        if shown.returncode != 0:
            raise make_error(
                RefusedError, "control.remote.not_shown", host=host, path=path, reason=_words(shown)
            )
        return [subject]

    def read(self, subject: str) -> str | None:
        """Return the value; of a list the one in brackets."""
        host, path = _parts(subject)
        done = over_ssh(host, f"cat {shlex.quote(path)}")
        if done.returncode != 0:
            return None
        value = " ".join(done.stdout.split())
        chosen = re.search(r"\[([\w-]+)\]", value)
        return chosen[1] if chosen else value

    def write(self, subject: str, value: str) -> None:
        """Set it. Raises RefusedError where the host does not take it."""
        host, path = _parts(subject)
        lock = orphans.lock_of(self.name, subject)
        done = over_ssh(host, f"printf %s {shlex.quote(value)} > {shlex.quote(path)}", lock)
        orphans.forget(lock)
        if done.returncode != 0:
            raise make_error(
                RefusedError,
                "control.remote.not_taken",
                host=host,
                path=path,
                value=repr(value),
                reason=_words(done),
            )

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether it is what was asked for."""
        return " ".join(requested.split()) == value

    def identity(self, subject: str) -> str:
        """Return the host's boot: after another one nothing of ours is left there."""
        done = over_ssh(_parts(subject)[0], "cat /proc/sys/kernel/random/boot_id")
        if done.returncode != 0:
            raise make_error(
                RefusedError, "control.remote.silent", host=_parts(subject)[0], reason=_words(done)
            )
        return done.stdout.strip()


def drop_page_cache(host: str) -> None:
    """Write dirty pages and drop the page cache of another host. Raises RefusedError."""
    done = over_ssh(host, DROP)
    if done.returncode != 0:
        raise make_error(RefusedError, "control.page_cache.of_host", host=host, reason=_words(done))


def why_no_drop(host: str) -> str | None:
    """Return why the page cache of another host cannot be dropped; None where it can. Drops nothing."""
    done = over_ssh(host, f"test -w {DOES_SOMETHING[0]}")
    if done.returncode == 0:
        return None
    return (
        _words(done) if done.returncode == 255 else say("control.page_cache.no_root", file=DOES_SOMETHING[0])
    )


def over_ssh(host: str, command: str, lock: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell on another host; `lock`: the name under which it is waited for."""
    words = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={PATIENCE_S // 3}", "--", host, command]
    try:
        return orphans.run(words, lock, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        silence = say("control.remote.no_answer", patience=PATIENCE_S)
        return subprocess.CompletedProcess(words, 255, "", silence)
    except OSError as error:
        return subprocess.CompletedProcess(words, 127, "", f"ssh: {error.strerror}")


def _parts(subject: str) -> tuple[str, str]:
    host, colon, path = subject.partition(":")
    if not colon or not host or host.startswith("-") or not path.startswith("/"):
        raise make_error(RefusedError, "control.remote.subject", found=repr(subject))
    return host, path


def _words(done: subprocess.CompletedProcess[str]) -> str:
    output = " ".join((done.stderr or done.stdout).split())[:300]
    return output or say("control.remote.ended", code=done.returncode)
