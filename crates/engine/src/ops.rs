//! Numbers and names of operations in samples and events.
//!
//! Knows I/Os ([`Op`]) and operations on files by name. Knows nothing of how either is
//! done.

use crate::backend::{Op, ALL_OPS, OPS};

/// Operation on a file or directory by name; the discriminant is the `op` column of the
/// samples, where the four of [`Op`] come before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "as in `plan::FileOperation`")]
pub enum FileOp {
    Mkdir = 4,
    Rmdir = 5,
    Create = 6,
    Open = 7,
    Close = 8,
    Delete = 9,
    Getattr = 10,
    Setattr = 11,
    Access = 12,
    Copy = 13,
    Move = 14,
}

/// Number of [`FileOp`]s.
pub const FILE_OPS: usize = 11;
/// Number of operations of any kind.
pub const CODES: usize = OPS + FILE_OPS;

/// All operations on files, in the order of their numbers.
pub const ALL_FILE_OPS: [FileOp; FILE_OPS] = [
    FileOp::Mkdir,
    FileOp::Rmdir,
    FileOp::Create,
    FileOp::Open,
    FileOp::Close,
    FileOp::Delete,
    FileOp::Getattr,
    FileOp::Setattr,
    FileOp::Access,
    FileOp::Copy,
    FileOp::Move,
];

impl FileOp {
    /// Name in events and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        [
            "mkdir", "rmdir", "create", "open", "close", "delete", "getattr", "setattr", "access",
            "copy", "move",
        ][self.index()]
    }

    /// Place among the operations on files.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize - OPS
    }
}

/// An operation of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyOp {
    /// On an open file or device.
    Io(Op),
    /// By name.
    File(FileOp),
}

impl AnyOp {
    /// Its number in the `op` column.
    #[inline]
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Io(op) => op as u8,
            Self::File(op) => op as u8,
        }
    }

    /// The operation with this number, which must be below [`CODES`].
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        match usize::from(code) {
            code @ 0..OPS => Self::Io(ALL_OPS[code]),
            code => Self::File(ALL_FILE_OPS[code - OPS]),
        }
    }

    /// Name in events and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Io(op) => op.name(),
            Self::File(op) => op.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_that_of_one_operation() {
        let mut names = std::collections::BTreeSet::new();
        for code in 0..CODES as u8 {
            assert_eq!(AnyOp::from_code(code).code(), code);
            assert!(names.insert(AnyOp::from_code(code).name()), "{code}");
        }
        assert_eq!(AnyOp::from_code(4).name(), "mkdir");
        assert_eq!(AnyOp::from_code(14).name(), "move");
    }
}
