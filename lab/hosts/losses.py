"""Faults of who takes part: agents, engines, links and coordinators that are killed, stopped or cut off."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

from lab.hosts.trial import LONG_S, WRITERS, HostsTrial, gone, kill

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_WRITERS = WRITERS.replace("runtime=3", "runtime={seconds}")


def agent_killed(phase: str) -> Callable[[HostsTrial], None]:
    def make(trial: HostsTrial) -> None:
        # The run is over when it is struck, however late that is; only what is collected ended before.
        seconds = 6 if phase == "collect" else LONG_S
        trial.start(run="lead_s = 6" if phase == "armed" else "", seconds=seconds)
        hosts = trial.hosts
        if phase == "prepare":
            trial.reach(lambda: bool(hosts.agents("h2")))
        elif phase == "armed":
            trial.reach(lambda: all(trial.armed(name) for name in hosts.names))
        elif phase == "running":
            trial.reach(trial.running)
        else:
            trial.reach(trial.running)
            trial.reach(lambda: not hosts.engines("h2"))
        kill(hosts.agents("h2"))
        trial.notes.append(f"engine of h2 gone after {gone(trial, 'h2')}")
        trial.finish()

    return make


def agent_killed_going_on(trial: HostsTrial) -> None:
    trial.start(run='on_loss = "continue"', seconds=20)
    trial.reach(trial.running)
    kill(trial.hosts.agents("h2"))
    trial.finish()


def engine_killed(trial: HostsTrial) -> None:
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    kill(trial.hosts.engines("h2"))
    trial.finish()


def agent_frozen(trial: HostsTrial) -> None:
    trial.start(run="lost_after_s = 4", seconds=LONG_S)
    trial.reach(trial.running)
    frozen = trial.hosts.agents("h2")
    kill(frozen, signal.SIGSTOP)
    trial.finish()
    # It cannot end anything: its engine must have ended by itself.
    trial.notes.append(f"engine of h2 gone {gone(trial, 'h2')} after the run")
    # One that belongs to a worker was killed by it meanwhile.
    with contextlib.suppress(LookupError):
        kill(frozen, signal.SIGCONT)


def agent_frozen_and_coordinator_killed(trial: HostsTrial) -> None:
    """Nobody is left who could end the engine, and nobody who wants it."""
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    frozen = trial.hosts.agents("h2")
    kill(frozen, signal.SIGSTOP)
    kill(trial.coordinator())
    _note_engines_gone(trial)
    with contextlib.suppress(LookupError):
        kill(frozen, signal.SIGCONT)
    trial.finish()


def agent_and_server_frozen(trial: HostsTrial) -> None:
    """No word and no end comes through any more: the engine ends when it was quiet for too long."""
    trial.start(run="lost_after_s = 4", seconds=LONG_S)
    trial.reach(trial.running)
    frozen = [pid for pid in trial.hosts.processes("h2") if pid not in trial.hosts.engines("h2")]
    kill(frozen, signal.SIGSTOP)
    try:
        trial.notes.append(f"engine of h2 gone after {gone(trial, 'h2')}")
        trial.finish()
    finally:
        kill(frozen, signal.SIGCONT)


def host_paused(
    trial: HostsTrial, *, until: Callable[[], object], run: str = "", then: bool = False, alone_s: float = 0.0
) -> None:
    """Stop everything on h2, and let it go on, its engine first: what does it still write?

    `alone_s`: the engine must end by itself, before those go on who could tell it.
    """
    data = trial.directory / "data"
    consent = [f"h1:{data}", f"h2:{data}", f"shared:{data}"]
    more = [word for one in consent for word in ("--i-accept-data-loss", one)]
    trial.start(*more, job=LONG_WRITERS, seconds=30 if then else LONG_S, run=run)
    trial.reach(trial.running)
    engines = trial.hosts.engines("h2")
    paused = [pid for pid in trial.hosts.processes("h2") if pid not in engines]
    kill([*engines, *paused], signal.SIGSTOP)
    try:
        until()
    finally:
        resumed_s = time.time()
        kill(engines, signal.SIGCONT)
        time.sleep(alone_s)
        kill(paused, signal.SIGCONT)
    if not then:
        after = gone(trial, "h2")
        late_s = max(0.0, data.stat().st_mtime - resumed_s)
        trial.notes.append(f"wrote for {late_s * 1e3:.0f} ms after it went on, its engine gone {after} later")
    trial.finish()


def paused_and_given_up(trial: HostsTrial) -> None:
    host_paused(trial, until=trial.finish, run="lost_after_s = 4", alone_s=1.0)


def paused_and_coordinator_killed(trial: HostsTrial) -> None:
    def until() -> None:
        kill(trial.coordinator())
        # The other host's engine must be gone, so that what is written is this one's.
        trial.until(lambda: not trial.hosts.engines("h1"), 10)
        time.sleep(2)

    host_paused(trial, until=until)


def paused_for_a_while(trial: HostsTrial) -> None:
    host_paused(trial, until=lambda: time.sleep(3), run="lost_after_s = 12", then=True)


def _note_engines_gone(trial: HostsTrial) -> None:
    gone = trial.gone_within(10)
    trial.notes.append("engines gone " + (f"after {gone:.1f} s" if gone is not None else "NEVER"))


def link_short(trial: HostsTrial) -> None:
    trial.start(seconds=30, run="lost_after_s = 12")
    trial.reach(trial.running)
    trial.hosts.link("h2", "down")
    time.sleep(5)
    trial.hosts.link("h2", "up")
    trial.finish()


def link_lost(trial: HostsTrial) -> None:
    trial.start(seconds=LONG_S, run="lost_after_s = 4")
    trial.reach(trial.running)
    trial.hosts.link("h2", "down")
    trial.notes.append(f"engine of h2 gone after {gone(trial, 'h2')}")
    trial.finish()
    trial.hosts.link("h2", "up")
    trial.gone_within(10)


def coordinator_killed(number: int) -> Callable[[HostsTrial], None]:
    def make(trial: HostsTrial) -> None:
        trial.start(seconds=LONG_S)
        trial.reach(trial.running)
        kill(trial.coordinator(), number)
        _note_engines_gone(trial)
        trial.finish()
        trial.until(lambda: not any(trial.hosts.agents(name) for name in trial.hosts.names), 10)
        time.sleep(1)

    return make


def interrupted(trial: HostsTrial) -> None:
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    assert trial.process is not None
    trial.process.send_signal(signal.SIGINT)
    trial.finish()


def two_coordinators(trial: HostsTrial) -> None:
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    first, out = trial.process, trial.out
    second = HostsTrial(trial.hosts, trial.directory / "second", trial.transport, trial.standing)
    second.directory.mkdir()
    second.start()
    second.finish()
    trial.notes.append(f"second: code {second.code}: {second.last_words()}")
    trial.process = first
    assert out == trial.out
    assert first is not None
    first.send_signal(signal.SIGINT)
    trial.finish()
