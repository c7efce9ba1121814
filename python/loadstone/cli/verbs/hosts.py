"""`loadstone hosts`: check the hosts of `--hosts`, install on them, make their certificates.

Knows how findings are shown; the work is in `loadstone.hosts`.
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, Flag, Repeat
from loadstone.errors import InputError, LoadstoneError, Where
from loadstone.screen import Screen

if TYPE_CHECKING:
    from loadstone.hosts.hosts_file import HostsFile

PIPE_WIDTH: Final = 160
COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


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
    from loadstone.hosts.hosts_file import read_hosts

    wrong = {
        "--target": bool(target) and action != "check",
        "--wheels": wheels is not None and action != "install",
    }
    wrong["--directory"] = directory is not None and action != "certificates"
    for option, given in wrong.items():
        if given:
            raise InputError(f"has no effect on `{action}`", where=Where(COMMAND_LINE, option=option))
    named = read_hosts(hosts)
    if action == "check":
        return _check(named, target, as_json=json)
    if action == "install":
        return _install(named, wheels, as_json=json)
    return _certificates(named, directory, as_json=json)


def _check(named: HostsFile, targets: tuple[str, ...], *, as_json: bool) -> int:
    from rich.table import Table

    from loadstone.hosts.checking import check_hosts
    from loadstone.hosts.reach import Reached

    with Reached(named) as reached:
        found = check_hosts(named, reached, targets)
    if as_json:
        sys.stdout.write(json_format.dumps({"checks": [one.document() for one in found]}, indent=2) + "\n")
    else:
        table = Table(box=None, pad_edge=False)
        for heading in ("host", "", "check", "found", "remedy"):
            table.add_column(heading, overflow="fold")
        for one in found:
            state = f"[{COLOURS[one.state]}]{one.state}[/]"
            table.add_row(one.host, state, one.name, one.found, one.remedy)
        Screen(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
    return exitcodes.FAILED if any(one.state == "fail" for one in found) else exitcodes.DONE


def _install(named: HostsFile, wheels: Path | None, *, as_json: bool) -> int:
    from loadstone.hosts.install import install

    extra = "[hosts]" if named.run.transport == "dask" else ""
    told: dict[str, list[str]] = {}
    failed: list[str] = []
    for host in named.host:
        told[host.name] = []
        try:
            for line in install(host, extra=extra, wheels=wheels):
                told[host.name].append(line)
                console.say(f"{host.name}: {line}")
        except LoadstoneError as error:
            failed.append(host.name)
            told[host.name].append(str(error))
            console.say(str(error) if error.hint is None else f"{error} ({error.hint})")
    if as_json:
        document = {
            "hosts": [{"name": name, "did": lines, "failed": name in failed} for name, lines in told.items()]
        }
        sys.stdout.write(json_format.dumps(document, indent=2) + "\n")
    return exitcodes.FAILED if failed else exitcodes.DONE


def _certificates(named: HostsFile, directory: Path | None, *, as_json: bool) -> int:
    from loadstone.hosts import certificates

    made = certificates.write(directory or Path("loadstone-certificates"), named.names)
    if as_json:
        sys.stdout.write(json_format.dumps({"files": [str(path) for path in made]}, indent=2) + "\n")
    else:
        for path in made:
            sys.stdout.write(f"{path}\n")
        console.say(f'set certificates = "{made[0].parent.resolve()}" under [run] of the hosts file')
        console.say(f"they are valid for {certificates.DAYS} days; the authority's own key is not kept")
    return exitcodes.DONE
