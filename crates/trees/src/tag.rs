//! What tells a file of a tree from another one that took its name.
//!
//! Knows inode numbers, times of birth and sizes, and which of them a file system keeps. A number
//! is used again when its file is gone; the birth is not. Where no birth is told, as on NFS, FUSE
//! and older ext file systems, the size decides with the number. Knows no name and no registry.

use std::os::fd::AsRawFd;

use loadstone_base::rng::mix;
use loadstone_io::directory::FileStatus;
use loadstone_plan::Identity;

/// Of one file; [`FileTag::NONE`] is no file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTag(pub(super) u64);

impl FileTag {
    /// Nobody knows such a file: no write goes to what has the name.
    pub const NONE: Self = Self(0);

    fn number(self) -> u64 {
        self.0 >> 32
    }

    /// 0 where none is told.
    fn birth(self) -> u32 {
        self.0 as u32
    }
}

/// What is known of a file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Which one it is.
    pub tag: FileTag,
    /// How large it was left.
    pub size_bytes: u64,
    /// Nobody is changing that.
    pub settled: bool,
}

impl Expected {
    /// Of a file that should not be there.
    pub const NONE: Self = Self {
        tag: FileTag::NONE,
        size_bytes: 0,
        settled: true,
    };
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
            // FAT, exFAT, SMB and FUSE may give a file another number once it left the cache,
            // overlayfs when it is opened for writing: it makes the file anew.
            numbers: !matches!(
                magic,
                0x4d44 | 0x2011_bab0 | 0xff53_4d42 | 0xfe53_4d42 | 0x6573_5546 | OVERLAY
            ),
            births: magic != OVERLAY,
        }
    }

    /// The tag of a file there.
    #[must_use]
    pub fn tag(self, of: &Identity) -> FileTag {
        let birth = of.born_ns.filter(|_| self.births);
        let birth = birth.map_or(0, |born_ns| mixed(born_ns).max(1));
        FileTag(u64::from(mixed(of.inode).max(1)) << 32 | u64::from(birth))
    }

    /// Whether what was found is the known file.
    #[must_use]
    pub fn is(self, found: &FileStatus, known: Expected) -> bool {
        let tag = self.tag(&found.identity);
        let same_number = tag.number() == known.tag.number();
        let same_size = found.size_bytes == known.size_bytes;
        match (tag.birth(), known.tag.birth()) {
            _ if known.tag == FileTag::NONE => false,
            (0, _) | (_, 0) if same_number => same_size || !known.settled,
            (0, _) | (_, 0) => same_size && !self.numbers,
            (now, then) => now == then && (same_number || !self.numbers),
        }
    }
}

const OVERLAY: u32 = 0x794c_7630;

/// 32 bits of 64, all of which count.
fn mixed(value: u64) -> u32 {
    (mix(value) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64, born_ns: Option<u64>, size_bytes: u64) -> FileStatus {
        let mut found = FileStatus::of(&std::fs::File::open("/").unwrap()).unwrap();
        found.identity = Identity {
            device: 1,
            inode,
            special: 0,
            born_ns,
        };
        found.size_bytes = size_bytes;
        found
    }

    /// As it is known when it was left like that.
    fn left(kept: Kept, file: &FileStatus, settled: bool) -> Expected {
        Expected {
            tag: kept.tag(&file.identity),
            size_bytes: file.size_bytes,
            settled,
        }
    }

    const ALL: Kept = Kept {
        numbers: true,
        births: true,
    };

    #[test]
    fn a_number_that_is_used_again_is_another_file() {
        let known = left(ALL, &file(7, Some(1_000), 5), true);
        assert!(ALL.is(&file(7, Some(1_000), 5), known));
        assert!(!ALL.is(&file(7, Some(1_001), 5), known));
        assert!(!ALL.is(&file(8, Some(1_000), 5), known));
        // The birth is enough: somebody may have made it longer.
        assert!(ALL.is(&file(7, Some(1_000), 6), known));
        // A server may tell no birth now and then.
        assert!(ALL.is(&file(7, None, 5), known));
    }

    #[test]
    fn without_a_birth_the_size_decides_unless_somebody_is_changing_it() {
        let mine = file(7, None, 5);
        assert!(ALL.is(&mine, left(ALL, &mine, true)));
        assert!(!ALL.is(&file(7, None, 6), left(ALL, &mine, true)));
        assert!(ALL.is(&file(7, None, 6), left(ALL, &mine, false)));
        assert!(!ALL.is(&file(8, None, 5), left(ALL, &mine, false)));
    }

    #[test]
    fn what_nobody_knows_is_nobodys_file() {
        assert!(!ALL.is(&file(0, None, 0), Expected::NONE));
    }

    #[test]
    fn only_what_a_file_system_keeps_counts() {
        let births = Kept {
            numbers: false,
            ..ALL
        };
        let known = left(births, &file(7, Some(5), 5), true);
        assert!(births.is(&file(8, Some(5), 5), known));
        assert!(!births.is(&file(7, Some(6), 5), known));
        let numbers = Kept {
            births: false,
            ..ALL
        };
        let known = left(numbers, &file(7, Some(5), 5), true);
        assert!(numbers.is(&file(7, Some(6), 5), known));
    }

    /// FUSE: another number may be the same file, with another size it is not.
    #[test]
    fn where_neither_is_kept_number_and_size_are_another_files_when_both_differ() {
        let neither = Kept {
            numbers: false,
            births: false,
        };
        let known = left(neither, &file(7, None, 5), true);
        assert!(neither.is(&file(8, None, 5), known));
        assert!(!neither.is(&file(8, None, 6), known));
        assert!(!neither.is(&file(7, None, 6), known));
    }
}
