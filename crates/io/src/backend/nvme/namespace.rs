//! What an NVMe namespace is, as its controller tells.
//!
//! Knows the Identify command (NVM Express Base Specification and NVM Command Set) and the
//! kernel's way to send it. Knows no I/O.

use std::io;
use std::os::fd::RawFd;

use super::command::Command;

/// `_IO('N', 0x40)` of `linux/nvme_ioctl.h`.
const IOCTL_ID: libc::c_ulong = 0x4E40;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`.
const IOCTL_ADMIN_CMD: libc::c_ulong = 0xC048_4E41;
/// The admin command.
const IDENTIFY: u8 = 0x06;
/// What to identify (`CNS`): a namespace, a controller.
const OF_NAMESPACE: u32 = 0;
const OF_CONTROLLER: u32 = 1;
/// Most blocks a command names: a 16-bit number that counts from 0.
const MAX_BLOCKS: u64 = 1 << 16;
/// `MDTS` counts in the controller's smallest pages, which are not told here; none are smaller.
const PAGE_BYTES: u64 = 4096;

/// What a controller answers.
pub type ControllerPage = [u8; 4096];

/// A namespace that commands can be made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// Its number.
    pub id: u32,
    /// Length of a logical block, as a power of two.
    pub block_shift: u32,
    /// Its capacity.
    pub size_bytes: u64,
    /// Most bytes of one read or write.
    pub transfer_bytes: u32,
}

/// Why commands cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It does not answer as a namespace does.
    #[error("does not say which NVMe namespace it is: {0}")]
    NoNamespace(io::Error),
    /// Its controller does not tell.
    #[error("cannot be identified: {0}")]
    Silent(io::Error),
    /// Its controller refuses to tell.
    #[error("cannot be identified: {}", super::status::text(*.0))]
    Refused(u32),
    /// Not of the kind this engine has commands for.
    #[error("{0}")]
    Format(String),
}

impl Unfit {
    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoNamespace(_) => "give the character device of a namespace, as /dev/ng0n1",
            Self::Silent(error) => match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => {
                    "before Linux 6.2 this needs CAP_SYS_ADMIN: run as root"
                }
                _ => "",
            },
            Self::Refused(_) => "",
            Self::Format(_) => {
                "format it without metadata (nvme format --lbaf), or use its block device"
            }
        }
    }
}

impl Namespace {
    /// Asks the namespace behind an open character device.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn of(fd: RawFd) -> Result<Self, Unfit> {
        // SAFETY: the request takes no argument.
        let id = unsafe { libc::ioctl(fd, IOCTL_ID as _) };
        if id <= 0 {
            return Err(Unfit::NoNamespace(io::Error::last_os_error()));
        }
        let id = id as u32;
        let namespace = identify(fd, id, OF_NAMESPACE)?;
        let controller = identify(fd, 0, OF_CONTROLLER)?;
        Self::parse(id, &namespace, &controller)
    }

    /// Understands what a controller tells of a namespace and of itself.
    ///
    /// # Errors
    /// [`Unfit::Format`].
    pub fn parse(
        id: u32,
        namespace: &ControllerPage,
        controller: &ControllerPage,
    ) -> Result<Self, Unfit> {
        // NSZE, NLBAF, FLBAS, DPS and the LBA formats.
        let blocks = u64::from_le_bytes(namespace[..8].try_into().unwrap_or_default());
        let (formats, chosen, protection) = (namespace[25], namespace[26], namespace[29] & 7);
        let high = if formats > 15 { chosen >> 5 & 3 } else { 0 };
        let format = usize::from(chosen & 15 | high << 4);
        let at = 128 + 4 * format;
        let metadata_bytes = u16::from_le_bytes([namespace[at], namespace[at + 1]]);
        let block_shift = u32::from(namespace[at + 2]);
        if metadata_bytes > 0 {
            let what = if protection > 0 {
                format!(" and protection type {protection}")
            } else {
                String::new()
            };
            return Err(Unfit::Format(format!(
                "its LBA format {format} has {metadata_bytes} bytes of metadata in each block{what}, which is not supported"
            )));
        }
        if !(9..=16).contains(&block_shift) || blocks == 0 {
            return Err(Unfit::Format(format!(
                "it tells of {blocks} blocks of 2^{block_shift} bytes, which is no namespace of the NVM command set"
            )));
        }
        Ok(Self {
            id,
            block_shift,
            size_bytes: blocks.saturating_mul(1 << block_shift),
            transfer_bytes: transfer_bytes(controller[77], block_shift),
        })
    }

    /// First block and number of blocks; none when it does not begin or end with a block.
    #[inline]
    #[must_use]
    pub fn blocks(&self, offset: u64, len: u32) -> Option<(u64, u32)> {
        let within = (1 << self.block_shift) - 1;
        let whole = (offset | u64::from(len)) & within == 0 && len > 0;
        whole.then(|| (offset >> self.block_shift, len >> self.block_shift))
    }
}

/// Most bytes of a transfer by `MDTS` (0: no limit) and by the length of the command's field.
fn transfer_bytes(mdts: u8, block_shift: u32) -> u32 {
    let by_field = MAX_BLOCKS << block_shift;
    let by_device = match mdts {
        0 => u64::MAX,
        // More than a 64-bit number holds is no limit.
        power => (1u64.checked_shl(u32::from(power)))
            .map_or(u64::MAX, |pages| PAGE_BYTES.saturating_mul(pages)),
    };
    u32::try_from(by_field.min(by_device)).unwrap_or(u32::MAX)
}

/// Sends an Identify command.
fn identify(fd: RawFd, nsid: u32, what: u32) -> Result<Box<ControllerPage>, Unfit> {
    let mut page = Box::new([0u8; 4096]);
    let mut command = Command {
        opcode: IDENTIFY,
        addr: page.as_mut_ptr() as u64,
        data_len: 4096,
        cdw10: what,
        ..Command::new(nsid)
    };
    // SAFETY: `struct nvme_passthru_cmd` is as long and laid out as what a ring takes, but for
    // its last member, the result; the page is as long as said.
    let answer = unsafe { libc::ioctl(fd, IOCTL_ADMIN_CMD as _, &raw mut command) };
    match answer {
        0 => Ok(page),
        1.. => Err(Unfit::Refused(answer as u32)),
        _ => Err(Unfit::Silent(io::Error::last_os_error())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^20 blocks in the third of three formats.
    fn namespace(metadata_bytes: u8, shift: u8) -> ControllerPage {
        let mut page = [0; 4096];
        page[2] = 0x10;
        (page[25], page[26]) = (2, 2);
        (page[136], page[138]) = (metadata_bytes, shift);
        page
    }

    fn controller(mdts: u8) -> ControllerPage {
        let mut page = [0; 4096];
        page[77] = mdts;
        page
    }

    #[test]
    fn length_and_limits_are_read_from_the_format_in_use() {
        let parsed = Namespace::parse(1, &namespace(0, 12), &controller(7)).unwrap();
        let expected = Namespace {
            id: 1,
            block_shift: 12,
            size_bytes: 1 << 32,
            transfer_bytes: 1 << 19,
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn a_format_beyond_the_sixteenth_has_its_high_bits_elsewhere() {
        let mut page = namespace(0, 12);
        // Format 0x12 of 20; the same bits mean nothing where there are 16 at most.
        (page[25], page[26]) = (19, 0b0010_0010);
        page[128 + 4 * 0x12 + 2] = 9;
        assert_eq!(
            Namespace::parse(1, &page, &controller(0))
                .unwrap()
                .block_shift,
            9
        );
        page[25] = 2;
        assert_eq!(
            Namespace::parse(1, &page, &controller(0))
                .unwrap()
                .block_shift,
            12
        );
    }

    #[test]
    fn a_transfer_is_bounded_by_the_device_and_by_the_field() {
        assert_eq!(transfer_bytes(5, 9), 128 << 10);
        assert_eq!(transfer_bytes(0, 9), 32 << 20);
        assert_eq!(transfer_bytes(0, 12), 256 << 20);
        assert_eq!(transfer_bytes(255, 16), u32::MAX);
    }

    #[test]
    fn a_limit_beyond_64_bits_is_no_limit_and_not_none() {
        for power in 50..64 {
            assert_eq!(transfer_bytes(power, 9), 32 << 20, "{power}");
        }
    }

    #[test]
    fn metadata_and_other_command_sets_are_refused_with_the_reason() {
        let refused = |page: &ControllerPage| match Namespace::parse(1, page, &controller(0)) {
            Err(why) => why.to_string(),
            Ok(found) => panic!("{found:?}"),
        };
        let mut page = namespace(8, 9);
        assert!(refused(&page).starts_with("its LBA format 2 has 8 bytes of metadata"));
        page[29] = 1;
        assert!(refused(&page).contains("and protection type 1"));
        assert!(refused(&namespace(0, 0)).contains("2^0 bytes"));
        assert!(refused(&[0; 4096]).contains("no namespace"));
    }

    #[test]
    fn blocks_are_whole_or_none() {
        let found = Namespace::parse(1, &namespace(0, 12), &controller(0)).unwrap();
        assert_eq!(found.blocks(8192, 4096), Some((2, 1)));
        for (offset, len) in [(8192, 512), (512, 4096), (4096, 0)] {
            assert_eq!(found.blocks(offset, len), None);
        }
    }

    #[test]
    fn what_is_no_namespace_says_so() {
        use std::os::fd::AsRawFd;
        let null = std::fs::File::open("/dev/null").unwrap();
        let why = Namespace::of(null.as_raw_fd()).unwrap_err();
        assert!(why.to_string().starts_with("does not say which"), "{why}");
        assert!(why.hint().contains("/dev/ng0n1"));
    }
}
