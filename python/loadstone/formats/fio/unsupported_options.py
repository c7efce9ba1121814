"""The options of fio that change nothing here, and those that are refused, and why.

Knows the reason of each. A refused option is an error wherever it stands, unless its
value asks for nothing (`off`).
"""

from __future__ import annotations

from typing import Final

from loadstone.formats.fio.option import Option, harmless, refused

ZERO = ("0",)
_ORDER = "The order is that of addresses, or of the writes where each block is written once, as in fio."
_TRACE = "Trace replay is not supported yet."
_CGROUP = "Start loadstone inside the control group instead."
_USER = "Start loadstone as that user instead."

HARMLESS: Final = (
    harmless("kb_base", "Read before all others: it decides what k and ki mean."),
    harmless(
        "io_submit_mode",
        "Latency counts from the intended start whoever submits: that is what offload is for.",
    ),
    harmless("clocksource", "The engine picks its own clock and checks it."),
    harmless("gtod_cpu", "Time stamps are cheap enough to take where they are needed."),
    harmless("mem", "Buffers are mapped anonymously by the engine.", "iomem"),
    harmless("iomem_align", "Buffers are aligned to pages.", "mem_align"),
    harmless("lockmem", "Nothing is swapped in by measuring: memory is touched before the start."),
    harmless("create_serialize", "Files are prepared one after the other before the run."),
    harmless("error_dump", "Every error is kept with its target and offset."),
    harmless("allow_mounted_write", "Loadstone refuses to write to what is mounted, with or without this."),
    harmless("unique_filename", "There are no clients."),
    harmless("log_compression_cpus", "Logs are written after the run."),
    harmless("block_error_percentiles", "Errors of every block are in the events."),
    harmless("verify_async", "Each thread checks what it reads."),
    harmless("verify_async_cpus", "Each thread checks what it reads."),
    harmless(
        "verifysort",
        _ORDER,
        flag=True,
    ),
    harmless(
        "verifysort_nr",
        _ORDER,
    ),
    harmless("hugepage-size", "The engine asks for huge pages by itself.", "hugepage_size"),
    harmless("nonvectored", "Reads and writes are never vectored.", engine="io_uring, io_uring_cmd"),
    harmless("userspace_reap", "Completions are read from the ring anyway.", flag=True, engine="libaio"),
    *(
        harmless(
            name, "Of zonemode=zbd, which is refused; without it they have no effect, as in fio.", flag=flag
        )
        for name, flag in (
            ("zonecapacity", False),
            ("read_beyond_wp", True),
            ("max_open_zones", False),
            ("job_max_open_zones", False),
            ("ignore_zone_limits", True),
            ("zone_reset_threshold", False),
            ("zone_reset_frequency", False),
            ("recover_zbd_write_error", True),
        )
    ),
    harmless("flow_watermark", "Deprecated in fio and done by no version since 3.23."),
    harmless("write_barrier", "Deprecated in fio and done by no engine."),
)

_REFUSED_REST: Final = (
    refused("lockfile", "Locking files against each other is not supported.", off=("none",)),
    refused("opendir", "Taking all files of a directory is not supported: list them in filename."),
    refused("file_append", "Appending is not supported: give offset.", off=ZERO),
    refused("sync_file_range", "Not supported: use fsync or fdatasync."),
    refused("atomic", "Atomic writes are not supported.", off=ZERO),
    refused("end_syncfs", "Not supported: use end_fsync.", off=ZERO),
    refused("unlink_each_loop", "All loops use the same files: use unlink.", off=ZERO),
    refused("pre_read", "Not supported: run a read job before with invalidate=0 after it.", off=ZERO),
    refused("rate_ignore_thinktime", "Not supported.", off=ZERO),
    refused("read_iolog", _TRACE),
    refused("read_iolog_chunked", _TRACE, off=ZERO),
    refused("replay_no_stall", _TRACE, off=ZERO),
    refused("replay_redirect", _TRACE),
    refused("replay_scale", _TRACE),
    refused("replay_align", _TRACE),
    refused("replay_time_scale", _TRACE),
    refused("replay_skip", _TRACE),
    refused("merge_blktrace_file", _TRACE),
    refused("merge_blktrace_scalars", _TRACE),
    refused("merge_blktrace_iters", _TRACE),
    refused("write_hint", "Write hints are not supported.", off=("none", "0")),
    refused("profile", "Built-in profiles are not supported: see `loadstone workloads`."),
    refused("cgroup", _CGROUP),
    refused("cgroup_nodelete", _CGROUP, off=ZERO),
    refused("cgroup_weight", _CGROUP),
    refused("uid", _USER),
    refused("gid", _USER),
    refused("fdp", "Data placement is not supported.", off=ZERO),
    refused("fdp_pli", "Data placement is not supported."),
    refused("fdp_pli_select", "Data placement is not supported."),
    refused("dataplacement", "Data placement is not supported.", "data_placement", off=("none",)),
    refused("plid_select", "Data placement is not supported."),
    refused("plids", "Data placement is not supported."),
    refused("dp_scheme", "Data placement is not supported."),
    refused("filetype", "What a path is, is looked at.", off=("none",)),
    refused("num_range", "Trims of several ranges at once are not supported.", off=("0", "1")),
    refused("thinkcycles", "Use thinktime_spin.", off=ZERO),
    refused("job_start_clock_id", "job_start is on the clock of the calendar.", off=ZERO),
    refused("rwmixcycle", "fio dropped it: the mix is exact anyway."),
    refused("percentage_sequential", "fio dropped it: use percentage_random."),
)

_ENGINE_OPTIONS: Final = {
    "io_uring": (
        "sqthread_poll_cpu",
        "uncached",
        "nowait",
    ),
    "io_uring_cmd": (
        "md_per_io_size",
        "pi_act",
        "pi_chk",
        "writefua",
        "readfua",
        "write_mode",
        "verify_mode",
        "apptag",
        "apptag_mask",
        "deterministic",
    ),
    "mmap": ("thp",),
    "pvsync2": ("hipri_percentage",),
    "cpuio": ("cpuload", "cpuchunks", "cpumode", "exit_on_io_done"),
    "net": (
        "hostname",
        "port",
        "protocol",
        "nodelay",
        "listen",
        "pingpong",
        "interface",
        "ttl",
        "window_size",
        "mss",
    ),
    "exec": ("program", "arguments", "grace_time", "std_redirect"),
    "gfapi": ("volume", "brick", "single-instance"),
    "libcufile": ("gpu_dev_id",),
    "mtd": ("skip_bad",),
    "sg": ("sg_write_mode", "stream_id"),
    "nbd": ("uri",),
    "rdma": ("bindname", "verb"),
    "rados": ("clustername", "pool", "clientname", "conf", "busy_poll", "touch_objects"),
    "rbd": ("rbdname",),
}

_OFF_WHEN_ZERO: Final = frozenset(("uncached", "nowait", "thp", "hipri_percentage"))


def _of_engines() -> tuple[Option, ...]:
    done = ("io_uring", "io_uring_cmd", "mmap", "pvsync2")
    return tuple(
        refused(
            name,
            f"Not supported ({engine})."
            if engine in done
            else f"Belongs to the engine {engine!r}, not supported.",
            off=ZERO if name in _OFF_WHEN_ZERO else (),
            flag=engine in done,
            engine=engine,
        )
        for engine, names in _ENGINE_OPTIONS.items()
        for name in names
    )


REFUSED: Final = (*_REFUSED_REST, *_of_engines())
