"""The words of docs/safety.md; the tables come from trials."""

from __future__ import annotations

from loadstone.plan.safety import content, device_seal, marker, sampling, structure_offsets

MIB = 1 << 20
HEAD_MIB = structure_offsets.HEAD_BYTES // MIB
PASSES = ", ".join(f"{strata:,}" for strata in sampling.PASSES)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def chances() -> str:
    """The chance of missing a share, for a look that was cut short and a whole one."""
    lines = ["| share of the blocks that holds something | 1,024 samples | 2,048 | 4,096 | 16,384 |\n"]
    lines.append("|---|---:|---:|---:|---:|\n")
    for share in (0.01, 0.003, 0.001, 0.0003, 0.0001):
        cells = [sampling.chance_of_missing(share, samples) for samples in (1024, 2048, 4096, 16384)]
        lines.append(f"| {_percent(share)} | {' | '.join(f'{cell:.2g}' for cell in cells)} |\n")
    return "".join(lines)


TEXT = f"""# What is written over, and what is not

Written by `make safety`, which also tries every line of the tables.

## The rules

**Refused, whatever the user says**:

- A device that is mounted, swapped to or held by another. So is one that carries such a partition or loop
  device.
- A file that backs a loop device, is mounted by itself, is swapped to, or is open for writing elsewhere.
  Before a run that is also looked for where bindfs, mergerfs and rclone have the file. unionfs and others
  that name no directory do not tell. An erofs mounted from files is known whatever their names are by now.
- A file that would lose content and that another process has open or mapped, be it only to read it. A disk
  image that is the base of another is so, and a file of an erofs that was unmounted lazily. Of devices
  only writers count: programs that watch devices have them open to read. One that only a ring of io_uring
  keeps open counts whatever for, as Linux does not say.
- Anything on a file system of the kernel's, such as proc, sysfs, cgroup or tracefs. Files there look empty
  and are not files. `plan/safety/writable.py` lists the types, by what statfs(2) gives.
- A name that leads through a link in /proc, as `/dev/fd` and `/dev/stdout` do.
- A character device. Null, zero and full are accepted, and NVMe's where the block device beside it passes.
- Sockets and FIFOs.
- A tree in which a file has a second name, a symbolic link stands for a file or directory, or something is
  mounted.

The first two hold during a run, too; readers are looked for before it alone. Such a file of a tree is not
opened to write. A file or device that comes into use ends the run. The kernel tells of every open while the
load goes on, and a use counts that is seen twice, half a second apart. What was written there in those one
to three seconds may be lost.

Who wrote *inside* a target and closed it again ends no run. As root Linux says who did (fanotify). The
run then says so, and the target is not sealed: the next run asks. What is not seen so:

- any of it where the run is not root's, or the file system's files have no handles;
- in a tree, and in what comes after the first 1,000 targets;
- who is in another container or on another host, and the kernel itself, as NFS's server;
- a file that only a ring of io_uring had kept open at the end.

There the next run writes over what was written, unless the file became longer.

**Written without a question**: what is new or empty; what is all zeros or holes; a file or tree with a
valid mark of Loadstone's. Nothing else: random bytes look like a backup, a key or a video.

**Everything else needs consent**, path by path: typed when asked on a terminal,
`--i-accept-data-loss PATH`, or for `loadstone fio` `LOADSTONE_ACCEPT_DATA_LOSS=PATH:PATH`. There
`LOADSTONE_FIO_OVERWRITE=1` consents for all regular files, as fio does; devices are looked at all the same.
Consent is also needed where the content cannot be read, and on a file system whose type Loadstone does not
know. So it is for another user's file: who has it open only that user and root can see. Consent is for one
run or one study. It does not make a file Loadstone's, because a run need not write all of it.

## The mark

A file that Loadstone made, or that was empty or all zeros when it was first written, carries an extended
attribute (`user.loadstone`). It is bound to the inode (number, generation, birth), the file system, the
length and the content, and to there being no second name. It is made when a run has ended, however it did,
unless others have the file open for writing then. Nor is it made where they wrote to it meanwhile (above).
Nor is it made of one that is longer than its run can have made it, nor is a tree with such a file sealed.

- A file of up to {marker.DIGEST_BYTES // MIB} MiB of data is held against a digest of its content, if it
  took less than a second.
- Longer ones are held against ctime, which no program can set and every change moves. A rename and `chmod`
  change it, too: then consent is needed once more.
- New content ends it, also of the same length, in part, through a mapping or with times set back.
- A copy with its attributes has no valid mark: `tar --xattrs`, `rsync -X`,
  `cp --preserve=all`, also as reflink. Nor has a snapshot,
  another file moved over it, or a file with a hard link.
- While a run is under way the mark says so, and is worth nothing. After a crash it is not known who wrote
  the file last: remove it, or consent.
- File systems without user attributes keep no mark, and devices cannot. There the runs of a study know what
  the run before them left, as long as the process lives. A file is known by its ctime, and a device by a
  digest. It covers its first {4} MiB, its last and {device_seal.SAMPLES} blocks drawn at random.
- A tree has one mark in its anchor, `.loadstone-tree.json`, bound to its own inode. It vouches for files
  and directories whose ctime is not later than its seal. What is put in, moved in, copied or changed later is
  later. A directory that is moved in is later, but what is in it is not. A tree that was changed
  with consent has none, until a format removes all of it.
- FAT, exFAT, HFS and Minix have no place for ctime, and many file systems in user space tell mtime for
  it. There only the process that sealed a tree knows it again, and files need a digest.
- During a run the engine knows each file of a tree by inode and birth, and writes, removes and replaces no
  other. Its `setattr` does not look: a file that was linked to the name meanwhile gets new times.
  Afterwards it looks through the tree: one with a file that is not the run's is not sealed. Where no
  birth is told (FUSE, NFS without it, ext with inodes of 128 bytes, overlay), number and size decide. FUSE
  and overlay may give a file another number. There a stranger's file of the very same size, put at a name
  of the tree during a run, is taken for the run's own.

## How a look works

Regular files are read where they hold data (`SEEK_DATA`), loop devices where the file below them does.
File systems were wrong about holes, so these are read as well: up to
{content.HOLES_READ_BYTES >> 20} MiB all of them. Beyond, a sample of
{sampling.PASSES[0]:,} blocks is. A block that cannot be read counts as content.

Up to {content.WHOLE_BYTES >> 30} GiB all of it is read, unless that would take more than
{content.WHOLE_S:.0f} s. Beyond that these places are read on a device, and anything there that is not zero
counts:

- the first and last {HEAD_MIB} MiB;
- every place where ext2, ext3 and ext4 may keep a copy of the superblock (groups 1, 3ⁿ, 5ⁿ, 7ⁿ and
  the last two). Every length of a group that is a power of two counts;
- the starts of XFS's allocation groups as mkfs.xfs lays them out, and the copies of btrfs and OCFS2;
- powers of two, 64ths of the size, and 1 MiB beyond each of them.

Then blocks of {sampling.BLOCK_BYTES >> 10} KiB are drawn at random, in {len(sampling.PASSES)} passes of
{PASSES}. Each pass cuts the device into so many strata of equal length, and takes one block of each. No
pass begins later than {content.PASSES_S:.0f} s after the first, so a slow disk gets fewer. Without one
whole pass consent is needed. All is read past the page cache (`O_DIRECT`). `wipefs` is asked, too, where it
is installed.

Let a share *s* of the blocks hold anything but zeros, and let *n* be the number of samples. Wherever these
blocks are, all samples miss them with a chance of

**P ≤ (1 − s)ⁿ**

The shares s₁ … sₖ in the strata of a pass have the mean s. The product of the (1 − sᵢ) is largest when they
are all equal. Content scattered evenly reaches that bound. A contiguous run as long as two strata of a pass
fills one of them, and is never missed. That is 1/512 of the device after one pass, and 1/4096 after all.
`tests/guard/test_sampling.py` draws arrangements and holds them against the formula.

{chances()}
On a device of more than {content.WHOLE_BYTES >> 30} GiB, smaller content at none of the places above may be
missed. A file of 10 MB on an otherwise empty disk of 10 TB is a millionth of it.
"""
HEAD = """
## Every case tried

{rows} trials on real files, loop devices and mounts, {wrong} of which ended otherwise than the rules say.
*happened*: `needs consent` and `refused` end with exit code 2 before anything is opened for writing.
*intact*: whether the content had the same digest afterwards; a dash where there was nothing to lose.

| target | what it holds, or who uses it | verb | happened | intact | why |
|---|---|---|---|---|---|
"""
