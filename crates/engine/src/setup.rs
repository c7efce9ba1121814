//! A worker's thread: its place on the machine, its memory, its backend.
//!
//! Knows which backend a Plan names and what each needs. Knows nothing of the other
//! workers.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crate::backend::called::Called;
use crate::backend::discard::{ring_discards, Discarding};
use crate::backend::forced::Forced;
use crate::backend::libaio::Libaio;
use crate::backend::medium::Medium;
use crate::backend::mmap::Mmap;
use crate::backend::names::Names;
use crate::backend::null::Null;
use crate::backend::nvme;
use crate::backend::psync::Psync;
use crate::backend::sim::Sim;
use crate::backend::space::{Falloc, MoveExtents};
use crate::backend::splice::Splice;
use crate::backend::uring::{Uring, UringOptions};
use crate::backend::{Backend, OpenFile};
use crate::budget::buffer_stride;
use crate::clock::Clock;
use crate::control::{Control, Gate, Message};
use crate::events::{hint_for, Event};
use crate::memory::Mapping;
use crate::plan::{self, Plan};
use crate::priority;
use crate::record::Table;
use crate::rows::Rows;
use crate::samples::IoRecord;
use crate::slots::{Counters, Shared, Slot};
use crate::state::{Lines, Memory, State};
use crate::stream::StreamState;
use crate::tree::worker::FileWorker;
use crate::tree::Trees;
use crate::verify::books::Books;
use crate::worker::Worker;

/// Stack of a worker: its loop needs little.
const STACK_BYTES: usize = 256 * 1024;

/// Buffers up to this size are registered. Pinning touches and zeroes every page before the
/// first I/O, about a millisecond for each MiB; it is also the usual `RLIMIT_MEMLOCK`.
const MAX_PINNED_BYTES: usize = 8 << 20;

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
    /// What verified blocks may hold.
    pub books: Arc<Books>,
    /// Content of simulated devices, in the Plan's order.
    pub media: Arc<Vec<Arc<Medium>>>,
    /// Trees, in the Plan's order.
    pub trees: Arc<Trees>,
    /// To the main thread.
    pub out: Sender<Message>,
}

/// A worker as the main thread knows it.
#[derive(Debug)]
pub struct Hand {
    /// Index into the Plan's workers.
    pub worker: u32,
    /// Its thread.
    pub thread: Option<JoinHandle<()>>,
    /// Its rows.
    pub rows: Arc<Rows>,
    /// Where its tables go back to.
    pub tables: Sender<Box<Table>>,
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
struct Kit {
    stage: Stage,
    worker: u32,
    streams: Vec<u32>,
    rows: Arc<Rows>,
    slots: Arc<Shared<Slot>>,
    counters: Arc<Shared<Counters>>,
    buffers: Mapping,
    table: Box<Table>,
    lines: Lines,
}

/// Allocates the memory of a worker and its streams and starts its thread, which then waits
/// at the gate.
///
/// # Errors
/// Of the allocation or of the thread.
pub fn start(stage: &Stage, worker: u32, streams: Vec<u32>) -> io::Result<Hand> {
    let plan = &stage.plan;
    let rows = Arc::new(Rows::new(plan, &streams));
    let bytes = streams.iter().map(|&id| {
        let stream = &plan.streams[id as usize];
        buffer_stride(stream) * stream.iodepth as usize
    });
    let buffers = Mapping::new(bytes.sum(), true)?;
    let slots = Arc::new(Shared::new(lay_out_slots(plan, &streams, &buffers)));
    let counters = Arc::new(Shared::new(vec![Counters::default(); streams.len()]));
    let table = Box::new(Table::new(rows.len())?);
    let (tables, spare) = channel();
    let _ = tables.send(Box::new(Table::new(rows.len())?));
    let (log_blocks, log_spare) = channel();
    let table_in_use = Arc::new(AtomicUsize::new(0));
    let fallback = Arc::new(OnceLock::new());
    let kit = Kit {
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
        .spawn(move || body(kit))?;
    Ok(Hand {
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

impl Hand {
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
    pub fn table_in_use(&self, bounds_ns: (u64, u64)) -> io::Result<Option<Table>> {
        match self.table_in_use.load(Ordering::Acquire) {
            0 => Ok(None),
            // SAFETY: the worker's thread has not ended, or its last table lies unread in
            // the main thread's inbox: either way the mapping is there.
            address => unsafe { Table::copy(address, self.rows.len(), bounds_ns) }.map(Some),
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
fn body(kit: Kit) {
    let (out, worker, plan) = (kit.stage.out.clone(), kit.worker, kit.stage.plan.clone());
    place(&plan.workers[worker as usize], worker, &out);
    let local = Local::new(&kit);
    let files = local.of(&kit.stage.files);
    let depth: u32 = kit
        .streams
        .iter()
        .map(|&id| plan.streams[id as usize].iodepth)
        .sum();
    let clock = kit.stage.clock;
    match &plan.workers[worker as usize].backend {
        backend @ (plan::Backend::IoUring {
            registered_files,
            fixed_buffers,
            iopoll,
            sqpoll,
        }
        | plan::Backend::IoUringCmd {
            registered_files,
            fixed_buffers,
            iopoll,
            sqpoll,
        }) => {
            let mut notes = Vec::new();
            let options = UringOptions {
                registered_files: *registered_files,
                fixed_buffers: *fixed_buffers && worth_pinning(&kit, &files, &mut notes),
                iopoll: *iopoll,
                sqpoll: *sqpoll,
            };
            let (buffers, notes) = (&kit.buffers, &mut notes);
            if matches!(backend, plan::Backend::IoUringCmd { .. }) {
                let backend = nvme::open(clock, options, &files, depth, buffers, notes);
                say(notes, worker, &out);
                return drive(kit, backend, &local);
            }
            let backend = match Uring::new(clock, options, &files, depth, buffers, notes) {
                Err(error) if can_be_replaced(options, &error) => {
                    say(notes, worker, &out);
                    return fall_back(kit, &error, &files, depth, &local);
                }
                backend => backend,
            };
            let trims_itself = discards_itself(&kit, &files);
            if trims_itself {
                notes.push("io_uring cannot discard on this device (before Linux 6.12 on none): trims are made one at a time by the worker".into());
            }
            say(notes, worker, &out);
            let forced = plan.workers[worker as usize].force_async;
            match (forced, trims_itself) {
                (0, false) => drive(kit, backend, &local),
                (0, true) => {
                    let backend = backend.map(|ring| Discarding::new(ring, &files, depth));
                    drive(kit, backend, &local);
                }
                (every, _) => {
                    // Trims that the ring cannot do are refused together with this.
                    let force =
                        |ring: Uring| ring.with(|operations| Forced::new(operations, every));
                    drive(kit, backend.map(force), &local);
                }
            }
        }
        plan::Backend::Null {} => drive(kit, Ok(Null::new(clock, depth)), &local),
        plan::Backend::Psync {} => {
            let backend = Psync::new(clock, &files, depth);
            drive(kit, Ok(backend), &local);
        }
        plan::Backend::Files {} => {
            let trees = kit.stage.trees.clone();
            conduct(kit, &local, |state| {
                let mut worker = FileWorker::new(clock, state, trees);
                worker.run();
                (Ok(()), worker.state.lost, worker)
            });
        }
        plan::Backend::Names { operation } => {
            let backend = names(*operation, &plan, &local.targets);
            drive(
                kit,
                backend.map(|names| Called::new(clock, names, depth)),
                &local,
            );
        }
        plan::Backend::Falloc {} => {
            let backend = Called::new(clock, Falloc::new(&files), depth);
            drive(kit, Ok(backend), &local);
        }
        plan::Backend::Splice {} => {
            let backend = Splice::new(&files).map(|splice| Called::new(clock, splice, depth));
            drive(kit, backend, &local);
        }
        plan::Backend::MoveExtents { donor, in_place } => {
            let donor = kit.stage.files[*donor as usize].fd;
            let extents = MoveExtents::new(&files, donor, *in_place);
            drive(kit, Ok(Called::new(clock, extents, depth)), &local);
        }
        plan::Backend::Libaio {} => {
            let backend = Libaio::new(clock, &files, depth);
            drive(kit, backend, &local);
        }
        plan::Backend::Mmap {} => {
            let backend = Mmap::new(clock, &files, depth).map_err(|(file, error)| {
                let path = &plan.targets[local.targets[file] as usize].path;
                io::Error::new(error.kind(), format!("{path}: {error}"))
            });
            drive(kit, backend, &local);
        }
        plan::Backend::Sim { device } => {
            let media = local.of(&kit.stage.media);
            let backend = Sim::new(device, files.len(), depth).with_media(media.into_iter());
            drive(kit, Ok(backend), &local);
        }
    }
}

/// True when another backend can do what a ring that cannot be had was asked for: the kernel
/// lacks io_uring or forbids it, or the memory for a ring exceeds `RLIMIT_MEMLOCK` (before
/// Linux 5.12). Polling has no replacement.
fn can_be_replaced(options: UringOptions, error: &io::Error) -> bool {
    let missing = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::ENOMEM];
    !options.iopoll
        && !options.sqpoll
        && error.raw_os_error().is_some_and(|no| missing.contains(&no))
}

/// Runs on libaio where there is no ring, or on system calls where there is no libaio either.
fn fall_back(kit: Kit, error: &io::Error, files: &[OpenFile], depth: u32, local: &Local) {
    let (out, worker, clock) = (kit.stage.out.clone(), kit.worker, kit.stage.clock);
    let why = ring_is_missing(error);
    let libaio = Libaio::new(clock, files, depth);
    let direct = files.iter().all(|file| file.direct);
    let (name, effect) = match &libaio {
        Ok(_) if direct => ("libaio", String::new()),
        Ok(_) => (
            "libaio",
            "; without O_DIRECT it does one I/O at a time".into(),
        ),
        Err(error) => ("psync", format!(" at depth 1 (libaio failed: {error})")),
    };
    let text = format!("{why}: I/O is done by {name}{effect}");
    say(&mut vec![text], worker, &out);
    let _ = kit.lines.fallback.set(name);
    match libaio {
        Ok(backend) => drive(kit, Ok(backend), local),
        Err(_) => drive(kit, Ok(Psync::new(clock, files, depth)), local),
    }
}

/// Why there is no ring, and what would bring it.
fn ring_is_missing(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring".into(),
        Some(libc::EPERM | libc::EACCES) => {
            "io_uring is forbidden (sysctl kernel.io_uring_disabled, or a container's seccomp profile)"
                .into()
        }
        Some(libc::ENOMEM) => {
            "the memory of an io_uring exceeds RLIMIT_MEMLOCK (raise it with ulimit -l)".into()
        }
        _ => format!("io_uring failed: {error}"),
    }
}

/// An operation on the names of a worker's targets.
fn names(operation: plan::NameOperation, plan: &Plan, targets: &[u32]) -> io::Result<Names> {
    let paths = targets
        .iter()
        .map(|&target| CString::new(plan.targets[target as usize].path.as_bytes()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Names::new(operation, paths))
}

/// True when buffers are to be registered: they are few enough to be pinned soon, and used for
/// direct I/O, or by reads that are copied into them.
fn worth_pinning(kit: &Kit, files: &[OpenFile], notes: &mut Vec<String>) -> bool {
    let few = kit.buffers.len() <= MAX_PINNED_BYTES;
    let direct = files.iter().any(|file| file.direct);
    if direct && !few {
        notes.push(format!(
            "{} MiB of buffers are not registered: pinning more than {} MiB holds up the start",
            kit.buffers.len() >> 20,
            MAX_PINNED_BYTES >> 20,
        ));
    }
    let reads = |&id: &u32| {
        let stream = &kit.stage.plan.streams[id as usize];
        stream.pattern.read_percent > 0 || stream.verify.is_some() || stream.headers.is_some()
    };
    few && (direct || kit.streams.iter().any(reads))
}

fn say(notes: &mut Vec<String>, worker: u32, out: &Sender<Message>) {
    for text in notes.drain(..) {
        let _ = out.send(Message::Event(Event::Note {
            text,
            worker: Some(worker),
            target: None,
        }));
    }
}

/// True when the worker trims a block device and the ring cannot.
fn discards_itself(kit: &Kit, files: &[OpenFile]) -> bool {
    let trims = |&id: &u32| {
        let stream = &kit.stage.plan.streams[id as usize];
        let later = stream.headers.as_ref().and_then(|headers| headers.trim);
        stream.pattern.trim_percent > 0 || later.is_some()
    };
    let block = files
        .iter()
        .find(|file| file.kind == plan::TargetKind::Block);
    match block.filter(|_| kit.streams.iter().any(trims)) {
        Some(file) => !ring_discards(file).unwrap_or(true),
        None => false,
    }
}

/// The targets this worker's streams use, numbered as the worker does.
#[derive(Default)]
struct Local {
    /// By their own numbers: index into the Plan's targets.
    targets: Vec<u32>,
    /// The reverse.
    numbers: BTreeMap<u32, u32>,
}

impl Local {
    fn new(kit: &Kit) -> Self {
        let mut local = Self::default();
        let streams = kit.streams.iter();
        let uses = streams.flat_map(|&id| &kit.stage.plan.streams[id as usize].files);
        for target in uses.map(|file| file.target) {
            local.numbers.entry(target).or_insert_with(|| {
                local.targets.push(target);
                local.targets.len() as u32 - 1
            });
        }
        local
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
fn drive<B: Backend>(kit: Kit, backend: io::Result<B>, local: &Local) {
    let backend = match backend {
        Ok(backend) => backend,
        Err(error) => return fail(&kit.stage, kit.worker, &error),
    };
    conduct(kit, local, |state| {
        let mut worker = Worker { backend, state };
        let outcome = worker.run();
        (outcome, worker.state.lost, worker)
    });
}

/// Opens the books, waits for the start and lets `run` do the rest: it says how it ended,
/// whether the kernel may still write into the buffers, and what belongs to them.
fn conduct<W>(kit: Kit, local: &Local, run: impl FnOnce(State) -> (io::Result<()>, bool, W)) {
    let Kit {
        stage,
        worker,
        streams,
        rows,
        slots,
        counters,
        buffers,
        table,
        lines,
    } = kit;
    let out = stage.out.clone();
    let mut first_slot = 0;
    let states = streams.iter().map(|&id| {
        let mut state = StreamState::new(
            &stage.plan,
            id,
            first_slot,
            &rows,
            &stage.books,
            &|target| local.numbers[&target],
        );
        state.flow = (stage.plan.streams[id as usize].flow.as_ref()).map(|flow| {
            stage
                .control
                .flows
                .share(flow, stage.plan.streams[id as usize].limits.start_delay_ns)
        });
        if let Some(keeper) = &mut state.keeper {
            let uses = &stage.plan.streams[id as usize].files;
            keeper.open(uses.iter().map(|file| {
                let target = &stage.plan.targets[file.target as usize];
                (stage.files[file.target as usize].fd, target)
            }));
        }
        first_slot += state.depth;
        state
    });
    let states: Vec<StreamState> = states.collect();
    // SAFETY: this thread is the only writer; both are kept alive by the Arcs of this
    // function, which the books do not outlive.
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
    let mut state = State::new(stage.plan.clone(), worker, states, memory, lines);
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

/// Puts the thread on its processors, gives it its priorities and exact timers.
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
                "not pinned to processors {:?}: {}",
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
        // SAFETY: plain numbers; on Linux this sets the nice value of the thread alone.
        let result =
            unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as u32, worker.nice) };
        if result != 0 {
            note(format!(
                "nice {} was not set: {}",
                worker.nice,
                io::Error::last_os_error()
            ));
        }
    }
}
