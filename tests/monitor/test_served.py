"""Single I/Os of a device, followed by the kernel's tracepoints."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.monitor import served
from loadstone.monitor.served import Served, bucket, width
from loadstone.monitor.tracepoints import TracedEvent, Tracepoint
from tests.support.devices import attached

FDS = Path("/proc/self/fd")
FORMAT = """name: block_io_start
ID: 77
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:dev_t dev;	offset:8;	size:4;	signed:0;
	field:sector_t sector;	offset:16;	size:8;	signed:0;
	field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;
	field:char rwbs[10];	offset:34;	size:10;	signed:0;
"""


@given(st.integers(min_value=0, max_value=1 << 40))
def test_a_bucket_holds_its_times_and_is_an_eighth_wide(time_ns: int) -> None:
    low = bucket(time_ns)
    assert low <= time_ns < low + width(low)
    assert width(low) == 1 or width(low) <= low / 8
    assert bucket(low) == low


def test_fields_are_read_where_the_kernel_says_they_are(tmp_path: Path) -> None:
    place = tmp_path / "events/block/one"
    place.mkdir(parents=True)
    (place / "format").write_text(FORMAT)
    found = Tracepoint.find("block/one", served.FIELDS, [tmp_path])
    assert found is not None
    assert found.number == 77
    raw = bytes(8) + (7).to_bytes(4, "little") + bytes(4) + (1 << 40).to_bytes(8, "little") + b"\x08\0\0\0"
    assert found.reader.unpack(raw) == (7, 1 << 40, 8)
    assert Tracepoint.find("block/one", ("nobody",), [tmp_path]) is None
    assert Tracepoint.find("block/two", served.FIELDS, [tmp_path]) is None


class Scripted:
    """A recorder whose samples are given, a list for each time they are taken."""

    cpus = 2

    def __init__(self, *given: tuple[list[TracedEvent], int]) -> None:
        self.given = list(given)
        self.on: set[int] = set()

    def switch(self, number: int, *, on: bool) -> None:
        (self.on.add if on else self.on.discard)(number)

    def take(self) -> tuple[list[TracedEvent], int]:
        return self.given.pop(0) if self.given else ([], 0)

    def close(self) -> None:
        self.on.clear()


def scripted(
    monkeypatch: pytest.MonkeyPatch, *given: tuple[list[TracedEvent], int]
) -> tuple[Served, Scripted]:
    recorder = Scripted(*given)
    pair = Tracepoint(1, Struct("=")), Tracepoint(2, Struct("="))
    monkeypatch.setattr(served, "Recorder", lambda *_: recorder)
    monkeypatch.setattr(served, "_pair", lambda: pair)
    made = Served({"7:0": "loop0"})
    made.look()
    return made, recorder


def begun(*sectors: int, at_ns: int = 0) -> list[TracedEvent]:
    return [TracedEvent(1, at_ns, (7 << 20, sector, 8)) for sector in sectors]


def ended(*sectors: int, at_ns: int) -> list[TracedEvent]:
    return [TracedEvent(2, at_ns, (7 << 20, sector, 0)) for sector in sectors]


def test_all_ios_of_a_slow_device_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, recorder = scripted(monkeypatch, (begun(8, 16), 0), (ended(8, at_ns=1024), 0), ([], 0))
    for _ in range(2):
        made.look()
    assert recorder.on == {1, 2}
    assert made.read().levels == {"served.loop0.from_1024_ns": 1}
    recorder.given = [(ended(16, at_ns=90_000_000_000), 0)]
    made.look()
    assert sum(made.read().levels.values()) == 1


def test_of_a_fast_device_some_are_followed_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    sectors = range(0, 8 * served.BURST, 8)
    made, recorder = scripted(monkeypatch, (begun(*sectors), 0), (ended(*sectors, at_ns=2048), 0))
    made.look()
    assert recorder.on == {2}  # no new ones until these are complete
    assert made.look() > 0
    assert recorder.on == set()
    assert made.read().levels == {"served.loop0.from_2048_ns": served.BURST}


def test_ios_whose_end_was_dropped_are_unfinished_and_not_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = scripted(monkeypatch, (begun(8, 16), 3), (ended(8, at_ns=9), 0))
    made.look()
    assert made.read().levels == {"served.loop0.unfinished_ios": 2}


def test_reads_of_a_real_device_are_counted_with_their_times(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(16 << 20))
    with attached(image) as device:
        try:
            made = Served({_number(device): "it"})
        except OSError as error:
            pytest.skip(f"tracepoints: {error}")
        fds = len(list(FDS.iterdir()))
        fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
        found: dict[str, int] = {}
        longest_ns = 0
        made.look()
        for at in range(100):
            begin_ns = time.monotonic_ns()
            os.preadv(fd, [mmap.mmap(-1, 4096)], at * 65536)
            longest_ns = max(longest_ns, time.monotonic_ns() - begin_ns)
            made.look()
        for name, value in made.read().levels.items():
            found[name] = found.get(name, 0) + value
        os.close(fd)
        made.close()
    assert len(list(FDS.iterdir())) < fds
    assert sum(found.values()) == 100
    times = [int(name.split("_")[1]) for name in found]  # none is unfinished
    assert 0 < min(times) <= max(times) <= longest_ns


def _number(device: str) -> str:
    number = Path(device).stat().st_rdev
    return f"{os.major(number)}:{os.minor(number)}"
