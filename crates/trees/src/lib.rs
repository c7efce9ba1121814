//! Trees of directories and files, and what streams do there by name.
//!
//! Knows what the workers of a run share of a tree: its shape, the sizes of its files, what
//! there is of it, and who may still change that. The files below know one part each;
//! `worker.rs` is the loop of a worker whose backend is `files`.
//!
//! Rules that the Plan leaves open:
//! * Sequential transfers that leave a file before its end go on where they left it; writes
//!   first fill a file that is not full.
//! * A transfer at the end of a file is shorter. Random addresses are multiples of the
//!   transfer's size; where that is larger than the file they are 0.
//! * Reads stay within a file as it is, writes within its full size. A file without bytes
//!   is never transferred to or from.
//! * An open that makes the file is a create, too, and has the rows of both.
//! * A copy deletes the target first; a move replaces it.
//! * What has a file for itself: creates, deletes, moves, the target of a copy, a transfer
//!   that makes the file; everything else unless the stream is `shared`.

pub mod call;
mod open_file;
mod operation;
mod produce;
mod queue;
pub mod registry;
pub mod select;
pub mod tag;
mod take;
mod transfer;
mod verified;
pub mod walk;
pub mod worker;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

pub use produce::endings;
pub use transfer::SECTOR_BYTES;

use call::Anchor;
use loadstone_base::rng::Rng;
use loadstone_base::run_error::RunError;
use loadstone_generation::tree::names::{TreeShape, MAX_PATH_BYTES};
use loadstone_generation::tree::sizes::TreeFileSizes;
use loadstone_io::target::OpenTarget;
use loadstone_plan::{FileOperation, FilePart, FileSelect, FileStop, Plan, TreeUse, Verify};
use loadstone_worker::events::Event;
use queue::ArrivalQueue;
use registry::Registry;
use select::TreeCursor;
use tag::Kept;
use verified::Starts;
use walk::{Halt, WalkItem};

/// A tree as all workers see it.
#[derive(Debug)]
pub struct SharedTree {
    /// Index into the Plan's targets.
    pub target: u32,
    /// How its files are opened.
    pub anchor: Anchor,
    /// Numbers and names.
    pub shape: TreeShape,
    /// Full sizes of its files.
    pub sizes: TreeFileSizes,
    /// What there is of it.
    pub registry: Registry,
    /// Tags of files below it that another tree left there.
    others: HashSet<u64>,
    /// Files that are ever used: the first ones, by this engine or another host's.
    pub used_files: u32,
    /// Those that are this engine's.
    pub part: FilePart,
    /// Transfers begin and end on multiples of this: sectors with direct I/O, verify blocks
    /// where it is verified.
    pub unit_bytes: u64,
    /// Where its files stand in the table of its target; none: it is not verified.
    pub starts: Option<Starts>,
}

/// So many files of other trees are known again after a run; more are taken for somebody's.
const MOST_OTHERS: usize = 1 << 16;

/// Times of files lag behind the clock by up to two ticks of 100 Hz.
const TICK: Duration = Duration::from_millis(20);
const SECOND_NS: u64 = 1_000_000_000;

/// All directories, or files.
const EVERY: FilePart = FilePart { index: 0, count: 1 };

/// State of a stream that looks for something to do.
const BUSY: u64 = u64::MAX;
const ENDED: u64 = u64::MAX - 1;

/// All trees of a run.
#[derive(Debug, Default)]
pub struct Trees {
    /// In the Plan's order.
    pub trees: Vec<SharedTree>,
    /// Counts what was made and removed: who found nothing need not look again before.
    changes: AtomicU64,
    /// By stream: `BUSY`, `ENDED`, or the number of changes after which it found nothing.
    idle: Vec<AtomicU64>,
    /// By stream: those who can help it to something to do.
    helpers: Vec<Vec<u32>>,
    /// By stream: where it is; streams that go through a tree together have the same one.
    cursors: Vec<Option<Arc<TreeCursor>>>,
    /// By stream: where its arrivals come from when others take from it, too.
    queues: Vec<Option<Arc<ArrivalQueue>>>,
}

impl Trees {
    /// Clears the trees that are to be, and looks once at what there is of each. None when
    /// it was stopped.
    ///
    /// # Errors
    /// [`RunError::Target`].
    pub fn prepare(
        plan: &Plan,
        targets: &[OpenTarget],
        report: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Option<Self>, RunError> {
        let mut trees = Vec::with_capacity(plan.trees.len());
        for (index, tree) in (0..).zip(&plan.trees) {
            let file = targets[tree.target as usize].file();
            let file = file.ok_or_else(|| RunError::broken("a tree's target is not open", ""))?;
            match prepare_one(plan, index, file, report) {
                Ok(tree) => trees.push(tree),
                Err(Halt::Stopped) => return Ok(None),
                Err(halt) => return Err(fault(&plan.targets[tree.target as usize].path, halt)),
            }
        }
        refuse_empty_parts(plan, &trees)?;
        let mut this = Self {
            cursors: cursors(plan, &trees),
            queues: queues(plan),
            trees,
            changes: AtomicU64::new(0),
            idle: plan.streams.iter().map(|_| AtomicU64::new(BUSY)).collect(),
            helpers: Vec::new(),
        };
        this.helpers = produce::helpers(plan);
        Ok(Some(this))
    }

    /// Looks for what came into the changed trees during the run and is not the run's. False
    /// when it was stopped.
    pub fn look_back(
        &self,
        plan: &Plan,
        targets: &[OpenTarget],
        report: &mut dyn FnMut(Event) -> bool,
    ) -> bool {
        self.trees.iter().all(|tree| {
            let target = tree.target as usize;
            match targets[target].file() {
                Some(file) if !plan.targets[target].read_only => look_back(tree, file, report),
                _ => true,
            }
        })
    }

    /// What was made or removed so far.
    #[inline]
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Notes that something was made or removed.
    #[inline]
    pub fn changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// A stream found nothing to do after so many changes. True when nobody can change
    /// that any more: all who could have ended or found nothing either.
    #[must_use]
    pub fn found_nothing(&self, stream: u32, changes: u64) -> bool {
        self.idle[stream as usize].store(changes, Ordering::SeqCst);
        let over = |&helper: &u32| {
            let idle = self.idle[helper as usize].load(Ordering::SeqCst);
            idle == ENDED || idle == changes
        };
        self.helpers[stream as usize].iter().all(over) && self.changes() == changes
    }

    /// A stream that found nothing looks again.
    pub fn looks_again(&self, stream: u32) {
        self.idle[stream as usize].store(BUSY, Ordering::SeqCst);
    }

    /// A stream is over.
    pub fn ended(&self, stream: u32) {
        self.idle[stream as usize].store(ENDED, Ordering::SeqCst);
    }

    /// How many directories or files a stream chooses from.
    #[must_use]
    pub fn choices(&self, in_tree: &TreeUse) -> u32 {
        choices(&self.trees[in_tree.tree as usize], in_tree)
    }

    /// The part of them that a stream chooses from.
    #[must_use]
    pub fn part(&self, in_tree: &TreeUse) -> FilePart {
        match in_tree.operation {
            FileOperation::Mkdir {} | FileOperation::Rmdir {} => EVERY,
            _ => self.trees[in_tree.tree as usize].part,
        }
    }

    /// The queue of a stream; none: its arrivals are its own.
    #[must_use]
    pub(crate) fn queue(&self, stream: u32) -> Option<Arc<ArrivalQueue>> {
        self.queues[stream as usize].clone()
    }

    /// The cursor of a stream.
    #[must_use]
    pub fn cursor(&self, stream: u32) -> Arc<TreeCursor> {
        let cursor = self.cursors[stream as usize].clone();
        cursor.unwrap_or_else(|| TreeCursor::new(0))
    }
}

fn choices(tree: &SharedTree, in_tree: &TreeUse) -> u32 {
    match in_tree.operation {
        FileOperation::Mkdir {} | FileOperation::Rmdir {} => tree.shape.directory_count(),
        _ => {
            let files = (tree.sizes).first_files(in_tree.working_set_bytes, tree.used_files);
            tree.part.of(files)
        }
    }
}

/// Refuses a stream whose part of the tree has no file.
fn refuse_empty_parts(plan: &Plan, trees: &[SharedTree]) -> Result<(), RunError> {
    let mut uses = plan.streams.iter().filter_map(|one| one.tree.as_ref());
    let Some(empty) = uses.find(|one| choices(&trees[one.tree as usize], one) == 0) else {
        return Ok(());
    };
    let tree = &trees[empty.tree as usize];
    let files = (tree.sizes).first_files(empty.working_set_bytes, tree.used_files);
    Err(RunError::Target {
        path: plan.targets[tree.target as usize].path.clone(),
        message: format!(
            "has {files} files to use, divided among {} hosts: none is left for this one",
            tree.part.count
        ),
        hint: "use more files, a larger working set, or fewer hosts".into(),
    })
}

/// True when somebody asks where transfers on a file go on.
fn keeps_positions(plan: &Plan, tree: u32) -> bool {
    let mut uses = plan
        .streams
        .iter()
        .filter_map(|stream| stream.tree.as_ref());
    uses.any(|other| {
        let leaves = matches!(
            other.operation,
            FileOperation::Transfer {
                random: false,
                stop: FileStop::Transfers { .. } | FileStop::Percent { .. },
                ..
            }
        );
        other.tree == tree && leaves
    })
}

/// Memory of all trees of a well-formed Plan, in bytes.
#[must_use]
pub fn memory_bytes(plan: &Plan) -> u64 {
    let of = |(index, tree): (u32, &loadstone_plan::Tree)| {
        let Ok(shape) = TreeShape::new(tree) else {
            return 0;
        };
        let positions = if keeps_positions(plan, index) {
            registry::POSITION_BYTES
        } else {
            0
        };
        let starts = match verified::verify_of(plan, index) {
            Some(_) if TreeFileSizes::new(tree).same().is_none() => verified::START_BYTES,
            _ => 0,
        };
        u64::from(shape.file_count()) * (registry::FILE_BYTES + positions + starts)
            + u64::from(shape.directory_count() + 1) * registry::DIRECTORY_BYTES
            + 4096
    };
    let trees: u64 = (0..).zip(&plan.trees).map(of).sum();
    let streams = plan.streams.iter().filter(|stream| stream.tree.is_some());
    // Paths, and what a worker knows of the stream.
    trees + streams.count() as u64 * (2 * MAX_PATH_BYTES as u64 + 4096)
}

fn prepare_one(
    plan: &Plan,
    index: u32,
    file: &std::fs::File,
    report: &mut dyn FnMut(Event) -> bool,
) -> Result<SharedTree, Halt> {
    let tree = &plan.trees[index as usize];
    let target = &plan.targets[tree.target as usize];
    let too_large = "is larger than the check of the Plan allows";
    let shape =
        TreeShape::new(tree).map_err(|_| Halt::Unfit(String::new(), too_large.into(), ""))?;
    let sizes = TreeFileSizes::new(tree);
    let used_files = sizes.first_files(tree.total_bytes, shape.file_count());
    let total_bytes = sizes.total_bytes(used_files);
    if tree.clear {
        clear_earlier(tree, &target.path, file, total_bytes, report)?;
    }
    let registry = Registry::new(
        shape.file_count(),
        shape.directory_count(),
        keeps_positions(plan, index),
    );
    let mean = total_bytes / u64::from(used_files);
    let verify = verified::verify_of(plan, index);
    let mut looking = |files: u64| {
        report(Event::Layout {
            target: tree.target,
            done_bytes: (files * mean).min(total_bytes),
            total_bytes,
        })
    };
    let anchor = Anchor::new(file, target);
    let mut others = HashSet::new();
    let mut note = |seen: WalkItem, _: &dyn Fn() -> String| {
        register(&registry, &mut others, anchor.kept, seen);
    };
    walk::scan(file, &shape, tree.vouched_ns, &mut note, &mut looking)?;
    Ok(SharedTree {
        target: tree.target,
        anchor,
        shape,
        registry,
        others,
        used_files,
        part: tree.part,
        unit_bytes: unit_bytes(target.direct, verify),
        starts: verify.map(|_| Starts::new(&sizes, used_files)),
        sizes,
    })
}

/// Enters what a walk came across into the tree's registry, or among the files of others.
fn register(registry: &Registry, others: &mut HashSet<u64>, kept: Kept, seen: WalkItem) {
    match seen {
        WalkItem::File(number, found) => {
            registry.found_file(number, found.size_bytes, kept.tag(&found.identity));
        }
        WalkItem::Other(found) if others.len() < MOST_OTHERS => {
            others.insert(kept.tag(&found.identity).0);
        }
        WalkItem::Other(_) | WalkItem::Below(_) => {}
        WalkItem::Directory(number, entries) => registry.found_directory(number, entries),
    }
}

/// Removes what an earlier run left of a tree, and says how much that was.
fn clear_earlier(
    tree: &loadstone_plan::Tree,
    path: &str,
    file: &std::fs::File,
    total_bytes: u64,
    report: &mut dyn FnMut(Event) -> bool,
) -> Result<(), Halt> {
    let mut removing = |_| {
        report(Event::Layout {
            target: tree.target,
            done_bytes: 0,
            total_bytes,
        })
    };
    let (files, directories) = walk::clear(file, tree.vouched_ns, &mut removing)?;
    if files + directories > 0 {
        report(Event::Note {
            text: format!(
                "{path}: removed {files} files and {directories} directories of an earlier tree"
            ),
            worker: None,
            target: Some(tree.target),
        });
    }
    Ok(())
}

/// Looks at all files of a tree once more, and tells what is not known. False when it was stopped.
///
/// What comes later has a later ctime than all that is seen, so clocks get on before: those of
/// files by a tick of the kernel's, of some file systems by a second.
fn look_back(
    tree: &SharedTree,
    file: &std::fs::File,
    report: &mut dyn FnMut(Event) -> bool,
) -> bool {
    std::thread::sleep(TICK);
    let mut outcome = Seeing::all_of(tree, file, report);
    if matches!(&outcome, Ok(seen) if seen.newest_ns > 0 && seen.newest_ns % SECOND_NS == 0) {
        std::thread::sleep(Duration::from_nanos(SECOND_NS) + TICK);
        outcome = Seeing::all_of(tree, file, report);
    }
    let seen = match outcome {
        Ok(seen) => seen,
        Err(Halt::Stopped) => return false,
        Err(Halt::Unfit(place, ..) | Halt::Error(place, _)) => Seeing {
            foreign: 1,
            first: Some(place),
            ..Seeing::default()
        },
    };
    report(Event::Tree {
        target: tree.target,
        files: seen.files,
        foreign: Some(seen.foreign),
        first: seen.first,
        newest_ns: Some(seen.newest_ns),
    })
}

/// What a last look at a tree has come to.
#[derive(Debug, Default)]
struct Seeing {
    files: u64,
    foreign: u64,
    /// One of them.
    first: Option<String>,
    newest_ns: u64,
}

impl Seeing {
    fn all_of(
        tree: &SharedTree,
        file: &std::fs::File,
        report: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Self, Halt> {
        let mut this = Self::default();
        let mut compare = |seen: WalkItem, place: &dyn Fn() -> String| this.add(tree, seen, place);
        let mut looking = |files| {
            report(Event::Tree {
                target: tree.target,
                files,
                foreign: None,
                first: None,
                newest_ns: None,
            })
        };
        this.files = walk::scan(file, &tree.shape, None, &mut compare, &mut looking)?;
        Ok(this)
    }

    fn add(&mut self, tree: &SharedTree, seen: WalkItem, place: &dyn Fn() -> String) {
        let (found, known) = match seen {
            WalkItem::File(number, found) => {
                // Another host's are for that to tell.
                let others = number % tree.part.count != tree.part.index;
                let known = tree.registry.expected(number);
                // What lies beyond all that this run wrote is somebody's.
                let longest_bytes = tree.sizes.of(number).max(known.size_bytes);
                let own = tree.anchor.kept.is(found, known) && found.size_bytes <= longest_bytes;
                (found, others || own)
            }
            WalkItem::Other(found) => {
                let tag = tree.anchor.kept.tag(&found.identity);
                (found, tree.others.contains(&tag.0))
            }
            // A directory that comes in its place has a later ctime, and old files.
            WalkItem::Below(found) => (found, true),
            WalkItem::Directory(..) => return,
        };
        self.newest_ns = self.newest_ns.max(found.changed_ns);
        if !known {
            self.foreign += 1;
            self.first.get_or_insert_with(place);
        }
    }
}

/// What transfers begin and end on.
fn unit_bytes(direct: bool, verify: Option<Verify>) -> u64 {
    match verify {
        Some(its) => u64::from(its.block_bytes),
        None if direct => SECTOR_BYTES,
        None => 1,
    }
}

fn fault(anchor: &str, halt: Halt) -> RunError {
    let under = |place: &str| match place {
        "" | "." => anchor.to_owned(),
        place => format!("{}/{}", anchor.trim_end_matches('/'), place),
    };
    match halt {
        Halt::Unfit(place, message, hint) => RunError::Target {
            path: under(&place),
            message,
            hint: hint.into(),
        },
        Halt::Error(place, error) => {
            RunError::target(&under(&place), "cannot be looked at or removed", &error)
        }
        Halt::Stopped => RunError::broken("a walk was stopped", ""),
    }
}

/// One queue for all streams that name it.
fn queues(plan: &Plan) -> Vec<Option<Arc<ArrivalQueue>>> {
    let mut made: HashMap<u32, Option<Arc<ArrivalQueue>>> = HashMap::new();
    let streams = plan.streams.iter().map(|stream| {
        let number = stream.tree.as_ref()?.queue?;
        let queue = made.entry(number);
        queue
            .or_insert_with(|| ArrivalQueue::new(plan, number).map(Arc::new))
            .clone()
    });
    streams.collect()
}

/// One cursor for all streams of a stage that go through the same part of a tree in the
/// same way with the same operation.
fn cursors(plan: &Plan, trees: &[SharedTree]) -> Vec<Option<Arc<TreeCursor>>> {
    let mut made: Vec<(_, Arc<TreeCursor>)> = Vec::new();
    let streams = plan.streams.iter().map(|stream| {
        let in_tree = stream.tree.as_ref()?;
        let FileSelect::Sequential { random_start, once } = in_tree.select else {
            return None;
        };
        let count = choices(&trees[in_tree.tree as usize], in_tree);
        let stage = plan.workers[stream.worker as usize].stage;
        let pattern = &stream.pattern;
        let moves = match in_tree.operation {
            FileOperation::Transfer { .. } => (pattern.read_percent > 0, pattern.write_percent > 0),
            _ => (false, false),
        };
        let kind = std::mem::discriminant(&in_tree.operation);
        let key = (in_tree.tree, stage, kind, moves, random_start, once, count);
        if let Some((_, cursor)) = made.iter().find(|(other, _)| *other == key) {
            return Some(cursor.clone());
        }
        let start = if random_start {
            Rng::new(stream.seed).below(u64::from(count)) as u32
        } else {
            0
        };
        let cursor = TreeCursor::new(start);
        made.push((key, cursor.clone()));
        Some(cursor)
    });
    streams.collect()
}
