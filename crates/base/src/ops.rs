//! Numbers and names of operations in samples and events.
//!
//! Knows I/Os ([`Op`]) and operations on files by name. Knows nothing of how either is
//! done.

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim (discard).
    Trim,
    /// Flush of a whole file.
    Sync(SyncKind),
}

/// What a flush makes durable. With these numbers an [`Op`] is one byte, and its kind's number
/// the smaller of that byte and 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SyncKind {
    /// `fsync(2)`: the data and all that is known of the file.
    File = 3,
    /// `fdatasync(2)`: the data, and what it takes to find them.
    Data = 4,
}

/// Kind of an [`Op`], as it is counted; the discriminant is the `op` column of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "as in `Op`")]
pub enum OpKind {
    Read = 0,
    Write = 1,
    Trim = 2,
    Sync = 3,
}

/// Number of kinds of I/O.
pub const OPS: usize = 4;

impl OpKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; OPS] = [Self::Read, Self::Write, Self::Trim, Self::Sync];

    /// Name in events and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["read", "write", "trim", "sync"][self as usize]
    }
}

impl Op {
    /// What it is counted as.
    #[inline(always)]
    #[must_use]
    pub fn kind(self) -> OpKind {
        match self {
            Self::Read => OpKind::Read,
            Self::Write => OpKind::Write,
            Self::Trim => OpKind::Trim,
            Self::Sync(_) => OpKind::Sync,
        }
    }

    /// Place among the kinds.
    #[inline(always)]
    #[must_use]
    pub fn index(self) -> usize {
        self.kind() as usize
    }

    /// Name in events and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    /// True for a flush of either kind.
    #[inline]
    #[must_use]
    pub fn is_sync(self) -> bool {
        matches!(self, Self::Sync(_))
    }
}

/// Operation on a file or directory by name; the discriminant is the `op` column of the
/// samples, where the four of [`OpKind`] come before.
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
    /// From before a file is opened until it is closed; of `plan::Connection`.
    Connection = 15,
}

/// Number of [`FileOp`]s.
pub const FILE_OPS: usize = 12;
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
    FileOp::Connection,
];

impl FileOp {
    /// Name in events and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        [
            "mkdir",
            "rmdir",
            "create",
            "open",
            "close",
            "delete",
            "getattr",
            "setattr",
            "access",
            "copy",
            "move",
            "connection",
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
    Io(OpKind),
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
            code @ 0..OPS => Self::Io(OpKind::ALL[code]),
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
        assert_eq!(size_of::<Op>(), 1);
        assert_eq!(AnyOp::from_code(4).name(), "mkdir");
        assert_eq!(AnyOp::from_code(15).name(), "connection");
    }
}
