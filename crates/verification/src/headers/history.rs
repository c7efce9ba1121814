//! Which writes are still to be read back.
//!
//! Knows the two orders in which that is done: that of the writes, and that of addresses, in
//! which a later write takes the place of all it overlaps. Knows no content. Its memory is
//! bounded by what a pass writes.

use std::collections::{BTreeMap, VecDeque};

/// A write that was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index of the file among the stream's.
    pub file: u32,
    /// Bytes.
    pub len: u32,
    /// Place.
    pub offset: u64,
    /// Number of the write.
    pub number: u64,
    /// Where it is in its life.
    pub fate: Fate,
}

/// Where a write is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// In flight.
    InFlight,
    /// Done.
    Written,
    /// Trimmed since, and zeros are expected.
    Trimmed,
    /// Neither read back nor trimmed: it failed, or was trimmed since.
    Gone,
}

/// Name of a piece.
pub type PieceKey = (u32, u64);

/// Writes to be read back.
#[derive(Debug)]
pub struct History {
    pieces: Pieces,
    /// Pieces that are there and not gone.
    len: usize,
}

#[derive(Debug)]
enum Pieces {
    /// By the order of writes; the number of the first.
    Written(VecDeque<Piece>, u64),
    /// By file and address.
    Placed(BTreeMap<PieceKey, Piece>),
}

impl History {
    /// An empty history.
    #[must_use]
    pub fn new(by_address: bool) -> Self {
        let pieces = if by_address {
            Pieces::Placed(BTreeMap::new())
        } else {
            Pieces::Written(VecDeque::new(), 0)
        };
        Self { pieces, len: 0 }
    }

    /// Bytes of memory that a history of so many writes needs.
    #[must_use]
    pub fn memory_bytes(writes: u64) -> u64 {
        // A node of the tree is at least half full.
        writes.saturating_mul(2 * (size_of::<Piece>() + size_of::<PieceKey>()) as u64)
    }

    /// Writes still to be read back.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.len = 0;
        match &mut self.pieces {
            Pieces::Written(pieces, first) => {
                *first += pieces.len() as u64;
                pieces.clear();
            }
            Pieces::Placed(pieces) => pieces.clear(),
        }
    }

    /// Adds a write that is issued now; its name.
    pub fn add(&mut self, piece: Piece) -> PieceKey {
        self.len += 1;
        match &mut self.pieces {
            Pieces::Written(pieces, first) => {
                pieces.push_back(piece);
                (piece.file, *first + pieces.len() as u64 - 1)
            }
            Pieces::Placed(pieces) => {
                let key = (piece.file, piece.offset);
                let end = (piece.file, piece.offset + u64::from(piece.len));
                while let Some((&at, before)) = pieces.range(..end).next_back() {
                    let meets = at.0 == piece.file && at.1 + u64::from(before.len) > piece.offset;
                    if !meets {
                        break;
                    }
                    pieces.remove(&at);
                    self.len -= 1;
                }
                pieces.insert(key, piece);
                key
            }
        }
    }

    /// The piece with this name and number, unless another took its place.
    fn find(&mut self, key: PieceKey, number: u64) -> Option<&mut Piece> {
        match &mut self.pieces {
            Pieces::Written(pieces, first) => {
                let at = key.1.checked_sub(*first)?;
                pieces.get_mut(usize::try_from(at).ok()?)
            }
            Pieces::Placed(pieces) => pieces.get_mut(&key),
        }
        .filter(|piece| piece.number == number)
    }

    /// What became of a write; `moved`: bytes that were written.
    pub fn settle(&mut self, key: PieceKey, number: u64, fate: Fate, moved: Option<u32>) {
        let Some(piece) = self.find(key, number) else {
            return;
        };
        if let Some(moved) = moved {
            piece.len = moved;
        }
        let was = std::mem::replace(&mut piece.fate, fate);
        if fate == Fate::Gone && was != Fate::Gone {
            self.len -= 1;
            if let Pieces::Placed(pieces) = &mut self.pieces {
                pieces.remove(&key);
            }
        }
    }

    /// The write with this name, when it is done and still to be read back.
    #[must_use]
    pub fn written(&mut self, key: PieceKey, number: u64) -> Option<Piece> {
        self.find(key, number)
            .filter(|piece| piece.fate == Fate::Written)
            .copied()
    }

    /// Takes the next one to be read back; none while it is in flight.
    pub fn take(&mut self) -> Option<Piece> {
        let piece = match &mut self.pieces {
            Pieces::Written(pieces, first) => {
                while pieces.front().is_some_and(|piece| piece.fate == Fate::Gone) {
                    pieces.pop_front();
                    *first += 1;
                }
                if pieces.front()?.fate == Fate::InFlight {
                    return None;
                }
                *first += 1;
                pieces.pop_front()?
            }
            Pieces::Placed(pieces) => {
                if pieces.first_key_value()?.1.fate == Fate::InFlight {
                    return None;
                }
                pieces.pop_first()?.1
            }
        };
        self.len -= 1;
        Some(piece)
    }
}
