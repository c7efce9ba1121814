"""Experiments as people write them, drawn from a seed, on loop devices whose limits are known.

Knows what was planted: a limit of IOPS for each device and each level of a pair of commands, which either
holds for both devices or for one alone (then the two depend on each other). Half of them have layouts of both
devices as a factor: file systems, and a mirror that writes everything twice. Beside these stand factors that
do nothing to IOPS, with layouts also mount options and fill levels. Each is run, and held against that: every
effect in its interval, no difference told where there is none, the interaction, and the combination that is
recommended. Needs root.

    python -m lab.planted_designs --experiments 12 --seed 157201
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lab.parts import CGROUPS, LOADSTONE, Stage, call, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGINNING: Final = """title = "Planted"
repeats = {repeats}
seed = {seed}
design = "{design}"
runtime = "1500ms"
ramp = "500ms"
size = "16m"
metrics = ["iops", "lat_mean_ns"]
{budget}
[[aims]]
most = "iops"
{limit}
[[patterns]]
name = "load"
options = {{ direct = 1, rw = "{rw}", bs = "4k", {load} }}
"""
ON_DEVICES: Final = 'ioengine = "psync", numjobs = 2, group_reporting = 1'
ON_FILES: Final = 'ioengine = "io_uring", iodepth = 16, overwrite = 1, file_service_type = "random"'
LAYOUTS: Final = {
    "ext4 each": ('manager = "none"\nfilesystem = "ext4"\n', 1.0),
    "btrfs each": (
        'manager = "btrfs"\nraid = "jbod"\ngroups = 2\nmount_options = ["nodatacow", "noatime"]\n',
        1.0,
    ),
    "striped": ('manager = "btrfs"\nraid = "0"\nmount_options = ["nodatacow", "noatime"]\n', 1.0),
    "mirrored": ('manager = "btrfs"\nraid = "1"\nmount_options = ["nodatacow", "noatime"]\n', 0.5),
}
"""Layouts of two devices, and the share of both devices' limits that random writes come to."""
NOTHING: Final = {
    "pressure": 'control = "sysctl"\nsubject = "vm.stat_interval"\nlevels = [1, 7]\n',
    "block": 'option = "bs"\nlevels = ["4k", "8k"]\n',
    "ahead": 'control = "read_ahead_kb"\nsubject = "{device}"\nlevels = [128, 16]\n',
    "cache": 'kind = "page_cache"\nlevels = ["kept", "dropped"]\n',
    "memory": 'kind = "cgroup"\nlevels = ["as is", {{ name = "limited", limits = {{ "memory.limit_in_bytes" = "900M" }} }}]\n',  # noqa: E501 - a line of a file
    "swap": 'control = "sysctl"\nsubject = "vm.swappiness"\nlevels = [60, 10]\n',
}
"""Factors that do nothing to the IOPS of a device whose IOPS are limited."""
NOTHING_TO_VOLUMES: Final = {
    "pressure": NOTHING["pressure"],
    "memory": NOTHING["memory"],
    "mount": 'control = "mount_options"\nsubject = "{{volume}}"\nlevels = ["as is", "nodiratime"]\n',
    "full": 'kind = "fill_level"\nof = "{{volume}}"\nlevels = ["as is", "60%"]\n',
    "scheduler": 'control = "io_scheduler"\nsubject = "{device}"\nlevels = ["none", "mq-deadline"]\n',
}
SLACK: Final = 0.03
"""A limit of the block layer lets a few more or fewer through."""
SLACK_OF_FILES: Final = 0.08
"""File systems write their own on top."""


@dataclass(frozen=True, slots=True)
class PlantedDesign:
    """What was drawn."""

    design: str
    rw: str
    repeats: int
    device_ratio: float
    limit_ratio: float
    one_device: bool
    nothing: tuple[str, ...]
    seed: int
    layouts: tuple[str, ...] = ()
    """Of both devices; empty: one device or the other is the target."""

    @classmethod
    def of(cls, seed: int, number: int) -> PlantedDesign:
        """Draw one."""
        draw = random.Random(f"{seed} {number}")
        one = cls(
            draw.choice(("full", "full", "one_at_a_time", "fraction")),
            draw.choice(("randread", "randwrite")),
            draw.choice((3, 4)),
            draw.choice((1.0, 1.3, 2.0, 0.6)),
            draw.choice((1.0, 0.8, 0.5, 1.6)),
            draw.random() < 0.4,
            tuple(draw.sample(sorted(NOTHING), draw.choice((1, 2)))),
            draw.randrange(1000),
        )
        if draw.random() < 0.5:
            return one
        return replace(
            one,
            rw="randwrite",
            repeats=3,
            device_ratio=1.0,
            one_device=False,
            nothing=tuple(draw.sample(sorted(NOTHING_TO_VOLUMES), draw.choice((1, 1, 2)))),
            layouts=tuple(draw.sample(sorted(LAYOUTS), draw.choice((2, 3)))),
        )

    def iops(self, device: str, limit: str) -> float:
        """Return what the limit lets through."""
        changed = limit == "changed" and (device == "b" or not self.one_device)
        return 600 * (self.device_ratio if device == "b" else 1.0) * (self.limit_ratio if changed else 1.0)

    def text(self, devices: dict[str, str], budget_s: int) -> str:
        """Return the file."""
        direction = "read" if self.rw == "randread" else "write"
        file = CGROUPS / "blkio" / f"blkio.throttle.{direction}_iops_device"
        numbers = {name: call("lsblk", "-dno", "MAJ:MIN", device) for name, device in devices.items()}
        sets = {
            level: "; ".join(
                f"echo {numbers[name]} {self.iops(name, level):.0f} > {file}" for name in devices
            )
            for level in ("plain", "changed")
        }
        levels = ", ".join(
            f'{{ name = "{level}", do = "{command}", undo = "{sets["plain"]}" }}'
            for level, command in sets.items()
        )
        names = ", ".join(f'{{ name = "{name}", value = "{device}" }}' for name, device in devices.items())
        first = f'name = "device"\nkind = "target"\nlevels = [{names}]\n'
        if self.layouts:
            first = f'name = "layout"\nkind = "layout"\nlevels = {json.dumps(self.layouts)}\n'
        nothing = NOTHING_TO_VOLUMES if self.layouts else NOTHING
        factors = [
            first,
            f'name = "limit"\nkind = "command"\nlevels = [{levels}]\n',
            *(
                f'name = "{name}"\n'
                + nothing[name].format(device=devices["a"]).replace("{{", "{").replace("}}", "}")
                for name in self.nothing
            ),
        ]
        budget = f'[budget]\ntime = "{budget_s}s"\n' if self.design == "fraction" else ""
        beginning = BEGINNING.format(
            repeats=self.repeats,
            seed=self.seed,
            design=self.design,
            budget=budget,
            rw=self.rw,
            limit="",
            load=ON_FILES if self.layouts else ON_DEVICES,
        )
        if self.layouts:
            beginning = beginning.replace(
                "size =", f'devices = {json.dumps([*devices.values()])}\ntargets = ["{{file}}"]\nsize =', 1
            )
            beginning += "".join(f'\n[layouts."{name}"]\n{LAYOUTS[name][0]}' for name in self.layouts)
        return beginning + "".join(f"\n[[factors]]\n{one}" for one in factors)


def differences(one: PlantedDesign, document: dict[str, Any]) -> Iterator[str]:
    """Return what was found otherwise than planted."""
    effects = document["effects"]
    for effect in effects["effects"]:
        if effect["metric"] != "iops":
            continue
        change, name = effect["change"], effect["factor"]
        planted = _planted(one, name, effect["level"], effect["against"])
        slack = SLACK_OF_FILES if one.layouts else SLACK
        if change is None or not change["low"] * (1 - slack) <= planted <= change["high"] * (1 + slack):
            yield f"{name}={effect['level']}: planted x{planted:.2f}, found {change}"
        verdict = effect["judgement"]
        if planted == 1.0 and verdict in ("better", "worse"):
            yield f"{name}: nothing was planted, and it is {verdict}"
        if abs(planted - 1) > 0.15 and verdict not in ("better", "worse"):
            yield f"{name}: planted x{planted:.2f}, and it is {verdict}"


def _planted(one: PlantedDesign, name: str, level: str, against: str) -> float:
    """Return what a level does to IOPS against another, averaged over the other factors where there are."""
    if name in one.nothing:
        return 1.0
    if name == "layout":
        return LAYOUTS[level][1] / LAYOUTS[against][1]
    if one.layouts:
        return one.limit_ratio
    if one.design == "one_at_a_time":
        return one.iops("b", "plain") / 600 if name == "device" else one.iops("a", "changed") / 600
    if name == "device":
        return (one.iops("b", "plain") * one.iops("b", "changed") / 600 / one.iops("a", "changed")) ** 0.5
    return (one.iops("a", "changed") * one.iops("b", "changed") / 600 / one.iops("b", "plain")) ** 0.5


def tried(one: PlantedDesign) -> list[str]:
    """Run it, and return what is wrong."""
    with Stage() as stage:
        mib = 400 if one.layouts else 48
        devices = {name: stage.loop(mib, written=not one.layouts) for name in ("a", "b")}
        direction = "read_iops" if one.rw == "randread" else "write_iops"
        for name, device in devices.items():
            stage.throttle(device, **{direction: int(one.iops(name, "plain"))})
        path = stage.folder / "planted.toml"
        path.write_text(one.text(devices, (9 if one.layouts else 4) * one.repeats * (4 + len(one.nothing))))
        out = stage.folder / "out"
        written = () if one.layouts else devices.values()
        consent = [word for device in written for word in ("--i-accept-data-loss", device)]
        command = [*LOADSTONE, "experiment", "run", str(path), "--allow-exec", "--json"]
        command += ["--out", str(out), "--no-progress", "--no-calibration", *consent]
        environment = os.environ | {"LOADSTONE_STATE": str(stage.folder / "state")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            return [f"exit code {done.returncode}: {done.stderr[-1500:]}"]
        document = json.loads(done.stdout)
        wrong = list(differences(one, document))
        texts = [document["answer"], *(str(item) for item in document["effects"].get("recommendations", []))]
        answer = "\n    ".join(texts)
        return [*wrong, answer] if wrong else [f"OK {answer}"]


def main() -> int:
    """Draw experiments, run them, and tell which were found otherwise than planted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--experiments", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    failures = 0
    for number in range(options.first, options.first + options.experiments):
        one = PlantedDesign.of(options.seed, number)
        outcome = tried(one)
        failures += not outcome[0].startswith("OK ")
        print(f"{number}. {one}\n    " + "\n    ".join(outcome), flush=True)
    print(f"{options.experiments - failures} of {options.experiments} as planted")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
