"""Payload rates by formula, and links as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.path import ceilings


@pytest.mark.parametrize(
    ("gbit", "mtu", "megabytes"),
    [(1, 1500, 117.7), (1, 9000, 123.8), (10, 1500, 1177), (25, 1500, 2942), (100, 1500, 11770)],
)
def test_ethernet_as_published(gbit: float, mtu: int, megabytes: float) -> None:
    found = ceilings.ethernet(gbit * 1000, mtu)
    assert found.per_s / 1e6 == pytest.approx(megabytes, rel=2e-3)
    assert (found.op, found.quantity, found.kind) == ("each", "bytes_per_s", "link")
    assert f"MTU {mtu}" in found.source


def test_the_rates_of_other_links() -> None:
    assert ceilings.fibre_channel(16, 4).per_s == 6400e6
    assert ceilings.sas(12, 4).per_s == 4800e6
    assert ceilings.sas(22.5).per_s == 2400e6
    assert ceilings.sata(6).per_s == 600e6
    assert ceilings.sata(6).op == "both"
    assert ceilings.pcie(8, 4).per_s == pytest.approx(3938e6, rel=1e-3)
    assert ceilings.pcie(16, 4).per_s == pytest.approx(7877e6, rel=1e-3)
    assert ceilings.pcie(2.5, 1).per_s == 250e6
    assert ceilings.usb(5000).per_s == 500e6


@pytest.mark.parametrize(
    ("text", "megabytes", "count"),
    [
        ("4 x 16GFC", 6400, 4),
        ("4x16GFC", 6400, 4),
        ("16Gb FC", 1600, 1),
        ("2 x 10GbE", 2354, 2),
        ("10 GbE mtu 9000", 1238, 1),
        ("2.5gbe", 294.2, 1),
        ("SATA 6G", 600, 1),
        ("8 x SAS 12G", 9600, 8),
        ("PCIe 4.0 x4", 7877, 1),
        ("pcie gen3 x8", 7877, 1),
        ("2 × IB HDR", 48400, 2),
    ],
)
def test_links_as_written(text: str, megabytes: float, count: int) -> None:
    found = ceilings.parse_link(text)
    assert found is not None
    assert found.per_s / 1e6 == pytest.approx(megabytes, rel=1e-3)
    assert found.multiple == count


@pytest.mark.parametrize("text", ["", "16", "x4", "4 x", "5GFC", "0 x 10GbE", "PCIe 9.0 x4", "10GbE mtu 20"])
def test_what_is_no_link(text: str) -> None:
    assert ceilings.parse_link(text) is None
    assert ceilings.nearest_link(text)


def test_the_examples_of_a_hint_are_links() -> None:
    for form in ceilings.FORMS:
        assert ceilings.parse_link(form.example) is not None
    assert "'4 x 16GFC'" in ceilings.nearest_link("4 * 16FC")


@given(st.text(max_size=60))
@pytest.mark.in_turn
def test_no_text_breaks_the_reader(text: str) -> None:
    found = ceilings.parse_link(text)
    assert found is None or found.per_s > 0
