"""Clock frequency of each core, and what limits it: /sys/devices/system/cpu/cpufreq.

Format: Linux Documentation/admin-guide/pm/cpufreq.rst; kHz there. Hosts that do not tell (most
guests) have no keys. The governor's name is in the environment; here is only whether it is
`performance`, so that a change during a run is seen.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.monitor.counters import Counters

CPU = Path("/sys/devices/system/cpu")
HZ_PER_KHZ = 1000


class ClockFrequency:
    """`frequency.<core>.<now or limit>_hz` and `frequency.<core>.governor_performance` (0 or 1).

    Cores that share a clock are told once, under the first of them.
    """

    def __init__(self, cpu: Path = CPU) -> None:
        # Found once: policies come and go only with hot-plugged CPUs.
        self._policies = sorted((cpu / "cpufreq").glob("policy[0-9]*"))

    def read(self) -> Counters:
        """Read now."""
        counters = Counters()
        for policy in self._policies:
            prefix = f"frequency.{policy.name.removeprefix('policy')}"
            for name, source in (("now", "scaling_cur_freq"), ("limit", "scaling_max_freq")):
                text = _text(policy / source)
                if text is not None and text.isdecimal():
                    counters.levels[f"{prefix}.{name}_hz"] = int(text) * HZ_PER_KHZ
            governor = _text(policy / "scaling_governor")
            if governor is not None:
                counters.levels[f"{prefix}.governor_performance"] = int(governor == "performance")
        return counters


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
