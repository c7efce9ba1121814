//! What came of an I/O.
//!
//! Knows bytes, error numbers and that a medium may have more to say. Knows no medium: its
//! backend brings the words.

/// Bytes moved, or why none were.
pub type Outcome = Result<u32, Failure>;

/// Why an I/O failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

impl PartialEq for MediumStatus {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for MediumStatus {}

impl Ord for MediumStatus {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.code.cmp(&other.code)
    }
}

impl PartialOrd for MediumStatus {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Failure {
    /// An error of the kernel.
    #[must_use]
    pub fn of_errno(errno: i32) -> Self {
        Self {
            errno,
            status: None,
        }
    }
}

/// What a completion queue entry or a bare system call says: bytes, or a negative error number.
#[inline(always)]
pub fn outcome_of(result: i32) -> Outcome {
    if result >= 0 {
        Ok(result as u32)
    } else {
        Err(Failure::of_errno(-result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_bytes_or_an_error_number() {
        assert_eq!(outcome_of(0), Ok(0));
        assert_eq!(outcome_of(i32::MAX), Ok(i32::MAX as u32));
        assert_eq!(outcome_of(-libc::EIO), Err(Failure::of_errno(libc::EIO)));
    }
}
