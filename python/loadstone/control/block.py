"""Controls of a block device's queue.

Knows `/sys/block/NAME/queue` (Documentation/ABI/stable/sysfs-block) and that a name may be another
device's later: `diskseq` tells. Takes a device, a partition or a file for the disk under it.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.control.control_kind import NUMBER, Setting
from loadstone.control.file_controls import FileControl, bracketed, text, words
from loadstone.errors import RefusedError
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.path.underlying import under_path

SOURCE = "Documentation/ABI/stable/sysfs-block"


class _QueueFile(FileControl):
    source = SOURCE
    folder = "block/{}/queue"

    def subjects(self) -> list[str]:
        disks = sorted((self.root / "block").glob("*"))
        return [disk.name for disk in disks if text(disk / "queue" / self.file) is not None]

    def resolve(self, subject: str) -> list[str]:
        """Return the disks meant. No disk is meant by itself: a setting for all of them is a mistake."""
        if not subject:
            raise make_error(RefusedError, "control.block.no_device_named", control=self.name)
        name = subject.removeprefix("/dev/")
        if not (self.root / "block" / name).exists():
            disks = [device.disk() for device in under_path(Path(subject))] if Path(subject).exists() else []
            if not disks:
                hint = nearest(name, self.subjects())
                raise make_error(
                    RefusedError, "control.block.no_device", hint=hint, control=self.name, asked=subject
                )
            name = disks[0].name
        if self.read(name) is None:
            raise make_error(
                RefusedError,
                "control.block.no_file",
                control=self.name,
                device=name,
                file=self.file,
                source=SOURCE,
            )
        return [name]

    def identity(self, subject: str) -> str:
        """Return the number that no other disk gets until a reboot."""
        disk = self.root / "block" / subject
        return text(disk / "diskseq") or text(disk / "dev") or ""


class IoScheduler(_QueueFile):
    """The scheduler. Setting one gives its tunables, and the queue's length, their defaults."""

    name, title = "io_scheduler", "I/O scheduler"
    file = "scheduler"

    def read(self, subject: str) -> str | None:
        """Return the scheduler; None where there is no choice."""
        return bracketed(super().read(subject))

    def choices(self, subject: str) -> tuple[str, ...]:
        """Return the schedulers of the kernel."""
        return words(text(self.path(subject)))

    def companions(self, subject: str) -> list[Setting]:
        """Return the queue's length, write-back throttling and the scheduler's own tunables."""
        tunables = sorted(path.name for path in (self.path(subject).parent / "iosched").glob("*"))
        return [
            Setting(NrRequests.name, subject),
            Setting(WritebackLatency.name, subject),
            *(Setting(SchedulerTunable.name, f"{subject}/{name}") for name in tunables),
        ]


class SchedulerTunable(_QueueFile):
    """A tunable of the scheduler that is set: of `sda/read_expire`."""

    name, title = "scheduler_tunable", "tunable of the I/O scheduler"
    file = "iosched"

    def path(self, subject: str) -> Path:
        """Return its file."""
        disk, _, tunable = subject.partition("/")
        return self.root / "block" / disk / "queue" / "iosched" / tunable

    def subjects(self) -> list[str]:
        """Return every tunable of every disk."""
        tunables = sorted((self.root / "block").glob("*/queue/iosched/*"))
        return [f"{path.parents[2].name}/{path.name}" for path in tunables]

    def resolve(self, subject: str) -> list[str]:
        """Return the tunable meant."""
        name = subject.removeprefix("/dev/")
        if name not in self.subjects():
            raise make_error(RefusedError, "control.block.no_tunable", control=self.name, asked=subject)
        return [name]

    def identity(self, subject: str) -> str:
        """Return the disk's."""
        return super().identity(subject.partition("/")[0])


class NrRequests(_QueueFile):
    """Requests that may wait in the queue."""

    name, title = "nr_requests", "requests in the device's queue"
    file, takes = "nr_requests", NUMBER


class ReadAhead(_QueueFile):
    """How far the kernel reads ahead, KiB."""

    name, title = "read_ahead_kb", "read-ahead, KiB"
    file, takes = "read_ahead_kb", NUMBER


class _LimitOfQueue(_QueueFile):
    """What is one of the queue's limits: with any of these the kernel raises a short read-ahead to 128 KiB.

    That is `blk_apply_bdi_limits`, which is called for all of them.
    """

    def companions(self, subject: str) -> list[Setting]:
        """Return the read-ahead."""
        return [Setting(ReadAhead.name, subject)]


class WriteCache(_LimitOfQueue):
    """Whether the kernel takes the device's cache for volatile, and flushes it."""

    name, title = "write_cache", "write cache as the kernel treats it"
    file = "write_cache"
    values = ("write back", "write through")


class WritebackLatency(_QueueFile):
    """Latency that write-back is throttled for, us; 0: it is not."""

    name, title = "wbt_lat_usec", "write-back throttling latency, us"
    file, takes = "wbt_lat_usec", NUMBER


class MaxSectors(_LimitOfQueue):
    """Largest request the kernel makes, KiB."""

    name, title = "max_sectors_kb", "largest request, KiB"
    file, takes = "max_sectors_kb", NUMBER


class NoMerges(_QueueFile):
    """Merging of requests: 0 all, 1 only the simple ones, 2 none."""

    name, title = "nomerges", "merging of requests"
    file = "nomerges"
    values = ("0", "1", "2")


class RqAffinity(_QueueFile):
    """Where completions are worked on: 0 anywhere, 1 the group of the submitting CPU, 2 that CPU."""

    name, title = "rq_affinity", "CPU of completions"
    file = "rq_affinity"
    values = ("0", "1", "2")


CONTROLS = (
    IoScheduler,
    SchedulerTunable,
    NrRequests,
    ReadAhead,
    WriteCache,
    WritebackLatency,
    MaxSectors,
    NoMerges,
    RqAffinity,
)
