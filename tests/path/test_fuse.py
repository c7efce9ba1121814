"""Which hosts a file system in user space is served from."""

from __future__ import annotations

import contextlib
import shutil
import socket
from typing import TYPE_CHECKING

import pytest
from lab.parts import Stage

from loadstone.path import ceilings, fuse
from loadstone.path.discover import discover
from loadstone.path.mounts import PROC
from tests.support.devices import call

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0200120A:2A39", "10.18.0.2"),
        ("0100007F:0016", "127.0.0.1"),
        ("0000000000000000FFFF0000020012C6:2A39", "198.18.0.2"),
        ("B80D0120000000000000000001000000:0BB8", "2001:db8::1"),
    ],
)
def test_an_address_as_the_kernel_prints_it(text: str, address: str) -> None:
    assert fuse.address_of(text) == address


def test_the_other_ends_of_a_process_are_those_of_its_own_sockets() -> None:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.9", 0)))
        ours = stack.enter_context(socket.create_connection(listener.getsockname()))
        theirs = stack.enter_context(listener.accept()[0])
        assert ours.getsockname() == theirs.getpeername()
        peers = list(fuse.peers_of(PROC / "self"))
        assert "127.0.0.9" in peers
        before = len(peers)
        theirs.close()
        ours.close()
        assert len(list(fuse.peers_of(PROC / "self"))) == before - 2


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as parts:
        yield parts


@pytest.mark.root
@pytest.mark.skipif(
    not all(shutil.which(name) for name in ("nbdfuse", "nbdkit", "tc")),
    reason="not installed: nbdfuse (libnbd-bin), nbdkit or tc (iproute2)",
)
def test_the_path_of_a_served_file_goes_on_to_the_network(stage: Stage) -> None:
    """Behind nbdfuse it ended: neither a slow interface nor a shaped one could limit anything."""
    device = stage.remote("1gbit")
    near = f"{stage.folder.name[-8:]}h"
    call("tc", "qdisc", "add", "dev", near, "root", "tbf", "rate", "80mbit", "burst", "64kb",
         "latency", "200ms")  # fmt: skip
    path = discover(device)
    served = next(layer for layer in path.layers if layer.kind == "fuse")
    assert served.facts["programs"] == ["nbdfuse"]
    assert served.facts["peers"] == ["198.18.0.2"]
    assert served.below == (near,)
    interface = path.layer(near)
    assert interface is not None
    assert interface.ceilings == (ceilings.shaped("tbf", near, 1e7, 1500),)
