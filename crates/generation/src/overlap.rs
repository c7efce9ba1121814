//! I/Os held back while they overlap one in flight: fio's `serialize_overlap`.
//!
//! Knows the ranges one stream has in flight. Only streams that ask for it keep them.

use crate::pattern::NextIo;

/// The ranges of one stream in flight, and the I/O that waits for one of them.
#[derive(Debug)]
pub struct Overlaps {
    flying: Vec<(u32, NextIo)>,
    /// Waits; with the time of its arrival when it is paced.
    pub held: Option<(NextIo, Option<u64>)>,
}

impl Overlaps {
    /// Nothing in flight; room for `depth`.
    #[must_use]
    pub fn new(depth: u32) -> Self {
        Self {
            flying: Vec::with_capacity(depth as usize),
            held: None,
        }
    }

    /// True when a range in flight on the same file has a byte in common with `next`.
    #[must_use]
    pub fn hits(&self, next: &NextIo) -> bool {
        let end = next.offset + u64::from(next.len);
        self.flying.iter().any(|(_, other)| {
            other.file == next.file
                && other.offset < end
                && next.offset < other.offset + u64::from(other.len)
        })
    }

    /// It was issued in this slot.
    pub fn started(&mut self, slot: u32, next: NextIo) {
        self.flying.push((slot, next));
    }

    /// The I/O of this slot is back.
    pub fn ended(&mut self, slot: u32) {
        if let Some(at) = self.flying.iter().position(|(other, _)| *other == slot) {
            self.flying.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_base::ops::Op;

    #[test]
    fn only_ranges_with_a_byte_in_common_overlap() {
        let io = |file, offset, len| NextIo {
            op: Op::Write,
            file,
            offset,
            len,
        };
        let mut overlaps = Overlaps::new(2);
        overlaps.started(7, io(0, 4096, 4096));
        overlaps.started(8, io(0, 1 << 20, 512));
        assert!(overlaps.hits(&io(0, 8191, 1)));
        assert!(overlaps.hits(&io(0, 0, 1 << 16)));
        assert!(!overlaps.hits(&io(0, 8192, 4096)));
        assert!(!overlaps.hits(&io(0, 0, 4096)));
        assert!(!overlaps.hits(&io(1, 4096, 4096)));
        overlaps.ended(7);
        assert!(!overlaps.hits(&io(0, 4096, 4096)));
        assert!(overlaps.hits(&io(0, (1 << 20) + 511, 1)));
    }
}
