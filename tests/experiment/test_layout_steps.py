"""The commands of every layout, and which of them this host says it cannot build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from loadstone.control import orphans
from loadstone.control.layout import build
from loadstone.control.layout.description import LayoutDescription, LayoutOrder
from loadstone.control.layout.steps import building, programs, taking_down
from loadstone.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

LABEL = "ls01234567"


def order(devices: int = 4, **what: Any) -> LayoutOrder:
    """Return an order for so many devices."""
    names = tuple(f"/dev/sd{chr(ord('b') + number)}" for number in range(devices))
    description = LayoutDescription.model_validate(what)
    used = len(names) + (1 if description.log else 0)
    return LayoutOrder(
        label=LABEL,
        name="x",
        devices=names,
        identities=("",) * used,
        description=description,
        base="/run/loadstone/x",
    )


def commands(made: LayoutOrder) -> list[str]:
    return [" ".join(step.command) for step in building(made)]


def test_each_device_is_a_volume_of_its_own() -> None:
    made = order(2, filesystem="xfs", mount_options=["noatime"])
    assert made.volumes == ["/run/loadstone/x/0", "/run/loadstone/x/1"]
    assert commands(made) == [
        f"mkfs.xfs -f -q -L {LABEL} /dev/sdb",
        "mount -o noatime /dev/sdb /run/loadstone/x/0",
        f"mkfs.xfs -f -q -L {LABEL} /dev/sdc",
        "mount -o noatime /dev/sdc /run/loadstone/x/1",
    ]


@pytest.mark.parametrize("raid", ["0", "1", "10", "5", "6"])
def test_md(raid: str) -> None:
    made = order(manager="md", raid=raid, chunk_kib=64)
    chunk = "" if raid == "1" else "--chunk 64 "
    device = f"/dev/md/{LABEL}n0"
    assert commands(made) == [
        f"mdadm --create {device} --run --metadata=1.2 --name={LABEL}n0 --level {raid} --raid-devices 4 "
        f"{chunk}/dev/sdb /dev/sdc /dev/sdd /dev/sde",
        f"mkfs.ext4 -F -q -L {LABEL} {device}",
        f"mount {device} /run/loadstone/x/0",
    ]
    down = [" ".join(step.command) for step in taking_down(made)]
    assert down[:4] == [
        "umount /run/loadstone/x/0",
        f"wipefs --all --quiet {device}",
        f"mdadm --stop {device}",
        "mdadm --zero-superblock /dev/sdb",
    ]
    assert down[-1] == "wipefs --all --quiet /dev/sde"


def test_two_arrays_of_four_devices() -> None:
    made = order(8, manager="md", raid="5", groups=2, filesystem="none")
    assert made.volumes == [f"/dev/md/{LABEL}n0", f"/dev/md/{LABEL}n1"]
    assert [command.split()[-4:] for command in commands(made)] == [
        ["/dev/sdb", "/dev/sdc", "/dev/sdd", "/dev/sde"],
        ["/dev/sdf", "/dev/sdg", "/dev/sdh", "/dev/sdi"],
    ]


@pytest.mark.parametrize(
    ("raid", "shape"),
    [
        ("jbod", "--type linear"),
        ("0", "--type striped --stripes 4 --stripesize 64k"),
        ("1", "--type raid1 --mirrors 1"),
        ("10", "--type raid10 --stripes 2 --mirrors 1 --stripesize 64k"),
        ("5", "--type raid5 --stripes 3 --stripesize 64k"),
        ("6", "--type raid6 --stripes 2 --stripesize 64k"),
    ],
)
def test_lvm(raid: str, shape: str) -> None:
    made = order(manager="lvm", raid=raid, chunk_kib=64, filesystem="none", size_percent=80)
    assert commands(made)[2] == (
        f"lvcreate --yes --wipesignatures y {shape} --extents 80%FREE --name volume {LABEL}n0"
    )
    assert made.volumes == [f"/dev/{LABEL}n0/volume"]


def test_lvm_thin_makes_a_pool_first() -> None:
    made = commands(order(manager="lvm", raid="0", thin=True, filesystem="none"))
    assert made[2].endswith(f"--extents 90%FREE --name pool {LABEL}n0")
    assert made[3] == f"lvconvert --yes --type thin-pool {LABEL}n0/pool"
    assert "lvcreate --yes --thin --virtualsize" in made[4]


@pytest.mark.parametrize(
    ("raid", "vdevs"),
    [
        ("jbod", "/dev/sdb /dev/sdc /dev/sdd /dev/sde"),
        ("1", "mirror /dev/sdb /dev/sdc /dev/sdd /dev/sde"),
        ("10", "mirror /dev/sdb /dev/sdc mirror /dev/sdd /dev/sde"),
        ("5", "raidz /dev/sdb /dev/sdc /dev/sdd /dev/sde"),
        ("6", "raidz2 /dev/sdb /dev/sdc /dev/sdd /dev/sde"),
    ],
)
def test_zfs_with_a_log(raid: str, vdevs: str) -> None:
    made = order(manager="zfs", raid=raid, log="/dev/nvme0n1", properties={"sync": "always"})
    assert commands(made) == [
        f"zpool create -f -m /run/loadstone/x/0 -O sync=always {LABEL}n0 {vdevs} log /dev/nvme0n1"
    ]
    assert made.used[-1] == "/dev/nvme0n1"


@pytest.mark.parametrize(
    ("raid", "data", "metadata"),
    [
        ("jbod", "single", "single"),
        ("10", "raid10", "raid10"),
        ("5", "raid5", "raid1"),
        ("6", "raid6", "raid1c3"),
    ],
)
def test_btrfs(raid: str, data: str, metadata: str) -> None:
    made = commands(order(manager="btrfs", raid=raid, mount_options=["nodatacow"]))
    assert made[0].startswith(f"mkfs.btrfs -f -q -L {LABEL} -d {data} -m {metadata} /dev/sdb")
    assert made[1] == "mount -o nodatacow /dev/sdb /run/loadstone/x/0"


@pytest.mark.parametrize(("manager", "stop"), [("md", "mdadm --stop"), ("lvm", "vgremove")])
def test_the_file_system_of_an_array_is_wiped_while_the_array_stands(manager: str, stop: str) -> None:
    """Its superblocks stayed on the devices: once it is stopped nobody knows where they are."""
    made = order(2, manager=manager, raid="0", filesystem="xfs")
    taken = [step for step in taking_down(made) if step.mounted or step.wipes or step.there]
    words = [" ".join(step.command) for step in taken]
    device = made.block_device(0)
    assert words[:2] == [f"umount {made.volume(0)}", f"wipefs --all --quiet {device}"]
    assert words[2].startswith(stop)
    assert (taken[1].wipes, taken[1].there) == (device, ("wipefs", device))


def test_nothing_of_a_bare_array_is_wiped_on_it() -> None:
    made = order(2, manager="md", raid="0", filesystem="none")
    assert not [step for step in taking_down(made) if step.wipes == made.block_device(0)]


def test_a_mount_brings_its_own() -> None:
    made = order(0, manager="mount", source="srv:/x", filesystem_type="nfs4", mount_options=["sync"])
    assert commands(made) == ["mount -t nfs4 -o sync srv:/x /run/loadstone/x/0"]
    assert made.used == ()
    assert [step.command[0] for step in taking_down(made)] == ["umount"]


@pytest.mark.parametrize(
    ("devices", "what", "why"),
    [
        (2, {"manager": "btrfs", "raid": "5"}, "raid 5 needs 3 devices"),
        (5, {"manager": "md", "raid": "10"}, "even number"),
        (5, {"manager": "md", "raid": "0", "groups": 2}, "do not make 2 equal arrays"),
        (0, {}, "at least one device"),
    ],
)
def test_too_few_devices_are_told(devices: int, what: dict[str, Any], why: str) -> None:
    assert why in (build.why_not(order(devices, **what)) or "")


@pytest.mark.parametrize(
    "what",
    [
        {"manager": "btrfs", "filesystem": "ext4"},
        {"raid": "5"},
        {"manager": "mount"},
        {"manager": "md"},
        {"manager": "md", "raid": "0", "log": "/dev/sdb"},
    ],
)
def test_what_would_have_no_effect_is_refused(what: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LayoutDescription.model_validate(what)


def test_every_program_is_known_before() -> None:
    assert programs(order(manager="md", raid="5")) == [
        "mdadm",
        "mkfs.ext4",
        "mount",
        "umount",
        "wipefs",
        "blkid",
    ]


def test_an_order_is_kept_as_text() -> None:
    made = order(manager="zfs", raid="5", log="/dev/sdz")
    assert build.read_order(build.order_text("take down", made)) == ("take down", made)


def test_a_directory_that_does_not_go_is_told_and_goes_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "FREE_S", 0.0)
    monkeypatch.setattr(orphans, "folder", lambda: tmp_path / "locks")
    base = tmp_path / "base"
    (base / "0").mkdir(parents=True)
    mine = base / "0" / "mine"
    mine.write_text("x")
    made = order(0, manager="none").model_copy(update={"base": str(base)})
    with pytest.raises(RefusedError, match="base/0 cannot be removed: Directory not empty"):
        build.take_down(made)
    assert mine.read_text() == "x"
    mine.unlink()
    build.take_down(made)
    assert not base.exists()


@pytest.mark.parametrize(("devices", "refused"), [(4, True), (5, False)])
def test_raid6_of_lvm_needs_five_devices(devices: int, *, refused: bool) -> None:
    """lvcreate takes three stripes at least: with four devices it failed in the middle of a study."""
    why = build._too_few(order(devices, manager="lvm", raid="6"))
    assert (why is not None) is refused
    assert build._too_few(order(devices, manager="md", raid="6")) is None


def test_a_mount_of_nfs_needs_the_program_that_mount_calls() -> None:
    made = order(0, manager="mount", source="10.0.0.1:/x", filesystem_type="nfs4")
    assert "mount.nfs4" in programs(made)
    assert "mount.ext4" not in programs(order(0, manager="mount", source="/dev/x", filesystem_type="ext4"))
