"""What goes wrong on the way: each fault is a row, how it is made and what must be true afterwards."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.hosts.losses import (
    agent_and_server_frozen,
    agent_frozen,
    agent_frozen_and_coordinator_killed,
    agent_killed,
    agent_killed_going_on,
    coordinator_killed,
    engine_killed,
    interrupted,
    link_lost,
    link_short,
    paused_and_coordinator_killed,
    paused_and_given_up,
    paused_for_a_while,
    two_coordinators,
)
from lab.hosts.outcomes import (
    clock_is_told,
    complete,
    ended_quickly,
    failed_with_figures,
    not_begun,
    refused_early,
    stalled_and_went_on,
    watch_refused,
    wrote_no_more,
)
from lab.hosts.trial import EVERY_WAY
from lab.hosts.unreached import (
    another_hosts_certificate,
    certificate_missing,
    certificate_over,
    clock_off,
    host_key_differs,
    key_refused,
    no_scheduler,
    no_server,
    no_such_name,
    not_installed,
    server_hangs,
    stranger,
    unreachable,
    version_differs,
    wrong_certificate,
)
from lab.hosts.unusable import (
    disk_full,
    missing_target,
    mounted_on_one,
    no_room_here,
    same_target_written,
    storage_link_short,
    watched_clock_off,
    watched_key_refused,
    wrong_community,
    wrong_snmp_password,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.hosts.trial import HostsTrial


@dataclass(frozen=True)
class Fault:
    """One row."""

    name: str
    make: Callable[[HostsTrial], None]
    expect: Callable[[HostsTrial], bool]
    """Whether what must be true is."""
    transports: tuple[str, ...] = ("dask", "pipe")
    """Or `STANDING`: the rows that can differ where scheduler and workers are not the run's own."""


def all_well(trial: HostsTrial) -> None:
    trial.start(seconds=2)
    trial.finish()


FAULTS: tuple[Fault, ...] = (
    Fault("nothing", all_well, complete, EVERY_WAY),
    Fault("host unreachable (its link is down)", unreachable, not_begun),
    Fault("no ssh server on a host", no_server, not_begun),
    Fault("wrong port", no_such_name, not_begun),
    Fault("key refused", key_refused, not_begun),
    Fault("host key is another one", host_key_differs, not_begun),
    Fault("ssh server of a host hangs", server_hangs, not_begun),
    Fault("a scheduler that is none", no_scheduler, refused_early, ("dask",)),
    Fault("certificates are over", certificate_over, refused_early, ("dask",)),
    Fault("no agent of ours: lines of noise", stranger("noise"), not_begun, ("pipe",)),
    Fault("no agent of ours: a line without end", stranger("endless"), not_begun, ("pipe",)),
    Fault("no agent of ours: it lies", stranger("liar"), not_begun, ("pipe",)),
    Fault("no agent of ours: it is silent", stranger("silent"), not_begun, ("pipe",)),
    Fault("Loadstone not installed on a host", not_installed, not_begun),
    Fault("version differs", version_differs, not_begun),
    Fault(
        "wall clock off by 3 s",
        clock_off,
        lambda t: complete(t) and int(str(t.record()["h2"]["clock_offset_ns"])) > 2.9e9,
    ),
    Fault("clock of a watched host off by 3 s", watched_clock_off, clock_is_told),
    Fault("agent killed in prepare", agent_killed("prepare"), not_begun, EVERY_WAY),
    Fault("agent killed while armed", agent_killed("armed"), lambda t: t.code == 1 and "h2" in t.said),
    Fault("agent killed while it runs", agent_killed("running"), failed_with_figures, EVERY_WAY),
    Fault(
        "agent killed while its bundle is collected",
        agent_killed("collect"),
        lambda t: t.code in {0, 1} and "I/Os" in t.kept(),
    ),
    Fault("agent killed while it runs, on_loss = continue", agent_killed_going_on, failed_with_figures),
    Fault(
        "agent frozen (SIGSTOP)",
        agent_frozen,
        lambda t: failed_with_figures(t) and "NEVER" not in " ".join(t.notes),
        EVERY_WAY,
    ),
    Fault(
        "agent frozen, then coordinator killed",
        agent_frozen_and_coordinator_killed,
        ended_quickly,
        EVERY_WAY,
    ),
    Fault(
        "agent and ssh server of a host frozen",
        agent_and_server_frozen,
        lambda t: failed_with_figures(t) and "NEVER" not in " ".join(t.notes),
    ),
    Fault("host paused for 3 s", paused_for_a_while, complete, EVERY_WAY),
    Fault(
        "host paused until the others gave it up, then goes on",
        paused_and_given_up,
        lambda t: failed_with_figures(t) and wrote_no_more(t),
        EVERY_WAY,
    ),
    Fault(
        "host paused, coordinator killed, host goes on",
        paused_and_coordinator_killed,
        wrote_no_more,
        EVERY_WAY,
    ),
    Fault(
        "engine killed on one host",
        engine_killed,
        lambda t: t.code == 1 and "h2" in t.said and "I/Os" in t.kept(),
    ),
    Fault("link down for 5 s and up again", link_short, complete, EVERY_WAY),
    Fault("link down for good", link_lost, failed_with_figures, EVERY_WAY),
    Fault("coordinator killed (SIGKILL)", coordinator_killed(signal.SIGKILL), ended_quickly, EVERY_WAY),
    Fault(
        "coordinator told to end (SIGTERM)",
        coordinator_killed(signal.SIGTERM),
        lambda t: t.code == 130 or "interrupted" in t.kept(),
    ),
    Fault("Ctrl-C", interrupted, lambda t: t.code == 130 and t.kept().startswith("interrupted: "), EVERY_WAY),
    Fault(
        "two coordinators on the same hosts",
        two_coordinators,
        lambda t: t.kept().startswith("interrupted: ") and "used by another run" in " ".join(t.notes),
        EVERY_WAY,
    ),
    Fault("disk full on one host", disk_full, lambda t: t.code in {1, 2} and "h2" in t.said),
    Fault("storage's link (NBD) down for 5 s and up again", storage_link_short, stalled_and_went_on),
    Fault("wrong SNMP community for a watched host", wrong_community, watch_refused),
    Fault("wrong SNMP password for a watched host", wrong_snmp_password, watch_refused),
    Fault("key refused by a watched host", watched_key_refused, watch_refused),
    Fault("--out is not empty", no_room_here, lambda t: t.code == 2 and (t.out / "something").exists()),
    Fault("a target that must never be written", mounted_on_one, lambda t: t.code == 2 and "h1" in t.said),
    Fault(
        "several hosts would write one file",
        same_target_written,
        lambda t: t.code == 2 and "--divide" in t.said and not any((t.directory / "data").read_bytes()),
    ),
    Fault("no such target", missing_target, lambda t: t.code in {1, 2} and "h1" in t.said),
    Fault("certificate of another authority on one host", wrong_certificate, not_begun, ("dask",)),
    Fault(
        "certificate of another host on one host",
        another_hosts_certificate,
        lambda t: t.code == 2 and "certificate of h1, not of h2" in t.said,
        ("dask",),
    ),
    Fault(
        "certificates missing",
        certificate_missing,
        lambda t: t.code == 2 and "certificates" in t.said,
        ("dask",),
    ),
)
