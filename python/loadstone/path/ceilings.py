"""The payload that a link can carry, by formula, and links as people write them.

Knows rates, codings and frame overheads, each with its source in words; knows no host. What is
given is the most that standard frames allow, so that nothing honest lies above it; protocols on
top (iSCSI, NVMe over TCP, PCIe's packets) take a few percent more.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.path.layers import Ceiling

if TYPE_CHECKING:
    from collections.abc import Callable

ETHERNET_OVERHEAD_BYTES: Final = 38
"""Preamble 8, header 14, checksum 4, gap 12 (IEEE 802.3)."""
FRAME_HEADER_BYTES: Final = 14
"""Two addresses and the type (IEEE 802.3)."""
TCP_OVERHEAD_BYTES: Final = 52
"""IPv4 20, TCP 20, time stamps 12 (RFC 791, 9293, 7323)."""
STANDARD_MTU: Final = 1500
FC_BYTES_PER_GBIT: Final = 100e6
"""A Fibre Channel generation is named after its payload: 16GFC carries 1600 MB/s (FC-PI-5)."""
SAS_PAYLOADS: Final = {1.5: 150e6, 3.0: 300e6, 6.0: 600e6, 12.0: 1200e6, 22.5: 2400e6}
"""Gbit/s of a lane to payload: 8b/10b up to 12, 128b/150b with 22.5 (SAS-4)."""
PCIE_LANES: Final[dict[float, tuple[int, float]]] = {
    2.5: (1, 8 / 10),
    5.0: (2, 8 / 10),
    8.0: (3, 128 / 130),
    16.0: (4, 128 / 130),
    32.0: (5, 128 / 130),
    64.0: (6, 236 / 256),
}
"""GT/s of a lane to generation and what its coding leaves (PCI Express Base Specification 6.0)."""

_GT_PER_S: Final[dict[int, float]] = {generation: rate for rate, (generation, _) in PCIE_LANES.items()}


def ethernet(mbit_per_s: float, mtu: int = STANDARD_MTU, count: int = 1) -> Ceiling:
    """Return what TCP carries over Ethernet, each way."""
    share = (mtu - TCP_OVERHEAD_BYTES) / (mtu + ETHERNET_OVERHEAD_BYTES)
    name = _gigabit(mbit_per_s / 1000, "GbE")
    source = f"payload of {_times(count)}{name} at MTU {mtu} with TCP time stamps"
    return _link(mbit_per_s * 1e6 / 8 * share * count, source, count)


def shaped(kind: str, interface: str, bytes_per_s: float, mtu: int = STANDARD_MTU) -> Ceiling:
    """Return what TCP sends through a queueing discipline, whose rate counts headers of frames (tc(8))."""
    share = (mtu - TCP_OVERHEAD_BYTES) / (mtu + FRAME_HEADER_BYTES)
    rate = _gigabit(bytes_per_s * 8 / 1e9, "Gbit/s").removesuffix(" Ethernet")
    source = f"payload of {rate} that {kind} lets {interface} send, at MTU {mtu} with TCP time stamps"
    return Ceiling(quantity="bytes_per_s", op="write", per_s=bytes_per_s * share, kind="link", source=source)


def fibre_channel(gfc: float, count: int = 1) -> Ceiling:
    """Return what Fibre Channel ports carry, each way."""
    source = f"payload of {_times(count)}{gfc:g}GFC, 100 MB/s for each"
    return _link(gfc * FC_BYTES_PER_GBIT * count, source, count)


def sas(gbit_per_s: float, lanes: int = 1) -> Ceiling:
    """Return what SAS lanes carry, each way."""
    per_lane = SAS_PAYLOADS.get(gbit_per_s, gbit_per_s * 1e9 / 10)
    source = f"payload of {lanes} SAS lane{'s' if lanes > 1 else ''} of {gbit_per_s:g} Gbit/s"
    return _link(per_lane * lanes, source, lanes)


def sata(gbit_per_s: float, count: int = 1) -> Ceiling:
    """Return what SATA carries; it is half-duplex."""
    source = f"payload of {_times(count)}SATA {gbit_per_s:g} Gbit/s, 8b/10b coding"
    return _link(gbit_per_s * 1e9 / 10 * count, source, count, both=True)


def pcie(gt_per_s: float, lanes: int, count: int = 1) -> Ceiling:
    """Return what PCI Express carries, each way, packets' headers included."""
    generation, share = PCIE_LANES.get(gt_per_s, (0, 128 / 130))
    name = f"PCIe {generation}.0 x{lanes}" if generation else f"PCIe {gt_per_s:g} GT/s x{lanes}"
    source = f"{_times(count)}{name} after its coding; packet headers take another 5 to 15 %"
    return _link(gt_per_s * 1e9 / 8 * share * lanes * count, source, count)


def usb(mbit_per_s: float) -> Ceiling:
    """Return what USB carries after its coding; protocols leave 60 to 90 % of it."""
    share = 8 / 10 if mbit_per_s == 5000 else 128 / 132 if mbit_per_s > 5000 else 1.0
    return _link(mbit_per_s * 1e6 / 8 * share, f"USB {mbit_per_s:g} Mbit/s after its coding", 1, both=True)


def infiniband(name: str, count: int = 1) -> Ceiling:
    """Return what four lanes of an InfiniBand generation carry, each way."""
    payload = INFINIBAND[name]
    return _link(payload * count, f"payload of {_times(count)}InfiniBand {name} x4", count)


INFINIBAND: Final = {"QDR": 4e9, "FDR": 6.8e9, "EDR": 12.1e9, "HDR": 24.2e9, "NDR": 48.5e9}


@dataclass(frozen=True, slots=True)
class LinkForm:
    """A way to write a link: what it looks like, an example, and what it carries."""

    pattern: str
    example: str
    made: Callable[[re.Match[str], int], Ceiling]


def _mtu(match: re.Match[str]) -> int:
    return int(match["mtu"] or STANDARD_MTU)


FORMS: Final = (
    LinkForm(
        r"(?P<rate>\d+(?:\.\d+)?)\s*GbE(?:\s+mtu\s+(?P<mtu>\d+))?",
        "2 x 10GbE",
        lambda match, count: ethernet(float(match["rate"]) * 1000, _mtu(match), count),
    ),
    LinkForm(
        r"(?P<rate>1|2|4|8|16|32|64|128)\s*G(?:b\s*)?FC",
        "4 x 16GFC",
        lambda match, count: fibre_channel(float(match["rate"]), count),
    ),
    LinkForm(
        r"SAS\s*-?\s*(?P<rate>1\.5|3|6|12|22\.5)G?",
        "4 x SAS 12G",
        lambda match, count: sas(float(match["rate"]), count),
    ),
    LinkForm(
        r"SATA\s*-?\s*(?P<rate>1\.5|3|6)G?",
        "SATA 6G",
        lambda match, count: sata(float(match["rate"]), count),
    ),
    LinkForm(
        r"PCIe\s*(?:gen)?\s*(?P<rate>[1-6])(?:\.0)?\s*x(?P<lanes>1|2|4|8|16)",
        "PCIe 4.0 x4",
        lambda match, count: pcie(_GT_PER_S[int(match["rate"])], int(match["lanes"]), count),
    ),
    LinkForm(
        r"(?:IB|InfiniBand)\s*(?P<rate>QDR|FDR|EDR|HDR|NDR)",
        "2 x IB HDR",
        lambda match, count: infiniband(match["rate"].upper(), count),
    ),
)
_COUNT: Final = re.compile(r"\s*(?:(\d+)\s*[x×*]\s*)?(.*?)\s*", re.IGNORECASE)


def parse_link(text: str) -> Ceiling | None:
    """Read a link as `4 x 16GFC` or `10GbE MTU 9000`; `None` when it is none that is known."""
    match = _COUNT.fullmatch(text)
    count = int(match[1] or 1) if match else 1
    for form in FORMS if match and count > 0 else ():
        form_match = re.fullmatch(form.pattern, match[2], re.IGNORECASE) if match else None
        if form_match is not None:
            mtu = form_match.groupdict().get("mtu")
            if mtu is not None and not 576 <= int(mtu) <= 65535:
                return None
            return form.made(form_match, count)
    return None


def nearest_link(text: str) -> str:
    """Return the example that looks most like a text, or all of them."""
    examples = [form.example for form in FORMS]
    near = difflib.get_close_matches(text[:40], examples, n=1, cutoff=0.4)
    return f"did you mean something like {near[0]!r}?" if near else "write one as " + ", ".join(examples)


def _link(per_s: float, source: str, count: int, *, both: bool = False) -> Ceiling:
    return Ceiling(
        quantity="bytes_per_s",
        op="both" if both else "each",
        per_s=per_s,
        kind="link",
        source=source,
        multiple=count,
    )


def _times(count: int) -> str:
    return f"{count} x " if count > 1 else ""


def _gigabit(gbit: float, unit: str) -> str:
    return f"{gbit:g} {unit}" if gbit >= 1 else f"{gbit * 1000:g} Mbit/s Ethernet"
