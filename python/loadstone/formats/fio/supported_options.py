"""The options of fio that are done, one row each.

Knows for every row which field of a job it sets. Knows nothing of the options that are
not done (`unsupported_options`), nor how jobs inherit.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import RefusedError
from loadstone.formats.fio import numbers, values
from loadstone.formats.fio.option import (
    INT32,
    INT63,
    Fields,
    Option,
    amount,
    boolean,
    choice,
    flag,
    honoured,
    microseconds,
    number,
    parsed,
    seconds,
    size,
    text,
    triplet,
    truth,
)
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.formats.fio.numbers import Reading

READ_WRITE: Final = {
    name: name
    for name in (
        "read",
        "write",
        "trim",
        "randread",
        "randwrite",
        "randtrim",
        "rw",
        "randrw",
        "trimwrite",
        "randtrimwrite",
    )
} | {"readwrite": "rw"}
ENGINES: Final = (
    "io_uring",
    "io_uring_cmd",
    "libaio",
    "posixaio",
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "null",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "falloc",
    "splice",
    "e4defrag",
)
FOREIGN_ENGINES: Final = (
    "cpuio",
    "net",
    "netsplice",
    "ftruncate",
    "exec",
    "page_fault",
    "gfapi",
    "gfapi_async",
    "mtd",
    "sg",
    "nbd",
    "rdma",
    "rados",
    "rbd",
    "pmemblk",
    "dev-dax",
    "libpmem",
    "nfs",
    "http",
    "libhdfs",
    "libiscsi",
    "libzbc",
    "windowsaio",
    "solarisaio",
    "guasi",
    "xnvme",
    "libblkio",
    "ime_psync",
    "dfs",
    "filexattr",
    "libcufile",
    "spdk",
    "spdk_bdev",
)


def _rw(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    kind, colon, rest = (value or "").strip().partition(":")
    if kind not in READ_WRITE:
        raise reading.error("formats_fio.options.direction", hint=nearest(kind, READ_WRITE), found=repr(kind))
    number_ = None
    if colon:
        signed = kind.startswith("rand")
        number_ = numbers.size(rest, reading, signed=True)
        if signed and not 1 <= number_ < 2**31:
            raise reading.error("formats_fio.options.ios_after_direction", found=repr(rest), kind=kind)
    return {"mix.rw": READ_WRITE[kind], "addresses.rw_number": number_}


def _engine(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    name = (value or "").strip()
    if name.startswith(("aio", "linuxaio")):  # fio looks at no more of these.
        name = "libaio"
    if name in ENGINES:
        return {"engine.ioengine": name}
    if name in FOREIGN_ENGINES or name.startswith("external:"):
        raise reading.error(
            "formats_fio.options.engine_unsupported", found=repr(name), engines=", ".join(ENGINES)
        )
    raise reading.error("formats_fio.options.engine", hint=nearest(name, ENGINES), found=repr(name))


def _command(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    kind = (value or "").strip()
    if kind != "nvme":
        raise reading.error("formats_fio.options.command", hint=nearest(kind, ("nvme",)), found=repr(kind))
    return {"engine.command_type": kind}


def _zone_mode(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    mode = (value or "").strip()
    if mode == "zbd":
        raise make_error(RefusedError, "formats_fio.supported_options.zonemode_zbd", where=reading.where)
    if mode not in ("none", "strided"):
        raise reading.error(
            "formats_fio.options.zone_mode", hint=nearest(mode, ("none", "strided")), found=repr(mode)
        )
    return {"placement.zone_mode": mode}


def _mix(name: str, *, reads: bool) -> Option:
    def read(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
        percent = numbers.integer(value or "", reading, 0, 100)
        return {"mix.read_percent": percent if reads else 100 - percent}

    return honoured(name, read)


def _distribution(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    return {"addresses.random_distribution": values.distribution(value or "", reading)}


def _targets(value: str | None, reading: Reading, before: Mapping[str, Any]) -> Fields:
    """Read names of files; to fio those of a job come after those of its defaults, and replace none."""
    if not (value or "").strip():
        if reading.strict:
            return {"placement.targets": ()}
        raise reading.error("formats_fio.options.no_file")
    names = values.name_list(value or "", reading)
    if "-" in names:
        raise reading.error("formats_fio.options.standard_input")
    targets = tuple({"path": name, "written": name} for name in names)
    earlier = before.get("placement.targets", ())
    if not earlier:
        return {"placement.targets": targets}
    first = ":".join(one["written"] for one in earlier)
    if reading.strict:
        reading.note("trap", say("formats_fio.options.names_added", first=first))
    else:
        reading.note("trap", say("formats_fio.options.names_replaced", first=first, last=value))
    return {"placement.targets": (*earlier, *targets) if reading.strict else targets}


def _ignored_errors(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    parts = (value or "").split(",")
    errors = [values.error_numbers(part, reading) for part in parts[:2]]
    if len(parts) > 2 and parts[2].strip():
        raise reading.error("formats_fio.options.verify_errors")
    return {
        "errors.ignore_read_errors": errors[0],
        "errors.ignore_write_errors": errors[1] if len(errors) > 1 else (),
    }


def _verify_pattern(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    pattern, offsets = values.pattern_with_offsets(value or "", reading)
    return {"verification.verify_pattern": pattern, "verification.verify_pattern_offsets": offsets}


def _block_size(value: str | None, reading: Reading, fields: Mapping[str, Any]) -> Fields:
    text = (value or "").strip()
    if not text:
        raise reading.error("formats_fio.option.no_value")
    pair = re.fullmatch(r"(\d+[a-zA-Z]*)[-:](\d+[a-zA-Z]*)", text)
    if pair and reading.strict:
        reading.note(
            "trap",
            say("formats_fio.options.no_range", found=repr(text), reads=pair[1], writes=pair[2]),
        )
        text = f"{pair[1]},{pair[2]}"
    return {"sizes.bs": values.triple(text, reading, fields.get("sizes.bs"), values.block_fixed)}


def _go_on(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    word = (value or "").strip()
    if word not in _CONTINUE:
        raise reading.error(
            "formats_fio.option.unknown_word", hint=nearest(word, _CONTINUE), found=repr(word)
        )
    return {"errors.continue_on_error": _CONTINUE[word], "errors.continue_after": (errno.EIO, errno.EILSEQ)}


def _reduce(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    if not truth(value, reading):
        return {}
    reading.note("harmless", say("formats_fio.options.reduced"))
    return {
        "stats.show_slat": False,
        "stats.show_clat": False,
        "stats.show_lat": False,
        "stats.show_bw": False,
    }


def _left_out(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    shown = truth(value, reading)
    if not shown:
        reading.note("harmless", say("formats_fio.options.no_stats"))
    return {"stats.show_job": shown}


def _hidden(name: str, field: str, what: str, *aliases: str) -> Option:
    def read(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
        if not truth(value, reading):
            return {field: True}
        reading.note("harmless", say("formats_fio.options.hidden", option=name, figure=what))
        return {field: False}

    return honoured(name, read, *aliases, why="Measured anyway; fio-style output leaves it out.")


def _negated(name: str, field: str) -> Option:
    return honoured(name, lambda value, reading, _: {field: not truth(value, reading)})


_FALLOCATE = {
    "none": "none",
    "0": "none",
    "native": "native",
    "posix": "posix",
    "1": "posix",
    "keep": "keep",
    "truncate": "truncate",
}
_ADVICE = {"0": "none", "none": "none", "1": "pattern", "random": "random", "sequential": "sequential"}
_SYNC = {"none": "none", "0": "none", "sync": "sync", "1": "sync", "dsync": "dsync"}
_CONTINUE = {
    "none": "none",
    "0": "none",
    "read": "read",
    "write": "write",
    "io": "io",
    "verify": "verify",
    "all": "all",
    "1": "all",
}
_UNIFIED = {"none": "none", "0": "none", "mixed": "mixed", "1": "mixed", "both": "both", "2": "both"}
_ON_RUN = "Run only with --allow-exec, under `loadstone fio` with LOADSTONE_ALLOW_EXEC=1."

WHICH: Final = (
    honoured("rw", _rw, "readwrite", why="With `:N` as in fio: holes, backwards, random runs."),
    _mix("rwmixread", reads=True),
    _mix("rwmixwrite", reads=False),
    choice("rw_sequencer", "addresses.rw_sequencer", {"sequential": "sequential", "identical": "identical"}),
    honoured("bs", _block_size, "blocksize"),
    triplet("bsrange", "sizes.bsrange", values.block_range, "blocksize_range"),
    triplet("bssplit", "sizes.bssplit", values.block_split),
    flag("bs_unaligned", "sizes.bs_unaligned", "blocksize_unaligned"),
    boolean("bs_is_seq_rand", "sizes.bs_is_seq_rand"),
    triplet("ba", "addresses.blockalign_bytes", values.block_bytes, "blockalign"),
    honoured(
        "random_distribution",
        _distribution,
        why="zipf, pareto and normal are exact; fio's zipf generator is known to be skewed. "
        "normal alone has a deviation of a twelfth of the range, which is what fio draws.",
    ),
    boolean(
        "random_sequence_stride",
        "addresses.sequence_advances",
        why="Of random_distribution=sequence; at the end of the range it begins again.",
    ),
    boolean(
        "sprandom",
        "aging.asked",
        why="Random writes of one size to one file. As many blocks are written again as spr_op says; fio "
        "draws how many.",
    ),
    number("spr_num_regions", "aging.regions", low=2),
    parsed("spr_op", "aging.over_provisioning", values.share),
    size("spr_cs", "aging.cache_bytes"),
    triplet("percentage_random", "addresses.percentage_random", values.bounded(0, 100)),
    flag("norandommap", "addresses.norandommap"),
    choice(
        "random_generator",
        "addresses.random_generator",
        {name: name for name in ("tausworthe", "tausworthe64", "lfsr")},
        why="lfsr touches every block once even with norandommap, as in fio; the generator is Loadstone's.",
    ),
    boolean(
        "softrandommap",
        "addresses.softrandommap",
        why="A map is needed only where sizes vary; its memory is checked before the run.",
    ),
    boolean("randrepeat", "seeds.randrepeat"),
    boolean("allrandrepeat", "seeds.allrandrepeat"),
    number("randseed", "seeds.randseed", high=INT63, why="Repeats Loadstone's own sequence, not fio's."),
)

WHERE: Final = (
    honoured("filename", _targets),
    parsed("directory", "placement.directories", values.name_list),
    text("filename_format", "placement.filename_format"),
    number("nrfiles", "placement.nrfiles", "nr_files", low=1, high=100_000),
    number(
        "openfiles",
        "placement.openfiles",
        low=1,
        why="Most files in use at once; the next begins when one is finished. All stay open.",
    ),
    parsed("file_service_type", "placement.file_service", values.file_service),
    amount("size", "placement.size", over_is_all=True),
    amount("io_size", "limits.io_size", "io_limit"),
    parsed("filesize", "placement.filesize_bytes", values.size_pair),
    amount("offset", "placement.offset", "fileoffset"),
    amount("offset_increment", "placement.offset_increment"),
    size("offset_align", "placement.offset_align_bytes"),
    number("number_ios", "limits.number_ios", high=INT63),
    boolean("fill_device", "placement.fill_device", "fill_fs", why="On devices; for files give size."),
    number("loops", "limits.loops", low=1),
    boolean("allow_file_create", "files.allow_file_create"),
    boolean("create_fsync", "files.create_fsync"),
    boolean("create_only", "files.create_only", why="Files are prepared, and nothing else is done."),
    boolean(
        "create_on_open",
        "files.create_on_open",
        why="Files are made empty before the run; what is not written cannot be read.",
    ),
    boolean("overwrite", "files.overwrite"),
    choice("fallocate", "files.fallocate", _FALLOCATE),
    choice("fadvise_hint", "files.fadvise", _ADVICE, "fadvise"),
    boolean("invalidate", "files.invalidate"),
    honoured("zonemode", _zone_mode, why="none and strided."),
    size(
        "zonesize",
        "placement.zone_size_bytes",
        why="Without zonemode it means strided; fio refuses it today.",
    ),
    size("zonerange", "placement.zone_range_bytes"),
    size("zoneskip", "placement.zone_skip_bytes"),
    boolean("unlink", "files.unlink"),
)

_RINGS: Final = "io_uring, io_uring_cmd"

HOW: Final = (
    honoured("ioengine", _engine, why="libaio and posixaio run on io_uring without --keep-ioengine."),
    choice(
        "stat_type",
        "engine.stat_type",
        {name: name for name in ("stat", "lstat", "statx")},
        why="Engine filestat, dirstat.",
    ),
    text("donorname", "engine.donor", why="Engine e4defrag: its blocks are exchanged and its content lost."),
    boolean("inplace", "engine.donor_in_place", why="Engine e4defrag."),
    honoured("cmd_type", _command, why="nvme, the only kind and the default.", engine="io_uring_cmd"),
    number("iodepth", "engine.iodepth", low=1, high=65_536),
    number("iodepth_batch", "engine.iodepth_batch", "iodepth_batch_submit", low=1),
    number("iodepth_batch_complete_min", "engine.iodepth_batch_complete_min", "iodepth_batch_complete"),
    number("iodepth_batch_complete_max", "engine.iodepth_batch_complete_max"),
    number("iodepth_low", "engine.iodepth_low"),
    boolean("direct", "engine.direct"),
    _negated("buffered", "engine.direct"),
    choice("sync", "durability.sync", _SYNC),
    flag("hipri", "engine.hipri", engine=_RINGS),
    flag("registerfiles", "engine.registerfiles", engine=_RINGS),
    flag("fixedbufs", "engine.fixedbufs", engine=_RINGS),
    honoured(
        "force_async",
        lambda value, reading, _: {"engine.force_async": numbers.integer(value or "1", reading, 0, INT32)},
        flag=True,
        engine="io_uring",
    ),
    flag("sqthread_poll", "engine.sqthread_poll", engine=_RINGS),
    number("fsync", "durability.fsync_every"),
    number("fdatasync", "durability.fdatasync_every"),
    flag("end_fsync", "durability.end_fsync"),
    boolean("fsync_on_close", "durability.fsync_on_close"),
    boolean("serialize_overlap", "engine.serialize_overlap", why="Within a clone; of one file."),
    flag(
        "thread",
        "process.thread",
        "threads",
        why="Clones are always threads; it only changes a word in fio-style output.",
    ),
)

_MEMORY_MODES: Final = ("default", "local", "prefer", "bind", "interleave")
_STEADY: Final = ("iops", "iops_slope", "bw", "bw_slope", "lat", "lat_slope")


def _steady(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    name, _colon, rest = (value or "").strip().partition(":")
    if name not in _STEADY:
        raise reading.error("formats_fio.options.steady", hint=nearest(name, _STEADY), found=repr(name))
    metric = name.removesuffix("_slope")
    percent = rest.endswith("%")
    if percent or metric == "iops":
        limit = values.real(rest.removesuffix("%"), reading)
    elif metric == "bw":
        limit = float(numbers.size(rest, reading))
    else:
        limit = float(numbers.time_ns(rest, reading, numbers.MICROSECOND_NS))
    if limit <= 0:
        raise reading.error("formats_fio.options.steady_limit", found=repr(rest))
    return {"steady.rule": {"metric": metric, "slope": name != metric, "limit": limit, "percent": percent}}


def _numa_nodes(text: str, reading: Reading) -> tuple[int, ...] | str:
    return "all" if text.strip() == "all" else values.cpu_list(text, reading)


def _memory_policy(text: str, reading: Reading) -> dict[str, object]:
    mode, colon, nodes = text.strip().partition(":")
    if mode not in _MEMORY_MODES:
        raise reading.error(
            "formats_fio.options.memory_policy", found=repr(mode), memory_modes=", ".join(_MEMORY_MODES)
        )
    return {"mode": mode, "nodes": _numa_nodes(nodes, reading) if colon else ()}


def _share_in_time(text: str, reading: Reading) -> float:
    percent = values.real(text.strip().removesuffix("%"), reading)
    if not 0 < percent <= 100:
        raise reading.error("formats_fio.options.time_share", found=repr(text))
    return percent


def _microseconds(text: str, reading: Reading) -> int:
    return numbers.time_ns(text, reading, numbers.MICROSECOND_NS)


WHEN: Final = (
    number("numjobs", "schedule.numjobs", low=1, high=65_536),
    flag("stonewall", "schedule.stonewall", "wait_for_previous"),
    flag("new_group", "schedule.new_group"),
    flag("group_reporting", "schedule.group_reporting"),
    flag("exitall", "schedule.exitall"),
    flag("exitall_on_error", "schedule.exitall_on_error"),
    choice("exit_what", "schedule.exit_what", {word: word for word in ("group", "stonewall", "all")}),
    parsed("startdelay", "schedule.start_delay_ns", values.delay, "start_delay"),
    seconds("ramp_time", "limits.ramp_ns"),
    seconds("runtime", "limits.runtime_ns", "timeout"),
    flag("time_based", "limits.time_based"),
    triplet("rate", "pacing.rate_bytes", values.rate),
    triplet("rate_min", "pacing.rate_min_bytes", values.rate, "ratemin"),
    triplet("rate_iops", "pacing.rate_iops", values.rate),
    triplet("rate_iops_min", "pacing.rate_iops_min", values.rate),
    choice("rate_process", "pacing.rate_process", {"linear": "linear", "poisson": "poisson"}),
    honoured(
        "rate_cycle",
        lambda value, reading, _: {
            "pacing.rate_cycle_ns": numbers.integer(value or "", reading, 1, 2**31) * 1_000_000
        },
        "ratecycle",
    ),
    number("flow", "pacing.flow", why="Shares of I/Os between jobs with the same flow_id."),
    number("flow_id", "pacing.flow_id"),
    microseconds("flow_sleep", "pacing.flow_sleep_ns"),
    microseconds("thinktime", "pacing.thinktime_ns"),
    microseconds("thinktime_spin", "pacing.thinktime_spin_ns"),
    number("thinktime_blocks", "pacing.thinktime_blocks", low=1),
    seconds("thinktime_iotime", "pacing.thinktime_iotime_ns", why="Pauses by time, not by thinktime_blocks."),
    choice(
        "thinktime_blocks_type", "pacing.thinktime_blocks_type", {"complete": "complete", "issue": "issue"}
    ),
    text(
        "wait_for",
        "schedule.wait_for",
        why="A job defined before, by name; it must not read back what it wrote.",
    ),
    microseconds(
        "latency_target",
        "search.latency_target_ns",
        why="Only what is measured at the depth found counts, or all if none is.",
    ),
    microseconds("latency_window", "search.latency_window_ns"),
    parsed("latency_percentile", "search.latency_percentile", _share_in_time),
    boolean("latency_run", "search.latency_run"),
    triplet("max_latency", "limits.max_latency_ns", _microseconds),
    honoured("steadystate", _steady, "ss", why="Measured over whole intervals of the run."),
    seconds("steadystate_duration", "steady.duration_ns", "ss_dur"),
    seconds("steadystate_ramp_time", "steady.ramp_ns", "ss_ramp"),
    seconds("steadystate_check_interval", "steady.interval_ns", "ss_interval"),
)

PAYLOAD: Final = (
    flag("zero_buffers", "payload.zero_buffers"),
    flag("refill_buffers", "payload.refill_buffers"),
    boolean("scramble_buffers", "payload.scramble_buffers"),
    parsed("buffer_pattern", "payload.buffer_pattern", values.pattern),
    number("buffer_compress_percentage", "payload.compress_percent", high=100),
    size("buffer_compress_chunk", "payload.compress_chunk_bytes"),
    number("dedupe_percentage", "payload.dedupe_percent", high=100),
    choice("dedupe_mode", "payload.dedupe_mode", {"repeat": "repeat", "working_set": "working_set"}),
    number("dedupe_working_set_percentage", "payload.dedupe_set_percent", low=1, high=100),
    boolean("dedupe_global", "payload.dedupe_global", why="With dedupe_mode=working_set, as in fio."),
)

METHODS: Final = (
    "none",
    "0",
    "md5",
    "crc64",
    "crc32c",
    "crc32c-intel",
    "crc32",
    "crc16",
    "crc7",
    "xxhash",
    "sha512",
    "sha256",
    "sha1",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "meta",
    "pattern",
    "pattern_hdr",
    "null",
)

_DROP_IN = "`loadstone fio`:"
_ONLY_DROP_IN = "`loadstone fio` only."
_STAMPED = "`loadstone fio`; `loadstone run` verifies by stamps, which need no such thing."

VERIFICATION: Final = (
    choice(
        "verify",
        "verification.verify",
        {name: None if name in ("0", "none") else name for name in METHODS},
        why=f"{_DROP_IN} headers of fio 3.42, those of earlier ones with LOADSTONE_FIO_VERIFY=3.33. Either "
        "is read. `loadstone run`: own stamps (CRC-32C, place and generation in every 512 bytes), "
        "with every method.",
    ),
    honoured(
        "verify_pattern",
        _verify_pattern,
        why="All of the block with verify=pattern, else what lies between the headers or stamps.",
    ),
    boolean(
        "do_verify",
        "verification.do_verify",
        why=f"{_DROP_IN} after each pass of the job, in the sizes written. `loadstone run`: in a stage of "
        "its own, after all jobs of the stage.",
    ),
    flag("verify_only", "verification.verify_only", why="Reads what an earlier run wrote, and checks it."),
    size(
        "verify_interval",
        "verification.verify_interval_bytes",
        why="`loadstone run`: a multiple of 512 that divides every block.",
    ),
    boolean("verify_fatal", "verification.verify_fatal"),
    size("verify_pattern_interval", "headers.verify_pattern_interval_bytes", why=_ONLY_DROP_IN),
    size("verify_offset", "headers.verify_offset_bytes", why=_STAMPED),
    number("verify_backlog", "headers.verify_backlog", why=_STAMPED),
    number("verify_backlog_batch", "headers.verify_backlog_batch", why=_STAMPED),
    boolean("verify_dump", "headers.verify_dump", why="Never over a file that is there."),
    boolean("verify_header_seed", "headers.verify_header_seed", why=_STAMPED),
    boolean("verify_write_sequence", "headers.verify_write_sequence", why=_STAMPED),
    boolean("verify_state_save", "headers.verify_state_save", why=f"{_STAMPED} In version 5, fio 3.42's."),
    boolean("verify_state_load", "headers.verify_state_load", why=f"{_STAMPED} Versions 3 to 7."),
    choice(
        "verify_policy",
        "headers.verify_policy",
        {name: name for name in ("completed", "fsynced")},
        why="Of fio after 3.42.",
    ),
    flag("experimental_verify", "headers.experimental_verify", why=_STAMPED),
    number("trim_percentage", "headers.trim_percent", high=100, why=_ONLY_DROP_IN),
    flag("trim_verify_zero", "headers.trim_verify_zero", why=_ONLY_DROP_IN),
    number("trim_backlog", "headers.trim_backlog", why=_ONLY_DROP_IN),
    number("trim_backlog_batch", "headers.trim_backlog_batch", why=_ONLY_DROP_IN),
)

PROCESS: Final = (
    parsed("cpus_allowed", "process.cpus_allowed", values.cpu_list),
    parsed("cpumask", "process.cpus_allowed", values.cpu_mask),
    choice("cpus_allowed_policy", "process.cpus_policy", {"shared": "shared", "split": "split"}),
    parsed("numa_cpu_nodes", "process.numa_nodes", _numa_nodes),
    parsed(
        "numa_mem_policy",
        "process.numa_memory",
        _memory_policy,
        why="On hosts with one node; else start loadstone under numactl.",
    ),
    number("nice", "process.nice", low=-20, high=19),
    text(
        "ioscheduler",
        "process.ioscheduler",
        why="Set before the run, and put back after it, which fio does not.",
    ),
    text("exec_prerun", "process.exec_prerun", why=_ON_RUN),
    text("exec_postrun", "process.exec_postrun", why=_ON_RUN),
    text("description", "description"),
    text("name", "reported_name", why="Names the job in results; its files keep the section's name."),
    honoured(
        "continue_on_error",
        _go_on,
        why="After EIO and EILSEQ, as in fio; a full disk ends the job.",
    ),
    honoured("ignore_error", _ignored_errors),
)


def _log(name: str, field: str) -> Option:
    """Return the row of a log file: without a prefix its name begins with the job's."""
    return honoured(name, lambda value, _, __: {field: (value or "").strip()}, flag=True)


RESULTS: Final = (
    _log("write_bw_log", "logs.bw"),
    _log("write_iops_log", "logs.iops"),
    _log("write_lat_log", "logs.lat"),
    _log("write_hist_log", "logs.hist"),
    number("log_avg_msec", "logs.avg_msec"),
    choice(
        "log_max_value",
        "logs.max_value",
        {"0": 0, "1": 1, "average": 0, "max": 1, "both": 2},
        "log_window_value",
    ),
    boolean("per_job_logs", "logs.per_job"),
    boolean("log_offset", "logs.offset"),
    boolean("log_prio", "logs.prio"),
    boolean("log_issue_time", "logs.issue_time", why="Needs write_lat_log and log_offset, as in fio."),
    number("log_entries", "logs.entries"),
    number("log_hist_msec", "logs.hist_msec"),
    number("log_hist_coarseness", "logs.hist_coarseness", high=6),
    boolean("log_unix_epoch", "logs.unix_epoch"),
    boolean("log_alternate_epoch", "logs.alternate_epoch"),
    number("log_alternate_epoch_clock_id", "logs.alternate_epoch_clock_id"),
    text("write_iolog", "logs.iolog", why="Version 3, written after the run, sorted by time of submission."),
    boolean("log_store_compressed", "logs.store_compressed"),
    size("log_compression", "logs.compression_bytes"),
    number("bwavgtime", "stats.bw_window_msec", low=1),
    number("iopsavgtime", "stats.iops_window_msec", low=1),
    boolean("clat_percentiles", "stats.clat_percentiles"),
    boolean("lat_percentiles", "stats.lat_percentiles"),
    boolean("slat_percentiles", "stats.slat_percentiles"),
    parsed("percentile_list", "stats.percentile_list", values.percentiles),
    number("significant_figures", "stats.significant_figures", low=1, high=10),
    choice("unified_rw_reporting", "stats.unified_rw", _UNIFIED),
    boolean("disk_util", "stats.disk_util"),
    honoured("stats", _left_out, why="fio-style output leaves the job out of its lines, sums and logs."),
    choice("unit_base", "stats.unit_base", {"0": 0, "1": 1, "8": 8}),
    honoured("gtod_reduce", _reduce, why="Latencies are measured anyway; fio-style output leaves them out."),
    _hidden("disable_lat", "stats.show_lat", "total latency"),
    _hidden("disable_clat", "stats.show_clat", "completion latency"),
    _hidden("disable_slat", "stats.show_slat", "submission latency"),
    _hidden("disable_bw_measurement", "stats.show_bw", "bandwidth", "disable_bw"),
)
