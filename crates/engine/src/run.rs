//! A run from the Plan to the last event: targets, stages, messages, end.
//!
//! Knows the order of a run and when a worker is lost. Knows no I/O and no histogram.
//! It is the main thread: the only one that writes to standard output and to the sample
//! files.

mod fine_samples;
mod watch;

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::budget;
use crate::budget::spare_tables;
use crate::check;
use crate::layout;
use crate::report::Reporter;
use crate::setup::{self, Hand, Stage};
use crate::signals;
use crate::stdin_commands;
use fine_samples::FineSamples;
use loadstone_base::clock::{monotonic_ns, unix_ns, Calibration, Clock};
use loadstone_base::errno::describe_errno;
use loadstone_base::ops::OpKind;
use loadstone_base::run_error::RunError;
use loadstone_io::backend::sim_behaviour::{Remembered, State};
use loadstone_io::backend::sim_medium::Medium;
use loadstone_io::name::{Name, Parents};
use loadstone_io::removal;
use loadstone_io::target::{self, OpenTarget};
use loadstone_io::usage::peak_bytes;
use loadstone_plan::{Backend, Plan, SimBehaviour, Worker};
use loadstone_trees::Trees;
use loadstone_verification::verify::tables::{self, VerifyTables};
use loadstone_worker::control::{Control, Gate, Message, StageStart, Stop};
use loadstone_worker::events::{Event, IoFailure, Speaker};
use loadstone_worker::priority;
use watch::{stream_ends, Seen};

/// How often the main thread looks up when no message comes.
const LOOK_UP: Duration = Duration::from_millis(50);
/// The last of the way to the start of an armed run is not slept: a sleep ends late.
const SPIN: Duration = Duration::from_micros(100);
/// After its grace a worker that cannot answer is given up.
const LOST_NS: u64 = 1_000_000_000;

/// Everything the main thread holds.
struct Run {
    plan: Arc<Plan>,
    control: Arc<Control>,
    clock: Clock,
    speaker: Speaker,
    reporter: Reporter,
    targets: Vec<OpenTarget>,
    inbox: Receiver<Message>,
    out: Sender<Message>,
    engine_start_ns: u64,
    layout_ns: u64,
    /// Its start is told by an order, and how long it waited for that.
    arm: bool,
    armed_ns: u64,
    origin_ns: u64,
    started: bool,
    stopped_ns: Option<u64>,
    /// A signal that ends the run was told.
    signal_told: bool,
    /// By stream: its end was said.
    ended: Vec<bool>,
    lost: bool,
    verify_tables: Arc<VerifyTables>,
    media: Arc<Vec<Arc<Medium>>>,
    states: Arc<Vec<Remembered>>,
    trees: Arc<Trees>,
    names: Arc<BTreeMap<u32, Name>>,
    /// By target: an I/O on it never came back.
    hung: Vec<bool>,
    /// An I/O never came back, in any stage: the journal has no clean end.
    abandoned: bool,
    journal_synced_ns: u64,
    /// By worker, until it starts.
    streams_by_worker: Vec<Vec<u32>>,
}

/// Runs a Plan; `engine_start_ns` is the time the process began. An armed run starts when an order says.
/// A run ends when one of `wanted_by` does ([`stdin_commands::listen`]).
///
/// # Errors
/// Any [`RunError`]; it has not been said yet.
pub fn run(
    text: String,
    dir: &Path,
    engine_start_ns: u64,
    arm: bool,
    wanted_by: &[RawFd],
    speaker: Speaker,
) -> Result<(), RunError> {
    let calibration = Calibration::start();
    let plan = Arc::new(check::parse(&text)?);
    // Of thousands of targets it takes megabytes.
    drop(text);
    check::check(&plan)?;
    let memory_bytes = budget::check(&plan)?;
    priority::check_allowed(&plan)?;
    target::allow_open_files(plan.targets.len() as u64 + plan.workers.len() as u64 + 64)?;
    let control = Arc::new(Control::new(&plan));
    signals::listen(&control);
    stdin_commands::listen(&control, wanted_by)
        .map_err(|error| RunError::broken(format!("cannot listen for orders: {error}"), ""))?;
    let reporter = Reporter::new(&plan, dir).map_err(|error| {
        RunError::broken(
            format!("{}: cannot write samples: {error}", dir.display()),
            "choose another --out",
        )
    })?;
    let verify_tables = Arc::new(VerifyTables::open(&plan, dir)?);
    let (out, inbox) = channel();
    let mut run = Run {
        ended: vec![false; plan.streams.len()],
        verify_tables,
        media: Arc::new(plan.targets.iter().map(|_| Arc::default()).collect()),
        states: Arc::new(states(&plan)),
        clock: Clock::monotonic(),
        control,
        speaker,
        reporter,
        targets: Vec::new(),
        trees: Arc::default(),
        names: Arc::default(),
        inbox,
        out,
        engine_start_ns,
        layout_ns: 0,
        arm,
        armed_ns: 0,
        origin_ns: 0,
        started: false,
        stopped_ns: None,
        signal_told: false,
        lost: false,
        hung: Vec::new(),
        abandoned: false,
        journal_synced_ns: 0,
        streams_by_worker: plan.streams_by_worker(),
        plan,
    };
    let ready = run.prepare()?;
    run.clock = calibration.finish();
    run.speaker.say(&Event::Hello {
        engine_version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        memory_bytes,
        clock: run.clock.name(),
        clock_error_ppm: run.clock.error_ppm(),
    });
    if let Some(text) = run.verify_tables.recovered.clone() {
        run.speaker.say(&Event::Note {
            text,
            worker: None,
            target: None,
        });
    }
    if ready {
        run.stages()?;
    }
    run.end()
}

impl Run {
    /// Opens and prepares every target; false when it was stopped meanwhile.
    fn prepare(&mut self) -> Result<bool, RunError> {
        let (plan, control) = (self.plan.clone(), self.control.clone());
        // Every target is checked before anything is written to any.
        for target in &plan.targets {
            self.targets.push(target::open(target)?);
        }
        let began = monotonic_ns();
        let removed = removal::removed_by_load(&plan);
        let (mut parents, mut names) = (Parents::default(), BTreeMap::new());
        for (index, (target, open)) in (0..).zip(plan.targets.iter().zip(&mut self.targets)) {
            let speaker = &mut self.speaker;
            let mut report = |event: Event| {
                speaker.say(&event);
                control.stopping() == Stop::No && !speaker.is_alone()
            };
            if !layout::prepare(index, target, open, &mut report)? {
                return Ok(false);
            }
            if target.named.is_some() {
                if removed.contains(&index) {
                    let held = parents.hold(&target.path, open.identity());
                    let held = held.map_err(|error| {
                        RunError::target(&target.path, "its directory cannot be held", &error)
                    })?;
                    names.insert(index, held);
                }
                open.let_go();
            }
        }
        let speaker = &mut self.speaker;
        let mut report = |event: Event| {
            speaker.say(&event);
            control.stopping() == Stop::No && !speaker.is_alone()
        };
        let Some(trees) = Trees::prepare(&plan, &self.targets, &mut report)? else {
            return Ok(false);
        };
        self.names = Arc::new(names);
        self.trees = Arc::new(trees);
        self.layout_ns = monotonic_ns() - began;
        for (index, (target, open)) in (0..).zip(plan.targets.iter().zip(&self.targets)) {
            let speaker = &mut self.speaker;
            target::advise(target, open, &mut |text| {
                speaker.say(&Event::Note {
                    text,
                    worker: None,
                    target: Some(index),
                });
            });
        }
        Ok(true)
    }

    fn stages(&mut self) -> Result<(), RunError> {
        let stages = self
            .plan
            .workers
            .iter()
            .map(|worker| worker.stage)
            .max()
            .unwrap_or(0);
        for stage in 0..=stages {
            if self.control.stopping() != Stop::No || self.lost {
                break;
            }
            self.stage(stage)?;
        }
        Ok(())
    }

    fn stage(&mut self, stage: u32) -> Result<(), RunError> {
        let plan = self.plan.clone();
        let shared = Stage {
            plan: plan.clone(),
            control: self.control.clone(),
            gate: Arc::new(Gate::default()),
            clock: self.clock,
            files: Arc::new(self.targets.iter().map(OpenTarget::view).collect()),
            names: self.names.clone(),
            verify_tables: self.verify_tables.clone(),
            media: self.media.clone(),
            states: self.states.clone(),
            trees: self.trees.clone(),
            out: self.out.clone(),
        };
        let members: Vec<u32> = (0..plan.workers.len() as u32)
            .filter(|&w| plan.workers[w as usize].stage == stage)
            .collect();
        let mut hands = Vec::with_capacity(members.len());
        for &worker in &members {
            let streams = std::mem::take(&mut self.streams_by_worker[worker as usize]);
            let hand = setup::start(&shared, worker, streams);
            hands.push(hand.map_err(|error| {
                RunError::broken(format!("worker {worker} cannot be started: {error}"), "")
            })?);
        }
        if let Err(fault) = self.await_ready(hands.len()) {
            shared.gate.open(None);
            return Err(fault);
        }
        if stage == 0 && self.arm && !self.await_start() {
            shared.gate.open(None);
            return Ok(());
        }
        let start = self.start_time(stage, &members);
        if stage > 0 {
            self.speaker.say(&Event::Stage {
                t_ns: start.offset_ns,
                stage,
            });
        }
        shared.gate.open(Some(start));
        self.attend(stage, &mut hands, start)?;
        self.close_files(stage);
        self.keep_states();
        Ok(())
    }

    /// Simulated devices remember what they are asked to over stages and runs.
    fn keep_states(&self) {
        let model = self.plan.workers.iter().find_map(behaviour_of);
        for (target, state) in self.states.iter().enumerate() {
            if let Some(model) = model {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.keep(model, target);
            }
        }
    }

    fn await_ready(&mut self, count: usize) -> Result<(), RunError> {
        let mut ready = 0;
        while ready < count {
            match self.inbox.recv_timeout(Duration::from_secs(60)) {
                Ok(Message::Ready { .. }) => ready += 1,
                Ok(Message::Failed { message, hint, .. }) => {
                    return Err(RunError::broken(message, hint))
                }
                Ok(Message::Event(event)) => self.speaker.say(&event),
                Ok(_) => {}
                Err(_) => {
                    return Err(RunError::broken(
                        "a worker did not get ready within a minute",
                        "",
                    ))
                }
            }
        }
        Ok(())
    }

    /// Says that all is ready and waits for the time of the start; false when it was stopped meanwhile.
    fn await_start(&mut self) -> bool {
        let armed_ns = monotonic_ns();
        self.speaker.say(&Event::Armed {
            monotonic_ns: armed_ns,
        });
        let at_ns = loop {
            if let Some(at_ns) = self.control.await_start(LOOK_UP) {
                break at_ns;
            }
            if self.is_called_off() {
                return false;
            }
        };
        while let Some(left) = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()))
            .checked_sub(SPIN)
            .filter(|left| !left.is_zero())
        {
            std::thread::sleep(left.min(LOOK_UP));
            if self.is_called_off() {
                return false;
            }
        }
        while monotonic_ns() < at_ns {
            std::hint::spin_loop();
        }
        self.armed_ns = monotonic_ns() - armed_ns;
        true
    }

    fn is_called_off(&self) -> bool {
        self.control.stopping() != Stop::No || self.speaker.is_alone()
    }

    /// Virtual clocks continue where the stage before ended; the real one just goes on.
    fn start_time(&mut self, stage: u32, members: &[u32]) -> StageStart {
        let clock_ns = self.clock.now_ns();
        if stage == 0 {
            self.origin_ns = clock_ns;
            self.reporter.start();
        }
        let virtual_only = members.iter().all(|&w| {
            self.plan.workers[w as usize]
                .backend
                .capabilities()
                .virtual_time
        });
        let offset_ns = if virtual_only {
            self.reporter.last_ns()
        } else {
            clock_ns - self.origin_ns
        };
        StageStart {
            clock_ns,
            offset_ns,
        }
    }

    /// Serves the workers of a stage until all of them have ended.
    fn attend(
        &mut self,
        stage: u32,
        hands: &mut [Hand],
        start: StageStart,
    ) -> Result<(), RunError> {
        self.stopped_ns = None;
        self.hung = vec![false; self.plan.targets.len()];
        let ends_ns = stream_ends(&self.plan, start.clock_ns);
        let seen = hands
            .iter()
            .map(|hand| Seen::new(&self.plan, hand, &ends_ns, start));
        let mut seen: Vec<Seen> = seen.collect();
        let virtual_clock = hands.iter().any(|hand| self.is_virtual(hand));
        let mut fine = (!virtual_clock).then(|| FineSamples::new(stage, hands, start.offset_ns));
        let mut looked_up_ns = start.clock_ns;
        let tables = hands
            .iter()
            .map(|hand| spare_tables(&self.plan, hand.worker));
        let most_said: usize = tables.sum();
        while !seen.iter().all(Seen::has_ended) {
            let asleep_ns = self.clock.now_ns();
            let nap = fine.as_ref().map_or(LOOK_UP, |fine| {
                fine.wait(asleep_ns - self.origin_ns).min(LOOK_UP)
            });
            let mail = self.inbox.recv_timeout(nap);
            let now = self.clock.now_ns();
            if let Some(fine) = &mut fine {
                let late_ns = (now - asleep_ns).saturating_sub(nap.as_nanos() as u64);
                self.sample(fine, hands, now, late_ns);
            }
            match mail {
                Ok(message) => self.receive(message, stage, hands, &mut seen)?,
                Err(RecvTimeoutError::Timeout) => {
                    if now < looked_up_ns + LOOK_UP.as_nanos() as u64 {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            looked_up_ns = now;
            // One look at all workers for what all of them say, not one for each message.
            for _ in 1..most_said {
                let Ok(message) = self.inbox.try_recv() else {
                    break;
                };
                self.receive(message, stage, hands, &mut seen)?;
            }
            self.look_up(stage, hands, &mut seen)?;
        }
        if let Some(event) = fine.as_mut().and_then(|fine| fine.told(true)) {
            self.speaker.say(&event);
        }
        if !self.lost {
            for thread in hands.iter_mut().filter_map(|hand| hand.thread.take()) {
                let _ = thread.join();
            }
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.receive(message, stage, hands, &mut seen)?;
        }
        self.write_until(u64::MAX)
    }

    /// Takes a fine sample when one is due, and says what there is to be said.
    fn sample(&mut self, fine: &mut FineSamples, hands: &[Hand], now: u64, late_ns: u64) {
        let run_ns = now - self.origin_ns;
        if !fine.is_due(run_ns) {
            return;
        }
        if let Some(event) = fine.take(hands, run_ns, late_ns) {
            self.speaker.say(&event);
        }
        if let Some(event) = fine.told(false) {
            self.speaker.say(&event);
        }
    }

    fn receive(
        &mut self,
        message: Message,
        stage: u32,
        hands: &mut [Hand],
        seen: &mut [Seen],
    ) -> Result<(), RunError> {
        match message {
            Message::Ready { .. } => {}
            Message::Failed { message, hint, .. } => return Err(RunError::broken(message, hint)),
            Message::First { handed_ns } => self.say_start(handed_ns),
            Message::Event(event) => {
                match &event {
                    // Of a worker that was given up and came back it is known.
                    Event::StreamEnd(end) if self.ended[end.stream as usize] => return Ok(()),
                    Event::StreamEnd(end) => self.ended[end.stream as usize] = true,
                    Event::Hung { target, .. } => {
                        self.hung[*target as usize] = true;
                        self.abandoned = true;
                    }
                    _ => {}
                }
                self.speaker.say(&event);
            }
            Message::Ios {
                worker,
                mut records,
            } => {
                self.write(|reporter, _| reporter.write_ios(&records))?;
                records.clear();
                if let Some(at) = place_of(worker, hands) {
                    let _ = hands[at].log_blocks.send(records);
                }
            }
            Message::Cut {
                worker,
                mut table,
                last,
            } => {
                let Some(at) = place_of(worker, hands) else {
                    return Ok(());
                };
                if seen[at].has_ended() {
                    return Ok(()); // given up, and its table taken, before it came back
                }
                self.reporter.take(&table, &hands[at].rows, stage);
                seen[at].progress_ns = if last { u64::MAX } else { table.end_ns };
                table.clear();
                let _ = hands[at].tables.send(table);
            }
        }
        Ok(())
    }

    /// Writes the intervals that are complete, and ends the streams that are steady.
    fn write_until(&mut self, complete_ns: u64) -> Result<(), RunError> {
        let steady = self.write(|reporter, speaker| reporter.write_until(complete_ns, speaker))?;
        for stream in steady {
            self.control.end_stream(stream);
        }
        Ok(())
    }

    fn write<T>(
        &mut self,
        action: impl FnOnce(&mut Reporter, &mut Speaker) -> std::io::Result<T>,
    ) -> Result<T, RunError> {
        action(&mut self.reporter, &mut self.speaker).map_err(|error| {
            RunError::broken(
                format!("the samples cannot be written: {error}"),
                "free space where the bundle is",
            )
        })
    }

    fn say_start(&mut self, handed_ns: u64) {
        if self.started {
            return;
        }
        self.started = true;
        let startup_ns = handed_ns
            .saturating_sub(self.engine_start_ns)
            .saturating_sub(self.layout_ns)
            .saturating_sub(self.armed_ns);
        // The wall clock of the origin, from the present one.
        let unix_ns = unix_ns() - (self.clock.now_ns() - self.origin_ns);
        self.speaker.say(&Event::Start {
            unix_ns,
            startup_ns,
            monotonic_ns: self.origin_ns,
            first_ns: handed_ns.saturating_sub(self.origin_ns),
        });
    }

    /// `fsync` at the close of the files whose streams want it.
    fn close_files(&mut self, stage: u32) {
        if self.lost {
            return;
        }
        let plan = self.plan.clone();
        let wanted = (0..).zip(&plan.streams).filter(|(_, stream)| {
            stream.flush.on_close && plan.workers[stream.worker as usize].stage == stage
        });
        for (stream, file) in wanted.flat_map(|(index, stream)| {
            let files = stream.files.iter();
            files.map(move |file| (index, file))
        }) {
            let target = file.target as usize;
            let Some(open) = self.targets[target].file().filter(|_| !self.hung[target]) else {
                continue;
            };
            let flush = self.verify_tables.begin_flush(file.target);
            let Err(error) = open.sync_all() else {
                self.verify_tables.end_flush(file.target, flush);
                continue;
            };
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let path = &plan.targets[target].path;
            self.speaker.say(&Event::IoError(IoFailure {
                t_ns: self.clock.now_ns() - self.origin_ns,
                stream,
                target: file.target,
                op: OpKind::Sync.name(),
                offset: 0,
                bytes: 0,
                errno,
                moved: 0,
                message: format!("fsync at the close of {path}: {}", describe_errno(errno)),
            }));
        }
    }

    /// What was found in all, and what a simulated device had done.
    fn say_verified(&mut self) {
        if !tables::is_verified(&self.plan) {
            return;
        }
        for (target, medium) in self.media.iter().enumerate() {
            for injected in medium.injected() {
                self.speaker.say(&Event::Injected {
                    target: target as u32,
                    kind: injected.kind,
                    offset: injected.offset,
                    to: injected.to,
                });
            }
        }
        let found = self.verify_tables.counts().into_iter().collect();
        self.speaker.say(&Event::Verified { found });
    }

    /// Says once which signal ends the run, and who sent it.
    fn say_signal(&mut self) {
        if self.signal_told {
            return;
        }
        let Some(found) = signals::received() else {
            return;
        };
        self.signal_told = true;
        let since_origin = self.clock.now_ns().saturating_sub(self.origin_ns);
        self.speaker.say(&Event::Signal {
            t_ns: self.started.then_some(since_origin),
            signal: found.signal,
            sender_pid: found.sender.map(|(pid, _)| pid),
            sender_uid: found.sender.map(|(_, uid)| uid),
            sender: found.sender_name,
        });
    }

    /// Tells whether the trees hold only what the run found and made; says nothing where an
    /// I/O never came back: the look would not either.
    fn look_back(&mut self) {
        if self.lost || self.abandoned {
            return;
        }
        let (plan, control, speaker) = (&self.plan, &self.control, &mut self.speaker);
        self.trees.look_back(plan, &self.targets, &mut |event| {
            speaker.say(&event);
            control.stopping() != Stop::Now && !speaker.is_alone()
        });
    }

    fn end(mut self) -> Result<(), RunError> {
        self.say_signal();
        if !self.lost {
            for text in removal::unlink_all(&self.plan, &self.targets) {
                self.speaker.say(&Event::Note {
                    text,
                    worker: None,
                    target: None,
                });
            }
        }
        self.look_back();
        self.verify_tables.close(!self.lost && !self.abandoned)?;
        self.write(|reporter, speaker| reporter.finish(speaker))?;
        self.say_verified();
        let reason = match (self.lost, self.control.stopping()) {
            (true, _) => "failed",
            (false, Stop::No) => "done",
            (false, _) => "stopped",
        };
        let usage = self.reporter.usage();
        self.speaker.say(&Event::End {
            t_ns: self.reporter.last_ns(),
            reason,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            spun_ns: usage.spun_ns,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            major_faults: usage.major_faults,
            minor_faults: usage.minor_faults,
            rss_peak_bytes: peak_bytes(),
            ops: self.reporter.total_ops(),
        });
        Ok(())
    }
}

/// Where a worker is among those of a stage, which are in the Plan's order.
fn place_of(worker: u32, hands: &[Hand]) -> Option<usize> {
    hands.binary_search_by_key(&worker, |hand| hand.worker).ok()
}

fn behaviour_of(worker: &Worker) -> Option<&SimBehaviour> {
    match &worker.backend {
        Backend::Sim { device } => device.behaviour.as_deref(),
        _ => None,
    }
}

/// What the simulated devices of a Plan remember from the runs before.
fn states(plan: &Plan) -> Vec<Remembered> {
    let model = plan.workers.iter().find_map(behaviour_of);
    let kept = |target| model.map_or_else(State::default, |model| State::kept(model, target));
    (0..plan.targets.len())
        .map(|target| Arc::new(Mutex::new(kept(target))))
        .collect()
}
