//! File operations in the Plan: trees of directories and files, and what streams do there.
//!
//! Knows the shape only, as `lib.rs` does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Rate;

/// A tree of directories and files. Their names are vdbench's: level `l` holds the
/// directories `vdb.<l>_<n>.dir` (n from 1), a directory the files `vdb_f<nnnn>.file`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Index into [`super::Plan::targets`]: its anchor, a target of kind `tree` that no other
    /// tree has. How files are opened (`direct`, `sync`), whether their cached pages are
    /// dropped then (`invalidate`), whether a missing anchor is made (`create`) and what
    /// they come to (`size_bytes`) stands there.
    pub target: u32,
    /// Levels of directories below the anchor, at least 1.
    pub depth: u32,
    /// Directories in the anchor and in each directory above the lowest level, at least 1.
    pub width: u32,
    /// Files in each directory that has files, at least 1.
    pub files: u32,
    /// Number of the first of them: 1, or 0 as newer versions of vdbench have it.
    pub first_file: u32,
    /// All directories have files (false: only those of the lowest level).
    pub everywhere: bool,
    /// Size of each file: the same for the same `seed` and number of the file.
    pub sizes: FileSizes,
    /// Seed of the sizes.
    pub seed: u64,
    /// Only the first files that come to this many bytes are ever created or used; 0: all.
    pub total_bytes: u64,
    /// Before the run remove every file and directory with such a name below the anchor,
    /// whatever tree it was of.
    pub clear: bool,
    /// The files that are this engine's; directories are everybody's.
    pub part: FilePart,
    /// Files there that may be changed have no later ctime: one that has came after the tree was
    /// looked at, and the run does not begin. None: all may be.
    #[serde(deserialize_with = "super::stated")]
    pub vouched_ns: Option<u64>,
}

/// Every `count`-th file of a tree, by its number from 0: other hosts have the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilePart {
    /// Remainder of the numbers, below `count`.
    pub index: u32,
    /// Hosts that use the tree, at least 1.
    pub count: u32,
}

impl FilePart {
    /// How many of the first `files` are this engine's.
    #[must_use]
    pub fn of(self, files: u32) -> u32 {
        files.saturating_sub(self.index).div_ceil(self.count)
    }

    /// The number of the file that is `at` among this engine's.
    #[must_use]
    pub fn number(self, at: u32) -> u32 {
        at * self.count + self.index
    }
}

/// Sizes of the files of a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileSizes {
    /// A table of sizes with weights; one entry: all the same.
    Table {
        /// Entries; weights need not add up to anything.
        table: Vec<FileSize>,
    },
    /// Drawn around a mean.
    Around {
        /// Mean size.
        mean_bytes: u64,
    },
}

/// One entry of [`FileSizes::Table`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSize {
    /// Bytes; 0: empty files.
    pub bytes: u64,
    /// Relative frequency, above 0.
    pub weight: f64,
}

/// What a stream does in a tree: one operation at a time, so its `iodepth` is 1, its backend
/// `files`, and it has no `files` of its own.
///
/// Transfers have the sizes of the stream's pattern, and their rows; so has everything else
/// that was done for the operation: opens, closes, creates (in each an open). It ends with reason `exhausted`
/// when nothing is left to do the operation on and no other stream of the stage can change
/// that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeUse {
    /// Index into [`super::Plan::trees`].
    pub tree: u32,
    /// Index into [`super::Plan::cells`].
    pub cell: u32,
    /// What is asked for; only this is paced, and counts in `limits.ops`.
    pub operation: FileOperation,
    /// Which file or directory is next.
    pub select: FileSelect,
    /// Only the first files that come to this many bytes are used; 0: all.
    pub working_set_bytes: u64,
    /// Several streams may have the same file open at a time.
    pub shared: bool,
    /// Arrivals; none: closed loop. The stream's own `pace` is empty.
    #[serde(deserialize_with = "super::stated")]
    pub rate: Option<Rate>,
    /// Streams with the same number take their arrivals from one queue, whoever is free
    /// first: its rate is what all of them have together.
    #[serde(deserialize_with = "super::stated")]
    pub queue: Option<u32>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileOperation {
    /// Reads and writes by the pattern's shares. A file is opened, read or written until
    /// `stop`, closed, and the next one opened.
    Transfer {
        /// Random addresses within the file (false: from its start to its end).
        random: bool,
        /// When the file is left.
        stop: FileStop,
        /// Sequential writes: delete the file and write it anew.
        delete_before: bool,
    },
    /// Make a directory whose parent is there.
    Mkdir {},
    /// Remove an empty directory.
    Rmdir {},
    /// Make a file that is not there.
    Create {
        /// Write it to its full size, with the pattern's writes (false: leave it empty).
        /// Files that are there but not full are filled, too.
        fill: bool,
    },
    /// Remove a file.
    Delete {},
    /// Open and close a file.
    Open {},
    /// Open a file to write, write nothing, and close it: the close is what was asked for.
    Close {},
    /// `stat(2)` a file.
    Getattr {},
    /// Set a file's times (`utimensat(2)`).
    Setattr {},
    /// `access(2)` a file.
    Access {},
    /// Copy a file, whole, in the sizes of the pattern's reads, to the same place in another
    /// tree; what is there is deleted first.
    Copy {
        /// Index into [`super::Plan::trees`].
        to: u32,
    },
    /// Move a file (`renameat(2)`) to the same place in another tree; what is there is
    /// replaced.
    Move {
        /// As for `copy`.
        to: u32,
    },
}

impl FileOperation {
    /// True when bytes are read or written for it, in the sizes of the pattern.
    #[must_use]
    pub fn transfers(&self) -> bool {
        matches!(
            self,
            Self::Transfer { .. } | Self::Create { fill: true } | Self::Copy { .. }
        )
    }

    /// True when files are opened for it, and closed.
    #[must_use]
    pub fn opens(&self) -> bool {
        self.transfers() || matches!(self, Self::Create { .. } | Self::Open {} | Self::Close {})
    }
}

/// When a file is left for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileStop {
    /// Sequential: at its end. Random: after as many bytes as it has.
    Whole {},
    /// After so many transfers, or at its end.
    Transfers {
        /// Above 0.
        count: u64,
    },
    /// After this share of its bytes, above 0; sequential: or at its end.
    Percent {
        /// Percent.
        percent: u32,
    },
}

/// Which file or directory is next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileSelect {
    /// One after the other, shared by all streams that use the tree with this operation.
    Sequential {
        /// Begin at a random one (false: at the first).
        random_start: bool,
        /// Each only once (false: from the first again).
        once: bool,
    },
    /// Uniform.
    Random {},
    /// Low numbers more often: where an exponential distribution falls whose midpoint this is.
    Skewed {
        /// Share of the files below which half of the choices fall, percent.
        midpoint_percent: f64,
    },
}
