"""`loadstone hosts`: check the hosts of `--hosts`, install on them, make their certificates.

Knows how findings are shown; the work is in `api.readying_hosts`.
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.display import checks, console
from loadstone.cli.options.arguments import COMMAND_LINE, Flag, Repeat
from loadstone.errors import InputError, Where
from loadstone.messages import make_error, say


def hosts(
    action: Literal["check", "install", "certificates"],
    hosts: str,
    /,
    *,
    target: Annotated[tuple[str, ...], Repeat] = (),
    directory: Path | None = None,
    wheels: Annotated[Path | None, Parameter(name="--wheels")] = None,
    json: Annotated[bool, Flag] = False,
) -> int:
    """Check the hosts of `--hosts`, install this version on them, or make their certificates.

    `check` asks whether each is reachable, of this version, on time and fit, and sees the targets; it
    ends with 1 when something failed. `install` copies this version and says what it did.
    `certificates` makes an authority and a certificate for each, for TLS that outlives a run.

    Parameters
    ----------
    action
        What to do.
    hosts
        Hosts as h1,root@h2:2222 or a file HOSTS.toml.
    target
        Device or file that every host must see; for `check` (repeat for several).
    directory
        New directory of the certificates; for `certificates`.
    wheels
        Directory of the packages that a host without an index needs; for `install`.
    json
        Print one JSON document.
    """
    wrong = {
        "--target": bool(target) and action != "check",
        "--wheels": wheels is not None and action != "install",
    }
    wrong["--directory"] = directory is not None and action != "certificates"
    for option, is_set in wrong.items():
        if is_set:
            raise make_error(
                InputError, "cli.option.no_effect_on", where=Where(COMMAND_LINE, option=option), action=action
            )
    if action == "check":
        return _check(hosts, target, as_json=json)
    if action == "install":
        return _install(hosts, wheels, as_json=json)
    return _certificates(hosts, directory, as_json=json)


def _check(hosts: str, targets: tuple[str, ...], *, as_json: bool) -> int:
    from loadstone.api.readying_hosts import check_hosts

    rows = [one.document() for one in check_hosts(hosts, targets)]
    return checks.show(rows, "host", "state", "name", "found", "remedy", as_json=as_json)


def _install(hosts: str, wheels: Path | None, *, as_json: bool) -> int:
    from loadstone.api.readying_hosts import install_on_hosts

    steps: dict[str, list[str]] = {}
    failed: set[str] = set()
    for host, step in install_on_hosts(hosts, wheels=wheels):
        steps.setdefault(host, []).append(str(step))
        if isinstance(step, str):
            console.say(f"{host}: {step}")
            continue
        failed.add(host)
        console.say(str(step) if step.hint is None else f"{step} ({step.hint})")
    if as_json:
        rows = [{"name": name, "did": lines, "failed": name in failed} for name, lines in steps.items()]
        sys.stdout.write(json_format.dumps({"hosts": rows}, indent=2) + "\n")
    return exitcodes.FAILED if failed else exitcodes.DONE


def _certificates(hosts: str, directory: Path | None, *, as_json: bool) -> int:
    from loadstone.api.readying_hosts import certificate_days, write_certificates

    paths = write_certificates(hosts, directory)
    if as_json:
        sys.stdout.write(json_format.dumps({"files": [str(path) for path in paths]}, indent=2) + "\n")
    else:
        for path in paths:
            sys.stdout.write(f"{path}\n")
        console.say(say("cli.hosts.certificates", directory=paths[0].parent.resolve()))
        console.say(say("cli.hosts.valid_days", days=certificate_days()))
    return exitcodes.DONE
