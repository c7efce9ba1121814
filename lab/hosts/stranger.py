"""What answers in the place of an agent and is none: `python -m lab.hosts.stranger MANNER`.

Knows the first words of ours, so that it is heard.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from loadstone.version import __version__


def say(**message: object) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def noise() -> None:
    """Bytes in lines."""
    while True:
        os.write(1, os.urandom(1 << 12) + b"\n")


def endless() -> None:
    """A line that does not end."""
    while True:
        os.write(1, b'{"type":' + b" " * (1 << 20))


def liar() -> None:
    """A greeting of this version, clocks that go backwards, and a Plan that is none."""
    say(type="up")
    clock_ns = 2**62
    for line in sys.stdin:
        order = json.loads(line)
        clock_ns -= 10**9
        match order["do"]:
            case "hello":
                say(type="hello", version=__version__, host_name="liar", cpus=-1)
            case "ping":
                say(type="pong", id=order["id"], monotonic_ns=clock_ns, unix_ns=-clock_ns)
            case "check":
                say(type="checked", targets=[{"path": "/"}], plan="{}", notes=[], doctor=[])


def silent() -> None:
    """Nothing after the first word."""
    say(type="up")
    sys.stdin.read()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        {"noise": noise, "endless": endless, "liar": liar, "silent": silent}[sys.argv[1]]()
