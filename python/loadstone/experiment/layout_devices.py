"""The devices of layouts: looked at before anything is built on them, and agreed to be lost.

Knows which devices and volumes the layouts of an experiment have. Builds nothing.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.control.layout.build import SeenDevice
from loadstone.errors import LoadstoneError, RefusedError, Where
from loadstone.experiment.machine_state import order_of
from loadstone.experiment.read_file import line_of
from loadstone.messages import make_error, say
from loadstone.path.child import answering, run_in_child
from loadstone.plan.safety import guard
from loadstone.plan.safety.in_use import Snapshot
from loadstone.session import through_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.control.layout.description import LayoutOrder
    from loadstone.experiment.prepared import PreparedExperiment

LOOKING: Final = "looking at the devices of the layouts"


def consent_of_runs(prepared: PreparedExperiment, consent: guard.Consent) -> guard.Consent:
    """Check the devices of layouts and ask for them; return the consent that is left for the runs."""
    devices = used_devices(prepared)
    asking, questions = through_parent(consent)
    if devices:
        with answering(*questions):
            run_in_child(
                lambda: _look(prepared, devices, asking), doing=say("path.child.looking.layout_devices")
            )
    return _of_runs(prepared, consent, set(devices))


def states(devices: Sequence[str]) -> dict[str, SeenDevice]:
    """Return each device as it is now."""
    if not devices:
        return {}
    seen_devices: dict[str, SeenDevice] = run_in_child(
        lambda: {one: SeenDevice.of(one) for one in devices}, doing=LOOKING
    )
    return seen_devices


def _of_runs(prepared: PreparedExperiment, consent: guard.Consent, devices: set[str]) -> guard.Consent:
    """Return the consent of the runs: what is lost with the devices of a layout was agreed to with them."""
    own_paths = {os.path.realpath(one) for one in devices}
    # What a layout was built for is new; what is mounted as it is may hold anything.
    built = [order for order in orders(prepared) if order.description.manager != "mount"]
    volumes = tuple(one for order in built for one in order.volumes)
    ask = consent.ask

    def answer(path: str, evidence: list[str]) -> str:
        inside = path in volumes or path.startswith(tuple(f"{one}/" for one in volumes))
        if inside or os.path.realpath(path) in own_paths:
            return path
        return "" if ask is None else ask(path, evidence)

    left = frozenset(one for one in consent.paths if os.path.realpath(one) not in own_paths)
    return dataclasses.replace(consent, paths=left, ask=answer)


def orders(prepared: PreparedExperiment) -> list[LayoutOrder]:
    """Return the order for each layout that some run has."""
    names = {prepared.asked(run).layout for run in prepared.document.runs} - {None}
    return [order_of(prepared.whole, name, prepared.label) for name in sorted(map(str, names))]


def used_devices(prepared: PreparedExperiment) -> list[str]:
    """Return every device that some layout is built on."""
    used = [one for order in orders(prepared) for one in order.used]
    return list(dict.fromkeys(used))


def evidence(device: str, consent: guard.Consent) -> guard.TargetFinding:
    """Look at a device that a layout would be built on. Raises RefusedError where it is none."""
    path = Path(device)
    if not path.is_block_device():
        raise make_error(RefusedError, "experiment.layout.no_device", device=device)
    return guard.examine_device(device, path, path.stat().st_rdev, Snapshot(), consent)


def _look(prepared: PreparedExperiment, devices: Sequence[str], consent: guard.Consent) -> None:
    findings = []
    for device in devices:
        try:
            findings.append(evidence(device, consent))
        except LoadstoneError as error:
            raise error.elsewhere(lambda known: known or _written_at(prepared, device)) from error  # noqa: B023
    if used := {one.path: one.refused for one in findings if one.refused}:
        words = "; ".join(f"{path}: {', '.join(why)}" for path, why in used.items())
        raise RefusedError(f"{say('refusals.in_use.refusal')}: {words}", hint=say("refusals.in_use.hint"))
    lost = [one for one in findings if one.needs_consent and not consent.given(one.path, one.needs_consent)]
    if lost:
        words = "; ".join(f"{one.path}: {', '.join(one.needs_consent)}" for one in lost)
        remedy = consent.remedy([one.path for one in lost])
        raise RefusedError(
            f"{say('refusals.consent.refusal')}: {words}", hint=say("refusals.consent.hint", remedy=remedy)
        )


def _written_at(prepared: PreparedExperiment, device: str) -> Where:
    """Return where the file names a device of layouts."""
    logs = [name for name, one in prepared.whole.layouts.items() if one.log == device]
    listed = device in prepared.whole.devices or not logs
    key = ("devices",) if listed else ("layouts", logs[0], "log")
    return Where(str(prepared.path), line_of(prepared.content.decode(), key), ".".join(key))
