//! The end of a stage and of the run: files closed, trees looked at, what was found, the last event.
//!
//! Knows what is left out when a worker was lost. Knows no worker that still works.

use super::Run;
use loadstone_base::errno::describe_errno;
use loadstone_base::ops::OpKind;
use loadstone_base::run_error::RunError;
use loadstone_io::removal;
use loadstone_io::usage::peak_bytes;
use loadstone_verification::verify::tables;
use loadstone_worker::control::Stop;
use loadstone_worker::events::{Event, IoFailure};

impl Run {
    /// `fsync` at the close of the files whose streams want it.
    pub(super) fn close_files(&mut self, stage: u32) {
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

    pub(super) fn end(mut self) -> Result<(), RunError> {
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
