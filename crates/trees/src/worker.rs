//! The loop of a worker whose backend is `files`: whose turn it is, and what a stream does
//! when it finds nothing to do.
//!
//! Knows arrivals, waiting and exhaustion. Knows no system call: `operation.rs` and
//! `transfer.rs` do.

use std::sync::Arc;

use super::call::{self, OsResult};
use super::open_file::OpenTreeFile;
use super::queue::ArrivalQueue;
use super::select::{Choice, FileSearch, Selection};
use super::take::{take, Taken};
use super::{SharedTree, Trees};
use loadstone_base::clock::Clock;
use loadstone_base::ops::{AnyOp, FileOp, OpKind};
use loadstone_base::rng::{mix, Rng};
use loadstone_generation::pace::{NextStart as Due, Schedule};
use loadstone_generation::pattern::SizeSource;
use loadstone_io::backend::sleep_until;
use loadstone_plan::{FileOperation, TreeUse};
use loadstone_worker::control::Message;
use loadstone_worker::events::Event;
use loadstone_worker::state::files::{OperationStep, Times};
use loadstone_worker::state::WorkerState;
use loadstone_worker::stream::Reason;
use loadstone_worker::worker::{NAP_NS, SPIN_NS};

/// Files or directories looked at before other things get their turn.
const PATIENCE: u32 = 4096;
/// A stream that found nothing looks again after this long at first, then after ever
/// longer, up to the second.
const PAUSE_NS: (u64, u64) = (50_000, 10_000_000);
/// A longer wait is told.
const LONG_NS: u64 = 1_000_000_000;
/// Keeps choices of files independent of what else the seed decides.
const SALT: u64 = 0x5a1e_c7ed_f11e_0001;

/// A worker that does operations on files.
#[derive(Debug)]
pub struct FileWorker {
    pub(super) clock: Clock,
    /// Its state.
    pub state: WorkerState,
    pub(super) trees: Arc<Trees>,
    /// By stream.
    pub(super) jobs: Vec<Job>,
}

/// What a stream does in its tree.
#[derive(Debug)]
pub(super) struct Job {
    pub id: u32,
    /// The file that was named last.
    pub number: u32,
    pub in_tree: TreeUse,
    pub read_percent: u32,
    /// Of reads and of writes.
    pub sizes: [SizeSource; 2],
    pub rng: Rng,
    choice: Choice,
    search: FileSearch,
    /// What was there before the search began.
    changes: u64,
    searched_ns: u64,
    waiting: Option<StalledStream>,
    /// Where its arrivals come from when other streams take from it, too.
    queue: Option<Arc<ArrivalQueue>>,
    /// The arrival it took from there.
    claimed_ns: Option<u64>,
    /// When an arrival was taken up that is not served yet.
    pub picked_ns: Option<u64>,
    pub buffer: *mut u8,
    /// The buffer holds what is written, not what was read.
    pub primed: bool,
    pub path: Vec<u8>,
    /// In the tree that is copied or moved to.
    pub other_path: Vec<u8>,
    pub open: Option<OpenTreeFile>,
    /// An error ends the stream.
    pub failed: bool,
}

/// A stream that found nothing.
#[derive(Debug, Clone, Copy)]
struct StalledStream {
    since_ns: u64,
    pause_ns: u64,
    /// Something was in use: changes are not counted then.
    busy: bool,
    told: bool,
}

impl FileWorker {
    /// A worker with these state. The calling thread gets a table of descriptors of its
    /// own: opens and closes of others do not hold it up.
    #[must_use]
    pub fn new(clock: Clock, state: WorkerState, trees: Arc<Trees>) -> Self {
        // SAFETY: the copy has the same descriptors; failure changes nothing.
        unsafe { libc::unshare(libc::CLONE_FILES) };
        let jobs = state.streams.iter().map(|stream| {
            let plan = &state.plan.streams[stream.id as usize];
            let in_tree = plan.tree.clone().unwrap_or_else(|| {
                unreachable!("the check of the Plan gives every stream of a files worker a tree")
            });
            let (read, write) = (&plan.pattern.read, &plan.pattern.write);
            let (choices, part) = (trees.choices(&in_tree), trees.part(&in_tree));
            Job {
                id: stream.id,
                number: 0,
                read_percent: plan.pattern.read_percent,
                sizes: [SizeSource::new(&read.sizes), SizeSource::new(&write.sizes)],
                rng: Rng::new(mix(plan.seed ^ SALT)),
                choice: Choice::new(in_tree.select, choices, part, trees.cursor(stream.id)),
                search: FileSearch::default(),
                changes: 0,
                searched_ns: 0,
                waiting: None,
                queue: trees.queue(stream.id),
                claimed_ns: None,
                picked_ns: None,
                buffer: state.slots[stream.first_slot as usize].buffer as *mut u8,
                primed: false,
                path: Vec::with_capacity(loadstone_generation::tree::names::MAX_PATH_BYTES),
                other_path: Vec::with_capacity(loadstone_generation::tree::names::MAX_PATH_BYTES),
                open: None,
                failed: false,
                in_tree,
            }
        });
        let jobs = jobs.collect();
        Self {
            clock,
            state,
            trees,
            jobs,
        }
    }

    /// Runs the worker's streams to their ends.
    pub fn run(&mut self) {
        let now = self.clock.now_ns();
        self.state.begin(now, false);
        self.work(now);
        let now = self.clock.now_ns();
        self.state.finish(now);
    }

    fn work(&mut self, mut now: u64) {
        while self.state.alive > 0 {
            if now >= self.state.next_event_ns || self.state.has_orders() {
                self.state.events(now, false);
                (0..self.jobs.len() as u32).for_each(|index| self.note_end(index));
                continue;
            }
            match self.state.ready.pop_front() {
                Some(index) => {
                    self.state.streams[index as usize].turn.take();
                    self.turn(index, now);
                    self.note_end(index);
                    self.state.requeue(index);
                }
                None => self.rest(now),
            }
            now = self.clock.now_ns();
        }
    }

    /// Sleeps until something is due.
    fn rest(&self, now: u64) {
        let mut until_ns = self.state.next_event_ns.min(now + NAP_NS);
        if self.state.spins {
            if until_ns <= now + SPIN_NS {
                return;
            }
            until_ns -= SPIN_NS;
        }
        sleep_until(&self.clock, until_ns);
    }

    /// Tells the streams that wait for this one that it is over.
    fn note_end(&self, index: u32) {
        let stream = &self.state.streams[index as usize];
        if stream.life.has_ended() {
            self.trees.ended(stream.id);
        }
    }

    /// One operation of a stream, when one is due.
    fn turn(&mut self, index: u32, now: u64) {
        let stream = &mut self.state.streams[index as usize];
        if !stream.can_issue() {
            return;
        }
        if stream.life.is_flushing() {
            self.close_file(index);
            let now = self.clock.now_ns();
            self.state.closed_at_end(index, now);
            return;
        }
        if stream.left.is_out_of_ops() {
            self.state.stop_issuing(index, Reason::Ops, now);
            return;
        }
        if let Some(next_look_ns) = stream.held_by_flow(now) {
            self.state.wake_at(index, next_look_ns);
            return;
        }
        let arrival_ns = match self.due(index, now) {
            Some(Due::Paced { intended_ns, .. }) => Some(intended_ns),
            Some(Due::Wait(time_ns)) => {
                self.state.wake_at(index, time_ns);
                return;
            }
            Some(Due::Unpaced(_)) | None => None,
        };
        if arrival_ns.is_some() {
            self.jobs[index as usize].picked_ns.get_or_insert(now);
        }
        match self.jobs[index as usize].in_tree.operation {
            FileOperation::Transfer { .. } => self.transfer(index, arrival_ns, now),
            operation => {
                if let Some((taken, times)) = self.seek(index, arrival_ns, now) {
                    self.operate(index, operation, &taken, times);
                    self.count_requested(index, 0, 0);
                }
            }
        }
        if std::mem::take(&mut self.jobs[index as usize].failed) {
            self.close_file(index);
            let now = self.clock.now_ns();
            self.state.fail(index, now);
        }
    }

    /// When the next operation should begin, of a stream that has a rate: from the queue it
    /// shares with others, or by a schedule of its own.
    fn due(&mut self, index: u32, now: u64) -> Option<Due> {
        let job = &mut self.jobs[index as usize];
        let Some(queue) = &job.queue else {
            let stream = &self.state.streams[index as usize];
            return stream.schedule.as_ref().map(|schedule| schedule.next(now));
        };
        let claimed_ns = *job.claimed_ns.get_or_insert_with(|| queue.claim(now));
        Some(if claimed_ns <= now {
            Due::Paced {
                op: Schedule::WHOLE,
                intended_ns: claimed_ns,
            }
        } else {
            Due::Wait(claimed_ns)
        })
    }

    /// One thing that was asked for is done or has failed, and with it its arrival.
    pub(super) fn count_requested(&mut self, index: u32, asked_bytes: u32, moved_bytes: u32) {
        self.jobs[index as usize].claimed_ns = None;
        self.state.count_requested(index, asked_bytes, moved_bytes);
    }

    /// Looks for something to do the operation on, and takes it. None: there is nothing
    /// now, and the stream has its next turn in time or is over.
    pub(super) fn seek(
        &mut self,
        index: u32,
        arrival_ns: Option<u64>,
        now: u64,
    ) -> Option<(Taken, Times)> {
        let job = &mut self.jobs[index as usize];
        let unchanged =
            |waiting: &StalledStream| !waiting.busy && self.trees.changes() == job.changes;
        if job.waiting.as_ref().is_some_and(unchanged) {
            self.pause_or_end(index, now, false);
            return None;
        }
        if job.searched_ns == 0 {
            self.trees.looks_again(job.id);
            job.changes = self.trees.changes();
        }
        let (trees, in_tree) = (&self.trees.trees, &job.in_tree);
        let reads = job.read_percent > 0;
        let mut taken = None;
        let found = job
            .search
            .go(&job.choice, &mut job.rng, PATIENCE, |number| {
                taken = Some(take(trees, in_tree, reads, number)?);
                Ok(())
            });
        let searched = self.clock.now_ns();
        match found {
            Selection::This(_) => {
                job.searched_ns = 0;
                let stream = &self.state.streams[index as usize];
                let (closed_ns, seeking_ns) = match job.waiting.take() {
                    Some(_) => (searched, searched),
                    None => (stream.free_since_ns(), now),
                };
                let times = Times {
                    intended_ns: arrival_ns.unwrap_or(closed_ns),
                    picked_ns: job.picked_ns.take().unwrap_or(seeking_ns),
                };
                return Some((taken?, times));
            }
            Selection::NotYet => job.searched_ns += searched - now,
            Selection::None { busy } => {
                job.searched_ns += searched - now;
                self.pause_or_end(index, searched, busy);
            }
            Selection::Through => self.state.stop_issuing(index, Reason::Exhausted, searched),
        }
        None
    }

    /// Nothing fits: the stream ends when no other can change that, and waits otherwise.
    fn pause_or_end(&mut self, index: u32, now: u64, busy: bool) {
        let job = &self.jobs[index as usize];
        if !busy && self.trees.found_nothing(job.id, job.changes) {
            self.state.stop_issuing(index, Reason::Exhausted, now);
        } else {
            self.pause(index, now, busy);
        }
    }

    /// Waits for what others do: ever longer, and at least as long as it searched.
    fn pause(&mut self, index: u32, now: u64, busy: bool) {
        let job = &mut self.jobs[index as usize];
        let waiting = job.waiting.get_or_insert(StalledStream {
            since_ns: now,
            pause_ns: PAUSE_NS.0 / 2,
            busy,
            told: false,
        });
        waiting.busy = busy;
        waiting.pause_ns = (waiting.pause_ns * 2).min(PAUSE_NS.1);
        let pause_ns = waiting.pause_ns.max(std::mem::take(&mut job.searched_ns));
        if !waiting.told && now - waiting.since_ns > LONG_NS {
            waiting.told = true;
            let name = &self.state.plan.streams[job.id as usize].name;
            let text = format!(
                "{name} waits: there is nothing to {} in its tree, until others make or remove something",
                verb(job.in_tree.operation)
            );
            let target = self.trees.trees[job.in_tree.tree as usize].target;
            self.state.say(Message::Event(Event::Note {
                text,
                worker: Some(self.state.worker),
                target: Some(target),
            }));
        }
        self.state.wake_at(index, now + pause_ns);
    }

    /// Does one step and records it; says what went wrong.
    pub(super) fn step(
        &mut self,
        index: u32,
        step: OperationStep,
        times: Option<Times>,
        call: impl FnOnce(&Trees, &Job) -> OsResult<u32>,
    ) -> OsResult<u32> {
        let handed_ns = self.clock.now_ns();
        let outer = self.state.begin_step(index, &step, times, handed_ns);
        let outcome = call(&self.trees, &self.jobs[index as usize]);
        let now = self.clock.now_ns();
        self.state.end_step(index, outer, outcome, now);
        if outcome.map_or(true, |moved| moved < step.bytes) {
            self.say_failure(index, &step, outcome, now);
        }
        outcome
    }

    pub(super) fn say_failure(
        &mut self,
        index: u32,
        step: &OperationStep,
        outcome: OsResult<u32>,
        now: u64,
    ) {
        let job = &self.jobs[index as usize];
        let in_other = self.trees.trees[job.in_tree.tree as usize].target != step.target;
        let path = if in_other { &job.other_path } else { &job.path };
        let path = path.strip_suffix(&[0]).unwrap_or(path);
        let anchor = &self.state.plan.targets[step.target as usize].path;
        let place = format!(
            "{}/{}",
            anchor.trim_end_matches('/'),
            String::from_utf8_lossy(path)
        );
        let goes_on = self.state.say_failure(index, step, &place, outcome, now);
        self.jobs[index as usize].failed |= !goes_on;
    }

    /// A step by name in the stream's own tree.
    pub(super) fn step_by_name(&self, index: u32, op: FileOp) -> OperationStep {
        OperationStep {
            op: AnyOp::File(op),
            target: self.tree(index).target,
            offset: 0,
            bytes: 0,
        }
    }

    /// Closes a descriptor as a step of its own. The flush before it, where the stream
    /// has one, is a step within.
    pub(super) fn close(&mut self, index: u32, target: u32, fd: i32) -> OsResult<u32> {
        let step = OperationStep {
            target,
            ..self.step_by_name(index, FileOp::Close)
        };
        let id = self.jobs[index as usize].id as usize;
        if !self.state.plan.streams[id].flush.on_close {
            return self.step(index, step, None, |_, _| call::close(fd).map(|()| 0));
        }
        let handed_ns = self.clock.now_ns();
        let outer = self.state.begin_step(index, &step, None, handed_ns);
        let flush = OperationStep {
            op: AnyOp::Io(OpKind::Sync),
            ..step
        };
        let flushed = self.step(index, flush, None, |_, _| call::flush(fd).map(|()| 0));
        let closed = call::close(fd).map(|()| 0);
        let outcome = flushed.and(closed);
        let now = self.clock.now_ns();
        self.state.end_step(index, outer, outcome, now);
        if closed.is_err() {
            self.say_failure(index, &step, closed, now);
        }
        outcome
    }

    /// The tree of a stream.
    pub(super) fn tree(&self, index: u32) -> &SharedTree {
        &self.trees.trees[self.jobs[index as usize].in_tree.tree as usize]
    }
}

fn verb(operation: FileOperation) -> &'static str {
    match operation {
        FileOperation::Transfer { .. } => "read or write",
        FileOperation::Mkdir {} => "make",
        FileOperation::Rmdir {} => "remove",
        FileOperation::Create { .. } => "create",
        FileOperation::Delete {} => "delete",
        FileOperation::Open {} => "open",
        FileOperation::Close {} => "close",
        FileOperation::Getattr {} | FileOperation::Setattr {} | FileOperation::Access {} => {
            "look at"
        }
        FileOperation::Copy { .. } => "copy",
        FileOperation::Move { .. } => "move",
    }
}
