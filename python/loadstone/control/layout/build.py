"""Layouts built and taken down on this machine.

Knows how a command is run, when an array has synchronised, and what of a layout is there. On the way
down a device is told by what it carries: a file system, array, group or pool of our name. A name in
/dev is another disk's after a reboot, and whoever took a layout down by hand may have put something of
their own there. Whether a device may be lost was asked before.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import ConfigDict, ValidationError

from loadstone import own_directory, units
from loadstone.control import orphans
from loadstone.control.control_kind import Control
from loadstone.control.file_controls import text
from loadstone.control.layout import superblocks
from loadstone.control.layout.description import LEAST_DEVICES, LayoutOrder
from loadstone.control.layout.steps import building, programs, taking_down
from loadstone.errors import RefusedError
from loadstone.frozen_model import FrozenModel
from loadstone.messages import make_error, say
from loadstone.path.mounts import elsewhere, mounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.control.layout.steps import TakeDown

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
PATIENCE_S: Final = 600
LOOK_S: Final = 0.5
ORPHANS_S: Final = 60.0
"""A program that goes on for longer is one that stays, as a file system in user space."""
FREE_TRIES: Final = 20
"""Times a device that is still held is asked for, half a second apart."""
SECTOR_BYTES: Final = 512
_SECTORS_WRITTEN: Final = 6
"""Of a device's `stat` (Documentation/block/stat.rst)."""
FREE_S: Final = 60.0
"""So long what is busy is asked to go, all of it again each time: a mount may end after its program."""
HELD_S: Final = 600.0
"""So long an experiment waits for a process whose own mount namespace still has a volume."""
HOLDER_LOOK_S: Final = 5.0
HOLDER_TELL_S: Final = 30.0
AFTER_HOLDER_S: Final = 20.0
"""Since a holder was there last."""
ENDS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@dataclass(slots=True)
class HolderWait:
    """How long an experiment waits for what holds a layout elsewhere, and who is told so.

    Signals are kept for later meanwhile: one that is pending ends the waiting, as `give_up` does.
    """

    tell: Callable[[str], None] = lambda _: None
    give_up: Callable[[], bool] = lambda: True
    _began_s: float = field(default_factory=time.monotonic)
    _look_s: float = 0.0
    _tell_s: float = 0.0
    _holders: str = ""

    def until_s(self, order: LayoutOrder) -> float:
        """Return until when (monotonic) it is worth asking again; 0 where nobody elsewhere holds it."""
        now_s, last_s = time.monotonic(), self._began_s + HELD_S
        if self.give_up() or signal.sigpending() & ENDS or now_s > last_s:
            return 0.0
        if now_s >= self._look_s:
            self._holders, self._look_s = holders(order), now_s + HOLDER_LOOK_S
        if not self._holders:
            return 0.0
        if now_s >= self._tell_s:
            self._tell_s = now_s + HOLDER_TELL_S
            left = units.whole_seconds(last_s - now_s)
            self.tell(say("control.layout.waiting", name=order.name, processes=self._holders, left=left))
        return min(last_s, now_s + AFTER_HOLDER_S)


class LayoutControl(Control):
    """A layout that stands for a while. `write` takes an order as text, with what is to become of it."""

    by_name = True
    name, title, source = "layout", "array, volumes and file systems on devices", "docs/experiments.md"
    volatile, readable = False, False

    def __init__(self) -> None:
        self.wait: Callable[[], HolderWait] = HolderWait
        """Makes what is waited with while one is taken down; an experiment puts its own there."""

    def resolve(self, subject: str) -> list[str]:
        """Return the name of the layout."""
        return [subject]

    def read(self, subject: str) -> str | None:  # noqa: ARG002 - an order says what there is to see
        """Return None: nothing of it is one value."""
        return None

    def shown(self, value: str) -> str:
        """Return what an order is about."""
        action, order = read_order(value)
        return "nothing" if action != "build" else f"{order.name} on {', '.join(order.used)}"

    def write(self, subject: str, value: str) -> None:
        """Build or take down. Raises RefusedError with what a command said."""
        action, order = read_order(value)
        if action == "build":
            _build(subject, order)
        else:
            take_down(order, self.wait())


class _Kept(FrozenModel):
    action: Literal["build", "take down"]
    order: LayoutOrder


def order_text(action: str, order: LayoutOrder) -> str:
    """Return an order as the journal keeps it: `build` or `take down`."""
    return json.dumps({"action": action, "order": order.model_dump(mode="json")})


def read_order(value: str) -> tuple[str, LayoutOrder]:
    """Read what the journal keeps. Raises RefusedError for what is no order."""
    try:
        journal_entry = _Kept.model_validate_json(value)
    except ValidationError as error:
        raise make_error(RefusedError, "control.layout.no_order") from error
    return journal_entry.action, journal_entry.order


def identity_of(device: str) -> str:
    """Return a number that no other disk gets, with the boot it holds for; empty where there is none."""
    name = os.path.realpath(device).removeprefix("/dev/")
    for disk in (Path("/sys/class/block") / name, Path("/sys/class/block") / name / ".."):
        if sequence := text(disk / "diskseq"):
            return f"{text(BOOT_ID)}:{name}:{sequence}"
    return ""


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """A device as it was when somebody agreed to its loss."""

    identity: str
    carries: frozenset[str]

    @classmethod
    def of(cls, device: str) -> SeenDevice:
        """Look at a device."""
        return cls(identity_of(device), frozenset(one.words for one in _carried(device)))

    def change(self, now: SeenDevice) -> str | None:
        """Return what makes it one that nobody agreed to lose; None: nothing."""
        if now.identity != self.identity:
            return say("control.layout.other_device")
        came = sorted(now.carries - self.carries)
        return say("control.layout.signature", signature=came[0]) if came else None


class _Signature(FrozenModel):
    model_config = ConfigDict(extra="ignore")

    type: str | None = None
    label: str | None = None
    uuid: str | None = None

    @property
    def words(self) -> str:
        return " ".join(one for one in (self.type, self.label, self.uuid) if one)


class _Signatures(FrozenModel):
    model_config = ConfigDict(extra="ignore")

    signatures: tuple[_Signature, ...] = ()


def _carried(device: str) -> tuple[_Signature, ...]:
    """Return what a device carries, by its signatures."""
    listing = _call(("wipefs", "--json", device)).stdout
    return _Signatures.model_validate_json(listing).signatures if listing.strip() else ()


def why_not(order: LayoutOrder) -> str | None:
    """Return why it cannot be built on this host; None where it can."""
    if why := _too_few(order):
        return why
    absent = [name for name in programs(order) if shutil.which(name) is None]
    if absent:
        return say("control.layout.no_programs", programs=", ".join(absent))
    return say("control.layout.needs_root") if os.geteuid() != 0 else _kernel_lacks(order)


def _too_few(order: LayoutOrder) -> str | None:
    layout = order.description
    if layout.manager not in ("mount", "none"):
        each = len(order.devices) // layout.groups
        least = 1 if layout.manager == "zfs" and layout.raid in ("jbod", "0") else LEAST_DEVICES[layout.raid]
        # lvcreate takes no raid6 of fewer than three stripes.
        least = 5 if (layout.manager, layout.raid) == ("lvm", "6") else least
        if each < least:
            return say(
                "control.layout.few_devices", raid=layout.raid, least=least, arrays=layout.groups, each=each
            )
        if each * layout.groups != len(order.devices):
            return say("control.layout.unequal", devices=len(order.devices), arrays=layout.groups)
        if layout.raid == "10" and each % 2:
            return say("control.layout.odd", each=each)
    elif layout.manager == "none" and not order.devices:
        return say("control.layout.no_devices")
    return None


def _kernel_lacks(order: LayoutOrder) -> str | None:
    description = order.description
    if (
        description.manager == "md"
        and not Path("/proc/mdstat").exists()
        and not _module(f"raid{description.raid}")
    ):
        return say("control.layout.no_md")
    # The kernel's own list: /dev/mapper/control may be a file that some program has left.
    known_devices = (text(Path("/proc/misc")) or "").split()
    if description.manager == "lvm" and "device-mapper" not in known_devices and not _module("dm-mod"):
        return say("control.layout.no_mapper")
    if description.manager == "zfs":
        done = _call(("zpool", "list", "-H"))
        return None if done.returncode == 0 else say("control.layout.no_zfs", reason=_output_of(done))
    kind = description.filesystem_type if description.manager == "mount" else description.on_volume
    known = (text(Path("/proc/filesystems")) or "").split()
    if kind and kind not in ("none", *known) and not _module(kind):
        return say("control.layout.no_filesystem", filesystem=kind)
    return None


def _module(name: str) -> bool:
    """Return whether a module of that name could be loaded."""
    if shutil.which("modprobe") is None:
        return False
    return _call(("modprobe", "--dry-run", "--quiet", name)).returncode == 0


def _build(name: str, order: LayoutOrder) -> None:
    for step in building(order):
        if step.makes is not None:
            for place in (Path(order.base).parent, Path(order.base)):
                own_directory.make(place, say("program.own_directory.in_run"))
            Path(step.makes).mkdir(exist_ok=True)
        done = _call(step.command, order.label)
        tries = 0
        # A device is held for a moment after its file system went, and by whoever looks at a new one.
        while done.returncode != 0 and "busy" in done.stderr.lower() and tries < FREE_TRIES:
            time.sleep(LOOK_S)
            done, tries = _call(step.command, order.label), tries + 1
        if done.returncode != 0:
            raise make_error(
                RefusedError, "control.layout.failed", name=name, reason=_failed(step.command, done)
            )


def take_down(order: LayoutOrder, wait: HolderWait | None = None) -> None:
    """Take down what of it is there. Raises RefusedError for what does not go.

    `wait`: for what holds it in another mount namespace; None: as long as for all that is busy.
    """
    wait = wait or HolderWait()
    # What a process that was killed had begun to build must not appear afterwards.
    orphans.wait_until_gone(order.label, ORPHANS_S)
    until_s = time.monotonic() + FREE_S
    # Before anything of it goes: a group without volumes has no name left to tell it by.
    own_devices = frozenset(one for one in (*order.used, *order.on_arrays) if _is_ours(one, order))
    while left := _left_of(order, own_devices) or _left_folders(Path(order.base)):
        until_s = max(until_s, wait.until_s(order))
        if time.monotonic() > until_s:
            raise make_error(
                RefusedError, "control.layout.failed", name=order.name, reason=left[0] + _held_by(order)
            )
        time.sleep(LOOK_S)
    orphans.forget(order.label)


def _held_by(order: LayoutOrder) -> str:
    """Say who still has it mounted; a mount that went here may stand in another namespace."""
    processes = holders(order)
    return "" if not processes else "; " + say("control.layout.elsewhere", processes=processes)


def holders(order: LayoutOrder) -> str:
    """Return a process of each other mount namespace that has a volume mounted, with its name."""
    return ", ".join(f"{pid} ({text(Path(f'/proc/{pid}/comm')) or '?'})" for pid in elsewhere(order.label))


def _left_folders(base: Path) -> list[str]:
    """Remove the directories that volumes were mounted at; return what does not go, busy or not empty."""
    left = []
    for folder in (*sorted(base.glob("*"), reverse=True), base):
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            left.append(say("control.layout.folder_left", folder=folder, reason=error.strerror))
    return left


def _left_of(order: LayoutOrder, ours: frozenset[str]) -> list[str]:
    """Take down what is there, and return what did not go: what is busy may go a moment later."""
    left = []
    for step in taking_down(order):
        if not _is_there(step, ours):
            continue
        if step.wipes is not None and (reason := _superblocks_left(step.wipes, order.label)):
            left.append(reason)
            continue
        done = _call(step.command)
        if done.returncode != 0:
            left.append(_failed(step.command, done))
    return left


def _superblocks_left(device: str, label: str) -> str | None:
    """Clear them; return why they are still there, None: they are gone."""
    try:
        superblocks.clear(device, label)
    except OSError as error:
        return say("control.layout.superblocks_left", device=device, reason=error.strerror)
    return None


def _is_there(step: TakeDown, ours: frozenset[str]) -> bool:
    if step.mounted is not None:
        return any(mount.point == step.mounted for mount in mounts())
    if step.wipes is not None and step.wipes not in ours:
        return False
    if step.there is not None:
        return shutil.which(step.there[0]) is not None and _call(step.there).returncode == 0
    return True


def _is_ours(device: str, order: LayoutOrder) -> bool:
    """Return whether a device carries something of our name, or what we had begun to make there."""
    signatures = _carried(device)
    if any(order.label in (one.label or "") for one in signatures):
        return True
    if not any(one.type == "LVM2_member" for one in signatures):
        return False
    group = _call(("pvs", "--noheadings", "-o", "vg_name", device))
    if group.returncode != 0 or group.stdout.strip():
        return order.label in group.stdout
    # A volume without a group holds nothing; on the disk that we had, it is half of ours.
    known = dict(zip(order.used, order.identities, strict=True)).get(device, "")
    return bool(known) and identity_of(device) == known


def synchronised(order: LayoutOrder) -> float | None:
    """Return how far the arrays have come, from 0 to 1; None where nothing synchronises."""
    shares: list[float] = []
    for number in range(len(order.groups)):
        if order.description.manager == "md":
            disk = os.path.realpath(order.block_device(number)).removeprefix("/dev/")
            shares.append(_md_share(Path("/sys/block") / disk / "md"))
        elif order.description.manager == "lvm" and order.description.raid in ("1", "10", "5", "6"):
            name = f"{order.group_name(number)}/{'pool' if order.description.thin else 'volume'}"
            sync_percent = _call(("lvs", "--noheadings", "-o", "sync_percent", name)).stdout.strip()
            shares.append(float(sync_percent) / 100 if re.fullmatch(r"[\d.]+", sync_percent) else 1.0)
    return min(shares) if shares else None


def _md_share(folder: Path) -> float:
    if text(folder / "sync_action") in (None, "idle"):
        return 1.0
    done, _, whole = (text(folder / "sync_completed") or "").partition(" / ")
    return int(done) / int(whole) if done.isdigit() and whole.isdigit() else 0.0


def wait_until_synchronised(order: LayoutOrder, give_up: Callable[[], bool]) -> float | None:
    """Wait, and return how far it is: 1 unless it was given up; None where nothing synchronises."""
    while (share := synchronised(order)) is not None and share < 1 and not give_up():
        time.sleep(LOOK_S)
    return share


def written_bytes(order: LayoutOrder) -> int:
    """Return what the devices of a layout have written since they came, whoever asked for it."""
    return sum(_statistic(device, _SECTORS_WRITTEN) for device in order.used) * SECTOR_BYTES


def size_bytes(order: LayoutOrder) -> int:
    """Return how large the devices of a layout are together."""
    return sum(int(text(_of_device(device) / "size") or 0) for device in order.used) * SECTOR_BYTES


def _statistic(device: str, number: int) -> int:
    fields = (text(_of_device(device) / "stat") or "").split()
    return int(fields[number]) if len(fields) > number else 0


def _of_device(device: str) -> Path:
    return Path("/sys/class/block") / os.path.realpath(device).removeprefix("/dev/")


def _call(command: Sequence[str], lock: str | None = None) -> subprocess.CompletedProcess[str]:
    # lvm(8) complains of the descriptor by which its end is seen, and that came before its own error.
    environment = os.environ | {"LC_ALL": "C", "LVM_SUPPRESS_FD_WARNINGS": "1"}
    try:
        return orphans.run(command, lock, timeout=PATIENCE_S, env=environment)
    except subprocess.TimeoutExpired:
        raise make_error(
            RefusedError, "control.layout.too_long", command=" ".join(command), patience=PATIENCE_S
        ) from None
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error.strerror))


def _output_of(done: subprocess.CompletedProcess[str]) -> str:
    output = " ".join((done.stderr or done.stdout).split())[:400]
    return output or say("control.layout.ended", code=done.returncode)


def _failed(command: Sequence[str], done: subprocess.CompletedProcess[str]) -> str:
    return say("control.layout.command", command=" ".join(command), reason=_output_of(done))
