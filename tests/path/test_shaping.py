"""What traffic control lets an interface send."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.path import ceilings, links, shaping
from loadstone.path.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Iterator

HTB = """class htb 1:10 root prio 0 rate 40Mbit ceil 80Mbit burst 1600b cburst 1600b
class htb 1:20 root prio 0 rate 4Mbit ceil 4500Kbit burst 1600b cburst 1600b
"""


@pytest.mark.parametrize(
    ("kind", "options", "rate"),
    [
        ("tbf", {"rate": 10_000_000, "burst": 65530, "lat": 200_000}, 1e7),
        ("netem", {"limit": 1000, "rate": {"rate": 6_250_000, "packetoverhead": 0}}, 6.25e6),
        ("netem", {"limit": 1000, "delay": {"delay": 0.001}}, None),
        ("cake", {"bandwidth": 3_750_000, "diffserv": "diffserv3"}, 3.75e6),
        ("cake", {"bandwidth": "unlimited"}, None),
        ("fq_codel", {"limit": 10240}, None),
        ("noqueue", {}, None),
    ],
)
def test_the_rate_of_a_queueing_discipline(kind: str, options: dict[str, Any], rate: float | None) -> None:
    assert shaping.rate_of(kind, options) == rate


def test_no_class_of_htb_sends_more_than_the_widest() -> None:
    assert shaping.highest_ceil(HTB) == 1e7
    assert shaping.highest_ceil("") is None


def test_of_a_shaped_rate_tcp_leaves_its_headers() -> None:
    shaped = ceilings.shaped("tbf", "eth0", 1e7, 1500)
    assert shaped.per_s == pytest.approx(1e7 * 1448 / 1514)
    assert (shaped.op, shaped.quantity, shaped.kind) == ("write", "bytes_per_s", "link")
    assert shaped.source == "payload of 80 Mbit/s that tbf lets eth0 send, at MTU 1500 with TCP time stamps"


@pytest.mark.parametrize("printed", ["", "not JSON", "{}", "[1]", '[{"root": true}]', '[{"kind": "tbf"}]'])
def test_what_tc_does_not_tell_is_no_rate(printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaping, "_printed", lambda *_: printed)
    assert shaping.shaper("eth0") is None


@pytest.fixture
def veth() -> Iterator[str]:
    name = f"ls{os.getpid() % 100000}s"
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"], check=True)
    yield name
    subprocess.run(["ip", "link", "del", name], check=True)


@pytest.mark.root
@pytest.mark.skipif(shutil.which("tc") is None, reason="not installed: tc (iproute2)")
def test_a_shaped_interface_has_a_ceiling_for_what_it_sends(veth: str) -> None:
    assert shaping.shaper(veth) is None
    words = ["tc", "qdisc", "add", "dev", veth, "root"]
    subprocess.run([*words, "tbf", "rate", "80mbit", "burst", "64kb", "latency", "200ms"], check=True)
    build = Builder()
    links.interface(build, veth)
    layer = build.layers[veth]
    assert layer is not None
    assert layer.facts["send_limit"] == "tbf"
    (ceiling,) = layer.ceilings
    assert ceiling == ceilings.shaped("tbf", veth, 1e7, 1500)
    subprocess.run(["tc", "qdisc", "del", "dev", veth, "root"], check=True)
    subprocess.run([*words, "handle", "1:", "htb", "default", "10"], check=True)
    rate = ["htb", "rate", "8mbit", "ceil", "40mbit"]
    subprocess.run(["tc", "class", "add", "dev", veth, "parent", "1:", "classid", "1:10", *rate], check=True)
    assert shaping.shaper(veth) == shaping.Shaper("htb", 5e6)
