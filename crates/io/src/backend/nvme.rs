//! I/O as NVMe commands through a ring (`IORING_OP_URING_CMD`), past the block layer.
//!
//! Knows which command does which I/O on a namespace's character device, and what may be asked
//! of it. Knows no ring: [`super::uring`] has it. Kernels take such commands from rings
//! with large entries only (Linux 5.19; with registered buffers and polling 6.1).

pub mod command;
pub mod namespace;
pub mod status;

use std::io;

use super::ring::abi::{self, CommandSqe, Cqe32};
use super::ring::SubmissionEntry;
use super::uring::{
    open_ring, register_buffers, unregistered, Commands, Uring, UringOptions, MAX_FIXED_BYTES,
};
use super::{Done, Io, Op, OpenFile, Outcome};
use crate::memory::Mapping;
use command::{Command, Range};
use loadstone_base::clock::Clock;
use namespace::Namespace;

/// Value of an entry's padding that the kernel answers with `EINVAL`: how an I/O that must not
/// reach the device fails as every other does, in its turn.
const REFUSE: u32 = 1;

// SAFETY: 128 bytes (`command.rs`, `abi.rs`) and 32, as with both flags.
unsafe impl SubmissionEntry for CommandSqe<Command> {
    const SETUP: u32 = abi::SETUP_SQE128 | abi::SETUP_CQE32;
    type Completion = Cqe32;
}

/// Per file: what never changes from one I/O to the next.
#[derive(Debug, Clone, Copy)]
struct Addressed {
    fd: i32,
    flags: u8,
    namespace: Namespace,
}

/// Commands to namespaces.
#[derive(Debug)]
pub struct Nvme {
    files: Vec<Addressed>,
    /// Start of the registered buffers; none: they are not.
    fixed: Option<usize>,
    /// The range of each slot's trim, which the device reads while it is at it.
    ranges: Vec<Range>,
}

/// A ring for up to `depth` commands in flight to `files`. Gives what could not be had in
/// `notes`.
///
/// # Errors
/// The error of the set-up.
pub fn open(
    clock: Clock,
    options: UringOptions,
    files: &[OpenFile],
    depth: u32,
    buffers: &Mapping,
    notes: &mut Vec<String>,
) -> io::Result<Uring<Nvme>> {
    let namespaces: Vec<Namespace> = files
        .iter()
        .map(|file| Namespace::of(file.fd).map_err(|why| io::Error::other(why.to_string())))
        .collect::<io::Result<_>>()?;
    let (ring, registered) = open_ring(options, files, depth, notes)?;
    let fixed = options.fixed_buffers && {
        let outcome = register_buffers(&ring, buffers);
        notes.extend(outcome.as_ref().err().map(unregistered));
        outcome.is_ok()
    };
    let files = (0..).zip(files.iter().zip(namespaces));
    let commands = Nvme {
        files: files
            .map(|(index, (file, namespace))| Addressed {
                fd: if registered { index } else { file.fd },
                flags: if registered { abi::SQE_FIXED_FILE } else { 0 },
                namespace,
            })
            .collect(),
        fixed: fixed.then_some(buffers.start() as usize),
        ranges: vec![Range::default(); depth as usize],
    };
    Ok(Uring::of(clock, options, depth, ring, commands))
}

impl Nvme {
    /// The registered buffer an I/O's is in; none when it is in two, or in none.
    #[inline]
    fn registered(&self, io: &Io) -> Option<u16> {
        let start = (io.buffer as usize).wrapping_sub(self.fixed?);
        let index = start / MAX_FIXED_BYTES;
        let last = (start + io.len as usize - 1) / MAX_FIXED_BYTES;
        (last == index).then_some(index as u16)
    }
}

impl Commands for Nvme {
    type Entry = CommandSqe<Command>;

    #[inline]
    fn entry(&mut self, io: &Io) -> Self::Entry {
        let file = self.files[io.file as usize];
        let mut entry = CommandSqe {
            opcode: abi::OP_URING_CMD,
            flags: file.flags,
            fd: file.fd,
            cmd_op: command::URING_CMD_IO,
            user_data: user_data(io.slot, io.len),
            command: Command::new(file.namespace.id),
            ..CommandSqe::default()
        };
        if io.op.is_sync() {
            entry.command.flush();
            return entry;
        }
        match file.namespace.blocks(io.offset, io.len) {
            None => {
                entry.pad = REFUSE;
                entry.user_data = user_data(io.slot, UNALIGNED);
            }
            Some((start, count)) if io.op == Op::Trim => {
                let range = &mut self.ranges[io.slot as usize];
                *range = Range::new(start, count);
                entry.command.deallocate(range);
            }
            Some(_) if io.len > file.namespace.transfer_bytes => entry.pad = REFUSE,
            Some((start, count)) => {
                let write = io.op == Op::Write;
                entry
                    .command
                    .transfer(write, io.buffer as u64, io.len, start, count);
                if let Some(index) = self.registered(io) {
                    entry.uring_cmd_flags = abi::URING_CMD_FIXED;
                    entry.buf_index = index;
                }
            }
        }
        entry
    }

    #[inline]
    fn done(&self, completion: Cqe32) -> Done {
        let asked = (completion.user_data >> 32) as u32;
        let slot = completion.user_data as u32;
        let status = match completion.result {
            0 => return Done::new(slot, Outcome::moved(asked)),
            answer @ 1.. => answer as u32,
            error if error == -libc::EINVAL && asked == UNALIGNED => status::NOT_WHOLE_BLOCKS,
            error if error == -libc::EINVAL => status::NOT_TAKEN,
            error => return Done::new(slot, Outcome::of(error)),
        };
        let failure = status::failure(status);
        Done {
            slot,
            outcome: Outcome::failed(failure.errno),
            status: failure.status,
        }
    }
}

/// Length told of an I/O that is not one of whole blocks, and so never began.
const UNALIGNED: u32 = 0;

/// A completion tells no bytes, so what was asked goes along.
#[inline]
fn user_data(slot: u32, len: u32) -> u64 {
    u64::from(slot) | u64::from(len) << 32
}

#[cfg(test)]
mod tests {
    use super::super::SyncKind;
    use super::*;

    const NAMESPACE: Namespace = Namespace {
        id: 3,
        block_shift: 12,
        size_bytes: 1 << 30,
        transfer_bytes: 1 << 17,
    };

    fn nvme(fixed: Option<usize>) -> Nvme {
        Nvme {
            files: vec![Addressed {
                fd: 7,
                flags: abi::SQE_FIXED_FILE,
                namespace: NAMESPACE,
            }],
            fixed,
            ranges: vec![Range::default(); 4],
        }
    }

    fn io(op: Op, offset: u64, len: u32) -> Io {
        Io {
            slot: 2,
            op,
            file: 0,
            offset,
            len,
            buffer: 0x1234_5000 as *mut u8,
            priority: 0,
        }
    }

    fn bytes(entry: &CommandSqe<Command>) -> [u8; 128] {
        // SAFETY: plain integers without padding, 128 bytes of them (`command.rs`).
        unsafe { std::mem::transmute_copy(entry) }
    }

    /// Outcome and status of a completion.
    fn done(result: i32, user_data: u64) -> (Outcome, Option<u32>) {
        let completion = Cqe32 {
            user_data,
            result,
            ..Cqe32::default()
        };
        let done = nvme(None).done(completion);
        (done.outcome, done.status.map(|status| status.code))
    }

    fn failed(status: u32) -> (Outcome, Option<u32>) {
        (Outcome::failed(status::failure(status).errno), Some(status))
    }

    #[test]
    fn an_entry_is_laid_out_as_the_kernel_reads_it() {
        let entry = nvme(None).entry(&io(Op::Write, 5 << 44, 8192));
        let mut expected = [0u8; 128];
        // `struct io_uring_sqe`: opcode, flags, fd, cmd_op, user_data.
        (expected[0], expected[1], expected[4]) = (46, 1, 7);
        expected[8..12].copy_from_slice(&0xC048_4E80_u32.to_le_bytes());
        expected[32] = 2;
        expected[36..40].copy_from_slice(&8192u32.to_le_bytes());
        // `struct nvme_uring_cmd` from byte 48: opcode, nsid, addr, data_len, cdw10 to cdw12.
        (expected[48], expected[52]) = (1, 3);
        expected[72..80].copy_from_slice(&0x1234_5000_u64.to_le_bytes());
        expected[84..88].copy_from_slice(&8192u32.to_le_bytes());
        expected[88..96].copy_from_slice(&(5u64 << 32).to_le_bytes());
        expected[96] = 1;
        assert_eq!(bytes(&entry), expected);
    }

    #[test]
    fn a_read_differs_in_its_opcode_and_a_flush_names_the_namespace_alone() {
        assert_eq!(nvme(None).entry(&io(Op::Read, 0, 4096)).command.opcode, 2);
        let flush = nvme(None).entry(&io(Op::Sync(SyncKind::Data), 4096, 0));
        assert_eq!(flush.command, Command::new(3));
        assert_eq!(flush.pad, 0);
    }

    #[test]
    fn a_trim_hands_over_its_range() {
        let mut nvme = nvme(Some(0));
        let entry = nvme.entry(&io(Op::Trim, 40960, 1 << 20));
        assert_eq!(nvme.ranges[2], Range::new(10, 256));
        let command = entry.command;
        assert_eq!((command.opcode, command.data_len), (9, 16));
        assert_eq!((command.cdw10, command.cdw11), (0, 4));
        assert_eq!(command.addr, (&raw const nvme.ranges[2]) as u64);
        assert_eq!(entry.uring_cmd_flags, 0, "ranges are not registered");
    }

    #[test]
    fn registered_buffers_are_named_unless_an_io_lies_across_two() {
        let base = 0x1234_5000_usize.wrapping_sub(MAX_FIXED_BYTES);
        let within = nvme(Some(base)).entry(&io(Op::Read, 0, 4096));
        assert_eq!((within.uring_cmd_flags, within.buf_index), (1, 1));
        let across = nvme(Some(base.wrapping_add(4096))).entry(&io(Op::Read, 0, 8192));
        assert_eq!((across.uring_cmd_flags, across.buf_index), (0, 0));
    }

    #[test]
    fn what_must_not_reach_the_device_is_refused_in_its_turn_with_its_reason() {
        for (offset, len, says) in [
            (512, 4096, status::NOT_WHOLE_BLOCKS),
            (4096, 512, status::NOT_WHOLE_BLOCKS),
            (0, 1 << 18, status::NOT_TAKEN),
        ] {
            let entry = nvme(None).entry(&io(Op::Write, offset, len));
            assert_eq!((entry.pad, entry.command), (REFUSE, Command::new(3)));
            let told = done(-libc::EINVAL, entry.user_data);
            assert_eq!(told, failed(says));
        }
        let trim = nvme(None).entry(&io(Op::Trim, 512, 4096));
        assert_eq!((trim.pad, trim.command), (REFUSE, Command::new(3)));
    }

    #[test]
    fn a_status_is_never_taken_for_a_count() {
        let asked = user_data(2, 4096);
        assert_eq!(done(0, asked), (Outcome::moved(4096), None));
        let refused = done(0x4080, asked);
        assert_eq!(refused, failed(0x80), "do not retry");
        assert_eq!(done(0x281, asked), failed(0x281));
        let plain = Outcome::failed(libc::EACCES);
        assert_eq!(done(-libc::EACCES, asked), (plain, None));
    }
}
