//! Writes with checked reads of their place before and after them, as vdbench validates data.
//!
//! Knows which I/O follows which. Knows no data, no file and no clock. The reads are I/Os of
//! their own; limits, rates and flows count the write only. Streams that have chains hold
//! back what overlaps an I/O in flight, and what is due here goes before anything else of
//! the stream: so nothing comes between the I/Os of a chain at their place.

use std::collections::VecDeque;

use crate::pattern::NextIo;
use loadstone_base::ops::Op;
use loadstone_plan::Verify;

/// An I/O that may be issued now; with the time it was due when the stream is paced.
pub type Due = (NextIo, Option<u64>);

/// The chains of one stream.
#[derive(Debug)]
pub struct Chains {
    before: bool,
    after: bool,
    /// By slot: what follows the I/O in flight.
    following: Box<[Option<NextIo>]>,
    due: VecDeque<Due>,
    open: u32,
}

impl Chains {
    /// The chains of a stream that verifies like this, none when writes stand alone; room
    /// for `depth`.
    #[must_use]
    pub fn new(verify: &Verify, depth: u32) -> Option<Self> {
        let asked = verify.read_before_write || verify.read_after_write;
        asked.then(|| Self {
            before: verify.read_before_write,
            after: verify.read_after_write,
            following: vec![None; depth as usize].into(),
            due: VecDeque::with_capacity(depth as usize),
            open: 0,
        })
    }

    /// Bytes needed for so many slots.
    #[must_use]
    pub fn memory_bytes(depth: u32) -> u64 {
        u64::from(depth) * (size_of::<Option<NextIo>>() + size_of::<Due>()) as u64
    }

    /// What is issued for an I/O: the read before it where that is asked for. `known`:
    /// something is known of what is there.
    #[must_use]
    pub fn first(&self, next: NextIo, known: bool) -> NextIo {
        if self.before && known && next.op == Op::Write {
            read_of(next)
        } else {
            next
        }
    }

    /// `issued` is in flight in this slot for `asked`.
    pub fn started(&mut self, slot: u32, issued: NextIo, asked: NextIo) {
        let following = match (issued.op, asked.op) {
            (Op::Read, Op::Write) => Some(asked),
            (Op::Write, _) if self.after => Some(read_of(issued)),
            _ => None,
        };
        self.open += u32::from(following.is_some());
        self.following[slot as usize] = following;
    }

    /// The I/O of this slot is back. What follows is due, or left out when it does not
    /// go on.
    pub fn ended(&mut self, slot: u32, goes_on: bool, due_ns: Option<u64>) {
        let Some(next) = self.following[slot as usize].take() else {
            return;
        };
        if goes_on {
            self.due.push_back((next, due_ns));
        } else {
            self.open -= 1;
        }
    }

    /// The next I/O that is due.
    pub fn take_due(&mut self) -> Option<Due> {
        let due = self.due.pop_front()?;
        self.open -= 1;
        Some(due)
    }

    /// True while an I/O follows one in flight, or is due.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open > 0
    }
}

/// The read of the place of a write.
fn read_of(write: NextIo) -> NextIo {
    NextIo {
        op: Op::Read,
        ..write
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{VerifyContent, VerifyExpect};

    fn chains(before: bool, after: bool) -> Option<Chains> {
        let verify = Verify {
            block_bytes: 4096,
            run: 1,
            content: VerifyContent::Generated,
            expect: VerifyExpect::Table,
            only_written: false,
            fatal: false,
            read_before_write: before,
            read_after_write: after,
        };
        Chains::new(&verify, 2)
    }

    fn io(op: Op) -> NextIo {
        NextIo {
            op,
            file: 0,
            offset: 8192,
            len: 4096,
        }
    }

    /// The operations issued for one write, each after the one before it.
    fn sequence(before: bool, after: bool, known: bool) -> Vec<Op> {
        let mut chains = chains(before, after).unwrap();
        let asked = io(Op::Write);
        let mut ops = Vec::new();
        let (mut issued, mut of) = (chains.first(asked, known), asked);
        loop {
            assert_eq!((issued.offset, issued.len), (asked.offset, asked.len));
            ops.push(issued.op);
            chains.started(1, issued, of);
            chains.ended(1, true, Some(7));
            match chains.take_due() {
                Some((next, due_ns)) => {
                    assert_eq!(due_ns, Some(7));
                    (issued, of) = (next, next);
                }
                None => {
                    assert!(!chains.is_open());
                    return ops;
                }
            }
        }
    }

    #[test]
    fn a_write_has_the_reads_that_are_asked_for() {
        use Op::{Read, Write};
        assert_eq!(sequence(true, false, true), [Read, Write]);
        assert_eq!(sequence(false, true, true), [Write, Read]);
        assert_eq!(sequence(true, true, true), [Read, Write, Read]);
        // There is nothing to check where nothing is known.
        assert_eq!(sequence(true, true, false), [Write, Read]);
        assert!(chains(false, false).is_none());
    }

    #[test]
    fn what_was_asked_to_be_read_stands_alone_and_a_chain_may_be_left() {
        let mut chains = chains(true, true).unwrap();
        let read = chains.first(io(Op::Read), true);
        assert_eq!(read, io(Op::Read));
        chains.started(0, read, read);
        assert!(!chains.is_open());
        chains.ended(0, true, None);
        assert_eq!(chains.take_due(), None);
        chains.started(0, io(Op::Read), io(Op::Write));
        assert!(chains.is_open());
        chains.ended(0, false, None);
        assert!(!chains.is_open());
        assert_eq!(chains.take_due(), None);
    }
}
