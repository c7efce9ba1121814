//! One I/O put into its slot.
//!
//! Knows what the state keeps of an I/O and what a write's buffer needs before it. Knows no
//! backend and no clock.

use crate::slots::Slot;
use crate::stream::StreamState;
use loadstone_base::ops::OpKind;
use loadstone_generation::pattern::NextIo;
use loadstone_io::backend::Io;

/// Longest write whose stamps are few: at most 32 words.
const QUICK_BYTES: u32 = 16 << 10;

/// Writes the I/O into the state, and gives it as the backend wants it.
#[inline(always)]
pub(super) fn io(
    stream: &StreamState,
    index: u32,
    slot: &mut Slot,
    next: &NextIo,
    intended_ns: u64,
    now: u64,
) -> Io {
    let file = &stream.uses[next.file as usize];
    slot.intended_ns = intended_ns;
    slot.picked_ns = now;
    slot.offset = next.offset;
    slot.len = next.len;
    slot.op = next.op.kind();
    slot.row = file.rows[slot.op as usize];
    slot.target = file.target;
    Io {
        slot: index,
        op: next.op,
        file: file.local,
        offset: next.offset,
        len: next.len,
        buffer: slot.buffer as *mut u8,
        priority: 0,
    }
}

/// Prepares the buffer of a write; true when that took next to no time.
#[inline(always)]
pub(super) fn fill(stream: &mut StreamState, slot: &mut Slot) -> bool {
    if slot.op != OpKind::Write {
        slot.filled &= slot.op != OpKind::Read;
        return true;
    }
    let Some(filler) = &mut stream.filler else {
        return true;
    };
    let buffer = slot.buffer as *mut u8;
    let mut quick = slot.len <= QUICK_BYTES && filler.is_quick();
    if !slot.filled {
        slot.filled = true;
        quick = false;
        // SAFETY: the slot's buffer is the stream's largest block and is not in use by
        // the kernel while the slot is free.
        filler
            .prime(unsafe { std::slice::from_raw_parts_mut(buffer, stream.block_bytes as usize) });
    }
    // SAFETY: as above; no block is larger.
    filler.next(unsafe { std::slice::from_raw_parts_mut(buffer, slot.len as usize) });
    quick
}
