"""The diagram of the data path: boxes, what they say, and what is marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.path import ceilings
from loadstone.path.discover import discover
from loadstone.path.layers import Layer
from loadstone.report.run import files, page, path_chart, path_diagram
from tests.path.trees import KernelTree
from tests.support.paths import run_on

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.summary import Summary
    from loadstone.report.run.path_diagram import Box, DiagramLayer

MB = 10**6


def boxes(made: Summary, limited_by: str | None = None) -> list[list[Box]]:
    (paths,) = made.paths
    return path_diagram.levels(paths, path_diagram._marks(paths, limited_by))


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def member(levels: list[list[Box]], name: str) -> DiagramLayer:
    return next(one for level in levels for box in level for one in box.members if one.name == name)


def nfs(tmp_path: Path) -> Summary:
    """A file of an NFS mount, behind one of two ports of a bond."""
    host, point = KernelTree(tmp_path / "host"), tmp_path / "nfs"
    point.mkdir()
    for at in range(2):
        host.nic(f"eth{at}", speed=1000, pci=host.pci(f"pci0/0000:0{at}:00.0", "5.0 GT/s PCIe", 4))
    host.write(host.nic("bond0", speed=2000, lower="eth0 eth1"), {"bonding/mode": "802.3ad 4\n"})
    host.routes("bond0 0000000A 000000FF 0")
    options = "vers=4.2,rsize=1048576,wsize=1048576,proto=tcp,addr=10.0.0.9"
    line = f"40 1 0:77 / {point} rw - nfs4 filer:/vol/a rw,{options}\n"
    host.write(host.proc, {"self/mountinfo": line})
    found = discover(str(point / "data"), sys=host.sys, proc=host.proc)
    columns = {f"nfs.{point}.read_bytes": 112 * MB, f"nfs.{point}.write_bytes": 0}
    columns |= {f"nfs.{point}.reads": 27000, f"nfs.{point}.writes": 0}
    for port, share in (("bond0", 115 * MB), ("eth0", 115 * MB), ("eth1", 0)):
        columns |= {f"net.{port}.rx_bytes": share, f"net.{port}.tx_bytes": 2 * MB}
    return run_on(tmp_path, found.layers[1:], columns, gaps=found.gaps)


@pytest.mark.in_turn
def test_nfs_down_to_the_port_that_is_full(tmp_path: Path) -> None:
    made = nfs(tmp_path)
    levels = boxes(made)
    assert [[box.kind for box in level] for level in levels] == [
        ["file"],
        ["network file system"],
        ["link"],
        ["link"],
        ["link"],
    ]
    assert [one.name for one in levels[3][0].members] == ["eth0", "eth1"]
    mount = levels[1][0].members[0]
    assert plain(mount.moved) == "read 107 MiB/s, 27.0k IOPS"
    assert {"server filer", "reads of up to 1.00 MiB"} <= {plain(fact) for fact in levels[1][0].facts}
    bond = member(levels, "bond0")
    assert plain(bond.bars[0].share) == "97.7 %"
    assert bond.bars[0].colour == path_diagram.FULL
    assert "payload of 1 GbE at MTU 1500" in bond.bars[0].text
    assert [box.mark for level in levels for box in level] == [None, None, None, "at its ceiling", None]
    text = page.render(made)
    assert "the storage behind /vol/a on filer: a client cannot see it" in text
    assert '<span class="mark">at its ceiling</span>' in text


def test_a_path_in_words_has_each_layer_and_what_is_known_of_it(tmp_path: Path) -> None:
    (paths,) = nfs(tmp_path).paths
    words = dict(path_diagram.in_words(paths))
    names = list(words)
    assert names[0].startswith("file ")
    assert names[1].startswith("network file system ")
    (port,) = [name for name in names if name.endswith(" eth0")]
    assert plain(words[port]).startswith("read 110 MiB/s · write 1.91 MiB/s · 97.7 % of 118 MB/s each way (")


def test_the_verdicts_layer_is_the_bottleneck(tmp_path: Path) -> None:
    levels = boxes(nfs(tmp_path), limited_by="eth0")
    assert [box.mark for level in levels for box in level] == [None, None, None, "bottleneck", None]
    assert (member(levels, "eth0").mark, member(levels, "eth1").mark) == ("bottleneck", None)


@pytest.mark.in_turn
def test_pictures_have_the_path_as_a_chart(tmp_path: Path) -> None:
    made = nfs(tmp_path)
    chart = path_chart.path(made.paths[0], "eth0")
    assert chart is not None
    rows = {row["name"]: row for row in chart["data"]["values"] if row["name"]}
    whole = f"network file system nfs4 on {tmp_path}/nfs"
    mount = whole if len(whole) <= path_chart.MAX_NAME else f"…{whole[1 - path_chart.MAX_NAME :]}"
    assert list(rows)[1:5] == [mount, "link bond0", "link eth0 (bottleneck)", "link eth1"]
    full = next(bar for bar in member(boxes(made), "eth0").bars if bar.colour == path_diagram.FULL)
    assert rows["link eth0 (bottleneck)"]["percent"] == full.percent
    assert plain(rows[mount]["text"]) == "read 107 MiB/s, 27.0k IOPS"
    files.write(made, tmp_path / "report.svg")
    assert "Data path" in (tmp_path / "report.svg").read_text()


def test_many_alike_share_a_box_and_the_full_ones_are_shown(tmp_path: Path) -> None:
    names = [f"sd{at}" for at in range(20)]
    disks = [
        Layer(
            name=name,
            kind="disk",
            counters=f"block.{name}",
            ceilings=(ceilings.sata(3),),
            facts={"model": "M"},
        )
        for name in names
    ]
    raid = Layer(name="md0", kind="md", below=tuple(names))
    columns = {f"block.{name}.{what}": 0 for name in names for what in ("read_bytes", "write_bytes")}
    columns["block.sd17.read_bytes"] = 290 * MB
    levels = boxes(run_on(tmp_path, [raid, *disks], columns))
    box = levels[2][0]
    assert (len(box.members), box.more) == (path_diagram.MAX_MEMBERS, 12)
    assert [one.name for one in box.members][:2] == ["sd0", "sd1"]
    assert [one.name for one in box.members if one.mark] == ["sd17"]
    assert box.facts == ("M",)
    assert all(one.facts == () for one in box.members)


def test_boxes_beside_each_other_say_under_which_they_are(tmp_path: Path) -> None:
    layers = [
        Layer(name="pool", kind="btrfs", below=("nvme0n1", "sda")),
        Layer(name="nvme0n1", kind="nvme", below=("pcie a",)),
        Layer(name="sda", kind="disk", below=("ata1",)),
        Layer(name="pcie a", kind="link"),
        Layer(name="ata1", kind="link"),
    ]
    levels = boxes(run_on(tmp_path, layers, {}))
    assert [[box.under for box in level] for level in levels] == [
        [None],
        [None],
        [None, None],
        ["nvme0n1", "sda"],
    ]


@pytest.mark.in_turn
def test_names_from_the_host_are_text_and_not_markup(tmp_path: Path) -> None:
    text = page.render(run_on(tmp_path, [Layer(name="<b>x</b>", kind="file_system")], {}))
    assert "<b>x</b>" not in text
    assert "&lt;b&gt;x&lt;/b&gt;" in text


def test_a_counter_that_is_gone_is_a_dash_and_what_is_uncounted_has_no_word(tmp_path: Path) -> None:
    layers = [
        Layer(name="ext4 on /", kind="file_system", below=("sda",)),
        Layer(name="sda", kind="disk", counters="block.sda"),
    ]
    levels = boxes(run_on(tmp_path, layers, {}))
    assert member(levels, "ext4 on /").moved == ""
    assert member(levels, "sda").moved == "–"
