"""A machine of files: as much of sysfs and procfs as the controls read, and the kernel's habits.

A scheduler that is set gives the queue its default length, and its tunables appear with theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.control.all_controls import Controls
from loadstone.control.block import IoScheduler
from loadstone.control.memory import DirtyLimit, TransparentHugePages

if TYPE_CHECKING:
    from pathlib import Path

SCHEDULERS = ("none", "mq-deadline", "bfq")
TUNABLES = {
    "none": {},
    "mq-deadline": {"read_expire": "500", "fifo_batch": "16"},
    "bfq": {"low_latency": "1"},
}
LENGTHS = {"none": "128", "mq-deadline": "256", "bfq": "64"}


class KernelScheduler(IoScheduler):
    """The scheduler's file, written as the kernel would take it."""

    def write(self, subject: str, value: str) -> None:
        """Choose one; the rest of the queue follows."""
        if value not in SCHEDULERS:
            raise OSError(22, "Invalid argument")
        choose(self.path(subject).parent, value)


class KernelDirtyLimit(DirtyLimit):
    """A limit on dirty pages, of which the kernel keeps one form."""

    def write(self, subject: str, value: str) -> None:
        """Set one form; the other becomes 0."""
        super().write(subject, value)
        form = "bytes" if value.endswith("%") else "ratio"
        (self.root / f"sys/vm/dirty_{form}").write_text("0")


class KernelHugePages(TransparentHugePages):
    """The choice of huge pages, written as the kernel lists it."""

    def write(self, subject: str, value: str) -> None:
        """Choose one of the list."""
        listed = (f"[{name}]" if name == value else name for name in self.choices(subject))
        self.path(subject).write_text(" ".join(listed) + "\n")


def choose(queue: Path, scheduler: str) -> None:
    """Make a queue as the kernel leaves it after a scheduler was chosen."""
    chosen = [f"[{name}]" if name == scheduler else name for name in SCHEDULERS]
    (queue / "scheduler").write_text(" ".join(chosen) + "\n")
    (queue / "nr_requests").write_text(LENGTHS[scheduler] + "\n")
    folder = queue / "iosched"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for name, value in TUNABLES[scheduler].items():
        (folder / name).write_text(value + "\n")


def make(root: Path) -> Controls:
    """Make the files under a directory, and return the controls that use them."""
    sys, proc = root / "sys", root / "proc"
    for number in range(2):
        policy = sys / f"devices/system/cpu/cpufreq/policy{number}"
        policy.mkdir(parents=True)
        (policy / "scaling_governor").write_text("powersave\n")
        (policy / "scaling_available_governors").write_text("performance powersave\n")
        for state, name in enumerate(("POLL", "C1", "C6")):
            idle = sys / f"devices/system/cpu/cpu{number}/cpuidle/state{state}"
            idle.mkdir(parents=True)
            (idle / "name").write_text(f"{name}\n")
            (idle / "disable").write_text("0\n")
    for number, disk in enumerate(("sda", "sdb")):
        queue = sys / "block" / disk / "queue"
        queue.mkdir(parents=True)
        choose(queue, "mq-deadline")
        (queue / "nr_requests").write_text("200\n")
        (queue / "iosched/read_expire").write_text("123\n")
        (queue / "read_ahead_kb").write_text("128\n")
        (queue.parent / "diskseq").write_text(f"{number + 1}\n")
    memory = proc / "sys/vm"
    memory.mkdir(parents=True)
    for name, value in {"dirty_ratio": 20, "dirty_bytes": 0, "swappiness": 60}.items():
        (memory / name).write_text(f"{value}\n")
    return controls(root)


def controls(root: Path) -> Controls:
    """Return the controls of a machine that was made."""
    made = Controls(root / "sys", root / "proc")
    made.replace(KernelScheduler(root / "sys"))
    made.replace(KernelDirtyLimit(root / "proc"))
    made.replace(KernelHugePages(root / "sys"))
    return made


def snapshot(root: Path) -> dict[str, str]:
    """Return every file of a machine with its text."""
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
