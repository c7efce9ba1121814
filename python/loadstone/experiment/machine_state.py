"""The machine around the runs of an experiment: set before each, put back after it, and told.

Knows the order: what is for all runs, the layout (kept while the next run has the same), then what is
of one run: its control group, settings, commands, the state of its targets, and last the page cache.
All of it is written down before it is done (`control.change_journal`), so that `loadstone restore` finds it.
Does not know what is measured.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.bundle.experiment import MachineSetting
from loadstone.control import page_cache
from loadstone.control.all_controls import Controls
from loadstone.control.changes import Changes
from loadstone.control.control_kind import Setting
from loadstone.control.fill import FillLevel, missing_bytes
from loadstone.control.layout import build
from loadstone.control.layout.build import SeenDevice
from loadstone.control.layout.description import LayoutOrder
from loadstone.errors import RefusedError, RunError
from loadstone.experiment.file import VOLUME, level_name
from loadstone.experiment.ledger import BudgetLedger
from loadstone.experiment.levels import WantedSetting
from loadstone.experiment.target_watch import TargetWatch
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from loadstone.control.change_journal import Change
    from loadstone.control.changes import Restored
    from loadstone.experiment.file import ExperimentFile
    from loadstone.experiment.levels import Asked, CacheDrop
    from loadstone.experiment.target_watch import TargetIdentity

BASE: Final = Path("/run/loadstone")
NOTHING: Final = "none"


def new_label() -> str:
    """Return what file systems and arrays of one experiment are called."""
    return f"ls{secrets.token_hex(4)}"


def order_of(whole: ExperimentFile, layout: str, label: str) -> LayoutOrder:
    """Return the order for a layout of the file."""
    description = whole.layouts[layout]
    order = LayoutOrder(
        label=label,
        name=layout,
        devices=whole.devices,
        identities=(),
        description=description,
        base=str(BASE / label),
    )
    return order.model_copy(update={"identities": tuple(build.identity_of(one) for one in order.used)})


@dataclass(slots=True)
class Machine:
    """What is set now. `told` hears of each record that changed; `give_up`: somebody asked for the end."""

    whole: ExperimentFile
    label: str
    give_up: Callable[[], bool] = lambda: False
    tell: Callable[[str], None] = lambda _: None
    controls: Controls = field(default_factory=Controls)
    ledger: BudgetLedger = field(default_factory=BudgetLedger)
    """Told what is written beside the runs."""
    where: Path | None = None
    """Directory of the journal; None: the usual one."""
    for_all: list[MachineSetting] = field(default_factory=list)
    """Records of what is for several runs."""
    agreed: Mapping[str, SeenDevice] = field(default_factory=dict)
    """The devices of layouts as they were when somebody agreed to their loss."""
    still_changed: list[MachineSetting] = field(default_factory=list)
    """What could not be put back."""
    lost: str | None = None
    """What is for all runs and was changed by somebody else."""
    disturbed: bool = False
    """Whether a target changed while a run lasted."""
    targets: TargetWatch = field(default_factory=TargetWatch)
    stood: Callable[[LayoutOrder], None] = lambda _: None
    """Called with each layout that mounts something as it is, while that stands. Raises RunError."""
    step: Callable[[str], None] = lambda _: None
    """Called at each step of a change; a test ends the process there."""
    _all: Changes | None = None
    _layout: tuple[str, LayoutOrder, Changes, int] | None = None

    def claim(self, settings: Collection[Setting]) -> None:
        """Keep these from others until the end. Raises RefusedError where another process has one of them."""
        changes = self._for_all()
        try:
            changes.claim(settings)
        except BaseException:
            changes.put_back()
            raise

    def begin(self) -> None:
        """Set what is for all runs."""
        for one in self.placed(self.constant()[0], None):
            self._count_fill(one)
            changes = self._for_all().set(one.control, one.subject, one.value)
            self.for_all += [_record(change) for change in changes]

    def end(self) -> None:
        """Put back what is left: the layout, then what is for all runs."""
        self.take_down()
        if self._all is not None:
            self.for_all = self._put_back(self._all, self.for_all)
            self._all = None

    @contextlib.contextmanager
    def around(
        self,
        wanted: Asked,
        prepare: Callable[[], None] | None,
        record: Callable[[Sequence[MachineSetting]], None],
    ) -> Iterator[None]:
        """Set what a run asks for, and put it back after it. `prepare` brings its targets into a state."""
        self.stand(wanted.layout)
        self._refuse_changed_targets()
        changes = self.changes()
        settings: list[MachineSetting] = []
        try:
            self._set(changes, wanted, settings)
            if prepare is not None:
                prepare()
                settings.append(_done("allocation", "", wanted.allocation or ""))
            self._refuse_changed_for_all()
            with contextlib.ExitStack() as drops:
                for drop in wanted.drops:
                    drops.enter_context(_dropping(drop))
                    settings.append(_dropped(drop))
                record(settings)
                before = self.targets.now()
                yield
                settings += [*self._changed_for_all(), *self._changed_targets(before)]
        finally:
            record(self._put_back(changes, settings))
            self.targets.ran()

    def volumes(self, layout: str) -> list[str]:
        """Return where the volumes of a layout are, or will be."""
        return order_of(self.whole, layout, self.label).volumes

    def _set(self, changes: Changes, settings: Asked, done: list[MachineSetting]) -> None:
        """Set everything; what was set stands in `done`, also when something is refused."""
        if settings.group is not None:
            done += [
                _record(one) for one in changes.set("cgroup", f"{self.label}-{os.getpid()}", settings.group)
            ]
        wanted = self.placed([*self.constant()[1], *settings.settings], settings.layout)
        for setting in wanted:
            self._count_fill(setting)
            applied = changes.set(setting.control, setting.subject, setting.value)
            done += [_record(one) for one in applied] or [
                MachineSetting(
                    control=setting.control,
                    subject=setting.subject,
                    before=setting.value,
                    asked=setting.value,
                    after=setting.value,
                    outcome="unchanged",
                )
            ]
        if len(wanted) > 1:
            self._refuse_lost(wanted)
        for pair in settings.commands:
            done.append(_record(changes.run(pair.name, pair.do, pair.undo), before=""))

    def constant(self) -> tuple[list[WantedSetting], list[WantedSetting]]:
        """Return what is set once for all runs, and what each run sets again.

        That is what a factor resets, and what is set on the volumes of a layout.
        """
        varied = [(str(one.control), one.subject) for one in self.whole.factors if one.control is not None]
        reset = {item for one in varied for item in self.controls.reset_by(*one)}
        every = [
            WantedSetting(one.control, one.subject, level_name(one.value)) for one in self.whole.settings
        ]
        again = [
            one
            for one in every
            if VOLUME in one.subject or reset.intersection(self.controls.meant(one.control, one.subject))
        ]
        return [one for one in every if one not in again], again

    def placed(self, wanted: Sequence[WantedSetting], layout: str | None) -> list[WantedSetting]:
        """Return settings in their order, those of `{volume}` once for each volume of a layout.

        What resets others comes before these: the scheduler of a disk before the length of its queue.
        """
        volumes = self.volumes(layout) if layout else []
        settings = [
            dataclasses.replace(one, subject=one.subject.replace(VOLUME, volume))
            for one in wanted
            for volume in (volumes if VOLUME in one.subject else [""])
        ]
        return sorted(settings, key=lambda one: not self.controls.reset_by(one.control, one.subject))

    def _refuse_lost(self, wanted: Sequence[WantedSetting]) -> None:
        """Refuse to run where one setting has undone another."""
        for one in wanted:
            kind = self.controls.named(one.control)
            for name in () if kind.moves else kind.resolve(one.subject):
                now = kind.read(name)
                if now is None or not kind.agrees(one.value, now):
                    raise make_error(
                        RunError,
                        "experiment.setting.lost",
                        setting=str(Setting(one.control, name)),
                        value=repr(one.value),
                        found=repr(now),
                    )

    def _changed_for_all(self) -> list[MachineSetting]:
        """Return what is for all runs and has another value now: somebody else has set it."""
        changed = []
        for one in self.for_all:
            kind = self.controls.named(one.control)
            if one.outcome is not None or not kind.readable or kind.moves:
                continue
            now = kind.read(one.subject)
            if now is None or not kind.agrees(one.asked, now):
                why = say("experiment.setting.changed_by_others", found=repr(now))
                changed.append(one.model_copy(update={"after": now, "outcome": "not_held", "why": why}))
        return changed

    def _refuse_changed_for_all(self) -> None:
        """Refuse to begin a run with what is for all runs at another value; no further one is begun then."""
        for one in self._changed_for_all():
            self.lost = f"{Setting(one.control, one.subject)}: {one.why}"
            setting = str(Setting(one.control, one.subject))
            raise make_error(
                RunError, "experiment.setting.changed", setting=setting, value=repr(one.asked), reason=one.why
            )

    def _changed_targets(self, before: Mapping[str, TargetIdentity]) -> list[MachineSetting]:
        """Return targets that something else changed while a run lasted, as records of it."""
        changed = [
            MachineSetting(
                control="target", subject=path, before="", asked="as it was", outcome="not_held", why=why
            )
            for path, why in self.targets.changed_since(before)
        ]
        self.disturbed |= bool(changed)
        return changed

    def _refuse_changed_targets(self) -> None:
        """Refuse to begin a run on another target than the runs before; no further one is begun then."""
        self.targets.begin()
        for path, why in self.targets.changed():
            error = make_error(RunError, "experiment.target.changed", path=path, reason=why)
            self.lose(error.message)
            raise error

    def lose(self, why: str) -> None:
        """Have no further run begun."""
        self.lost = why

    def _count_fill(self, wanted: WantedSetting) -> None:
        """Count what a fill level takes, before it is taken."""
        count = fill_bytes(wanted)
        if count:
            self.ledger.refuse(f"filling {wanted.subject} to {wanted.value}", more_bytes=count)
            self.ledger.wrote(count)

    def stand(self, layout: str | None, *, synchronised: bool = True) -> None:
        """Have this layout stand, and no other; `synchronised`: wait for that as the file says."""
        if self._layout is not None and self._layout[0] == layout:
            return
        self.take_down()
        if self.still_changed:
            # On what did not go nothing is built, and it is nobody else's.
            settings = "; ".join(
                f"{Setting(one.control, one.subject)}: {one.why}" for one in self.still_changed
            )
            raise make_error(RunError, "control.restore.still_changed", settings=settings)
        if layout is None:
            return
        order = order_of(self.whole, layout, self.label)
        self._refuse_changed(order)
        changes = self.changes()
        devices = ", ".join(order.used) or order.description.source or ""
        self.tell(say("experiment.layout.building", layout=layout, devices=devices))
        self.for_all.append(
            MachineSetting(control="layout", subject=layout, before=NOTHING, asked=_layout_words(order))
        )
        at = len(self.for_all) - 1
        self._layout = (layout, order, changes, at)
        texts = (build.order_text("build", order), build.order_text("take down", order))
        written = build.written_bytes(order)
        try:
            changes.make("layout", f"{layout} ({self.label})", *texts)
            after = self._sync(order, written) if synchronised else "built"
        except BaseException:
            self.take_down()
            raise
        finally:
            self.ledger.wrote(build.written_bytes(order) - written)
        self.for_all[at] = self.for_all[at].model_copy(update={"after": after})
        if synchronised:
            self.targets.stand([*order.used, *order.volumes])
        if order.description.manager == "mount":
            self.stood(order)

    def _refuse_changed(self, order: LayoutOrder) -> None:
        """Refuse a device that came, or was taken into use, since somebody agreed to its loss."""
        for device in order.used:
            before = self.agreed.get(device)
            if before is not None and (why := before.change(SeenDevice.of(device))) is not None:
                raise make_error(RefusedError, "experiment.layout.device_changed", device=device, reason=why)

    def _sync(self, order: LayoutOrder, written: int) -> str:
        """Wait for the initial sync, as far as the budget goes; `written` by the devices before."""
        share = build.synchronised(order)
        if share is None:
            return say("experiment.layout.built")
        if self.whole.wait_for_sync and share < 1:
            self.tell(say("experiment.layout.waiting", name=order.name))

            def give_up() -> bool:
                doing = say("experiment.layout.initial_sync", name=order.name)
                self.ledger.refuse(doing, more_bytes=build.written_bytes(order) - written)
                return self.give_up()

            share = build.wait_until_synchronised(order, give_up)
        if share is not None and share < 1:
            # It goes on beside the runs, where nobody tells its writes from theirs: no more than all of it.
            self.ledger.wrote(int((1 - share) * build.size_bytes(order)))
        if share == 1:
            return say("experiment.layout.synchronised")
        return say("experiment.layout.synchronising", share=f"{share or 0:.0%}")

    def take_down(self) -> None:
        """Take down the layout that stands, if one does."""
        if self._layout is None:
            return
        _, _, changes, at = self._layout
        self._layout = None
        self.targets.gone()
        control = self.controls.named("layout")
        if isinstance(control, build.LayoutControl):
            control.wait = lambda: build.HolderWait(self.tell, self.give_up)
        if not changes.made:
            self.for_all[at] = self.for_all[at].model_copy(update={"outcome": "none"})
            return
        self.for_all[at] = self._put_back(changes, [self.for_all[at]])[0]

    def _for_all(self) -> Changes:
        if self._all is None:
            self._all = self.changes()
        return self._all

    def changes(self) -> Changes:
        """Return changes of this machine that are still to be made."""
        return Changes(self.controls, self.where, self.step)

    def _put_back(self, changes: Changes, settings: Sequence[MachineSetting]) -> list[MachineSetting]:
        """Put back, and return the records with what became of each."""
        restored = {(one.setting.control, _name(one)): one for one in changes.put_back()}
        done: list[MachineSetting] = []
        for one in settings:
            restoration = restored.pop((one.control, one.subject), None)
            # What has no part in these changes keeps what was said of it.
            changed = (
                {} if restoration is None else {"outcome": restoration.outcome.value, "why": restoration.why}
            )
            done.append(one.model_copy(update=changed))
        # What was begun and refused has no record of its own yet.
        done += [
            MachineSetting(
                control=one.setting.control,
                subject=_name(one),
                before=_shown(one),
                asked=one.asked,
                outcome=one.outcome.value,
                why=one.why,
            )
            for one in restored.values()
        ]
        self.still_changed += [
            one
            for one in done
            if one.outcome in ("failed", "changed_by_others") and one not in self.still_changed
        ]
        return done


def fill_bytes(wanted: WantedSetting) -> int:
    """Return what a setting writes: only filling a file system does."""
    is_fill = wanted.control == FillLevel.name and Path(wanted.subject).is_dir()
    return missing_bytes(wanted.subject, wanted.value) if is_fill else 0


def _name(one: Restored) -> str:
    """Return the subject as records have it: a layout's without its label."""
    subject = one.setting.subject
    return subject.partition(" (")[0] if one.setting.control == "layout" else subject


def _shown(one: Restored) -> str:
    return NOTHING if one.setting.control in ("layout", "command") else one.before


def _record(change: Change, before: str | None = None) -> MachineSetting:
    return MachineSetting(
        control=change.setting.control,
        subject=change.setting.subject,
        before=change.before if before is None else before,
        asked=change.asked,
        after=change.after,
    )


def _done(control: str, subject: str, setting: str) -> MachineSetting:
    return MachineSetting(control=control, subject=subject, before="", asked=setting, outcome="none")


def _dropped(drop: CacheDrop) -> MachineSetting:
    return _done("page_cache", drop.host or "", str(drop))


@contextlib.contextmanager
def _dropping(drop: CacheDrop) -> Iterator[None]:
    if drop.every_s is None:
        page_cache.drop(drop.host)
        yield
        return
    with page_cache.dropped_every(drop.every_s, drop.host):
        yield


def _layout_words(order: LayoutOrder) -> str:
    description = order.description
    where = f"on {', '.join(order.used)}" if order.used else f"of {description.source}"
    raid = (
        ""
        if description.manager == "mount"
        else f" raid {description.raid}"
        if description.raid != "jbod"
        else " jbod"
    )
    return f"{description.manager}{raid}, {description.on_volume}, {where}"
