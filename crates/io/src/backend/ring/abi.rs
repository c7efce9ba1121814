//! Structures and numbers of the io_uring interface, as in the kernel's public header
//! `include/uapi/linux/io_uring.h`.
//!
//! Knows layouts only. Names are the header's without their prefix.
#![allow(missing_docs, reason = "the kernel's header is the documentation")]

pub const SETUP_IOPOLL: u32 = 1 << 0;
pub const SETUP_SQPOLL: u32 = 1 << 1;
pub const SETUP_CQSIZE: u32 = 1 << 3;
pub const SETUP_CLAMP: u32 = 1 << 4;
pub const SETUP_COOP_TASKRUN: u32 = 1 << 8;
pub const SETUP_TASKRUN_FLAG: u32 = 1 << 9;
pub const SETUP_SQE128: u32 = 1 << 10;
pub const SETUP_CQE32: u32 = 1 << 11;
pub const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
pub const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
pub const SETUP_NO_SQARRAY: u32 = 1 << 16;

/// Set-up flags by name, for the probe.
pub const SETUP_NAMES: &[(u32, &str)] = &[
    (SETUP_IOPOLL, "iopoll"),
    (SETUP_SQPOLL, "sqpoll"),
    (SETUP_CQSIZE, "cqsize"),
    (SETUP_CLAMP, "clamp"),
    (SETUP_COOP_TASKRUN, "coop_taskrun"),
    (SETUP_TASKRUN_FLAG, "taskrun_flag"),
    (SETUP_SINGLE_ISSUER, "single_issuer"),
    (SETUP_DEFER_TASKRUN, "defer_taskrun"),
    (SETUP_NO_SQARRAY, "no_sqarray"),
];

pub const FEAT_SINGLE_MMAP: u32 = 1 << 0;
pub const FEAT_EXT_ARG: u32 = 1 << 8;

pub const OFF_SQ_RING: i64 = 0;
pub const OFF_SQES: i64 = 0x1000_0000;

pub const SQ_NEED_WAKEUP: u32 = 1 << 0;
pub const SQ_CQ_OVERFLOW: u32 = 1 << 1;
pub const SQ_TASKRUN: u32 = 1 << 2;

pub const ENTER_GETEVENTS: u32 = 1 << 0;
pub const ENTER_SQ_WAKEUP: u32 = 1 << 1;
pub const ENTER_EXT_ARG: u32 = 1 << 3;
pub const ENTER_REGISTERED_RING: u32 = 1 << 4;

pub const REGISTER_BUFFERS: u32 = 0;
pub const REGISTER_FILES: u32 = 2;
pub const REGISTER_PROBE: u32 = 8;
pub const REGISTER_RING_FDS: u32 = 20;

pub const SQE_FIXED_FILE: u8 = 1 << 0;
pub const SQE_ASYNC: u8 = 1 << 4;

pub const OP_FSYNC: u8 = 3;
pub const OP_READ_FIXED: u8 = 4;
pub const OP_WRITE_FIXED: u8 = 5;
pub const OP_TIMEOUT: u8 = 11;
pub const OP_FALLOCATE: u8 = 17;
pub const OP_READ: u8 = 22;
pub const OP_WRITE: u8 = 23;
pub const OP_URING_CMD: u8 = 46;

pub const FSYNC_DATASYNC: u32 = 1;
pub const URING_CMD_FIXED: u32 = 1 << 0;
/// `BLOCK_URING_CMD_DISCARD`, `_IO(0x12, 0)` of `linux/blkdev.h`.
pub const BLOCK_CMD_DISCARD: u64 = 0x12 << 8;

/// `struct io_uring_sqe`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Sqe {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    pub off: u64,
    pub addr: u64,
    pub len: u32,
    pub op_flags: u32,
    pub user_data: u64,
    pub buf_index: u16,
    pub personality: u16,
    pub file_index: u32,
    pub addr3: u64,
    pub pad: u64,
}

/// `struct io_uring_cqe`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Cqe {
    pub user_data: u64,
    pub result: i32,
    pub flags: u32,
}

/// `struct io_uring_sqe` of a ring with `IORING_SETUP_SQE128`, as `IORING_OP_URING_CMD` has
/// it: `command` is the driver's.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct CommandSqe<C> {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    pub cmd_op: u32,
    /// The kernel refuses any but 0.
    pub pad: u32,
    pub addr: u64,
    pub len: u32,
    pub uring_cmd_flags: u32,
    pub user_data: u64,
    pub buf_index: u16,
    pub personality: u16,
    pub file_index: u32,
    pub command: C,
}

/// `struct io_uring_cqe` of a ring with `IORING_SETUP_CQE32`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Cqe32 {
    pub user_data: u64,
    pub result: i32,
    pub flags: u32,
    pub more: [u64; 2],
}

/// `struct io_sqring_offsets`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct SqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub flags: u32,
    pub dropped: u32,
    pub array: u32,
    pub resv1: u32,
    pub user_addr: u64,
}

/// `struct io_cqring_offsets`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct CqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub overflow: u32,
    pub cqes: u32,
    pub flags: u32,
    pub resv1: u32,
    pub user_addr: u64,
}

/// `struct io_uring_params`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Params {
    pub sq_entries: u32,
    pub cq_entries: u32,
    pub flags: u32,
    pub sq_thread_cpu: u32,
    pub sq_thread_idle: u32,
    pub features: u32,
    pub wq_fd: u32,
    pub resv: [u32; 3],
    pub sq_off: SqOffsets,
    pub cq_off: CqOffsets,
}

/// `struct __kernel_timespec`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Timespec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl Timespec {
    /// A span of time.
    pub const fn of(span_ns: u64) -> Self {
        Self {
            seconds: (span_ns / 1_000_000_000) as i64,
            nanoseconds: (span_ns % 1_000_000_000) as i64,
        }
    }
}

/// `struct io_uring_getevents_arg`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct GeteventsArg {
    pub sigmask: u64,
    pub sigmask_bytes: u32,
    pub min_wait_us: u32,
    pub time: u64,
}

/// `struct io_uring_rsrc_update`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RsrcUpdate {
    pub offset: u32,
    pub resv: u32,
    pub data: u64,
}

/// Entries of a [`OpcodeProbe`].
pub const PROBE_OPS: usize = 256;

/// `struct io_uring_probe_op`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct ProbeOp {
    pub op: u8,
    pub resv: u8,
    pub flags: u16,
    pub resv2: u32,
}

/// `struct io_uring_probe` with room for every operation.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct OpcodeProbe {
    pub last_op: u8,
    pub ops_len: u8,
    pub resv: u16,
    pub resv2: [u32; 3],
    pub ops: [ProbeOp; PROBE_OPS],
}

impl Default for OpcodeProbe {
    fn default() -> Self {
        Self {
            last_op: 0,
            ops_len: 0,
            resv: 0,
            resv2: [0; 3],
            ops: [ProbeOp::default(); PROBE_OPS],
        }
    }
}

const _: () =
    assert!(size_of::<Sqe>() == 64 && size_of::<Cqe>() == 16 && size_of::<Params>() == 120);
const _: () = assert!(size_of::<CommandSqe<[u64; 10]>>() == 128 && size_of::<Cqe32>() == 32);
