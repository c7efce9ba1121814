//! NVMe I/O commands as the kernel takes them through a ring.
//!
//! Knows `struct nvme_uring_cmd` of `include/uapi/linux/nvme_ioctl.h` and the commands of the
//! NVM Command Set. Numbers are little-endian, as the kernel takes them from its users.

/// `NVME_URING_CMD_IO`, `_IOWR('N', 0x80, struct nvme_uring_cmd)`.
pub const URING_CMD_IO: u32 = 0xC048_4E80;

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const DATASET_MANAGEMENT: u8 = 0x09;
/// Attribute "deallocate" of [`DATASET_MANAGEMENT`].
const DEALLOCATE: u32 = 1 << 2;

/// `struct nvme_uring_cmd`, padded to the room an entry has for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub struct Command {
    pub opcode: u8,
    pub flags: u8,
    pub reserved: u16,
    pub nsid: u32,
    pub cdw2: u32,
    pub cdw3: u32,
    pub metadata: u64,
    pub addr: u64,
    pub metadata_len: u32,
    pub data_len: u32,
    pub cdw10: u32,
    pub cdw11: u32,
    pub cdw12: u32,
    pub cdw13: u32,
    pub cdw14: u32,
    pub cdw15: u32,
    pub timeout_ms: u32,
    pub reserved2: u32,
    pub pad: u64,
}

const _: () = assert!(size_of::<Command>() == 80 && size_of::<Range>() == 16);

/// One range of a dataset management command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Range {
    attributes: u32,
    blocks: u32,
    start: u64,
}

impl Range {
    /// `count` blocks from `start`.
    #[must_use]
    pub fn new(start: u64, count: u32) -> Self {
        Self {
            attributes: 0,
            blocks: count.to_le(),
            start: start.to_le(),
        }
    }
}

impl Command {
    /// A command to a namespace that says nothing yet: a flush.
    #[inline]
    #[must_use]
    pub fn new(nsid: u32) -> Self {
        Self {
            nsid,
            ..Self::default()
        }
    }

    /// Makes what was written durable.
    #[inline]
    pub fn flush(&mut self) {
        self.opcode = FLUSH;
    }

    /// Moves `count` blocks, at least one and at most 65,536, from or to `buffer`.
    #[inline]
    pub fn transfer(&mut self, write: bool, buffer: u64, bytes: u32, start: u64, count: u32) {
        self.opcode = if write { WRITE } else { READ };
        self.addr = buffer;
        self.data_len = bytes;
        self.cdw10 = start as u32;
        self.cdw11 = (start >> 32) as u32;
        self.cdw12 = count - 1;
    }

    /// Deallocates a range, which must stay where it is until the command is done.
    #[inline]
    pub fn deallocate(&mut self, range: &Range) {
        self.opcode = DATASET_MANAGEMENT;
        self.addr = (&raw const *range) as u64;
        self.data_len = size_of::<Range>() as u32;
        self.cdw11 = DEALLOCATE;
    }
}
