"""How a run or a study is done and told, whatever is in it.

Knows the options that the verbs with runs share, and where a bundle goes when nobody says
where. Runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from loadstone.api.place import default_directory
from loadstone.cli.options.arguments import COMMAND_LINE, SHELL, Flag, Repeat
from loadstone.errors import Where

if TYPE_CHECKING:
    from loadstone.api.on_hosts import GivenHosts
    from loadstone.api.one_run import Watched


@Parameter(name="*")
@dataclass(frozen=True)
class OutputOptions:
    """Where the result goes and what is shown."""

    out: Path | None = None
    """Directory of the bundle or study; must be new or empty [default: ./loadstone-runs/TIME-NAME]."""
    json: Annotated[bool, Flag] = False
    """Print one JSON document at the end instead of the summary."""
    progress: bool = True
    """Show each run while it runs (on a terminal only)."""
    report: bool = True
    """Write the report beside the result."""

    def directory(self, name: str) -> Path:
        """Return `--out`, or without it a new directory, named after the time and the job."""
        return self.out or default_directory(name)


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions(OutputOptions):
    """The same, of runs that are judged and may write."""

    i_accept_data_loss: Annotated[tuple[str, ...], Repeat] = ()
    """Path of a target whose content may be lost (repeat for several); typed out, one by one."""
    calibration: bool = True
    """Measure for 0.3 s what the load generator can do without a device, before each run of another shape."""
    watch: Annotated[tuple[str, ...], Repeat] = ()
    """Watch the storage's own side meanwhile, as NAME=ssh://USER@HOST, NAME=snmp://HOST,
    NAME=http://HOST:9100/metrics or NAME=local (repeat for several)."""
    watch_interval: str | None = None
    """How often a watched host is looked at, as 1s or 1m [default: 1s]."""
    watch_secrets: Path | None = None
    """TOML file that only you can read, with the communities and passwords of watched hosts by name."""
    hosts: str | None = None
    """Run on these hosts at once: h1,root@h2:2222 by SSH, or a file HOSTS.toml (docs/hosts.md)."""
    divide: Annotated[bool, Flag] = False
    """Give each host its own part of what several of them write."""
    require_valid: Annotated[bool, Flag] = False
    """End with exit code 98 when the verdict on any run is 'not valid' or 'cannot tell'."""

    def on_hosts(self) -> GivenHosts | None:
        """Return the hosts that generate the load; None: this one does. Raises `InputError`."""
        if self.hosts is None and not self.divide:
            return None
        from loadstone.api.on_hosts import given_hosts

        return given_hosts(self.hosts, divide=self.divide, caller=SHELL)

    def watched(self) -> Watched:
        """Return the hosts to watch. Raises `InputError`."""
        if not self.watch and self.watch_interval is None and self.watch_secrets is None:
            return ()
        from loadstone.api.one_run import watched

        option = Where(COMMAND_LINE, option="--watch-interval")
        return watched(
            self.watch, interval=self.watch_interval, interval_at=option, secrets=self.watch_secrets
        )
