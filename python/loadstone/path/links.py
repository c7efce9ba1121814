"""Adapters and links under a disk or a network mount: what they negotiated, and so can carry.

Knows sysfs: PCI (Documentation/ABI/testing/sysfs-bus-pci), the SAS, FC and iSCSI transport classes,
libata, NVMe, USB and network interfaces. Reads only; what a guest or a bus does not tell is a gap.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.path import ceilings, shaping
from loadstone.path.block import SYS
from loadstone.path.builder import number, text
from loadstone.path.route import LOOPBACK, interface_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.path.block import BlockDevice
    from loadstone.path.builder import Builder
    from loadstone.path.layers import Ceiling

EMULATED: Final = ("0x1af4", "0x1b36", "0x15ad", "0x80ee")
"""PCI vendors of what hypervisors make up (virtio, QEMU, VMware, VirtualBox): the links are, too."""
SPREADS_ONE_CONNECTION: Final = ("balance-rr 0",)
"""Bonding modes in which a single connection uses more than one port."""


def under_disk(build: Builder, disk: BlockDevice) -> list[str]:  # noqa: PLR0911 - one for each transport
    """Add what connects a disk to the host; return the names directly under it."""
    if disk.name.startswith("nvme"):
        return _nvme(build, disk)
    parts = disk.sys.resolve().parts
    host = next((part for part in parts if re.fullmatch(r"host\d+", part)), None)
    if (session := _part(parts, r"session\d+")) is not None:
        return _iscsi(build, session, host)
    if _part(parts, r"rport-[\d:-]+") is not None and host is not None:
        return _fibre_channel(build, disk, host)
    ports = [place for place in [disk.sys, *disk.sys.parents] if re.fullmatch(r"port-[\d:]+", place.name)]
    if ports and host is not None:
        return _sas(build, disk, ports, host)
    if (port := _part(parts, r"ata\d+")) is not None:
        return _sata(build, disk, port)
    usb = next((place for place in disk.sys.parents if (place / "bMaxPacketSize0").exists()), None)
    if usb is not None:
        speed = number(usb / "speed")
        limit = ceilings.usb(speed) if speed else None
        return [build.add(f"usb {usb.name}", "link", {"speed_mbit_per_s": speed}, ceilings=[limit])]
    if host is not None:
        return [_adapter(build, disk.sys, host)]
    if (virtio := _part(parts, r"virtio\d+")) is not None:
        build.gap(say("path.gap.behind_hypervisor", name=f"{disk.name} ({virtio})"))
        return [build.add(virtio, "adapter", {"driver": "virtio_blk"}, below=pcie(build, disk.sys))]
    buses = pcie(build, disk.sys)
    if not buses:
        build.gap(say("path.gap.bus", device=disk.name))
    return buses


def pcie(build: Builder, place: Path) -> list[str]:
    """Add the PCI Express link of the function a device belongs to, when it has one."""
    place = place.resolve()
    chain = [one for one in [place, *place.parents] if (one / "current_link_speed").exists()]
    if not chain:
        return []
    function, name = chain[0], f"pcie {chain[0].name}"
    if not build.begin(name):
        return [name]
    links = [(ceiling.per_s, one.name, ceiling) for one in chain if (ceiling := _pcie_ceiling(one))]
    narrowest = min(links, key=lambda link: link[0], default=None)
    if narrowest is None:
        reason = say("path.gap.emulated" if _emulated(function) else "path.gap.no_pcie_speed")
        build.gap(say("path.gap.pcie", function=function.name, reason=reason))
    facts = {
        "function": function.name,
        "link_speed": text(function / "current_link_speed"),
        "link_width": number(function / "current_link_width"),
        "max_link_speed": text(function / "max_link_speed"),
        "max_link_width": number(function / "max_link_width"),
        "numa_node": node if (node := number(function / "numa_node")) != -1 else None,
        "emulated": _emulated(function) or None,
        "driver": _driver(function),
        # A slot or a switch above may be narrower than the card.
        "narrowest_at": narrowest[1] if narrowest and narrowest[1] != function.name else None,
    }
    build.add(name, "link", facts, ceilings=[narrowest[2] if narrowest else None])
    return [name]


def to_address(build: Builder, address: str | None, peer: str, *, connections: int = 1) -> list[str]:
    """Add the interface that leads to a peer; `connections` is how many it is spread over."""
    name = interface_to(address, build.proc) if address else None
    if name is None:
        build.gap(say("path.gap.route", peer=peer, address=address or say("path.gap.unknown_address")))
        return []
    return [interface(build, name, connections=connections)]


def interface(build: Builder, name: str, *, connections: int = 1) -> str:
    """Add a network interface, and the ports under a bond or a VLAN."""
    if not build.begin(name):
        return name
    place = build.sys / "class" / "net" / name
    mode = text(place / "bonding" / "mode")
    lower = sorted(link.name.removeprefix("lower_") for link in place.glob("lower_*"))
    bridge = (place / "bridge").exists()
    mtu, speed = number(place / "mtu"), number(place / "speed")
    real, shaper = _is_real(build, name), shaping.shaper(name) if build.sys == SYS else None
    known = speed if real and speed and speed > 0 else None
    facts = {
        "mtu_bytes": mtu,
        "speed_mbit_per_s": known,
        "duplex": text(place / "duplex") if known else None,
        "state": text(place / "operstate"),
        "bond_mode": mode,
        "ports": list(lower) or None,
        "driver": _driver(place / "device"),
        "virtual": None if real else True,
        "send_limit": shaper.kind if shaper is not None else None,
    }
    if known is None and name != LOOPBACK:
        reason = say("path.gap.no_driver_speed" if real else "path.gap.virtual")
        build.gap(say("path.gap.interface", name=name, reason=reason))
    below = [interface(build, port) for port in lower if not bridge]
    below = below or (pcie(build, place / "device") if (place / "device").exists() else [])
    limits = [_ethernet(build, known, mtu, lower if mode else [], mode, connections)]
    if shaper is not None and mtu:
        limits.append(ceilings.shaped(shaper.kind, name, shaper.bytes_per_s, mtu))
    return build.add(name, "link", facts, below=below, ceilings=limits, counters=f"net.{name}")


def _is_real(build: Builder, name: str) -> bool:
    """Tell whether there is hardware: a veth tells a speed that means nothing, and so does a bond of two."""
    place = build.sys / "class" / "net" / name
    lower = [link.name.removeprefix("lower_") for link in place.glob("lower_*")]
    over_real = bool(lower) and all(_is_real(build, port) for port in lower)
    return (place / "device").exists() or (over_real and not (place / "bridge").exists())


def _ethernet(  # noqa: PLR0917 - what decides how fast an interface is
    build: Builder, speed: int | None, mtu: int | None, ports: list[str], mode: str | None, connections: int
) -> Ceiling | None:
    """Return an interface's payload; over a bond a connection has one port unless packets are dealt out."""
    if speed is None or not mtu:
        return None
    one = max((number(build.sys / "class" / "net" / port / "speed") or 0 for port in ports), default=0)
    if one > 0 and mode not in SPREADS_ONE_CONNECTION:
        used = min(max(1, connections), max(1, round(speed / one)))
        return ceilings.ethernet(one, mtu, used)
    return ceilings.ethernet(speed, mtu)


def _nvme(build: Builder, disk: BlockDevice) -> list[str]:
    parent = disk.sys.resolve().parent
    if parent.name.startswith("nvme-subsys"):
        names = sorted(one.name for one in parent.iterdir() if re.fullmatch(r"nvme\d+", one.name))
    else:
        names = [parent.name]
    return [name for one in names for name in _nvme_controller(build, one)]


def _nvme_controller(build: Builder, name: str) -> list[str]:
    place = build.sys / "class" / "nvme" / name
    transport = text(place / "transport")
    address = text(place / "address") or ""
    if transport in {None, "pcie"}:
        return pcie(build, place / "device" if (place / "device").exists() else place)
    if not build.begin(name):
        return [name]
    words = dict(word.partition("=")[::2] for word in address.split(","))
    peer = words.get("traddr")
    facts = {
        "transport": transport,
        "peer": peer,
        "state": text(place / "state"),
        "queues": number(place / "queue_count"),
        "queue_size": number(place / "sqsize"),
        "subsystem": text(place / "subsysnqn"),
    }
    below: list[str] = []
    build.gap(say("path.gap.behind_subsystem", name=name))
    if transport == "tcp":
        below = to_address(build, peer, f"the NVMe controller {name}")
    else:
        build.gap(say("path.gap.fabric", name=name, transport=transport))
    return [build.add(name, "network_block", facts, below=below)]


def _iscsi(build: Builder, session: str, host: str | None) -> list[str]:
    name = f"iscsi {session}"
    if not build.begin(name):
        return [name]
    place = build.sys / "class" / "iscsi_session" / session
    connections = sorted((build.sys / "class" / "iscsi_connection").glob(f"connection{session[7:]}:*"))
    peers = [text(one / "address") or text(one / "persistent_address") for one in connections]
    facts = {
        "target_name": text(place / "targetname"),
        "state": text(place / "state"),
        "peers": [peer for peer in peers if peer] or None,
        "port": number(connections[0] / "port") if connections else None,
        "max_outstanding_r2t": number(place / "max_outstanding_r2t"),
        "max_burst_bytes": number(place / "max_burst_len"),
        "can_queue": number(build.sys / "class" / "scsi_host" / host / "can_queue") if host else None,
    }
    build.gap(say("path.gap.behind_target", name=name))
    bound = text(build.sys / "class" / "iscsi_host" / host / "netdev") if host else None
    if bound and (build.sys / "class" / "net" / bound).exists():
        below = [interface(build, bound)]
    else:
        below = [
            interface_name for peer in peers or [None] for interface_name in to_address(build, peer, name)
        ]
    return [build.add(name, "network_block", facts, below=below)]


def _fibre_channel(build: Builder, disk: BlockDevice, host: str) -> list[str]:
    name = f"fc {host}"
    if not build.begin(name):
        return [name]
    place = build.sys / "class" / "fc_host" / host
    speed = text(place / "speed")
    match = re.fullmatch(r"(\d+) Gbit", speed or "")
    if match is None:
        build.gap(say("path.gap.fibre_channel", host=host, speed=speed or "none"))
    facts = {
        **_host_facts(build, host),
        "speed": speed,
        "supported_speeds": text(place / "supported_speeds"),
        "state": text(place / "port_state"),
        "topology": text(place / "port_type"),
    }
    build.gap(say("path.gap.behind_array", name=name))
    limit = ceilings.fibre_channel(float(match[1])) if match else None
    return [build.add(name, "link", facts, below=pcie(build, disk.sys), ceilings=[limit])]


def _sas(build: Builder, disk: BlockDevice, ports: list[Path], host: str) -> list[str]:
    """Add the ports from the drive up to the adapter: an expander's wide port is shared by its drives."""
    below = [_adapter(build, disk.sys, host)]
    for port in reversed(ports):
        name = f"sas {port.name}"
        lanes = sorted(phy.name for phy in port.glob("phy-*"))
        rates = [text(build.sys / "class" / "sas_phy" / lane / "negotiated_linkrate") for lane in lanes]
        known = [float(rate.split()[0]) for rate in rates if rate and re.match(r"\d", rate)]
        if not known:
            build.gap(say("path.gap.sas", port=port.name))
        facts = {
            "lanes": len(lanes) or None,
            "link_rates": list(dict.fromkeys(r for r in rates if r)) or None,
        }
        limit = ceilings.sas(min(known), len(known)) if known else None
        below = [build.add(name, "link", facts, below=below, ceilings=[limit])]
    return below


def _sata(build: Builder, disk: BlockDevice, port: str) -> list[str]:
    speed = text(build.sys / "class" / "ata_link" / f"link{port[3:]}" / "sata_spd")
    match = re.fullmatch(r"(\d+(?:\.\d+)?) Gbps", speed or "")
    if match is None:
        build.gap(say("path.gap.sata", port=port, speed=speed or "none"))
    limit = ceilings.sata(float(match[1])) if match else None
    return [build.add(port, "link", {"speed": speed}, below=pcie(build, disk.sys), ceilings=[limit])]


def _adapter(build: Builder, place: Path, host: str) -> str:
    if build.begin(host):
        facts = _host_facts(build, host)
        build.add(host, "adapter", facts, below=pcie(build, place))
        if "raid" in str(facts.get("driver")):
            build.gap(say("path.gap.behind_raid", host=host))
        elif facts.get("driver") == "virtio_scsi":
            build.gap(say("path.gap.behind_hypervisor", name=host))
    return host


def _host_facts(build: Builder, host: str) -> dict[str, str | int | None]:
    place = build.sys / "class" / "scsi_host" / host
    return {
        "driver": text(place / "proc_name"),
        "can_queue": number(place / "can_queue"),
        "queue_per_device": number(place / "cmd_per_lun"),
        "hardware_queues": number(place / "nr_hw_queues"),
    }


def _pcie_ceiling(function: Path) -> Ceiling | None:
    speed = re.match(r"(\d+(?:\.\d+)?) GT/s", text(function / "current_link_speed") or "")
    width = number(function / "current_link_width")
    # A width of 255 or 0 is what a bridge without a link tells.
    if speed is None or not width or width > 32 or _emulated(function):
        return None
    return ceilings.pcie(float(speed[1]), width)


def _emulated(function: Path) -> bool:
    return text(function / "vendor") in EMULATED


def _driver(place: Path) -> str | None:
    try:
        return (place / "driver").resolve(strict=True).name
    except OSError:
        return None


def _part(parts: tuple[str, ...], pattern: str) -> str | None:
    return next(_matching(parts, pattern), None)


def _matching(parts: tuple[str, ...], pattern: str) -> Iterator[str]:
    return (part for part in parts if re.fullmatch(pattern, part))
