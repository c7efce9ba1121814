"""`make nvme`: NVMe commands (`ioengine=io_uring_cmd`) in a machine with NVMe devices.

Knows jobs and what the engine has to say after each. The Plans are made here by the planner, of
what is known to be in the machine; there the engine runs them one after the other. What a
job writes by one of a namespace's two devices is verified by the other.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.parts import MissingPartError

from lab import machine
from loadstone.engine.binary import find
from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles
from loadstone.plan.host_facts import HostFacts, TargetFacts
from loadstone.plan.model import Namesake, TargetKind
from loadstone.plan.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
SIZE_BYTES = 64 * MIB
BAD_SECTOR = 2048
"""Of the fourth namespace: reading it fails."""
BLOCK_BYTES = {1: 512, 2: 4096, 3: 512, 4: 512}
"""Logical blocks of the namespaces; the third has metadata beside its blocks."""

Events = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class NvmeCase:
    """A job, or several, and what must come of it: the reason why it is wrong, or None."""

    name: str
    jobs: str
    judge: Callable[[Events], str | None]
    before: str = ""
    """Shell commands before it, and `after`."""
    after: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    """What the planner is told of the second namespace, and is not so."""


def facts(number: int, **claims: Any) -> dict[str, TargetFacts]:
    """Both devices of a namespace, as they are in the machine."""
    fields = {"size_bytes": SIZE_BYTES, "logical_block_bytes": BLOCK_BYTES[number]} | claims
    block = f"/dev/nvme0n{number}"
    namesake = Namesake(path=block, identity=None)
    return {
        block: TargetFacts(TargetKind.BLOCK, **fields),
        f"/dev/ng0n{number}": TargetFacts(TargetKind.NVME, namesake=namesake, **fields),
    }


def plan(case: NvmeCase) -> str:
    """The Plan of a case's jobs."""
    known = {path: fact for number in BLOCK_BYTES for path, fact in facts(number).items()}
    known |= facts(2, **case.claims)
    host = HostFacts(cpus=(0, 1), memory_bytes=1 << 30, known=known)
    text = "[global]\ndirect=1\nbs=4k\nsize=4m\niodepth=8\nthread=1\n" + case.jobs
    source = TextSource(text, case.name, Path("/"))
    resolved = resolve(read_jobfiles([source], options=ReadOptions(environment={})), host=host).plan
    # Whoever plans on the machine itself has this from the safety check.
    targets = tuple(one.model_copy(update={"exclusive": not one.read_only}) for one in resolved.targets)
    return resolved.model_copy(update={"targets": targets}).model_dump_json()


# Judges


def of(events: Events, kind: str) -> Events:
    return [event for event in events if event.get("type") == kind]


def sound(events: Events) -> str | None:
    """Everything was done, and nothing was found damaged."""
    if of(events, "fatal") or of(events, "io_error") or not of(events, "end"):
        return f"it failed: {of(events, 'fatal') + of(events, 'io_error')[:1]}"
    failed = [one for one in of(events, "stream_end") if any(one["failed"]) or not any(one["completed"])]
    return f"streams failed or did nothing: {failed}" if failed else None


def verified(events: Events) -> str | None:
    """Sound, and all of the 1,024 blocks were read back and found right."""
    damaged = of(events, "damage")
    checked = max((one["checked"] for one in of(events, "verify_end")), default=0)
    if damaged:
        return f"damage: {damaged[0]['message']}"
    return sound(events) or (None if checked == 4 * MIB // 4096 else f"{checked} blocks were checked")


def spoiled(events: Events) -> str | None:
    """What is read was compared: it is found not to be what was asked for."""
    return None if of(events, "damage") else "nothing was found damaged: nothing was really compared"


def flushed(events: Events) -> str | None:
    syncs = sum(one["completed"][3] for one in of(events, "stream_end"))
    return sound(events) or (None if syncs == 1024 else f"{syncs} flushes")


def refuses(*words: str) -> Callable[[Events], str | None]:
    """Nothing is done, and this is said."""

    def judge(events: Events) -> str | None:
        messages = " ".join(f"{one['message']} {one.get('hint', '')}" for one in of(events, "fatal"))
        return None if messages and all(word in messages for word in words) else f"it said: {messages!r}"

    return judge


def fails(*words: str, errno: int) -> Callable[[Events], str | None]:
    """An I/O fails with these words, and is not counted as done."""

    def judge(events: Events) -> str | None:
        errors = of(events, "io_error")
        if not errors:
            return f"no error was told: {events[-1:]}"
        right = all(word in errors[0]["message"] for word in words) and errors[0]["errno"] == errno
        return None if right and errors[0]["moved"] == 0 else f"it said: {errors[0]}"

    return judge


def across(writer: str, reader: str, more: str = "") -> str:
    """Write by one device of a namespace and read back by the other."""
    return (
        f"verify=crc32c\n{more}[w]\n{_by(writer)}rw=randwrite\ndo_verify=0\n"
        f"[r]\nstonewall\n{_by(reader)}rw=randread\n"
    )


def _by(path: str) -> str:
    engine = "io_uring_cmd\ncmd_type=nvme" if "/ng" in path else "io_uring"
    return f"filename={path}\nioengine={engine}\n"


def _pattern(value: str) -> str:
    return f"verify=pattern\nverify_pattern={value}\n"


NG, BLOCK = "/dev/ng0n1", "/dev/nvme0n1"
CASES = (
    NvmeCase("written by commands, read by the block layer", across(NG, BLOCK), verified),
    NvmeCase("written by the block layer, read by commands", across(BLOCK, NG), verified),
    NvmeCase("blocks of 4 KiB", across("/dev/ng0n2", "/dev/nvme0n2"), verified),
    NvmeCase("polled commands", across(NG, NG, "hipri=1\n"), verified),
    NvmeCase("polled block layer", across(BLOCK, BLOCK, "hipri=1\n"), verified),
    NvmeCase("polled trims", f"hipri=1\n[t]\n{_by(NG)}rw=trim\n", sound),
    NvmeCase("a thread of the kernel submits", across(NG, NG, "sqthread_poll=1\n"), verified),
    NvmeCase("nothing registered", across(NG, BLOCK, "registerfiles=0\nfixedbufs=0\n"), verified),
    NvmeCase("flushes", f"[f]\n{_by(NG)}rw=write\nfsync=1\n", flushed),
    NvmeCase(
        "trimmed blocks read as zeros",
        f"[w]\n{_by(NG)}rw=write\n[t]\nstonewall\n{_by(NG)}rw=randtrim\n"
        f"[r]\nstonewall\n{_by(BLOCK)}rw=read\n{_pattern('0x00')}",
        verified,
    ),
    NvmeCase(
        "written by fio's commands",
        f"[r]\n{_by(NG)}rw=read\n{_pattern('0xdeadface')}",
        verified,
        before="fio --name=w --ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1 --rw=write --bs=4k"
        " --size=4m --iodepth=8 --verify=pattern --verify_pattern=0xdeadface --do_verify=0 --thread"
        " --minimal > /tmp/fio || cat /tmp/fio",
    ),
    NvmeCase(
        "another pattern is not what is there", f"[r]\n{_by(BLOCK)}rw=read\n{_pattern('0xdeadfacf')}", spoiled
    ),
    NvmeCase(
        "an unreadable sector",
        f"[r]\n{_by('/dev/ng0n4')}rw=read\n",
        fails("NVMe status: unrecovered read error (type 0x2", f"at offset {BAD_SECTOR * 512} ", errno=5),
    ),
    NvmeCase(
        "not of whole blocks",
        f"[r]\n{_by('/dev/ng0n2')}rw=read\nbs=512\n",
        fails("no multiple of the namespace's logical block", errno=22),
        claims={"logical_block_bytes": 512},
    ),
    NvmeCase("larger than MDTS", f"[r]\n{_by(NG)}rw=read\nbs=1m\n", fails("use smaller blocks", errno=22)),
    NvmeCase(
        "beyond the end",
        f"[r]\n{_by('/dev/ng0n2')}rw=read\nsize={2 * SIZE_BYTES}\n",
        refuses(f"has {SIZE_BYTES} bytes, the Plan was made for {2 * SIZE_BYTES}"),
        claims={"size_bytes": 2 * SIZE_BYTES},
    ),
    NvmeCase("metadata", f"[r]\n{_by('/dev/ng0n3')}rw=read\n", refuses("8 bytes of metadata", "--lbaf")),
    NvmeCase(
        "in use by its other name",
        f"[w]\n{_by(NG)}rw=write\n",
        refuses("cannot claim /dev/nvme0n1, which has the same data", "in use"),
        before="mkswap /dev/nvme0n1 > /dev/null && swapon /dev/nvme0n1",
        after="swapoff /dev/nvme0n1",
    ),
    NvmeCase(
        "reading does no harm where it is in use",
        f"[r]\n{_by(NG)}rw=read\n",
        sound,
        before="swapon /dev/nvme0n1",
        after="swapoff /dev/nvme0n1",
    ),
)


def script() -> str:
    """What the machine does: each case with the words that tell where it begins and ends."""
    lines = ["mkfifo /tmp/orders; exec 3<>/tmp/orders"]
    # What the guard finds the block device by.
    lines += [
        "echo === links",
        "for one in /sys/class/nvme-generic/*; do echo $(basename $one) $(readlink -f $one/device)"
        " $(readlink -f /sys/dev/char/$(cat $one/dev)/subsystem); done",
        "for one in /sys/block/nvme*; do echo $(basename $one) $(readlink -f $one/device); done",
    ]
    for number, case in enumerate(CASES):
        lines += [
            f"echo === {number}",
            case.before,
            f"loadstone-engine run /plans/{number} --out /tmp/out{number} <&3",
            case.after,
        ]
    return "\n".join([*lines, "echo === end", ""])


def devices(folder: Path) -> list[str]:
    """One controller with four namespaces."""
    words = ["-device", "nvme,id=c,serial=lab,mdts=7"]
    for number, block in BLOCK_BYTES.items():
        image = folder / f"namespace{number}"
        with image.open("wb") as out:
            out.truncate(SIZE_BYTES)
        drive = f"if=none,id=d{number},discard=unmap,format=raw,file={image}"
        if number == 4:
            drive = (
                f"if=none,id=d4,driver=blkdebug,image.driver=raw,image.file.driver=file,image.file.filename={image},"
                f"inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.sector={BAD_SECTOR},inject-error.0.errno=5"
            )
        metadata = ",ms=8" if number == 3 else ""
        words += [
            "-drive", drive,
            "-device", f"nvme-ns,drive=d{number},bus=c,nsid={number},logical_block_size={block},"
            f"physical_block_size={block}{metadata}",
        ]  # fmt: skip
    return words


def told(said: str) -> dict[str, list[str]]:
    """What was printed, by the part it belongs to."""
    parts = re.split(r"^=== (.*)$", said, flags=re.MULTILINE)
    return {name: text.strip().splitlines() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def links_wrong(lines: list[str]) -> str | None:
    """Whether the devices of each namespace are linked as `path/nvme.py` has it."""
    links = {words[0]: words[1:] for words in (line.split() for line in lines)}
    for number in BLOCK_BYTES:
        generic, block = links.get(f"ng0n{number}"), links.get(f"nvme0n{number}")
        if (
            generic is None
            or block is None
            or generic[0] != block[0]
            or not generic[1].endswith("nvme-generic")
        ):
            return f"ng0n{number}: {generic}, nvme0n{number}: {block}"
    return None


def run(engine: Path) -> dict[str, str | None]:
    """Run all cases and return what is wrong with each. Raises MissingPartError."""
    why = machine.missing() or (None if shutil.which("fio") else "not installed: fio")
    if why is not None:
        raise MissingPartError(why)
    with tempfile.TemporaryDirectory(prefix="loadstone-lab-") as name:
        folder = Path(name)
        output = machine.run(
            script(),
            folder=folder,
            programs={"bin/loadstone-engine": engine, "bin/fio": Path(shutil.which("fio") or "")},
            files={f"plans/{number}": plan(case) for number, case in enumerate(CASES)},
            devices=devices(folder),
            kernel_options="nvme.poll_queues=1",
        )
    parts = told(output)
    if "end" not in parts:
        raise RuntimeError(f"the script did not come to its end: {output[-2000:]}")
    results = {"links of the two devices": links_wrong(parts["links"])}
    for number, case in enumerate(CASES):
        lines = parts[str(number)]
        events = [json.loads(line) for line in lines if line.startswith("{")]
        others = [line for line in lines if not line.startswith("{")]
        results[case.name] = case.judge(events) if events else f"it said: {' '.join(others)}"
    return results


def main() -> int:
    """Print a line for each case; return 1 when one is not as it should be, 2 when none can be run."""
    try:
        results = run(find())
    except (MissingPartError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"no machine can be had here: {error}\n")
        return 2
    for name, wrong in results.items():
        print(f"{'ok   ' if wrong is None else 'WRONG'} {name}{'' if wrong is None else ': ' + wrong}")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
