//! A worker's thread: its place on the machine, its memory, its loop.
//!
//! Knows what every worker needs; what its backend needs is in the file below. Knows nothing
//! of the other workers.

mod open_backend;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crate::budget::{buffer_stride, spare_tables};
use loadstone_base::clock::Clock;
use loadstone_base::errno::hint_for;
use loadstone_io::backend::sim_behaviour::Remembered;
use loadstone_io::backend::sim_medium::Medium;
use loadstone_io::backend::{IoBackend, OpenFile};
use loadstone_io::memory::Mapping;
use loadstone_io::name::Name;
use loadstone_io::target::ReopenedTarget;
use loadstone_plan::{self as plan, Plan};
use loadstone_trees::Trees;
use loadstone_verification::verify::tables::VerifyTables;
use loadstone_worker::control::{Control, Gate, Message};
use loadstone_worker::events::Event;
use loadstone_worker::priority;
use loadstone_worker::record::CounterTable;
use loadstone_worker::rows::WorkerRows;
use loadstone_worker::samples::IoRecord;
use loadstone_worker::slots::{Counters, Shared, Slot};
use loadstone_worker::state::{Lines, Memory, WorkerState};
use loadstone_worker::stream::{ConnectedFile, StreamState};
use loadstone_worker::worker::WorkerLoop;

/// Stack of a worker: its loop needs little.
const STACK_BYTES: usize = 256 * 1024;

/// What all workers of a stage share.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The Plan.
    pub plan: Arc<Plan>,
    /// Orders.
    pub control: Arc<Control>,
    /// The start.
    pub gate: Arc<Gate>,
    /// The clock.
    pub clock: Clock,
    /// Open targets, in the Plan's order.
    pub files: Arc<Vec<OpenFile>>,
    /// Targets that streams open again, by target.
    pub reopened: Arc<BTreeMap<u32, ReopenedTarget>>,
    /// Names that the load removes, by target.
    pub names: Arc<BTreeMap<u32, Name>>,
    /// What verified blocks may hold.
    pub verify_tables: Arc<VerifyTables>,
    /// Content of simulated devices, in the Plan's order.
    pub media: Arc<Vec<Arc<Medium>>>,
    /// What simulated devices remember, in the Plan's order.
    pub states: Arc<Vec<Remembered>>,
    /// Trees, in the Plan's order.
    pub trees: Arc<Trees>,
    /// To the main thread.
    pub out: Sender<Message>,
}

/// A worker as the main thread knows it.
#[derive(Debug)]
pub struct WorkerHandle {
    /// Index into the Plan's workers.
    pub worker: u32,
    /// Its thread.
    pub thread: Option<JoinHandle<()>>,
    /// Its rows.
    pub rows: Arc<WorkerRows>,
    /// Where its tables go back to.
    pub tables: Sender<Box<CounterTable>>,
    /// Where its blocks of records go back to.
    pub log_blocks: Sender<Vec<IoRecord>>,
    /// Address of the table it counts in; 0: none.
    table_in_use: Arc<AtomicUsize>,
    fallback: Arc<OnceLock<&'static str>>,
    /// Its slots, to look at when it is lost.
    pub slots: Arc<Shared<Slot>>,
    /// Its streams' counters, likewise.
    pub counters: Arc<Shared<Counters>>,
    /// Its streams, as indices into the Plan's.
    pub streams: Vec<u32>,
}

/// What a worker's thread is given.
struct WorkerParts {
    stage: Stage,
    worker: u32,
    streams: Vec<u32>,
    rows: Arc<WorkerRows>,
    slots: Arc<Shared<Slot>>,
    counters: Arc<Shared<Counters>>,
    buffers: Mapping,
    table: Box<CounterTable>,
    lines: Lines,
}

/// Allocates the memory of a worker and its streams and starts its thread, which then waits
/// at the gate.
///
/// # Errors
/// Of the allocation or of the thread.
pub fn start(stage: &Stage, worker: u32, streams: Vec<u32>) -> io::Result<WorkerHandle> {
    let plan = &stage.plan;
    let rows = Arc::new(WorkerRows::new(plan, &streams));
    let buffers = Mapping::new(buffer_bytes(plan, &streams), true)?;
    let slots = Arc::new(Shared::new(lay_out_slots(plan, &streams, &buffers)));
    let counters = Arc::new(Shared::new(vec![Counters::default(); streams.len()]));
    let table = Box::new(CounterTable::new(rows.len())?);
    let (tables, spare) = channel();
    for _ in 0..spare_tables(plan, worker) {
        let _ = tables.send(Box::new(CounterTable::new(rows.len())?));
    }
    let (log_blocks, log_spare) = channel();
    let table_in_use = Arc::new(AtomicUsize::new(0));
    let fallback = Arc::new(OnceLock::new());
    let parts = WorkerParts {
        stage: stage.clone(),
        worker,
        streams: streams.clone(),
        rows: rows.clone(),
        slots: slots.clone(),
        counters: counters.clone(),
        buffers,
        table,
        lines: Lines {
            control: stage.control.clone(),
            out: stage.out.clone(),
            spare,
            log_spare,
            table_in_use: table_in_use.clone(),
            fallback: fallback.clone(),
        },
    };
    let thread = std::thread::Builder::new()
        .name(format!("worker-{worker}"))
        .stack_size(STACK_BYTES)
        .spawn(move || body(parts))?;
    Ok(WorkerHandle {
        worker,
        thread: Some(thread),
        rows,
        tables,
        log_blocks,
        table_in_use,
        fallback,
        slots,
        counters,
        streams,
    })
}

fn buffer_bytes(plan: &Plan, streams: &[u32]) -> usize {
    let bytes = streams.iter().map(|&id| {
        let stream = &plan.streams[id as usize];
        buffer_stride(stream) * stream.iodepth as usize
    });
    bytes.sum()
}

impl WorkerHandle {
    /// Name of the backend that runs.
    #[must_use]
    pub fn backend_name(&self, plan: &Plan) -> &'static str {
        let planned = || plan.workers[self.worker as usize].backend.name();
        self.fallback.get().copied().unwrap_or_else(planned)
    }

    /// A copy of the table the worker counts in at the moment, from `bounds_ns.0` to
    /// `bounds_ns.1`. Meant for a worker that does not move: of one that does, the
    /// numbers may not fit together.
    ///
    /// # Errors
    /// Of the memory for the copy.
    pub fn table_in_use(&self, bounds_ns: (u64, u64)) -> io::Result<Option<CounterTable>> {
        match self.table_in_use.load(Ordering::Acquire) {
            0 => Ok(None),
            // SAFETY: the worker's thread has not ended, or its last table lies unread in
            // the main thread's inbox: either way the mapping is there.
            address => unsafe { CounterTable::copy(address, self.rows.len(), bounds_ns) }.map(Some),
        }
    }
}

fn lay_out_slots(plan: &Plan, streams: &[u32], buffers: &Mapping) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut address = buffers.start() as usize;
    for (index, &id) in streams.iter().enumerate() {
        let stream = &plan.streams[id as usize];
        for _ in 0..stream.iodepth {
            slots.push(Slot::free(index as u32, address));
            address += buffer_stride(stream);
        }
    }
    slots
}

/// The thread.
fn body(parts: WorkerParts) {
    place(
        &parts.stage.plan.workers[parts.worker as usize],
        parts.worker,
        &parts.stage.out,
    );
    let local = Local::new(&parts);
    open_backend::run(parts, &local);
}

/// The targets this worker's streams use, numbered as the worker does.
#[derive(Default)]
struct Local {
    /// By their own numbers: index into the Plan's targets.
    targets: Vec<u32>,
    /// The reverse.
    numbers: BTreeMap<u32, u32>,
    /// Of streams that open their file themselves: stream, and the number that is theirs alone.
    own: BTreeMap<u32, u32>,
}

impl Local {
    fn new(parts: &WorkerParts) -> Self {
        let mut local = Self::default();
        for &id in &parts.streams {
            let stream = &parts.stage.plan.streams[id as usize];
            for target in stream.files.iter().map(|file| file.target) {
                if stream.connection.is_some() {
                    local.own.insert(id, local.targets.len() as u32);
                    local.targets.push(target);
                    continue;
                }
                local.numbers.entry(target).or_insert_with(|| {
                    local.targets.push(target);
                    local.targets.len() as u32 - 1
                });
            }
        }
        local
    }

    /// The number of a target for a stream.
    fn number(&self, stream: u32, target: u32) -> u32 {
        match self.own.get(&stream) {
            Some(&number) => number,
            None => self.numbers[&target],
        }
    }

    /// What all workers have, of these targets alone.
    fn of<T: Clone>(&self, all: &[T]) -> Vec<T> {
        let targets = self.targets.iter();
        targets
            .map(|&target| all[target as usize].clone())
            .collect()
    }
}

/// Runs the loop of a backend.
fn drive<B: IoBackend>(parts: WorkerParts, backend: io::Result<B>, local: &Local) {
    let backend = match backend {
        Ok(backend) => backend,
        Err(error) => return fail(&parts.stage, parts.worker, &error),
    };
    run_worker(parts, local, |state| {
        let mut worker = WorkerLoop { backend, state };
        let outcome = worker.run();
        (outcome, worker.state.lost, worker)
    });
}

/// Opens the state, waits for the start and lets `run` do the rest: it says how it ended,
/// whether the kernel may still write into the buffers, and what belongs to them.
fn run_worker<W>(
    parts: WorkerParts,
    local: &Local,
    run: impl FnOnce(WorkerState) -> (io::Result<()>, bool, W),
) {
    let WorkerParts {
        stage,
        worker,
        streams,
        rows,
        slots,
        counters,
        buffers,
        table,
        lines,
    } = parts;
    let out = stage.out.clone();
    let states = stream_states(&stage, &streams, &rows, local);
    // SAFETY: this thread is the only writer; both are kept alive by the Arcs of this
    // function, which the state does not outlive.
    let (slot_slice, counter_slice) = unsafe {
        (
            &mut *std::ptr::from_mut(slots.slice_mut()),
            &mut *std::ptr::from_mut(counters.slice_mut()),
        )
    };
    let memory = Memory {
        slots: slot_slice,
        counters: counter_slice,
        rows,
        table,
    };
    let mut state = WorkerState::new(stage.plan.clone(), worker, states, memory, lines);
    let _ = out.send(Message::Ready { worker });
    let Some(start) = stage.gate.wait() else {
        return;
    };
    state.stage_start_ns = start.clock_ns;
    state.stage_offset_ns = start.offset_ns;
    let (outcome, lost, owner) = run(state);
    if let Err(error) = outcome {
        fail(&stage, worker, &error);
    }
    if lost {
        // The kernel may still write into these.
        std::mem::forget((owner, buffers));
    }
}

/// The states of a worker's streams, each with its slots behind those of the one before it.
fn stream_states(
    stage: &Stage,
    streams: &[u32],
    rows: &WorkerRows,
    local: &Local,
) -> Vec<StreamState> {
    let mut first_slot = 0;
    let states = streams.iter().map(|&id| {
        let stream = &stage.plan.streams[id as usize];
        let mut state = StreamState::new(
            &stage.plan,
            id,
            first_slot,
            rows,
            &stage.verify_tables,
            &|target| local.number(id, target),
        );
        state.connection = stream.connection.and_then(|plan| {
            let target = stage.reopened.get(&stream.files[0].target)?;
            Some(Box::new(ConnectedFile::new(plan, target.clone())))
        });
        state.flow = (stream.flow.as_ref()).map(|flow| {
            stage
                .control
                .flows
                .share(flow, stream.limits.start_delay_ns)
        });
        if let Some(readback) = state.checks.readback_mut() {
            readback.open(stream.files.iter().map(|file| {
                let target = &stage.plan.targets[file.target as usize];
                (stage.files[file.target as usize].fd, target)
            }));
        }
        first_slot += state.room.depth();
        state
    });
    states.collect()
}

fn fail(stage: &Stage, worker: u32, error: &io::Error) {
    let backend = stage.plan.workers[worker as usize].backend.name();
    let hint = match error.raw_os_error() {
        Some(libc::ENOSYS) if backend.starts_with("io_uring") => {
            "this kernel has no io_uring: leave out hipri and sqthread_poll"
        }
        Some(libc::EPERM) if backend.starts_with("io_uring") => {
            "allow it with sysctl kernel.io_uring_disabled=0, or leave out hipri and sqthread_poll"
        }
        Some(errno) => hint_for(errno),
        None => "",
    };
    let message = format!("worker {worker}: {backend} failed: {error}");
    let _ = stage.out.send(Message::Failed {
        worker,
        message,
        hint: hint.into(),
    });
}

/// Puts the thread on its CPUs, gives it its priorities and exact timers.
fn place(worker: &plan::Worker, index: u32, out: &Sender<Message>) {
    let note = |text: String| {
        let _ = out.send(Message::Event(Event::Note {
            text,
            worker: Some(index),
            target: None,
        }));
    };
    // SAFETY: takes plain numbers; without it sleeps end up to 50 microseconds late.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    if !worker.cpus.is_empty() {
        // SAFETY: a zeroed cpu_set_t is a valid empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for &cpu in &worker.cpus {
            // SAFETY: the Plan's check keeps numbers below CPU_SETSIZE.
            unsafe { libc::CPU_SET(cpu as usize, &mut set) };
        }
        // SAFETY: `set` is valid; 0 is this thread.
        if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } != 0 {
            note(format!(
                "not pinned to CPUs {:?}: {}",
                worker.cpus,
                io::Error::last_os_error()
            ));
        }
    }
    if worker.io_priority != 0 {
        if let Err(error) = priority::set(worker.io_priority) {
            note(format!("the I/O priority was not set: {error}"));
        }
    }
    if worker.nice != 0 {
        // SAFETY: plain numbers; on Linux 0 is this thread alone.
        let result = unsafe {
            let whole = libc::getpriority(libc::PRIO_PROCESS, 0) + worker.nice;
            libc::setpriority(libc::PRIO_PROCESS, 0, whole.clamp(-20, 19))
        };
        if result != 0 {
            note(format!(
                "nice {} was not set: {}",
                worker.nice,
                io::Error::last_os_error()
            ));
        }
    }
}
