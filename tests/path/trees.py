"""Small trees of sysfs and procfs with the links the kernel makes, for hardware that is not here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class KernelTree:
    """A host's /sys and /proc below one directory."""

    def __init__(self, root: Path) -> None:
        self.sys = root / "sys"
        self.proc = root / "proc"
        for folder in ("block", "class/block", "dev/block", "devices"):
            (self.sys / folder).mkdir(parents=True)
        self.write(self.proc, {"self/mountinfo": "", "self/cgroup": "0::/\n", "meminfo": "MemTotal: 8 kB\n"})

    @staticmethod
    def write(base: Path, files: dict[str, str]) -> None:
        for name, content in files.items():
            path = base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def link(self, name: str, place: Path) -> None:
        path = self.sys / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(place)

    def block(self, place: str, number: str, files: dict[str, str] | None = None) -> Path:
        """A block device at this place below /sys/devices."""
        there = self.sys / "devices" / place
        self.write(there, {"dev": f"{number}\n", "size": "2048\n", "stat": "0 " * 17, **(files or {})})
        for folder, name in (("dev/block", number), ("class/block", there.name), ("block", there.name)):
            self.link(f"{folder}/{name}", there)
        return there

    def scsi(self, place: str, number: str, files: dict[str, str] | None = None) -> Path:
        """A SCSI disk: `place` is that of the device, the disk is under it."""
        address = place.rpartition("/")[2]
        there = self.block(f"{place}/block/{files.pop('name') if files else 'sda'}", number, files)
        (there / "device").symlink_to(there.parent.parent)
        self.write(self.sys / "class", {f"scsi_disk/{address}/cache_type": "write back\n"})
        return there

    def stack(self, upper: Path, lower: Path) -> None:
        for device, folder, other in ((upper, "slaves", lower), (lower, "holders", upper)):
            (device / folder).mkdir(exist_ok=True)
            (device / folder / other.name).symlink_to(other)

    def pci(self, place: str, speed: str, width: int, **more: str) -> Path:
        there = self.sys / "devices" / place
        files = {"current_link_speed": f"{speed}\n", "current_link_width": f"{width}\n", **more}
        self.write(there, files)
        return there

    def nic(
        self, name: str, *, speed: int, mtu: int = 1500, pci: Path | None = None, lower: str = ""
    ) -> Path:
        place = (pci or self.sys / "devices/virtual") / "net" / name
        self.write(place, {"speed": f"{speed}\n", "mtu": f"{mtu}\n", "operstate": "up\n"})
        if pci is not None:
            (place / "device").symlink_to(pci)
        for one in lower.split():
            (place / f"lower_{one}").symlink_to(self.sys / "class/net" / one)
        self.link(f"class/net/{name}", place)
        return place

    def routes(self, *lines: str) -> None:
        """Lines of /proc/net/route: interface, destination and mask as the kernel writes them, metric."""
        told = [
            f"{name} {destination} 00000000 0001 0 0 {metric} {mask} 0 0 0"
            for name, destination, mask, metric in (line.split() for line in lines)
        ]
        self.write(self.proc, {"net/route": "\n".join(["Iface Destination ...", *told]) + "\n"})
