//! How a worker does I/O: the ways there are, what the Plan says of each, and what each can do.
//!
//! Knows one row of capabilities per way. Whoever has to know what a backend can do reads its
//! row, here or in `contract/backends.json`. Knows nothing of how it is done: that is in the
//! backend's own file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NameOperation, SimDevice};

/// How a worker does I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Backend {
    /// io_uring, one ring.
    IoUring {
        /// Register files and address them by index.
        registered_files: bool,
        /// Register the buffers and use the fixed operations where they win.
        fixed_buffers: bool,
        /// Poll for completions (`IORING_SETUP_IOPOLL`); needs `direct` everywhere.
        iopoll: bool,
        /// Kernel submission thread (`IORING_SETUP_SQPOLL`).
        sqpoll: bool,
    },
    /// Commands to an NVMe namespace past the block layer (`IORING_OP_URING_CMD`).
    IoUringCmd {
        /// Register files and address them by index.
        registered_files: bool,
        /// Register the buffers (`IORING_URING_CMD_FIXED`).
        fixed_buffers: bool,
        /// Poll for completions (`IORING_SETUP_IOPOLL`).
        iopoll: bool,
        /// Kernel submission thread (`IORING_SETUP_SQPOLL`).
        sqpoll: bool,
    },
    /// Linux native AIO (`io_submit(2)`).
    Libaio {},
    /// `pread(2)`/`pwrite(2)`, one I/O at a time.
    Psync {},
    /// Copies through a shared mapping, one I/O at a time.
    Mmap {},
    /// Operations on files and directories by name, one at a time.
    Files {},
    /// One operation on its targets by their names: each I/O is one, whatever its bytes.
    Names {
        /// What is done.
        operation: NameOperation,
    },
    /// `fallocate(2)`: reads keep the size, writes may extend it, trims punch holes.
    Falloc {},
    /// `splice(2)` through a pipe, one I/O at a time.
    Splice {},
    /// ext4's exchange of extents: writes give a range the blocks a donor has there.
    MoveExtents {
        /// Index into [`super::Plan::targets`]: the file the blocks come from.
        donor: u32,
        /// The donor is given its blocks before each exchange, and loses them after it.
        in_place: bool,
    },
    /// No I/O: completes at once. Measures the engine itself.
    Null {},
    /// Virtual clock and a seeded device model.
    Sim {
        /// The modelled device.
        device: SimDevice,
    },
}

/// What a backend can do, and what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Name in Plans, events and messages.
    pub name: &'static str,
    /// Time is modelled: a worker's clock is its own, and moves by being waited for.
    pub virtual_time: bool,
    /// It needs no real target.
    pub virtual_targets: bool,
    /// It does operations on files of a tree, and no I/O to targets.
    pub trees: bool,
    /// It uses its targets by their names, and opens none.
    pub named_targets: bool,
    /// It gives commands to NVMe namespaces, and to nothing else.
    pub nvme_targets: bool,
    /// Reads bring what was written.
    pub keeps_data: Keeps,
    /// It can poll for completions.
    pub polls: bool,
    /// An I/O can have a priority of its own.
    pub priorities: bool,
    /// Entries can be given to a kernel worker at once.
    pub force_async: bool,
    /// A target can be closed and opened again within a run ([`super::Connection`]).
    pub reopens: bool,
    /// Several I/Os of a worker are in flight at a time.
    pub native_depth: bool,
    /// Largest iodepth a Plan may ask for; none: any. Below `native_depth` it is told by the
    /// results: an I/O waits for the one before it.
    pub max_iodepth: Option<u32>,
    /// The I/O is over when the call that hands it over returns.
    pub synchronous: bool,
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// It trims.
    pub trims: bool,
    /// It flushes.
    pub flushes: bool,
    /// Whether it goes past the page cache.
    pub direct: Direct,
    /// Reads change the target, too.
    pub reads_need_write_access: bool,
}

/// Whether a backend keeps what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// As the target does.
    AsTarget,
    /// A modelled device does when it has a medium.
    WithMedium,
    /// Never.
    Nothing,
}

/// Which targets a backend takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direct {
    /// Through the page cache or past it.
    Either,
    /// Only through it.
    Never,
    /// Only past it, in whole logical blocks.
    Always,
}

impl Capabilities {
    /// Reads and writes of a target by system calls, which other rows differ from.
    const fn plain(name: &'static str) -> Self {
        Self {
            name,
            virtual_time: false,
            virtual_targets: false,
            trees: false,
            named_targets: false,
            nvme_targets: false,
            keeps_data: Keeps::AsTarget,
            polls: false,
            priorities: false,
            force_async: false,
            reopens: false,
            native_depth: false,
            max_iodepth: None,
            synchronous: true,
            reads: true,
            writes: true,
            trims: true,
            flushes: true,
            direct: Direct::Either,
            reads_need_write_access: false,
        }
    }

    /// The same with many I/Os in flight.
    const fn queued(name: &'static str) -> Self {
        Self {
            native_depth: true,
            synchronous: false,
            ..Self::plain(name)
        }
    }

    /// The same with one at a time, and nothing else to be asked for.
    const fn single(name: &'static str) -> Self {
        Self {
            max_iodepth: Some(1),
            ..Self::plain(name)
        }
    }
}

const IO_URING: Capabilities = Capabilities {
    polls: true,
    priorities: true,
    force_async: true,
    reopens: true,
    ..Capabilities::queued("io_uring")
};
const IO_URING_CMD: Capabilities = Capabilities {
    nvme_targets: true,
    polls: true,
    direct: Direct::Always,
    ..Capabilities::queued("io_uring_cmd")
};
const LIBAIO: Capabilities = Capabilities {
    priorities: true,
    reopens: true,
    ..Capabilities::queued("libaio")
};
const PSYNC: Capabilities = Capabilities {
    reopens: true,
    ..Capabilities::plain("psync")
};
const MMAP: Capabilities = Capabilities {
    direct: Direct::Never,
    ..Capabilities::single("mmap")
};
const FILES: Capabilities = Capabilities {
    trees: true,
    trims: false,
    ..Capabilities::single("files")
};
const NAMES: Capabilities = Capabilities {
    named_targets: true,
    keeps_data: Keeps::Nothing,
    trims: false,
    ..Capabilities::single("names")
};
const FALLOC: Capabilities = Capabilities {
    keeps_data: Keeps::Nothing,
    reads_need_write_access: true,
    ..Capabilities::single("falloc")
};
const SPLICE: Capabilities = Capabilities::single("splice");
const MOVE_EXTENTS: Capabilities = Capabilities {
    keeps_data: Keeps::Nothing,
    reads: false,
    trims: false,
    ..Capabilities::single("move_extents")
};
const NULL: Capabilities = Capabilities {
    virtual_targets: true,
    keeps_data: Keeps::Nothing,
    ..Capabilities::queued("null")
};
const SIM: Capabilities = Capabilities {
    virtual_time: true,
    virtual_targets: true,
    keeps_data: Keeps::WithMedium,
    // A modelled device treats all alike; what it tells is counted by priority all the same.
    priorities: true,
    ..Capabilities::queued("sim")
};

/// All rows.
pub const TABLE: [Capabilities; 12] = [
    IO_URING,
    IO_URING_CMD,
    LIBAIO,
    PSYNC,
    MMAP,
    FILES,
    NAMES,
    FALLOC,
    SPLICE,
    MOVE_EXTENTS,
    NULL,
    SIM,
];

impl Backend {
    /// What it can do.
    #[must_use]
    pub fn capabilities(&self) -> &'static Capabilities {
        match self {
            Self::IoUring { .. } => &IO_URING,
            Self::IoUringCmd { .. } => &IO_URING_CMD,
            Self::Libaio {} => &LIBAIO,
            Self::Psync {} => &PSYNC,
            Self::Mmap {} => &MMAP,
            Self::Files {} => &FILES,
            Self::Names { .. } => &NAMES,
            Self::Falloc {} => &FALLOC,
            Self::Splice {} => &SPLICE,
            Self::MoveExtents { .. } => &MOVE_EXTENTS,
            Self::Null {} => &NULL,
            Self::Sim { .. } => &SIM,
        }
    }

    /// As in the `stream_end` event.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.capabilities().name
    }

    /// It polls for completions, as the Plan wants it.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        matches!(
            self,
            Self::IoUring { iopoll: true, .. } | Self::IoUringCmd { iopoll: true, .. }
        )
    }

    /// Reads may bring what was written.
    #[must_use]
    pub fn keeps_data(&self) -> bool {
        match (self.capabilities().keeps_data, self) {
            (Keeps::WithMedium, Self::Sim { device }) => device.faults.is_some(),
            (keeps, _) => keeps == Keeps::AsTarget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_the_row_of_its_name() {
        let schema = schemars::schema_for!(Backend).to_value();
        let variants = schema["oneOf"].as_array().unwrap();
        let tags = variants
            .iter()
            .map(|one| one["properties"]["type"]["const"].as_str().unwrap());
        assert!(tags.eq(TABLE.iter().map(|row| row.name)));
        let plain =
            |name: &str| serde_json::from_value::<Backend>(serde_json::json!({"type": name}));
        let found: Vec<&str> = (TABLE.iter())
            .filter_map(|row| Some((row.name, plain(row.name).ok()?)))
            .map(|(name, backend)| {
                assert_eq!(backend.capabilities().name, name);
                name
            })
            .collect();
        assert!(found.len() >= 7, "those without options: {found:?}");
    }

    #[test]
    fn rows_do_not_contradict_themselves() {
        for row in TABLE {
            assert!(!(row.native_depth && row.synchronous), "{row:?}");
            assert!(!row.native_depth || row.max_iodepth.is_none(), "{row:?}");
            assert!(!row.virtual_time || row.virtual_targets, "{row:?}");
            assert!(!row.force_async || row.native_depth, "{row:?}");
            assert_eq!(row.nvme_targets, row.direct == Direct::Always, "{row:?}");
        }
    }
}
