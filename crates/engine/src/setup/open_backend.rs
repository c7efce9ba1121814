//! The backend of a worker: opened as the Plan wants it, or replaced where the host has none.
//!
//! Knows which file has which backend and what each needs to be opened. What a backend can do
//! is in its row ([`plan::BACKENDS`]); how it does it, in its own file.

use std::io;
use std::sync::mpsc::Sender;

use super::{drive, run_worker, Local, Stage, WorkerParts};
use loadstone_base::clock::Clock;
use loadstone_io::backend::discard::{ring_discards, Discarding};
use loadstone_io::backend::extents::{Falloc, MoveExtents};
use loadstone_io::backend::force_async::Forced;
use loadstone_io::backend::libaio::Libaio;
use loadstone_io::backend::mmap::Mmap;
use loadstone_io::backend::names::Names;
use loadstone_io::backend::null::Null;
use loadstone_io::backend::nvme;
use loadstone_io::backend::psync::Psync;
use loadstone_io::backend::sim::Sim;
use loadstone_io::backend::special_engines::{Call, Called};
use loadstone_io::backend::splice::Splice;
use loadstone_io::backend::uring::{Uring, UringOptions};
use loadstone_io::backend::{IoBackend, OpenFile};
use loadstone_io::name::Name;
use loadstone_plan as plan;
use loadstone_trees::worker::FileWorker;
use loadstone_worker::control::Message;
use loadstone_worker::events::Event;
use loadstone_worker::state::workers_to_cpus;

/// Buffers up to this size are registered. Pinning touches and zeroes every page before the
/// first I/O, about a millisecond for each MiB; it is also the usual `RLIMIT_MEMLOCK`.
const MAX_PINNED_BYTES: usize = 8 << 20;

/// A worker whose backend is to be opened.
struct Opening<'a> {
    parts: WorkerParts,
    local: &'a Local,
    /// Its open targets, numbered as the worker does.
    files: Vec<OpenFile>,
    /// I/Os its streams may have in flight.
    depth: u32,
    clock: Clock,
    /// A job sets the size of its batches.
    whole_batches: bool,
    /// There are more CPUs than workers.
    has_room: bool,
}

/// Opens the backend the Plan names and runs the worker on it to its end. One arm a backend.
pub(super) fn run(parts: WorkerParts, local: &Local) {
    let plan = parts.stage.plan.clone();
    let backend = &plan.workers[parts.worker as usize].backend;
    let open = Opening::of(parts, local);
    let (clock, depth) = (open.clock, open.depth);
    match backend {
        &(plan::Backend::IoUring {
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
            let options = UringOptions {
                registered_files,
                fixed_buffers,
                iopoll,
                sqpoll,
                whole_batches: open.whole_batches,
                has_room: open.has_room,
            };
            if matches!(backend, plan::Backend::IoUring { .. }) {
                open.ring(options);
            } else {
                open.commands(options);
            }
        }
        plan::Backend::Libaio {} => open.drive(|open| Libaio::new(clock, &open.files, depth)),
        plan::Backend::Psync {} => open.drive(|open| Ok(Psync::new(clock, &open.files, depth))),
        plan::Backend::Mmap {} => open.drive(Opening::mmap),
        plan::Backend::Files {} => open.on_files(),
        plan::Backend::Names { operation } => {
            open.call(|open| names(*operation, &open.parts.stage, &local.targets));
        }
        plan::Backend::Falloc {} => open.call(|open| Ok(Falloc::new(&open.files))),
        plan::Backend::Splice {} => open.call(|open| Splice::new(&open.files)),
        plan::Backend::MoveExtents { donor, in_place } => open.call(|open| {
            let donor = open.parts.stage.files[*donor as usize].fd;
            Ok(MoveExtents::new(&open.files, donor, *in_place))
        }),
        plan::Backend::Null {} => open.drive(|_| Ok(Null::new(clock, depth))),
        plan::Backend::Sim { device } => open.drive(|open| Ok(open.simulation(device))),
    }
}

impl<'a> Opening<'a> {
    fn of(parts: WorkerParts, local: &'a Local) -> Self {
        let plan = &parts.stage.plan;
        let streams = parts.streams.iter().map(|&id| &plan.streams[id as usize]);
        Self {
            local,
            files: local.of(&parts.stage.files),
            depth: streams.clone().map(|stream| stream.iodepth).sum(),
            clock: parts.stage.clock,
            whole_batches: streams.clone().any(|stream| stream.batch.is_some()),
            has_room: workers_to_cpus(plan, parts.worker)
                .is_some_and(|(workers, cpus)| workers < cpus),
            parts,
        }
    }

    /// Work on files by name, which no backend does.
    fn on_files(self) {
        let (clock, trees) = (self.clock, self.parts.stage.trees.clone());
        run_worker(self.parts, self.local, |state| {
            let mut worker = FileWorker::new(clock, state, trees);
            worker.run();
            (Ok(()), worker.state.lost, worker)
        });
    }

    fn drive<B: IoBackend>(self, backend: impl FnOnce(&Self) -> io::Result<B>) {
        let backend = backend(&self);
        drive(self.parts, backend, self.local);
    }

    /// A backend that does its I/Os by calls of its own.
    fn call<C: Call>(self, call: impl FnOnce(&Self) -> io::Result<C>) {
        let (clock, depth) = (self.clock, self.depth);
        self.drive(|open| call(open).map(|call| Called::new(clock, call, depth)));
    }

    fn mmap(&self) -> io::Result<Mmap> {
        Mmap::new(self.clock, &self.files, self.depth).map_err(|(file, error)| {
            let target = self.local.targets[file];
            let path = &self.parts.stage.plan.targets[target as usize].path;
            io::Error::new(error.kind(), format!("{path}: {error}"))
        })
    }

    fn simulation(&self, device: &plan::SimDevice) -> Sim {
        let media = self.local.of(&self.parts.stage.media);
        let states = self.local.of(&self.parts.stage.states);
        Sim::new(device, self.files.len(), self.depth)
            .with_media(media.into_iter())
            .with_states(&states, &self.parts.stage.states[0])
    }

    /// Tells what could not be had.
    fn tell(&self, mut notes: Vec<String>) {
        say(&mut notes, self.parts.worker, &self.parts.stage.out);
    }

    fn commands(self, mut options: UringOptions) {
        let mut notes = Vec::new();
        options.fixed_buffers &= worth_pinning(&self.parts, &self.files, &mut notes);
        let (clock, buffers) = (self.clock, &self.parts.buffers);
        let backend = nvme::open(clock, options, &self.files, self.depth, buffers, &mut notes);
        self.tell(notes);
        self.drive(|_| backend);
    }

    fn ring(self, mut options: UringOptions) {
        let mut notes = Vec::new();
        options.fixed_buffers &= worth_pinning(&self.parts, &self.files, &mut notes);
        let (clock, buffers) = (self.clock, &self.parts.buffers);
        let ring = Uring::new(clock, options, &self.files, self.depth, buffers, &mut notes);
        let ring = match ring {
            Err(error) if can_be_replaced(options, &error) => {
                self.tell(notes);
                return fall_back(self, &error);
            }
            ring => ring,
        };
        let trims_itself = discards_itself(&self.parts, &self.files);
        if trims_itself {
            notes.push("io_uring cannot discard on this device (before Linux 6.12 on none): trims are made one at a time by the worker".into());
        }
        self.tell(notes);
        match (
            self.parts.stage.plan.workers[self.parts.worker as usize].force_async,
            trims_itself,
        ) {
            (0, false) => self.drive(|_| ring),
            (0, true) => {
                self.drive(|open| ring.map(|ring| Discarding::new(ring, &open.files, open.depth)));
            }
            // Trims that the ring cannot do are refused together with this.
            (every, _) => {
                let force = |ring: Uring| ring.with(|operations| Forced::new(operations, every));
                self.drive(|_| ring.map(force));
            }
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
fn fall_back(open: Opening, error: &io::Error) {
    let Opening {
        parts,
        local,
        files,
        depth,
        clock,
        ..
    } = open;
    let (out, worker) = (parts.stage.out.clone(), parts.worker);
    let files = &files[..];
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
    let _ = parts.lines.fallback.set(name);
    match libaio {
        Ok(backend) => drive(parts, Ok(backend), local),
        Err(_) => drive(parts, Ok(Psync::new(clock, files, depth)), local),
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
fn names(operation: plan::NameOperation, stage: &Stage, targets: &[u32]) -> io::Result<Names> {
    let names = targets.iter().map(|target| match stage.names.get(target) {
        Some(held) => Ok(held.clone()),
        None => Name::unheld(&stage.plan.targets[*target as usize].path),
    });
    Ok(Names::new(operation, names.collect::<io::Result<_>>()?))
}

/// True when buffers are to be registered: they are few enough to be pinned soon, and used for
/// direct I/O, or by reads that are copied into them.
fn worth_pinning(parts: &WorkerParts, files: &[OpenFile], notes: &mut Vec<String>) -> bool {
    let few = parts.buffers.len() <= MAX_PINNED_BYTES;
    let direct = files.iter().any(|file| file.direct);
    if direct && !few {
        notes.push(format!(
            "{} MiB of buffers are not registered: pinning more than {} MiB holds up the start",
            parts.buffers.len() >> 20,
            MAX_PINNED_BYTES >> 20,
        ));
    }
    let reads = |&id: &u32| {
        let stream = &parts.stage.plan.streams[id as usize];
        stream.pattern.read_percent > 0 || stream.verify.is_some() || stream.headers.is_some()
    };
    few && (direct || parts.streams.iter().any(reads))
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
fn discards_itself(parts: &WorkerParts, files: &[OpenFile]) -> bool {
    let trims = |&id: &u32| {
        let stream = &parts.stage.plan.streams[id as usize];
        let later = stream.headers.as_ref().and_then(|headers| headers.trim);
        stream.pattern.trim_percent > 0 || later.is_some()
    };
    let block = files
        .iter()
        .find(|file| file.kind == plan::TargetKind::Block);
    match block.filter(|_| parts.streams.iter().any(trims)) {
        Some(file) => !ring_discards(file).unwrap_or(true),
        None => false,
    }
}
