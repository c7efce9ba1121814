"""fio's status line while a run runs.

Knows the line's shape and fio's letters for the state of a job, and estimates when the
run ends. Knows the engine's events; writes to a stream it is given (None: it only keeps
count) and reads nothing.

Letters: `P` not started, `R` `W` `M` sequential, `r` `w` `m` random, `D` `d` trims, `/`
ramp, `_` ended.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from loadstone.report.fio.number_text import scaled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

    from loadstone.plan.model import Pattern, Plan, Stream

_DIGITS: Final = 4


class Eta:
    """Follows a run's events and prints the line."""

    def __init__(self, plan: Plan, out: TextIO | None, *, interval_s: float, newline_s: float) -> None:
        self._plan = plan
        self._out = out
        self._interval_s = interval_s
        self._newline_s = newline_s
        self._stage_of = [plan.workers[stream.worker].stage for stream in plan.streams]
        self._stage = 0  # only later ones are announced
        self._stage_began_ns = 0
        self._ended: set[int] = set()
        self._bytes = [0, 0, 0]
        self._ops = [0, 0, 0]
        self._stage_bytes = 0
        self._since_ns = 0
        self._now_ns = 0
        self._printed_s = time.monotonic()
        self._line_began_s = self._printed_s
        self._last_length = 0

    def event(self, event: Mapping[str, Any]) -> None:
        """Take note of an event; print when the interval is over."""
        kind = event.get("type")
        if kind == "stage":
            self._stage = int(event["stage"])
            self._stage_began_ns = int(event["t_ns"])
            self._stage_bytes = 0
        elif kind == "stream_end":
            self._ended.add(int(event["stream"]))
        elif kind == "tick":
            self._tick(event)

    def finish(self) -> None:
        """End the line, if there is one."""
        if self._out is not None and self._last_length:
            self._out.write("\n")
            self._out.flush()

    @property
    def left_s(self) -> float | None:
        """Seconds until the run ends, by what was moved so far; none when nothing bounds it."""
        gone_s = (self._now_ns - self._stage_began_ns) / 1e9
        return self._left_s(self._stage_bytes / gone_s if gone_s > 0 else 0.0)

    def _tick(self, event: Mapping[str, Any]) -> None:
        self._now_ns = int(event["t_ns"])
        for row in event["rows"]:
            op = int(row["op"]) if not isinstance(row["op"], str) else _OPS.index(row["op"])
            if op < 3:
                self._bytes[op] += int(row["bytes"])
                self._ops[op] += int(row["ops"])
                self._stage_bytes += int(row["bytes"])
        now_s = time.monotonic()
        # Half a tick of slack: a tick that comes a little early still counts.
        if (
            self._out is not None
            and now_s - self._printed_s >= self._interval_s - self._plan.interval_ns / 2e9
        ):
            self._print(self._out, now_s)

    def _print(self, out: TextIO, now_s: float) -> None:
        seconds = max(1e-9, (self._now_ns - self._since_ns) / 1e9)
        line = self.line([b / seconds for b in self._bytes], [n / seconds for n in self._ops])
        padding = " " * max(0, self._last_length - len(line))
        self._last_length = len(line)
        end = "\r"
        if self._newline_s and now_s - self._line_began_s >= self._newline_s:
            end = "\n"
            self._line_began_s = now_s
            self._last_length = 0
        out.write(f"{line}{padding}{end}")
        out.flush()
        self._bytes, self._ops = [0, 0, 0], [0, 0, 0]
        self._since_ns = self._now_ns
        self._printed_s = now_s

    def line(self, bytes_per_s: list[float], ops_per_s: list[float]) -> str:
        """Return the line for these rates of reads, writes and trims."""
        running = [
            i for i, stage in enumerate(self._stage_of) if stage == self._stage and i not in self._ended
        ]
        files = sum(len(self._plan.streams[i].files) for i in running)
        text = f"Jobs: {len(running)} (f={files}){self._asked_rates(running)}"
        left_s = self._left_s(sum(bytes_per_s))
        if left_s is None or not running:
            return text
        elapsed_s = self._now_ns / 1e9
        share = 100.0 * elapsed_s / (elapsed_s + left_s) if elapsed_s + left_s else 0.0
        text += f": [{self._states()}][{share:3.1f}%]"
        moving = [i for i in range(3) if bytes_per_s[i] or ops_per_s[i]]
        if moving:
            rates = ",".join(
                f"{'rwt'[i]}={scaled(int(bytes_per_s[i]) // 1024, _DIGITS, binary=True, unit='B/s', power=1)}"
                for i in moving
            )
            iops = ",".join(f"{'rwt'[i]}={scaled(int(ops_per_s[i]), _DIGITS, binary=False)}" for i in moving)
            text += f"[{rates}][{iops} IOPS]"
        return text + f"[eta {_clock(round(left_s))}]"

    def _asked_rates(self, running: list[int]) -> str:
        """Write the least and the asked rate of the jobs that run, where there is one."""
        paces = [self._plan.streams[i].pace for i in running]
        rates = [rate for pace in paces for rate in (pace.read, pace.write, pace.trim) if rate is not None]
        for unit in ("bytes", "ops"):
            of_unit = [rate for rate in rates if rate.amount.unit == unit]
            least = int(sum(rate.minimum for rate in of_unit))
            requested = int(sum(rate.amount.per_second for rate in of_unit))
            if of_unit and unit == "bytes":
                low, high = (scaled(one, _DIGITS, binary=True, unit="B/s") for one in (least, requested))
                return f", {low}-{high}"
            if of_unit:
                return f", {least}-{requested} IOPS"
        return ""

    def _states(self) -> str:
        letters = (self._state(i, stream) for i, stream in enumerate(self._plan.streams))
        return ",".join(f"{letter}({len(list(same))})" for letter, same in itertools.groupby(letters))

    def _state(self, index: int, stream: Stream) -> str:
        if index in self._ended or self._stage_of[index] < self._stage:
            return "_"
        if self._stage_of[index] > self._stage:
            return "P"
        if self._now_ns < self._stage_began_ns + stream.limits.start_delay_ns + stream.limits.ramp_ns:
            return "/"
        return _letter(stream.pattern)

    def _left_s(self, bytes_per_s: float) -> float | None:
        """Estimate the seconds until the run ends; none when nothing bounds it."""
        total_s = 0.0
        by_stage: dict[int, list[Stream]] = defaultdict(list)
        for stream, stage in zip(self._plan.streams, self._stage_of, strict=True):
            by_stage[stage].append(stream)
        for stage, streams in by_stage.items():
            if stage < self._stage:
                continue
            now = stage == self._stage
            gone_s = (self._now_ns - self._stage_began_ns) / 1e9 if now else 0.0
            one_s = _stage_s(streams, self._stage_bytes if now else 0, bytes_per_s, gone_s)
            if one_s is None:
                return None
            total_s += one_s
        return total_s


_OPS: Final = ("read", "write", "trim", "sync")


def _stage_s(streams: Iterable[Stream], done_bytes: int, bytes_per_s: float, gone_s: float) -> float | None:
    limits = [stream.limits for stream in streams]
    by_time = [
        (one.start_delay_ns + one.ramp_ns + one.runtime_ns) / 1e9 - gone_s for one in limits if one.runtime_ns
    ]
    if len(by_time) == len(limits) and all(one.time_based for one in limits):
        return max(0.0, *by_time)
    by_bytes = None
    if all(one.bytes for one in limits) and bytes_per_s > 0:
        by_bytes = max(0.0, sum(one.bytes for one in limits) - done_bytes) / bytes_per_s
    if len(by_time) < len(limits):
        return by_bytes
    return max(0.0, min(max(by_time), by_bytes)) if by_bytes is not None else max(0.0, *by_time)


def _letter(pattern: Pattern) -> str:
    shares = (pattern.read_percent, pattern.write_percent, pattern.trim_percent)
    if shares[2]:
        return "d" if pattern.trim.random_percent else "D"
    alone = "R" if shares[0] else "W"
    letter = "M" if shares[0] and shares[1] else alone
    random = pattern.read.random_percent if shares[0] else pattern.write.random_percent
    return letter.lower() if random else letter


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    text = f"{days:02d}d:" if days else ""
    if days or hours:
        text += f"{hours:02d}h:"
    return f"{text}{minutes:02d}m:{seconds:02d}s"
