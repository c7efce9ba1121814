"""How long the devices under the targets took for an I/O: a sample, by the block layer's tracepoints.

Format: Linux include/trace/events/block.h. Where the kernel has `block_io_start` and `block_io_done`
(6.5) the clock is that of /sys/block/NAME/stat: from the request to its completion, the scheduler's
queue included; before, from the issue to the device on. Devices without requests (md, LVM) have none.

At random moments, some times a second, the next few I/Os are followed, each until it is complete.
So an I/O is chosen before it is known how long it takes, and slow ones are not missed.
`served.<device>.from_<low>_ns` is the number of them that took `low` or more and less than the next
bucket's; `served.<device>.unfinished_ios` those whose end was not seen.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from enum import Enum
from errno import ENOENT
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.monitor.counters import Counters
from loadstone.monitor.tracepoints import TRACING, Recorder, Tracepoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.monitor.tracepoints import TracedEvent

PAIRS: Final = (
    ("block/block_io_start", "block/block_io_done"),
    ("block/block_rq_issue", "block/block_rq_complete"),
)
"""Tracepoints of an I/O's begin and end, the best first."""
MAX_DEVICES: Final = 32
"""More do not fit into a filter."""
WINDOW_S: Final = 0.0005
"""The first look after I/Os began to be followed."""
LONGEST_WINDOW_S: Final = 0.25
BURST: Final = 64
"""So many I/Os begun between two looks, and no more are followed until these are complete."""
MOST_SAMPLES: Final = 1200
"""In a burst; whose I/O was not complete by then is unfinished."""
OF_A_CPU: Final = 0.004
"""What following may cost on average: after a burst it rests for as long as that takes."""
PAUSE_S: Final = 0.25
PAUSE_S_PER_CPU: Final = 0.002
"""To switch recording on and off costs an interrupt on each CPU."""
SUB_BITS: Final = 3
"""Buckets: 8 per power of two, so a time is known to within 6 %."""
FIELDS: Final = ("dev", "sector", "nr_sector")
UNFINISHED: Final = "unfinished_ios"


def bucket(time_ns: int) -> int:
    """Return the smallest time of the bucket that a time is in."""
    shift = max(0, time_ns.bit_length() - SUB_BITS - 1)
    return time_ns >> shift << shift


def width(low_ns: int) -> int:
    """Return how many ns a bucket is wide."""
    return 1 << max(0, low_ns.bit_length() - SUB_BITS - 1)


class Recorded(Enum):
    """What is recorded."""

    NOTHING = "nothing"
    ALL = "all"
    ENDS = "ends"


class Served:
    """The sampled I/Os of the given devices."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` of devices by their numbers, as `7:0`.

        Raises `OSError` where the kernel has no such tracepoints or does not permit them.
        """
        self._names = {_device(number): name for number, name in list(names.items())[:MAX_DEVICES]}
        begin, end = _pair()
        self._begin, self._end = begin.number, end.number
        self._recorder = Recorder((begin, end), " || ".join(f"dev == {one}" for one in self._names))
        self._recording = Recorded.NOTHING
        self._window_s = WINDOW_S
        self._samples = 0
        self._spent_s = 0.0
        self._begun: dict[tuple[int, int], int] = {}
        self._counts: Counter[str] = Counter()

    def look(self) -> float:
        """Take what was recorded; return in how many seconds to look again."""
        begin_s = time.thread_time()
        window_s = self._follow() if self._recording is Recorded.NOTHING else self._take()
        self._spent_s += time.thread_time() - begin_s
        return self._rest_s() if window_s is None else window_s

    def _take(self) -> float | None:
        """Take what was recorded; return in how many seconds to look again, none at a burst's end."""
        samples, lost = self._recorder.take()
        for sample in samples:
            self._note(sample)
        self._samples += len(samples)
        done = self._recording is Recorded.ENDS and (not self._begun or self._samples > MOST_SAMPLES)
        if lost or done:
            self._pause()
            return None
        if self._recording is Recorded.ENDS:
            return self._window_s
        if sum(sample.number == self._begin for sample in samples) >= BURST:
            self._recorder.switch(self._begin, on=False)
            self._recording = Recorded.ENDS
        else:
            # A slow device: all of its I/Os are followed, without a gap.
            self._samples = 0
            self._window_s = min(2 * self._window_s, LONGEST_WINDOW_S)
        return self._window_s

    def _follow(self) -> float:
        for number in (self._end, self._begin):
            self._recorder.switch(number, on=True)
        # About as long as it took the last time.
        self._window_s = max(self._window_s / 2, WINDOW_S)
        self._recording, self._samples = Recorded.ALL, 0
        return self._window_s

    def _pause(self) -> None:
        """Record nothing for a while. Whose I/O is not complete, nobody will see it."""
        for number in (self._begin, self._end):
            self._recorder.switch(number, on=False)
        self._recorder.take()
        self._counts.update(self._key(device, UNFINISHED) for device, _ in self._begun)
        self._begun.clear()
        self._recording = Recorded.NOTHING

    def _rest_s(self) -> float:
        """Return how long to record nothing after a burst, by what it cost."""
        mean_s = max(self._spent_s / OF_A_CPU, PAUSE_S, PAUSE_S_PER_CPU * self._recorder.cpus)
        self._spent_s = 0.0
        return random.uniform(0.5, 1.5) * mean_s  # noqa: S311 # so that what is periodic is met at any time

    def read(self) -> Counters:
        """Return what was seen since the last time."""
        counts, self._counts = self._counts, Counter()
        return Counters(levels=dict(counts))

    def close(self) -> None:
        """End recording."""
        self._recorder.close()

    def _note(self, sample: TracedEvent) -> None:
        device, sector, sectors = sample.fields
        if sample.number == self._begin:
            if sectors:  # A flush has none.
                self._begun[device, sector] = sample.time_ns
            return
        began_ns = self._begun.pop((device, sector), None)
        if began_ns is not None:
            self._counts[self._key(device, f"from_{bucket(sample.time_ns - began_ns)}_ns")] += 1

    def _key(self, device: int, what: str) -> str:
        return f"served.{self._names[device]}.{what}"


def _pair() -> tuple[Tracepoint, Tracepoint]:
    for begin, end in PAIRS:
        pair = Tracepoint.find(begin, FIELDS), Tracepoint.find(end, FIELDS)
        if pair[0] is not None and pair[1] is not None:
            return pair[0], pair[1]
    if not any((place / "events").is_dir() for place in TRACING):
        raise FileNotFoundError(ENOENT, say("monitor.no_tracefs"))
    raise FileNotFoundError(ENOENT, say("monitor.no_tracepoints"))


def _device(number: str) -> int:
    """Return the kernel's own number of a device (include/linux/kdev_t.h)."""
    major, _, minor = number.partition(":")
    return int(major) << 20 | int(minor)
