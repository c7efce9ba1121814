//! The tables of a run and all damage found in it.
//!
//! Knows which targets of a Plan are verified and in which range, and when the journal is
//! written. Shared by all workers and by all stages, so that a later stage can check what an
//! earlier one wrote.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::damage::{Damage, DamageKind};
use super::expect::BlockTable;
use super::handover::{self, Handover};
use super::journal::{Durability, JournalWriter, Record, Settings};
use super::recover::Recovered;
use super::register::Register;
use loadstone_base::clock::unix_ns;
use loadstone_base::run_error::RunError;
use loadstone_plan::{
    Durable, Earlier, Identity, Plan, Stream, Target, TargetKind, Tree, VerifyExpect, Worker,
};

/// Name of the journal in the engine's directory.
pub const JOURNAL: &str = "verify.journal";
/// Name of what is handed over to runs after this one.
pub const HANDOVER: &str = "verify.known";

/// Tables by target, and the register.
#[derive(Debug, Default)]
pub struct VerifyTables {
    tables: Vec<Option<BlockTable>>,
    /// By target: the first that is the same file.
    same: Vec<u32>,
    /// Writes to targets without a table.
    sequences: Vec<AtomicU64>,
    /// Makes the stamps of this run differ from those of a run of the same Plan before.
    salt: u64,
    /// Of a recovered journal: what it verifies was written by this run.
    identity: Option<u64>,
    /// What it told, in a sentence.
    pub recovered: Option<String>,
    journal: Option<Mutex<Logbook>>,
    /// Where to write at the end what is known, with the run and the verify block.
    hands_over: Option<(PathBuf, u64, u32)>,
    register: Mutex<Register>,
    /// What verification by headers found, by kind.
    wrongs: Mutex<BTreeMap<&'static str, u64>>,
}

/// The journal and what is kept beside it.
#[derive(Debug)]
struct Logbook {
    journal: JournalWriter,
    /// Flushes begun, of all targets.
    flushes: u64,
    failure: Option<io::Error>,
}

impl VerifyTables {
    /// The tables of a Plan. Tables take memory as blocks are touched.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let tables = (0..plan.targets.len() as u32).map(|target| {
            range(plan, target).map(|(start, length, block)| BlockTable::new(start, length, block))
        });
        let tables = if is_verified(plan) {
            tables.collect()
        } else {
            Vec::new()
        };
        let simulated = |worker: &Worker| worker.backend.capabilities().virtual_time;
        Self {
            tables,
            same: if is_verified(plan) {
                (0..plan.targets.len() as u32)
                    .map(|target| first_of(plan, target))
                    .collect()
            } else {
                Vec::new()
            },
            sequences: plan.targets.iter().map(|_| AtomicU64::new(0)).collect(),
            salt: if plan.workers.iter().all(simulated) {
                0
            } else {
                unix_ns()
            },
            identity: None,
            recovered: None,
            journal: None,
            hands_over: None,
            register: Mutex::default(),
            wrongs: Mutex::default(),
        }
    }

    /// The tables of a Plan with the journals it asks for: what one tells is entered, and
    /// another is begun in `dir`.
    ///
    /// # Errors
    /// When a journal cannot be read, is of another block size, or cannot be begun.
    pub fn open(plan: &Plan, dir: &Path) -> Result<Self, RunError> {
        let mut verify_tables = Self::new(plan);
        if let Some(path) = &plan.recover {
            verify_tables.recover(plan, Path::new(path))?;
        }
        for earlier in &plan.earlier {
            verify_tables.go_on(plan, earlier)?;
        }
        if plan.hand_over {
            let table = plan.streams.iter().find(|stream| keeps_table(stream));
            verify_tables.hands_over = table.and_then(|stream| stream.verify).map(|its| {
                (
                    dir.join(HANDOVER),
                    verify_tables.run(its.run),
                    its.block_bytes,
                )
            });
        }
        let Some(wanted) = plan.journal else {
            return Ok(verify_tables);
        };
        let Some(verify) = plan.streams.iter().find_map(|stream| stream.verify) else {
            return Ok(verify_tables);
        };
        let settings = Settings {
            run: verify_tables.run(verify.run),
            block_bytes: verify.block_bytes,
            durability: match wanted.durable {
                Durable::Acknowledged => Durability::Acknowledged,
                Durable::Flushed => Durability::Flushed,
            },
        };
        let begin = || {
            let mut journal =
                JournalWriter::create(&dir.join(JOURNAL), settings, wanted.limit_bytes)?;
            if plan.recover.is_some() || !plan.earlier.is_empty() {
                journal.compact(&verify_tables.all())?;
            }
            Ok(journal)
        };
        let journal = begin().map_err(|error: io::Error| unwritable(&error))?;
        verify_tables.journal = Some(Mutex::new(Logbook {
            journal,
            flushes: 0,
            failure: None,
        }));
        Ok(verify_tables)
    }

    fn recover(&mut self, plan: &Plan, path: &Path) -> Result<(), RunError> {
        let unusable =
            |why: String| RunError::plan("/recover", format!("{}: {why}", path.display()));
        let told = Recovered::read(path).map_err(|error| unusable(error.to_string()))?;
        for (target, table) in self.tables.iter_mut().enumerate() {
            let Some(table) = table else { continue };
            let (start, length, block) = range(plan, target as u32).unwrap_or_default();
            if block != told.settings.block_bytes {
                return Err(unusable(format!(
                    "its verify blocks have {} bytes, the Plan's {block}",
                    told.settings.block_bytes
                )));
            }
            *table = told.table(target as u16, start, length);
        }
        self.identity = Some(told.settings.run);
        self.recovered = Some(told.describe());
        Ok(())
    }

    /// Takes in what a run before knew. Of a tree that is cleared nothing is known but which
    /// generations were given out.
    fn go_on(&mut self, plan: &Plan, earlier: &Earlier) -> Result<(), RunError> {
        let path = Path::new(&earlier.path);
        let unusable =
            |why: String| RunError::plan("/earlier", format!("{}: {why}", path.display()));
        let known = Handover::read(path).map_err(|error| unusable(error.to_string()))?;
        if *self.identity.get_or_insert(known.run) != known.run {
            return Err(unusable(
                "its stamps are of another run than those before it".into(),
            ));
        }
        for pair in &earlier.targets {
            let here = self.first(pair.here) as usize;
            let Some(Some(table)) = self.tables.get_mut(here) else {
                continue;
            };
            if table.block_bytes() != known.block_bytes {
                return Err(unusable(format!(
                    "its verify blocks have {} bytes, the Plan's {}",
                    known.block_bytes,
                    table.block_bytes()
                )));
            }
            known.enter(pair.there, table);
            let cleared = |tree: &Tree| tree.target == pair.here && tree.clear;
            if plan.trees.iter().any(cleared) {
                for index in 0..table.len() {
                    let entry = table.entry(index);
                    if entry.generation() != 0 {
                        table.set(index, entry.as_unknown());
                    }
                }
            }
        }
        Ok(())
    }

    /// Every table there is, by target.
    fn all(&self) -> Vec<(u16, &BlockTable)> {
        let known = |(target, table)| Some((target, Option::as_ref(table)?));
        (0u16..).zip(&self.tables).filter_map(known).collect()
    }

    fn logbook(&self) -> Option<MutexGuard<'_, Logbook>> {
        let journal = self.journal.as_ref()?;
        Some(journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a record to the journal, when there is one; `record` makes it from the number
    /// under which the target is known there.
    #[inline]
    pub fn note(&self, target: u32, record: impl FnOnce(u16) -> Record) {
        if self.journal.is_some() {
            self.enter(record(self.first(target) as u16));
        }
    }

    fn enter(&self, record: Record) {
        let Some(mut book) = self.logbook() else {
            return;
        };
        if book.failure.is_none() {
            if let Err(error) = book.journal.record(record) {
                // Told at the next commit, which ends the run.
                book.failure = Some(error);
            }
        }
    }

    /// Notes that a flush of a target is issued; its number.
    pub fn begin_flush(&self, target: u32) -> u64 {
        let Some(mut book) = self.logbook() else {
            return 0;
        };
        book.flushes += 1;
        let flush = book.flushes;
        drop(book);
        self.note(target, |target| Record::FlushBegun { target, flush });
        flush
    }

    /// Notes that a flush is done.
    pub fn end_flush(&self, target: u32, flush: u64) {
        self.note(target, |target| Record::FlushDone { target, flush });
    }

    /// Writes what was recorded since the last time, so that it survives this process; with
    /// `durable` also a power cut of this host. Keeps the journal short where that is possible.
    ///
    /// # Errors
    /// When it cannot be written, now or before.
    pub fn commit(&self, durable: bool) -> Result<(), RunError> {
        let Some(mut book) = self.logbook() else {
            return Ok(());
        };
        if let Some(error) = &book.failure {
            return Err(unwritable(error));
        }
        book.journal
            .commit(false)
            .map_err(|error| unwritable(&error))?;
        let shortens = book.journal.durability() == Durability::Acknowledged;
        if book.journal.is_long() && shortens {
            let tables = self.all();
            book.journal
                .compact(&tables)
                .map_err(|error| unwritable(&error))?;
        }
        let handle = if durable {
            Some(book.journal.handle())
        } else {
            None
        };
        // Nobody who records waits for the disk.
        drop(book);
        match handle {
            Some(file) => file
                .and_then(|file| file.sync_data())
                .map_err(|error| unwritable(&error)),
            None => Ok(()),
        }
    }

    /// Ends the journal; `clean`: nothing is in flight any more.
    ///
    /// # Errors
    /// As [`VerifyTables::commit`].
    pub fn close(&self, clean: bool) -> Result<(), RunError> {
        if let (Some((path, run, block_bytes)), true) = (&self.hands_over, clean) {
            handover::write(path, *run, *block_bytes, &self.all())
                .map_err(|error| RunError::own_file("what is known of verified blocks", &error))?;
        }
        self.commit(!clean)?;
        if clean {
            for (target, table) in self.all() {
                let sequence = table.sequence();
                self.note(u32::from(target), |target| Record::CleanEnd {
                    target,
                    sequence,
                });
            }
            self.commit(true)?;
        }
        Ok(())
    }

    /// The number under which a target is stamped: one file opened in several ways is
    /// several targets, and still one file.
    #[inline]
    #[must_use]
    pub fn first(&self, target: u32) -> u32 {
        self.same.get(target as usize).copied().unwrap_or(target)
    }

    /// The table of a target.
    #[inline]
    #[must_use]
    pub fn table(&self, target: u32) -> Option<&BlockTable> {
        self.tables.get(self.first(target) as usize)?.as_ref()
    }

    /// Number of the next write to a target.
    #[must_use]
    pub fn next_sequence(&self, target: u32) -> u64 {
        match self.table(target) {
            Some(table) => table.next_sequence(),
            None => self.sequences[self.first(target) as usize].fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Identity of this run, from the Plan's.
    #[must_use]
    pub fn run(&self, run: u64) -> u64 {
        self.identity.unwrap_or(run ^ self.salt)
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a finding, unless it is repeated; see [`Register::add`].
    pub fn add(&self, mut damage: Damage) -> Damage {
        if damage.repeated {
            return damage;
        }
        let mut register = self.register();
        if self.table(damage.target).is_none() {
            damage.repeated = !register.mark(self.first(damage.target), damage.offset);
        }
        if damage.repeated {
            damage
        } else {
            register.add(damage)
        }
    }

    /// See [`Register::understood`].
    #[must_use]
    pub fn understood(&self, damage: Damage) -> Damage {
        self.register().understood(damage)
    }

    /// Number of findings by kind, in the order of [`DamageKind::ALL`].
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let register = self.register();
        let stamped = DamageKind::ALL
            .iter()
            .map(|&kind| (kind.name(), register.count(kind)));
        let wrongs = self.wrongs.lock().unwrap_or_else(PoisonError::into_inner);
        stamped
            .chain(wrongs.iter().map(|(&kind, &count)| (kind, count)))
            .collect()
    }

    /// Counts a block that verification by headers found wrong.
    pub fn add_wrong(&self, kind: &'static str) {
        let mut wrongs = self.wrongs.lock().unwrap_or_else(PoisonError::into_inner);
        *wrongs.entry(kind).or_default() += 1;
    }
}

#[cold]
fn unwritable(error: &io::Error) -> RunError {
    RunError::own_file("the verification journal", error)
}

/// The first target with the same data.
#[must_use]
pub fn first_of(plan: &Plan, target: u32) -> u32 {
    let this = &plan.targets[target as usize];
    let same = |other: &Target| {
        let (path, identity) = data_of(this);
        let known = identity.is_some() && data_of(other).1 == identity;
        this.kind != TargetKind::Virtual && (data_of(other).0 == path || known)
    };
    let first = plan.targets.iter().position(same);
    first.map_or(target, |first| first as u32)
}

/// What tells the data of two targets apart: both devices of an NVMe namespace have the same.
fn data_of(target: &Target) -> (&str, Option<Identity>) {
    match &target.namesake {
        Some(block) => (&block.path, block.identity),
        None => (&target.path, target.identity),
    }
}

/// True when any stream verifies.
#[must_use]
pub fn is_verified(plan: &Plan) -> bool {
    plan.streams.iter().any(|stream| stream.verify.is_some())
}

/// Bytes the tables of a Plan need when all blocks are touched.
#[must_use]
pub fn memory_bytes(plan: &Plan) -> u64 {
    if !is_verified(plan) {
        return 0;
    }
    (0..plan.targets.len() as u32)
        .filter_map(|target| range(plan, target))
        .map(|(_, length, block)| BlockTable::memory_bytes(length, block))
        .sum()
}

/// Start, length and verify block of the part of a target for which a table is kept.
fn range(plan: &Plan, target: u32) -> Option<(u64, u64, u32)> {
    if first_of(plan, target) != target {
        return None;
    }
    let mut range: Option<(u64, u64, u32)> = None;
    for stream in plan.streams.iter().filter(|stream| keeps_table(stream)) {
        let Some(verify) = stream.verify else {
            continue;
        };
        for file in stream
            .files
            .iter()
            .filter(|file| first_of(plan, file.target) == target)
        {
            let (start, end) = (file.offset_bytes, file.offset_bytes + file.length_bytes);
            range = Some(match range {
                None => (start, end, verify.block_bytes),
                Some((first, last, block)) => (first.min(start), last.max(end), block),
            });
        }
    }
    for stream in plan.streams.iter().filter(|stream| keeps_table(stream)) {
        let (Some(verify), Some(in_tree)) = (stream.verify, &stream.tree) else {
            continue;
        };
        let tree = &plan.trees[in_tree.tree as usize];
        if tree.target == target {
            return Some((
                0,
                loadstone_generation::tree::span_bytes(tree),
                verify.block_bytes,
            ));
        }
    }
    range.map(|(start, end, block)| (start, end - start, block))
}

fn keeps_table(stream: &Stream) -> bool {
    stream
        .verify
        .is_some_and(|verify| verify.expect == VerifyExpect::Table)
}
