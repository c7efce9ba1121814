//! What came of an I/O.
//!
//! Knows bytes, error numbers and that a medium may have more to say. Knows no medium: its
//! backend brings the words.

/// Largest error number of the kernel (`MAX_ERRNO`).
const MAX_ERRNO: i32 = 4095;

/// Bytes moved, or why none were: in one number, as a system call says it. A `Result` of the same
/// content is two words, which costs some ten instructions for each I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome(i32);

impl Outcome {
    /// What a completion queue entry or a bare system call says: bytes, or a negative error number.
    #[inline(always)]
    #[must_use]
    pub const fn of(result: i32) -> Self {
        Self(result)
    }

    /// So many bytes were moved. Those of a device without a kernel may be more than 2^31.
    #[inline(always)]
    #[must_use]
    pub const fn moved(bytes: u32) -> Self {
        Self(bytes as i32)
    }

    /// None were, because of an error number, above 0.
    #[inline(always)]
    #[must_use]
    pub const fn failed(errno: i32) -> Self {
        Self(-errno)
    }

    /// Exactly these bytes were moved.
    #[inline(always)]
    #[must_use]
    pub const fn is_moved(self, bytes: u32) -> bool {
        self.0 as u32 == bytes
    }

    /// Bytes moved; none when it failed.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> Option<u32> {
        match self.errno() {
            Some(_) => None,
            None => Some(self.0 as u32),
        }
    }

    /// Error number; none when it did not fail.
    #[inline]
    #[must_use]
    pub const fn errno(self) -> Option<i32> {
        if -MAX_ERRNO <= self.0 && self.0 < 0 {
            Some(-self.0)
        } else {
            None
        }
    }

    /// Both as whoever handles errors wants them.
    ///
    /// # Errors
    /// Its error number.
    #[inline]
    pub fn result(self) -> Result<u32, i32> {
        self.errno().map_or(Ok(self.0 as u32), Err)
    }
}

impl From<Result<u32, i32>> for Outcome {
    #[inline(always)]
    fn from(result: Result<u32, i32>) -> Self {
        result.map_or_else(Self::failed, Self::moved)
    }
}

/// Why an I/O failed.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// Error number, above 0.
    pub errno: i32,
    /// What the medium itself answered; none when the error is the kernel's.
    pub status: Option<MediumStatus>,
}

/// A medium's own answer: a number in the language of its protocol.
#[derive(Debug, Clone, Copy)]
pub struct MediumStatus {
    /// The number.
    pub code: u32,
    /// What it means; the backend that gives the number knows.
    pub words: fn(u32) -> String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_bytes_or_an_error_number() {
        assert_eq!(Outcome::of(0), Outcome::moved(0));
        assert_eq!(Outcome::of(i32::MAX).bytes(), Some(i32::MAX as u32));
        assert_eq!(Outcome::of(-libc::EIO), Outcome::failed(libc::EIO));
        assert_eq!(Outcome::of(-libc::EIO).result(), Err(libc::EIO));
        assert_eq!(Outcome::failed(libc::EIO).bytes(), None);
        assert_eq!(Outcome::from(Ok(512)).result(), Ok(512));
        assert_eq!(Outcome::from(Err(libc::EIO)).errno(), Some(libc::EIO));
    }

    #[test]
    fn blocks_of_two_gib_and_more_are_no_errors() {
        for bytes in [1 << 31, 3 << 30, u32::MAX - MAX_ERRNO as u32] {
            assert_eq!(Outcome::moved(bytes).result(), Ok(bytes));
            assert!(Outcome::moved(bytes).is_moved(bytes));
        }
        for errno in [1, libc::EIO, MAX_ERRNO] {
            assert_eq!(Outcome::failed(errno).result(), Err(errno));
        }
    }
}
