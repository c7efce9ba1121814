"""Results held against the payload of links."""

from __future__ import annotations

import pytest

from loadstone.audit.case import Figure, TargetState
from loadstone.audit.rule import CannotTell, Clear, NotMine, cannot_tell
from loadstone.audit.rules.link_ceiling import RULE
from loadstone.path.layers import Ceiling, DataPath, Layer
from tests.audit.figures import KIB, finding, job, told

GFC16 = 1.6e9


def test_close_below_the_payload_it_is_the_link() -> None:
    found = finding(RULE, told(bytes_per_s=0.94 * 4 * GFC16, links=("4 x 16GFC",)))
    assert (found.effect, found.layer) == ("limited", "4 x 16GFC")
    assert found.evidence["link_bytes_per_s"] == pytest.approx(6.4e9)
    assert found.evidence["of_the_link_percent"] == pytest.approx(94)


def test_nine_tenths_alone_are_no_proof() -> None:
    assert isinstance(RULE.judge(told(bytes_per_s=0.9 * GFC16, links=("16GFC",))), Clear)


def test_nine_tenths_are_the_link_when_other_blocks_move_the_same_bandwidth() -> None:
    large = told(
        bytes_per_s=5.7e9, links=("4 x 16GFC",), jobs=(job(block_bytes=128 * KIB),), name="large blocks"
    )
    found = finding(RULE, told(iops=1.4e6, links=("4 x 16GFC",), siblings=(large,)))
    assert found.effect == "limited"
    assert found.evidence["same_bandwidth_in"] == "large blocks"
    assert "32 times as large" in found.text
    assert "90 %" in found.text


def test_the_same_blocks_again_are_no_witness() -> None:
    again = told(iops=1.4e6, links=("4 x 16GFC",), name="again")
    assert isinstance(RULE.judge(told(iops=1.4e6, links=("4 x 16GFC",), siblings=(again,))), Clear)


def test_more_than_the_link_can_carry_is_not_valid() -> None:
    found = finding(RULE, told(bytes_per_s=1.1 * 117.7e6, links=("1GbE",)))
    assert found.effect == "not_valid"


def test_reads_and_writes_have_the_link_each_for_themselves() -> None:
    case = told(bytes_per_s=1.5e9, links=("16GFC",))
    both = told(bytes_per_s=1.5e9, links=("16GFC",), op="write")
    assert finding(RULE, case).evidence["of_the_link_percent"] == pytest.approx(93.75)
    assert finding(RULE, both).evidence["of_the_link_percent"] == pytest.approx(93.75)


def test_a_link_of_unknown_rate_is_told_by_its_payload() -> None:
    runs = tuple(Figure(value) for value in (28.1e3, 28.0e3, 28.1e3))
    found = finding(RULE, told(iops=28.1e3, op="write", links=("iSCSI",), repeats=runs))
    assert found.effect == "limited"
    assert "1 GbE" in found.text
    assert found.confidence == 0.9
    assert found.evidence["of_the_link_percent"] == pytest.approx(97.8, abs=0.1)


def test_a_link_of_unknown_rate_stays_unknown_away_from_every_payload() -> None:
    answer = RULE.judge(told(iops=18.8e3, op="write", links=("iSCSI",)))
    assert answer == cannot_tell("audit.link_ceiling.link_rate", transport="iSCSI")


def test_without_any_link_nothing_can_be_told() -> None:
    assert isinstance(RULE.judge(told(iops=100.0)), CannotTell)
    assert isinstance(RULE.judge(told(links=("1GbE",))), CannotTell)


def link(name: str, per_s: float, below: tuple[str, ...] = ()) -> Layer:
    ceiling = Ceiling(quantity="bytes_per_s", op="each", per_s=per_s, kind="link", source=name)
    return Layer(name=name, kind="link", below=below, ceilings=(ceiling,))


def through(*layers: Layer) -> TargetState:
    return TargetState(path="/dev/x", path_layers=DataPath(target="/dev/x", layers=layers))


def test_the_narrowest_layer_of_a_path_is_found() -> None:
    wide, narrow = link("pcie", 4e9, ("port",)), link("port", 1e9)
    case = told(bytes_per_s=0.95e9, targets=(through(wide, narrow),))
    assert finding(RULE, case).layer == "port"


def test_on_this_host_a_link_may_be_slower_by_hearsay_only() -> None:
    case = told(bytes_per_s=2e9, targets=(through(link("port", 1e9)),), source="bundle")
    assert finding(RULE, case).effect == "suspect"


def test_links_side_by_side_carry_their_sum() -> None:
    top = Layer(name="multipath", kind="multipath", below=("sda", "sdb"))
    disks = (Layer(name="sda", kind="disk", below=("a",)), Layer(name="sdb", kind="disk", below=("b",)))
    path = through(top, *disks, link("a", 1e9), link("b", 1e9))
    assert isinstance(RULE.judge(told(bytes_per_s=0.95e9, targets=(path,))), Clear)
    assert finding(RULE, told(bytes_per_s=1.9e9, targets=(path,))).layer == "a + b"


def test_targets_share_a_link_or_have_one_each() -> None:
    shared = (through(link("port", 1e9)), through(link("port", 1e9)))
    apart = (through(link("a", 1e9)), through(link("b", 1e9)))
    assert finding(RULE, told(bytes_per_s=0.95e9, targets=shared)).layer == "port"
    assert isinstance(RULE.judge(told(bytes_per_s=0.95e9, targets=apart)), Clear)


def test_a_known_path_without_links_is_no_business_of_the_rule() -> None:
    path = through(Layer(name="loop0", kind="loop"))
    assert isinstance(RULE.judge(told(bytes_per_s=1e9, targets=(path,))), NotMine)
