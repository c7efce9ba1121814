//! What tells a file of a tree from another one that took its name.
//!
//! Knows inode numbers and times of birth, and which of them a file system keeps. A number is
//! used again when its file is gone; the birth is not. Knows no name and no registry.

use std::os::fd::AsRawFd;

use loadstone_base::rng::mix;
use loadstone_plan::Identity;

/// Of one file; [`Tag::NONE`] is no file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag(pub(super) u64);

impl Tag {
    /// Nobody knows such a file: no write goes to what has the name.
    pub const NONE: Self = Self(0);

    /// Whether a file is the known one. Where no birth is told, its number decides.
    #[must_use]
    pub fn is(self, known: Self) -> bool {
        let (number, birth) = (self.0 >> 32, self.0 as u32);
        let known_birth = known.0 as u32;
        known != Self::NONE
            && number == known.0 >> 32
            && (birth == known_birth || birth == 0 || known_birth == 0)
    }
}

/// What a file system keeps of a file for as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    numbers: bool,
    births: bool,
}

impl Kept {
    /// That of the file system something open is on.
    #[must_use]
    pub fn by(open: &impl AsRawFd) -> Self {
        let mut told = std::mem::MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: the kernel fills it, and all zeros are valid.
        unsafe { libc::fstatfs(open.as_raw_fd(), told.as_mut_ptr()) };
        // SAFETY: as above.
        let magic = unsafe { told.assume_init() }.f_type as u32;
        Self {
            // FAT, exFAT, SMB and FUSE may give a file another number once it left the cache.
            numbers: !matches!(
                magic,
                0x4d44 | 0x2011_bab0 | 0xff53_4d42 | 0xfe53_4d42 | 0x6573_5546
            ),
            // overlayfs makes a file anew when it is opened for writing.
            births: magic != 0x794c_7630,
        }
    }

    /// The tag of a file there.
    #[must_use]
    pub fn tag(self, of: &Identity) -> Tag {
        let number = if self.numbers { of.inode } else { 0 };
        let birth = of.born_ns.filter(|_| self.births);
        let birth = birth.map_or(0, |born_ns| mixed(born_ns).max(1));
        Tag(u64::from(mixed(number).max(1)) << 32 | u64::from(birth))
    }
}

/// 32 bits of 64, all of which count.
fn mixed(value: u64) -> u32 {
    (mix(value) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64, born_ns: Option<u64>) -> Identity {
        Identity {
            device: 1,
            inode,
            special: 0,
            born_ns,
        }
    }

    const ALL: Kept = Kept {
        numbers: true,
        births: true,
    };

    #[test]
    fn a_number_that_is_used_again_is_another_file() {
        let known = ALL.tag(&file(7, Some(1_000)));
        assert!(ALL.tag(&file(7, Some(1_000))).is(known));
        assert!(!ALL.tag(&file(7, Some(1_001))).is(known));
        assert!(!ALL.tag(&file(8, Some(1_000))).is(known));
        // A server may tell no birth now and then.
        assert!(ALL.tag(&file(7, None)).is(known));
        assert!(known.is(ALL.tag(&file(7, None))));
    }

    #[test]
    fn what_nobody_knows_is_nobodys_file() {
        assert!(!ALL.tag(&file(0, None)).is(Tag::NONE));
        assert!(!Tag::NONE.is(Tag::NONE));
    }

    #[test]
    fn only_what_a_file_system_keeps_counts() {
        let births = Kept {
            numbers: false,
            ..ALL
        };
        assert!(births
            .tag(&file(7, Some(5)))
            .is(births.tag(&file(8, Some(5)))));
        assert!(!births
            .tag(&file(7, Some(5)))
            .is(births.tag(&file(7, Some(6)))));
        let numbers = Kept {
            births: false,
            ..ALL
        };
        assert!(numbers
            .tag(&file(7, Some(5)))
            .is(numbers.tag(&file(7, Some(6)))));
    }
}
