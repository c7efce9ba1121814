"""Controls of CPUs: frequency policy, idle states, simultaneous threads, which are online.

Knows `/sys/devices/system/cpu` (Documentation/admin-guide/pm/cpufreq.rst, cpuidle.rst and
Documentation/admin-guide/cputopology.rst). Does not know which setting is good for what.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final

from loadstone.control.control_kind import NUMBER, Setting
from loadstone.control.file_controls import FileControl, HostFile, numbered, put, text, words
from loadstone.errors import RefusedError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from pathlib import Path

CPU = "devices/system/cpu"
CPUFREQ = "Documentation/admin-guide/pm/cpufreq.rst"
APPLIED_S: Final = 2.0
"""So long a limit is waited for; one that is rounded is told after that."""
LOOK_S: Final = 0.01


class _PolicyFile(FileControl):
    folder = f"{CPU}/cpufreq/{{}}"
    listed_in: ClassVar[str] = ""

    def subjects(self) -> list[str]:
        return numbered(self.root / CPU / "cpufreq", "policy", [self.file])

    def choices(self, subject: str) -> tuple[str, ...]:
        return words(text(self.path(subject).with_name(self.listed_in))) if self.listed_in else ()


class Governor(_PolicyFile):
    """The governor of a frequency policy. One that is left by all policies loses its tunables."""

    name, title, source = "governor", "CPU frequency governor", CPUFREQ
    file, listed_in = "scaling_governor", "scaling_available_governors"

    def companions(self, subject: str) -> list[Setting]:
        """Return the tunables of the governor, and the frequency that a user chose."""
        governor = self.read(subject)
        own = [f"{subject}/{governor}/", f"{governor}/", f"{subject}/{GovernorTunable.chosen}"]
        tunables = GovernorTunable(self.root).subjects()
        return [Setting(GovernorTunable.name, one) for one in tunables if one.startswith(tuple(own))]


class GovernorTunable(FileControl):
    """A tunable of a governor: `ondemand/up_threshold`, or `policy0/ondemand/up_threshold`.

    Of the governor `userspace` it is the frequency, kHz: `policy0/scaling_setspeed`.
    """

    name, title, source = "governor_tunable", "tunable of a CPU frequency governor", CPUFREQ
    folder = f"{CPU}/cpufreq"
    chosen: ClassVar[str] = "scaling_setspeed"

    def path(self, subject: str) -> Path:
        """Return its file."""
        return self.root / self.folder / subject

    def subjects(self) -> list[str]:
        """Return every tunable of the governors that some policy has now."""
        place = self.root / self.folder
        policies = numbered(place, "policy", [Governor.file])
        governors = {text(place / one / Governor.file) or "" for one in policies} - {""}
        files = [
            *(place / one / self.chosen for one in policies),
            *(file for one in sorted(governors) for file in sorted(place.glob(f"{one}/*"))),
            *(file for one in sorted(governors) for file in sorted(place.glob(f"policy*/{one}/*"))),
        ]
        return [str(file.relative_to(place)) for file in files if (text(file) or "<")[0] != "<"]


class _FrequencyLimit(_PolicyFile):
    def write(self, subject: str, value: str) -> None:
        """Set it, and wait until the kernel has: it hands a limit on to a worker (freq_qos_add_notifier)."""
        super().write(subject, value)
        until_s = time.monotonic() + APPLIED_S
        while self.read(subject) != value and time.monotonic() < until_s:
            time.sleep(LOOK_S)


class FrequencyMin(_FrequencyLimit):
    """Lowest frequency of a policy, kHz."""

    name, title, source = "frequency_min_khz", "lowest CPU frequency, kHz", CPUFREQ
    file, takes = "scaling_min_freq", NUMBER


class FrequencyMax(_FrequencyLimit):
    """Highest frequency of a policy, kHz."""

    name, title, source = "frequency_max_khz", "highest CPU frequency, kHz", CPUFREQ
    file, takes = "scaling_max_freq", NUMBER


class EnergyPreference(_PolicyFile):
    """The hint to hardware that chooses frequencies by itself."""

    name, title = "energy_preference", "CPU energy performance preference"
    source = "Documentation/admin-guide/pm/intel_pstate.rst"
    file, listed_in = "energy_performance_preference", "energy_performance_available_preferences"


class Boost(HostFile):
    """Frequencies above the nominal one: `1` or `0`, whatever file the driver has for it."""

    name, title, source = "boost", "CPU frequency boost (turbo)", CPUFREQ
    file = f"{CPU}/cpufreq/boost"
    reversed_file: ClassVar[str] = f"{CPU}/intel_pstate/no_turbo"
    values = ("0", "1")

    def subjects(self) -> list[str]:
        """Return the host, where it can be switched."""
        return [""] if self.read("") is not None else []

    def read(self, subject: str) -> str | None:
        """Return whether it is on."""
        off = text(self.root / self.reversed_file)
        return super().read(subject) if off is None else str(1 - int(off == "1"))

    def write(self, subject: str, value: str) -> None:
        """Switch it."""
        if text(self.root / self.reversed_file) is None:
            super().write(subject, value)
        else:
            put(self.root / self.reversed_file, "0" if value == "1" else "1")


class Smt(HostFile):
    """Several hardware threads for each core."""

    name, title = "smt", "simultaneous multithreading"
    source = "Documentation/ABI/testing/sysfs-devices-system-cpu"
    file = f"{CPU}/smt/control"
    values = ("on", "off")

    def subjects(self) -> list[str]:
        """Return the host, where it can be switched."""
        return [""] if self.read("") in ("on", "off") else []


class Online(FileControl):
    """Whether a CPU is used. Threads bound to one that goes offline do not come back to it."""

    name, title, source = "cpu_online", "CPU online", "Documentation/core-api/cpu_hotplug.rst"
    folder, file = f"{CPU}/{{}}", "online"
    values = ("0", "1")

    def subjects(self) -> list[str]:
        """Return the CPUs that can go offline."""
        return numbered(self.root / CPU, "cpu", ["online"])


class IdleStates(FileControl):
    """The idle states a CPU may enter, by name, the shallowest first: `POLL,C1`."""

    name, title = "idle_states", "CPU idle states (C-states) allowed"
    source = "Documentation/admin-guide/pm/cpuidle.rst"
    folder, file = f"{CPU}/{{}}", "cpuidle"

    def subjects(self) -> list[str]:
        """Return the CPUs with idle states."""
        return numbered(self.root / CPU, "cpu", ["cpuidle/state0/disable"])

    def _states(self, subject: str) -> dict[str, Path]:
        folder = self.path(subject)
        names = numbered(folder, "state", ["disable", "name"])
        return {text(folder / name / "name") or name: folder / name / "disable" for name in names}

    def choices(self, subject: str) -> tuple[str, ...]:
        """Return what allows states up to each depth."""
        names = list(self._states(subject))
        return tuple(",".join(names[: count + 1]) for count in range(len(names)))

    def read(self, subject: str) -> str | None:
        """Return the states that may be entered."""
        states = self._states(subject)
        return ",".join(name for name, file in states.items() if text(file) == "0") if states else None

    def write(self, subject: str, value: str) -> None:
        """Allow these states and forbid the others."""
        states = self._states(subject)
        allowed = value.split(",") if value else []
        if unknown := [name for name in allowed if name not in states]:
            raise make_error(
                RefusedError,
                "control.cpu.no_state",
                subject=subject,
                state=unknown[0],
                states=", ".join(states),
            )
        for name, file in states.items():
            put(file, "0" if name in allowed else "1")


CONTROLS = (
    Governor,
    GovernorTunable,
    FrequencyMin,
    FrequencyMax,
    EnergyPreference,
    Boost,
    Smt,
    Online,
    IdleStates,
)
