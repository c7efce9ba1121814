//! Kinds of damage, and the evidence kept with each.
//!
//! Knows what each kind means. How they are told apart is in [`super::check`].

use super::expect::Expectation;
use super::sector::Flips;

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DamageKind {
    /// It holds what was there before an acknowledged write.
    LostWrite,
    /// Parts of it are of one write, parts are older.
    TornWrite,
    /// It holds what was written to another place; or what was written to it is there.
    MisdirectedWrite,
    /// An older content came back although the newer is there, or had been read before.
    StaleRead,
    /// Some bits differ from what was written.
    BitFlip,
    /// It holds zeros.
    ZeroedBlock,
    /// It holds something that no run of this tool wrote.
    Foreign,
}

/// Number of kinds.
pub const KINDS: usize = 7;

impl DamageKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; KINDS] = [
        Self::LostWrite,
        Self::TornWrite,
        Self::MisdirectedWrite,
        Self::StaleRead,
        Self::BitFlip,
        Self::ZeroedBlock,
        Self::Foreign,
    ];

    /// As in the `damage` event.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LostWrite => "lost_write",
            Self::TornWrite => "torn_write",
            Self::MisdirectedWrite => "misdirected_write",
            Self::StaleRead => "stale_read",
            Self::BitFlip => "bit_flip",
            Self::ZeroedBlock => "zeroed_block",
            Self::Foreign => "foreign",
        }
    }
}

/// What a stamp that was found says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundStamp {
    /// Generation of the block.
    pub generation: u16,
    /// Target it was written for.
    pub target: u32,
    /// Offset of the verify block it was written for.
    pub offset: u64,
    /// Number of the write on its target; none when the header is not there.
    pub sequence: Option<u64>,
    /// Written by another run.
    pub other_run: bool,
}

/// One damaged block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// What it is.
    pub kind: DamageKind,
    /// Target that was read.
    pub target: u32,
    /// Offset of the verify block.
    pub offset: u64,
    /// Its bytes.
    pub block_bytes: u32,
    /// What it could have held.
    pub expected: Expectation,
    /// It was to hold a pattern, which has no stamp.
    pub by_pattern: bool,
    /// The stamp found in (part of) it.
    pub found: Option<FoundStamp>,
    /// First sector that is wrong, from the start of the block.
    pub first_sector: u32,
    /// Number of wrong sectors.
    pub sectors: u32,
    /// Bits that differ in the first wrong sector.
    pub flips: Option<Flips>,
    /// Where the content that is missing here was found: target and offset.
    pub strayed_to: Option<(u32, u64)>,
    /// An earlier read of this run found the block damaged, and it was not written since.
    pub repeated: bool,
}

impl Damage {
    /// The evidence in one sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        self.describe_with(&|target, offset| format!("target {target} offset {offset}"))
    }

    /// The same with places, target and offset, as `name` has them.
    #[must_use]
    pub fn describe_with(&self, name: &dyn Fn(u32, u64) -> String) -> String {
        let expected = match (self.expected.newest, self.expected.span) {
            _ if self.by_pattern => "the pattern".to_owned(),
            (0, _) => "no write of this run".to_owned(),
            (newest, 0) => format!("generation {newest}"),
            (newest, span) => format!("generation {newest} or one of the {span} before"),
        };
        let found = match (self.found, self.flips) {
            (_, Some(flips)) => flips.describe(),
            (Some(found), None) => {
                let place = if (found.target, found.offset) == (self.target, self.offset) {
                    String::new()
                } else {
                    format!(" of {}", name(found.target, found.offset))
                };
                let run = if found.other_run {
                    " of another run"
                } else {
                    ""
                };
                format!("generation {}{place}{run}", found.generation)
            }
            (None, None) if self.kind == DamageKind::ZeroedBlock => "zeros".to_owned(),
            (None, None) if self.by_pattern => "other content".to_owned(),
            (None, None) => "no stamp".to_owned(),
        };
        let all = self.block_bytes / super::stamp::SECTOR_BYTES as u32;
        let part = if self.sectors == all || all == 0 {
            String::new()
        } else {
            format!(
                " in {} of {all} sectors from sector {}",
                self.sectors, self.first_sector
            )
        };
        let strayed = self.strayed_to.map_or(String::new(), |(target, offset)| {
            format!("; it was found at {}", name(target, offset))
        });
        format!("expected {expected}, found {found}{part}{strayed}")
    }
}
