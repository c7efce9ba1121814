//! A run from the Plan to the last event: targets, stages, messages, end.
//!
//! Knows the order of a run and when a worker is lost. Knows no I/O and no histogram.
//! It is the main thread: the only one that writes to standard output and to the sample
//! files.

mod attend;
mod begin;
mod device_states;
mod end;
mod fine_samples;
mod prepare;
mod watch;

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::time::Duration;

use crate::budget;
use crate::check;
use crate::report::Reporter;
use crate::setup::{self, Stage};
use crate::signals;
use crate::stdin_commands;
use device_states::states;
use loadstone_base::clock::{Calibration, Clock};
use loadstone_base::run_error::RunError;
use loadstone_io::backend::sim_behaviour::Remembered;
use loadstone_io::backend::sim_medium::Medium;
use loadstone_io::name::Name;
use loadstone_io::target::{self, OpenTarget, ReopenedTarget};
use loadstone_plan::{self as plan, Plan};
use loadstone_trees::Trees;
use loadstone_verification::verify::tables::VerifyTables;
use loadstone_worker::control::{Control, Gate, Message, Stop};
use loadstone_worker::events::{Event, Speaker};
use loadstone_worker::priority;

/// Files that a run has open at most, its own among them.
fn open_files(plan: &Plan) -> u64 {
    let again = (plan.streams.iter()).filter(|stream| stream.connection.is_some());
    (plan.targets.len() + plan.workers.len() + again.count()) as u64 + 64
}

/// How often the main thread looks up when no message comes.
const LOOK_UP: Duration = Duration::from_millis(50);
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
    target::allow_open_files(open_files(&plan))?;
    let control = Arc::new(Control::new(&plan));
    signals::listen(&control);
    stdin_commands::listen(&control, wanted_by)
        .map_err(|error| RunError::broken(format!("cannot listen for orders: {error}"), ""))?;
    let mut run = Run {
        engine_start_ns,
        arm,
        ..Run::open(plan, dir, control, speaker)?
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
    /// Opens what a run writes into: samples, and tables of what verified writes left.
    fn open(
        plan: Arc<Plan>,
        dir: &Path,
        control: Arc<Control>,
        speaker: Speaker,
    ) -> Result<Self, RunError> {
        let reporter = Reporter::new(&plan, dir).map_err(|error| {
            RunError::own_file(format!("the samples in {}", dir.display()), &error)
        })?;
        let verify_tables = Arc::new(VerifyTables::open(&plan, dir)?);
        let (out, inbox) = channel();
        Ok(Self {
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
            engine_start_ns: 0,
            layout_ns: 0,
            arm: false,
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
        })
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
            reopened: Arc::new(self.reopened()),
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

    /// What streams with a connection open, by target.
    fn reopened(&self) -> BTreeMap<u32, ReopenedTarget> {
        let connected = |stream: &&plan::Stream| stream.connection.is_some();
        let streams = self.plan.streams.iter().filter(connected);
        streams
            .flat_map(|stream| &stream.files)
            .filter_map(|file| {
                let at = file.target as usize;
                let target = ReopenedTarget::of(&self.plan.targets[at], &self.targets[at])?;
                Some((file.target, target))
            })
            .collect()
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
        action(&mut self.reporter, &mut self.speaker)
            .map_err(|error| RunError::own_file("the samples", &error))
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
}
