"""Data paths on hardware that is not here, from trees made after the kernel's."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from loadstone.path.block import BlockDevice
from loadstone.path.builder import Builder
from loadstone.path.discover import _Walk, discover
from loadstone.path.route import interface_to
from tests.path.trees import KernelTree

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.path.layers import DataPath, Layer


@pytest.fixture
def host(tmp_path: Path) -> KernelTree:
    return KernelTree(tmp_path)


def found(host: KernelTree, name: str) -> DataPath:
    """The layers under a device of the tree: /dev has no node of it."""
    walk = _Walk(Builder(host.sys, host.proc))
    device = BlockDevice.of_name(name, host.sys)
    assert device is not None
    walk.device(device)
    return walk.build.path(f"/dev/{name}")


def layer(path: DataPath, name: str) -> Layer:
    one = path.layer(name)
    assert one is not None, [layer.name for layer in path.layers]
    return one


def megabytes(one: Layer) -> float:
    assert len(one.ceilings) == 1
    return one.ceilings[0].per_s / 1e6


def nvme(host: KernelTree, upstream: tuple[str, int] = ("16.0 GT/s PCIe", 4)) -> None:
    host.pci("pci0000:00/0000:00:01.0", *upstream)
    card = host.pci("pci0000:00/0000:00:01.0/0000:01:00.0", "16.0 GT/s PCIe", 4, max_link_width="4\n")
    host.block(
        "pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1",
        "259:0",
        {
            "queue/nr_requests": "1023\n",
            "queue/rotational": "0\n",
            "mq/0/cpu_list": "0",
            "mq/1/cpu_list": "1",
        },
    )
    host.write(card / "nvme/nvme0", {"transport": "pcie\n", "model": "X\n"})
    (card / "nvme/nvme0/device").symlink_to(card)
    (card / "nvme/nvme0/nvme0n1/device").symlink_to(card / "nvme/nvme0")
    host.link("class/nvme/nvme0", card / "nvme/nvme0")


def test_nvme_and_its_pci_express_link(host: KernelTree) -> None:
    nvme(host)
    path = found(host, "nvme0n1")
    assert [(one.name, one.kind, one.below) for one in path.layers] == [
        ("nvme0n1", "nvme", ("pcie 0000:01:00.0",)),
        ("pcie 0000:01:00.0", "link", ()),
    ]
    disk = path.layers[0]
    assert (disk.facts["nr_requests"], disk.facts["hardware_queues"]) == (1023, 2)
    assert disk.facts["rotational"] is False
    assert disk.facts["model"] == "X"
    assert disk.counters == "block.nvme0n1"
    assert megabytes(path.layers[1]) == pytest.approx(7877, rel=1e-3)
    assert path.gaps == ()


def test_a_slot_that_is_narrower_than_the_card_is_the_ceiling(host: KernelTree) -> None:
    nvme(host, upstream=("8.0 GT/s PCIe", 2))
    link = layer(found(host, "nvme0n1"), "pcie 0000:01:00.0")
    assert megabytes(link) == pytest.approx(1969, rel=1e-3)
    assert link.facts["narrowest_at"] == "0000:00:01.0"
    assert link.facts["link_width"] == 4


def test_a_link_of_unknown_speed_is_a_gap_and_no_ceiling(host: KernelTree) -> None:
    nvme(host, upstream=("Unknown", 0))
    host.pci("pci0000:00/0000:00:01.0/0000:01:00.0", "Unknown", 0)
    path = found(host, "nvme0n1")
    assert layer(path, "pcie 0000:01:00.0").ceilings == ()
    assert any("PCI Express link of 0000:01:00.0" in gap for gap in path.gaps)


def test_the_link_that_a_hypervisor_makes_up_is_no_ceiling(host: KernelTree) -> None:
    nvme(host, upstream=("2.5 GT/s PCIe", 1))
    port = host.sys / "devices/pci0000:00/0000:00:01.0"
    host.write(port, {"vendor": "0x1b36\n"})
    # A card passed through to a guest has its own link, behind a port that is none.
    assert megabytes(layer(found(host, "nvme0n1"), "pcie 0000:01:00.0")) == pytest.approx(7877, rel=1e-3)
    host.write(port / "0000:01:00.0", {"vendor": "0x1b36\n", "numa_node": "-1\n"})
    path = found(host, "nvme0n1")
    assert layer(path, "pcie 0000:01:00.0").ceilings == ()
    assert layer(path, "pcie 0000:01:00.0").facts["emulated"] is True
    assert "numa_node" not in layer(path, "pcie 0000:01:00.0").facts
    assert any("the device is emulated" in gap for gap in path.gaps)


def test_nvme_over_tcp_goes_on_to_the_network(host: KernelTree) -> None:
    head = host.block("virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "259:1")
    control = host.sys / "devices/virtual/nvme-fabrics/ctl/nvme3"
    host.write(
        control,
        {"transport": "tcp\n", "address": "traddr=10.1.0.9,trsvcid=4420\n", "queue_count": "9\n"},
    )
    (head.parent / "nvme3").symlink_to(control)
    host.link("class/nvme/nvme3", control)
    host.nic("eth1", speed=25000, mtu=9000, pci=host.pci("pci0000:00/0000:02:00.0", "8.0 GT/s PCIe", 8))
    host.routes("eth1 0000010A 00FFFFFF 0")
    path = found(host, "nvme0n1")
    assert [one.name for one in path.layers] == ["nvme0n1", "nvme3", "eth1", "pcie 0000:02:00.0"]
    assert layer(path, "nvme3").facts["queues"] == 9
    assert megabytes(layer(path, "eth1")) == pytest.approx(25000 / 8 * 8948 / 9038)
    assert layer(path, "eth1").counters == "net.eth1"


def test_sas_drives_share_the_expanders_wide_port(host: KernelTree) -> None:
    host.pci("pci0/0000:02:00.0", "8.0 GT/s PCIe", 8)
    wide = "pci0/0000:02:00.0/host0/port-0:0"
    for at, name in enumerate(("sda", "sdb")):
        end = f"{wide}/expander-0:0/port-0:0:{at}"
        host.scsi(
            f"{end}/end_device-0:0:{at}/target0:0:{at}/0:0:{at}:0",
            f"8:{16 * at}",
            {"name": name, "queue/rotational": "1\n"},
        )
        host.write(host.sys / "devices" / end, {f"phy-0:0:{at}": ""})
        host.write(host.sys / "class/sas_phy", {f"phy-0:0:{at}/negotiated_linkrate": "6.0 Gbit\n"})
    for lane in range(4):
        host.write(host.sys / "devices" / wide, {f"phy-0:{lane}": ""})
        host.write(host.sys / "class/sas_phy", {f"phy-0:{lane}/negotiated_linkrate": "12.0 Gbit\n"})
    host.write(host.sys / "class/scsi_host/host0", {"proc_name": "mpt3sas\n", "can_queue": "9680\n"})
    path = found(host, "sdb")
    chain = ["sdb", "sas port-0:0:1", "sas port-0:0", "host0", "pcie 0000:02:00.0"]
    assert sorted(one.name for one in path.layers) == sorted(chain)
    for upper, lower in itertools.pairwise(chain):
        assert layer(path, upper).below == (lower,)
    assert megabytes(layer(path, "sas port-0:0:1")) == 600
    assert megabytes(layer(path, "sas port-0:0")) == 4800
    assert layer(path, "host0").facts["can_queue"] == 9680
    assert layer(path, "sdb").facts["cache_type"] == "write back"


def test_sata_and_a_link_that_did_not_come_up_in_full(host: KernelTree) -> None:
    host.pci("pci0/0000:00:1f.2", "Unknown", 0)
    host.scsi("pci0/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0", "8:0", {"name": "sda"})
    spd = host.sys / "class/ata_link/link3"
    host.write(spd, {"sata_spd": "3.0 Gbps\n"})
    port = layer(found(host, "sda"), "ata3")
    assert megabytes(port) == 300
    assert port.ceilings[0].op == "both"
    host.write(spd, {"sata_spd": "<unknown>\n"})
    path = found(host, "sda")
    assert layer(path, "ata3").ceilings == ()
    assert any("ata3" in gap for gap in path.gaps)


def test_multipath_over_two_fibre_channel_ports(host: KernelTree) -> None:
    mapped = host.block("virtual/block/dm-0", "253:0", {"dm/name": "mpatha\n", "dm/uuid": "mpath-3600\n"})
    for at, name in enumerate(("sda", "sdb")):
        host.pci(f"pci0/0000:0{at}:00.0", "8.0 GT/s PCIe", 8)
        place = f"pci0/0000:0{at}:00.0/host{at}/rport-{at}:0-1/target{at}:0:0/{at}:0:0:0"
        disk = host.scsi(place, f"8:{16 * at}", {"name": name})
        host.stack(mapped, disk)
        host.write(
            host.sys / f"class/fc_host/host{at}",
            {"speed": "16 Gbit\n", "port_state": "Online\n"},
        )
    path = found(host, "dm-0")
    top = layer(path, "dm-0")
    assert (top.kind, top.below, top.facts["paths"]) == ("multipath", ("sda", "sdb"), 2)
    for at, name in enumerate(("sda", "sdb")):
        assert layer(path, name).below == (f"fc host{at}",)
        assert megabytes(layer(path, f"fc host{at}")) == 1600
        assert layer(path, f"fc host{at}").below == (f"pcie 0000:0{at}:00.0",)


def test_iscsi_by_its_peer_to_the_interface(host: KernelTree) -> None:
    host.scsi("platform/host4/session1/target4:0:0/4:0:0:1", "8:0", {"name": "sdc"})
    host.write(
        host.sys / "class/iscsi_session/session1", {"targetname": "iqn.x:y\n", "max_burst_len": "262144\n"}
    )
    host.write(
        host.sys / "class/iscsi_connection/connection1:0", {"address": "192.168.7.4\n", "port": "3260\n"}
    )
    host.nic("eno1", speed=1000, pci=host.pci("pci0/0000:09:00.0", "2.5 GT/s PCIe", 1))
    host.nic("eno2", speed=10000, pci=host.pci("pci0/0000:0a:00.0", "8.0 GT/s PCIe", 4))
    host.routes("eno2 00000000 00000000 100", "eno1 0007A8C0 00FFFFFF 0")
    path = found(host, "sdc")
    session = layer(path, "iscsi session1")
    assert (session.kind, session.below) == ("network_block", ("eno1",))
    assert (session.facts["target_name"], session.facts["peers"]) == ("iqn.x:y", ["192.168.7.4"])
    assert megabytes(layer(path, "eno1")) == pytest.approx(117.7, rel=1e-3)


def nfs(host: KernelTree, tmp_path: Path, options: str) -> DataPath:
    point = tmp_path / "mount point"
    point.mkdir(exist_ok=True)
    line = f"40 1 0:77 / {str(point).replace(' ', chr(92) + '040')} rw - nfs4 filer:/vol/a rw,{options}\n"
    host.write(host.proc, {"self/mountinfo": line})
    return discover(str(point / "data"), sys=host.sys, proc=host.proc)


def test_nfs_over_a_bond_uses_as_many_ports_as_it_has_connections(host: KernelTree, tmp_path: Path) -> None:
    for at in range(2):
        host.nic(f"eth{at}", speed=10000, pci=host.pci(f"pci0/0000:0{at}:00.0", "8.0 GT/s PCIe", 8))
    bond = host.nic("bond0", speed=20000, mtu=9000, lower="eth0 eth1")
    host.write(bond, {"bonding/mode": "802.3ad 4\n"})
    host.routes("bond0 0000000A 000000FF 0")
    options = "vers=4.2,rsize=1048576,wsize=262144,proto=tcp,addr=10.0.0.9"
    path = nfs(host, tmp_path, options)
    names = ["nfs4 on " + str(tmp_path / "mount point"), "bond0", "eth0", "pcie 0000:00:00.0"]
    assert [one.name for one in path.layers][1:5] == names
    mount = path.layers[1]
    assert (mount.kind, mount.below) == ("network_file_system", ("bond0",))
    assert mount.counters == f"nfs.{tmp_path / 'mount point'}"
    wanted = {
        "server": "filer",
        "export": "/vol/a",
        "read_bytes_at_most": 1048576,
        "write_bytes_at_most": 262144,
        "connections": 1,
        "address": "10.0.0.9",
    }
    assert {name: mount.facts[name] for name in wanted} == wanted
    assert layer(path, "bond0").facts["ports"] == ["eth0", "eth1"]
    one_port = megabytes(layer(path, "bond0"))
    assert one_port == pytest.approx(10000 / 8 * 8948 / 9038)
    both = nfs(host, tmp_path, options + ",nconnect=4")
    assert megabytes(layer(both, "bond0")) == pytest.approx(2 * one_port)
    assert layer(both, "bond0").ceilings[0].multiple == 2
    assert any("behind /vol/a on filer" in gap for gap in path.gaps)


def test_a_server_without_a_route_is_a_gap(host: KernelTree, tmp_path: Path) -> None:
    path = nfs(host, tmp_path, "addr=10.0.0.9")
    assert path.layers[-1].below == ()
    assert any("no route to 10.0.0.9" in gap for gap in path.gaps)


def test_a_virtual_interface_has_no_ceiling(host: KernelTree, tmp_path: Path) -> None:
    # veth tells 10 Gbit/s, which means nothing.
    host.nic("veth0", speed=10000)
    host.routes("veth0 0000000A 000000FF 0")
    path = nfs(host, tmp_path, "addr=10.0.0.9")
    assert layer(path, "veth0").ceilings == ()
    assert any("veth0: it is virtual" in gap for gap in path.gaps)


def test_a_bond_of_virtual_ports_has_no_ceiling_either(host: KernelTree, tmp_path: Path) -> None:
    host.nic("veth0", speed=10000)
    host.write(host.nic("bond0", speed=10000, lower="veth0"), {"bonding/mode": "balance-rr 0\n"})
    host.routes("bond0 0000000A 000000FF 0")
    path = nfs(host, tmp_path, "addr=10.0.0.9")
    assert layer(path, "bond0").ceilings == ()
    (tmp_path / "mount point" / "data").write_bytes(b"x" * 100)
    again = nfs(host, tmp_path, "addr=10.0.0.9")
    assert again.layers[0].facts == {"size_bytes": 100}


def test_lvm_thin_over_md_over_partitions(host: KernelTree) -> None:
    thin = host.block("virtual/block/dm-3", "253:3", {"dm/name": "vg-thin\n", "dm/uuid": "LVM-abc\n"})
    pool = host.block("virtual/block/dm-2", "253:2", {"dm/name": "vg-pool\n", "dm/uuid": "LVM-abc-tpool\n"})
    raid = host.block(
        "virtual/block/md0",
        "9:0",
        {"md/level": "raid5\n", "md/raid_disks": "3\n", "md/chunk_size": "524288\n", "md/degraded": "1\n"},
    )
    host.stack(thin, pool)
    host.stack(pool, raid)
    for at, name in enumerate(("sda", "sdb")):
        disk = host.scsi(f"pci0/host{at}/target{at}:0:0/{at}:0:0:0", f"8:{16 * at}", {"name": name})
        host.write(host.sys / f"class/scsi_host/host{at}", {"proc_name": "megaraid_sas\n"})
        part = host.block(str((disk / f"{name}1").relative_to(host.sys / "devices")), f"8:{16 * at + 1}")
        host.write(part, {"partition": "1\n", "start": "2048\n"})
        host.stack(raid, part)
    path = found(host, "dm-3")
    names = [(one.name, one.kind) for one in path.layers]
    assert names[:4] == [("dm-3", "lvm"), ("dm-2", "lvm"), ("md0", "md"), ("sda1", "partition")]
    assert path.layers[0].facts["thin"] is True
    assert layer(path, "md0").below == ("sda1", "sdb1")
    assert {
        k: layer(path, "md0").facts[k] for k in ("level", "members", "present", "chunk_bytes", "degraded")
    } == {
        "level": "raid5",
        "members": 3,
        "present": 2,
        "chunk_bytes": 524288,
        "degraded": 1,
    }
    assert layer(path, "sda1").facts["start_bytes"] == 1 << 20
    assert any("drives behind host0" in gap for gap in path.gaps)


def test_the_throttle_of_a_control_group_stands_above_its_device(host: KernelTree) -> None:
    nvme(host)
    point = host.proc / "cg"
    host.write(
        host.proc,
        {
            "self/mountinfo": f"30 1 0:9 / {point} rw - cgroup2 cgroup2 rw\n",
            "self/cgroup": "0::/a/b\n",
            "cg/a/io.max": "259:0 rbps=1048576 wbps=max riops=max wiops=200\n8:0 rbps=1 wbps=max\n",
        },
    )
    path = found(host, "nvme0n1")
    top = path.layers[0]
    assert (top.name, top.kind, top.below) == ("cgroup /a on nvme0n1", "cgroup", ("nvme0n1",))
    assert {(c.op, c.quantity, c.per_s) for c in top.ceilings} == {
        ("read", "bytes_per_s", 1048576.0),
        ("write", "iops", 200.0),
    }
    assert top.counters == "block.nvme0n1"


def test_the_root_groups_limit_is_no_ceiling_of_a_process_elsewhere(host: KernelTree) -> None:
    nvme(host)
    point = host.proc / "cg"
    host.write(
        host.proc,
        {
            "self/mountinfo": f"30 1 0:9 / {point} rw - cgroup cgroup rw,blkio\n",
            "self/cgroup": "7:blkio:/job\n0::/\n",
            "cg/blkio.throttle.write_iops_device": "259:0 100\n",
            "cg/job/blkio.throttle.read_iops_device": "259:0 300\n",
        },
    )
    path = found(host, "nvme0n1")
    assert [(c.op, c.per_s) for c in path.layers[0].ceilings] == [("read", 300.0)]
    assert path.layers[0].facts == {"/ write_iops": 100}
    assert any("root group's limits" in gap for gap in path.gaps)


def test_routes_by_prefix_then_metric_and_own_addresses(host: KernelTree) -> None:
    host.routes("a 00000000 00000000 0", "b 0000000A 000000FF 50", "c 0000000A 000000FF 10")
    host.write(
        host.proc,
        {
            "net/fib_trie": " |-- 10.0.0.7\n   /32 host LOCAL\n |-- 10.0.0.255\n   /32 link BROADCAST\n",
            "net/ipv6_route": f"fd00{'0' * 28} 10 {'0' * 32} 00 {'0' * 32} 00000064 1 0 00000001 six\n",
        },
    )
    assert interface_to("10.9.9.9", host.proc) == "c"
    assert interface_to("11.0.0.1", host.proc) == "a"
    assert interface_to("10.0.0.7", host.proc) == "lo"
    assert interface_to("127.0.0.1", host.proc) == "lo"
    assert interface_to("[fd00::1]", host.proc) == "six"
    assert interface_to("fe80::1", host.proc) is None
    assert interface_to("filer", host.proc) is None


def test_a_device_without_a_bus_is_a_gap(host: KernelTree) -> None:
    host.block("virtual/block/zd0", "230:0")
    path = found(host, "zd0")
    assert [(one.name, one.kind, one.below) for one in path.layers] == [("zd0", "disk", ())]
    assert path.gaps == ("the bus of zd0: the kernel names none",)
