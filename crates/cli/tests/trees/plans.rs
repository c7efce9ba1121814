//! Plans of file operations in a directory of their own, and what a run of one leaves.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_ipc::reader::StreamReader;
use loadstone_base::ops::AnyOp;
pub use loadstone_plan::plain::{self, SECOND_NS};
use loadstone_plan::*;
use serde_json::Value;

pub use crate::support::Scratch;
use crate::support::{engine, finish, of_type, start, EngineRun};

pub const SEQUENTIAL: FileSelect = FileSelect::Sequential {
    random_start: false,
    once: false,
};
pub const ONCE: FileSelect = FileSelect::Sequential {
    random_start: false,
    once: true,
};
pub const RANDOM: FileSelect = FileSelect::Random {};

/// A Plan without streams whose trees all have this shape, one for each anchor.
pub fn plan(anchors: &[impl AsRef<Path>], depth: u32, width: u32, files: u32, bytes: u64) -> Plan {
    let target = |anchor: &Path| Target {
        create: true,
        ..plain::target(anchor.to_str().unwrap(), TargetKind::Tree, 0)
    };
    let tree = |target: usize| Tree {
        target: target as u32,
        depth,
        width,
        files,
        first_file: 1,
        everywhere: false,
        sizes: FileSizes::Table {
            table: vec![FileSize { bytes, weight: 1.0 }],
        },
        seed: 1,
        total_bytes: 0,
        clear: false,
        part: FilePart { index: 0, count: 1 },
        vouched_ns: None,
    };
    Plan {
        grace_ns: 5 * SECOND_NS,
        targets: anchors
            .iter()
            .map(|anchor| target(anchor.as_ref()))
            .collect(),
        cells: vec![],
        workers: vec![],
        trees: (0..anchors.len()).map(tree).collect(),
        ..plain::plan(Backend::Files {}, vec![])
    }
}

/// Adds a stream with a worker and a cell of its own; it ends when nothing is left to do.
pub fn add(plan: &mut Plan, stage: u32, operation: FileOperation) -> &mut Stream {
    let number = plan.streams.len() as u32;
    plan.workers.push(plain::worker(stage, Backend::Files {}));
    plan.cells.push(Cell {
        unit: 0,
        target: Some(0),
    });
    let reads = if matches!(operation, FileOperation::Create { .. }) {
        0
    } else {
        100
    };
    let in_order = OpPattern {
        align_bytes: 512,
        ..plain::order(0, 4096)
    };
    plan.streams.push(Stream {
        name: format!("tree.{number}"),
        worker: number,
        files: vec![],
        seed: u64::from(number) + 1,
        pattern: plain::pattern([reads, 100 - reads, 0], &in_order),
        limits: Limits {
            runtime_ns: 0,
            time_based: false,
            ..plain::stream().limits
        },
        tree: Some(TreeUse {
            tree: 0,
            cell: number,
            operation,
            select: SEQUENTIAL,
            working_set_bytes: 0,
            shared: false,
            rate: None,
            queue: None,
        }),
        ..plain::stream()
    });
    plan.streams.last_mut().unwrap()
}

/// Transfers of whole files.
pub fn transfer(random: bool, stop: FileStop) -> FileOperation {
    FileOperation::Transfer {
        random,
        stop,
        delete_before: false,
    }
}

/// Lets a stream write, not read.
pub fn writes(stream: &mut Stream) -> &mut Stream {
    (stream.pattern.read_percent, stream.pattern.write_percent) = (0, 100);
    stream
}

/// How the stream chooses.
pub fn choosing(stream: &mut Stream, select: FileSelect) -> &mut Stream {
    stream.tree.as_mut().unwrap().select = select;
    stream
}

/// Adds what makes and fills the whole tree: directories in one stage, files in the next.
pub fn add_format(plan: &mut Plan, tree: u32, streams: u32) {
    for _ in 0..streams {
        add(plan, 0, FileOperation::Mkdir {})
            .tree
            .as_mut()
            .unwrap()
            .tree = tree;
    }
    for _ in 0..streams {
        let create = FileOperation::Create { fill: true };
        add(plan, 1, create).tree.as_mut().unwrap().tree = tree;
    }
}

/// A formatted tree of 6 directories and 8 files of 10,000 bytes.
pub fn formatted(anchor: &Path) -> Plan {
    let mut made = plan(&[anchor], 2, 2, 2, 10_000);
    add_format(&mut made, 0, 2);
    let outcome = run(&made);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    plan(&[anchor], 2, 2, 2, 10_000)
}

/// Sums of samples over all intervals.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    pub ops: u64,
    pub bytes: u64,
    pub errors: u64,
    pub lat_sum_ns: f64,
    pub wait_sum_ns: f64,
}

/// What a run left.
#[derive(Debug)]
pub struct TreeRun {
    pub code: i32,
    pub events: Vec<Value>,
    /// By cell and name of the operation.
    pub sums: BTreeMap<(u32, &'static str), Sum>,
}

impl TreeRun {
    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        of_type(&self.events, kind)
    }

    /// Operations without error, of all cells.
    pub fn ops(&self, op: &str) -> u64 {
        let rows = self.sums.iter().filter(|((_, name), _)| *name == op);
        rows.map(|(_, sum)| sum.ops).sum()
    }

    pub fn sum(&self, cell: u32, op: &'static str) -> Sum {
        self.sums.get(&(cell, op)).copied().unwrap_or_default()
    }

    /// Why a stream ended.
    pub fn reason(&self, stream: u32) -> String {
        let mut ends = self.of_type("stream_end");
        let end = ends.find(|event| event["stream"] == stream);
        end.unwrap()["reason"].as_str().unwrap().into()
    }

    /// The fatal event's text.
    pub fn fatal(&self) -> String {
        self.of_type("fatal").next().unwrap()["message"].to_string()
    }
}

/// Runs a Plan to its end.
pub fn run(plan: &Plan) -> TreeRun {
    heard(plan, |_| ())
}

/// Runs a Plan to its end; `hear` has each event at once.
pub fn heard(plan: &Plan, hear: impl FnMut(&Value)) -> TreeRun {
    let dir = Scratch::new();
    let EngineRun { code, events } = finish(start(engine(), plan, &dir.0), hear);
    TreeRun {
        code,
        events,
        sums: sums(&dir.join("samples.arrows")),
    }
}

fn sums(path: &Path) -> BTreeMap<(u32, &'static str), Sum> {
    let mut sums: BTreeMap<_, Sum> = BTreeMap::new();
    let Ok(file) = File::open(path) else {
        return sums;
    };
    for batch in StreamReader::try_new(file, None).unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let u64s = |name: &str| column(name).as_primitive::<UInt64Type>().values().clone();
        let f64s = |name: &str| column(name).as_primitive::<Float64Type>().values().clone();
        let cells = column("cell").as_primitive::<UInt32Type>().values().clone();
        let ops = column("op").as_primitive::<UInt8Type>().values().clone();
        for row in 0..batch.num_rows() {
            let name = AnyOp::from_code(ops[row]).name();
            let sum = sums.entry((cells[row], name)).or_default();
            sum.ops += u64s("ops")[row];
            sum.bytes += u64s("bytes")[row];
            sum.errors += u64s("errors")[row];
            sum.lat_sum_ns += f64s("lat_sum_ns")[row];
            sum.wait_sum_ns += f64s("wait_sum_ns")[row];
        }
    }
    sums
}

/// Every path below a directory with the sizes of files.
pub fn found(anchor: &Path) -> BTreeMap<String, Option<u64>> {
    let mut paths = BTreeMap::new();
    let mut left = vec![anchor.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(anchor).unwrap().to_str().unwrap().into();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                left.push(path);
                paths.insert(name, None);
            } else {
                paths.insert(name, Some(meta.len()));
            }
        }
    }
    paths
}

/// Sizes of the files below a directory.
pub fn sizes(anchor: &Path) -> Vec<u64> {
    found(anchor).into_values().flatten().collect()
}
