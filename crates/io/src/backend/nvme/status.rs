//! What an NVMe device answers instead of doing a command, in words.
//!
//! Knows status codes (NVM Express Base Specification, Status Field; NVM and Zoned Namespace
//! Command Sets), and the error number nearest to each. Knows no command.

use crate::backend::{Failure, MediumStatus};

/// Status code type and code; above them retry hints, which say nothing of the reason.
const CODE: u32 = 0x7FF;

/// Not a device's: the I/O is not one of whole blocks.
pub const NOT_WHOLE_BLOCKS: u32 = 0x800;
/// Not a device's: the kernel did not take the command.
pub const NOT_TAKEN: u32 = 0x801;
/// Type (above 8 bits) and code, name, error number.
const WORDS: &[(u32, &str, i32)] = &[
    (0x001, "invalid command opcode", libc::EOPNOTSUPP),
    (0x002, "invalid field in command", libc::EINVAL),
    (0x004, "data transfer error", libc::EIO),
    (0x005, "aborted due to power loss", libc::EIO),
    (0x006, "internal error", libc::EIO),
    (0x007, "abort requested", libc::EIO),
    (0x008, "aborted: its queue was deleted", libc::EIO),
    (0x00B, "invalid namespace or format", libc::EINVAL),
    (0x00C, "command sequence error", libc::EIO),
    (0x015, "operation denied", libc::EACCES),
    (0x01D, "sanitize in progress", libc::EBUSY),
    (0x020, "namespace is write protected", libc::EROFS),
    (0x021, "command interrupted", libc::EIO),
    (0x022, "transient transport error", libc::EIO),
    (0x080, "LBA out of range", libc::EINVAL),
    (0x081, "capacity exceeded", libc::ENOSPC),
    (0x082, "namespace not ready", libc::EIO),
    (0x083, "reservation conflict", libc::EBUSY),
    (0x084, "format in progress", libc::EBUSY),
    (0x180, "conflicting attributes", libc::EINVAL),
    (0x181, "invalid protection information", libc::EINVAL),
    (0x182, "write to a read-only range", libc::EROFS),
    (0x183, "command size limit exceeded", libc::EINVAL),
    (0x1B8, "zone boundary error", libc::EIO),
    (0x1B9, "zone is full", libc::ENOSPC),
    (0x1BA, "zone is read only", libc::EROFS),
    (0x1BB, "zone is offline", libc::EIO),
    (0x1BC, "write not at the zone's write pointer", libc::EINVAL),
    (0x1BD, "too many active zones", libc::EIO),
    (0x1BE, "too many open zones", libc::EIO),
    (0x280, "write fault", libc::EIO),
    (0x281, "unrecovered read error", libc::EIO),
    (0x282, "end-to-end guard check error", libc::EIO),
    (0x283, "end-to-end application tag check error", libc::EIO),
    (0x284, "end-to-end reference tag check error", libc::EIO),
    (0x285, "compare failure", libc::EIO),
    (0x286, "access denied", libc::EACCES),
    (0x287, "deallocated or unwritten logical block", libc::EIO),
    (0x300, "internal path error", libc::EIO),
    (0x301, "path lost for good (ANA)", libc::EIO),
    (0x302, "path inaccessible (ANA)", libc::EIO),
    (0x303, "path in transition (ANA)", libc::EIO),
    (0x360, "controller pathing error", libc::EIO),
    (0x370, "host pathing error", libc::EIO),
    (0x371, "aborted by the host", libc::EIO),
];

/// The failure of an I/O that was answered with this status.
#[must_use]
pub fn failure(status: u32) -> Failure {
    let code = match status {
        NOT_WHOLE_BLOCKS | NOT_TAKEN => status,
        _ => status & CODE,
    };
    let errno = match code {
        NOT_WHOLE_BLOCKS | NOT_TAKEN => libc::EINVAL,
        _ => known(code).map_or(libc::EIO, |(_, _, errno)| *errno),
    };
    Failure {
        errno,
        status: Some(MediumStatus { code, words }),
    }
}

/// What a device said, or what kept the I/O from it.
fn words(code: u32) -> String {
    match code {
        NOT_WHOLE_BLOCKS => {
            "offset or length is no multiple of the namespace's logical block: nothing was sent"
                .into()
        }
        NOT_TAKEN => "more than a command to this device can move (MDTS, or max_hw_sectors_kb and max_segments in its queue's sysfs directory): use smaller blocks".into(),
        code => text(code),
    }
}

/// A status in words.
#[must_use]
pub fn text(status: u32) -> String {
    let code = status & CODE;
    let name = known(code).map_or("no common status", |(_, name, _)| name);
    let kind = match code >> 8 {
        0 => "generic",
        1 => "command specific",
        2 => "media or data integrity",
        3 => "path related",
        7 => "vendor specific",
        _ => "reserved",
    };
    format!(
        "NVMe status: {name} (type {:#x}, {kind}; code {:#04x})",
        code >> 8,
        code & 0xFF
    )
}

fn known(code: u32) -> Option<&'static (u32, &'static str, i32)> {
    WORDS.iter().find(|(known, _, _)| *known == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_its_name_and_an_error_number() {
        let cases = [
            (
                0x4080,
                libc::EINVAL,
                "LBA out of range (type 0x0, generic; code 0x80)",
            ),
            (
                0x281,
                libc::EIO,
                "unrecovered read error (type 0x2, media or data integrity; code 0x81)",
            ),
            (
                0x20,
                libc::EROFS,
                "namespace is write protected (type 0x0, generic; code 0x20)",
            ),
            (
                0x7C5,
                libc::EIO,
                "no common status (type 0x7, vendor specific; code 0xc5)",
            ),
        ];
        for (status, errno, says) in cases {
            let failed = failure(status);
            assert_eq!(failed.errno, errno);
            let words = failed.status.map(|status| (status.words)(status.code));
            assert_eq!(words, Some(format!("NVMe status: {says}")));
        }
    }

    #[test]
    fn what_kept_an_io_from_the_device_is_told_in_words() {
        let said = |code| words(failure(code).status.unwrap().code);
        assert!(said(NOT_WHOLE_BLOCKS).contains("no multiple"));
        assert!(said(NOT_TAKEN).contains("smaller blocks"));
    }

    #[test]
    fn codes_are_told_once_and_in_order() {
        assert!(WORDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
