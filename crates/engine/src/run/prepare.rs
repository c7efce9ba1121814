//! The targets of a run, made ready: opened, laid out, held by their names, advised.
//!
//! Knows in which order. Knows no worker.

use super::Run;
use crate::layout;
use loadstone_base::clock::monotonic_ns;
use loadstone_base::run_error::RunError;
use loadstone_io::name::{Name, Parents};
use loadstone_io::removal;
use loadstone_io::target;
use loadstone_trees::Trees;
use loadstone_worker::control::{Control, Stop};
use loadstone_worker::events::{Event, Speaker};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Run {
    /// Opens and prepares every target; false when it was stopped meanwhile.
    pub(super) fn prepare(&mut self) -> Result<bool, RunError> {
        let (plan, control) = (self.plan.clone(), self.control.clone());
        // Every target is checked before anything is written to any.
        for target in &plan.targets {
            self.targets.push(target::open(target)?);
        }
        let began = monotonic_ns();
        let Some(names) = self.lay_out()? else {
            return Ok(false);
        };
        let mut report = report_to(&mut self.speaker, &control);
        let Some(trees) = Trees::prepare(&plan, &self.targets, &mut report)? else {
            return Ok(false);
        };
        drop(report);
        self.names = Arc::new(names);
        self.trees = Arc::new(trees);
        self.layout_ns = monotonic_ns() - began;
        self.advise();
        Ok(true)
    }

    /// Lays out every target, and holds the names that the load removes; `None` when it was stopped.
    fn lay_out(&mut self) -> Result<Option<BTreeMap<u32, Name>>, RunError> {
        let (plan, control) = (self.plan.clone(), self.control.clone());
        let removed = removal::removed_by_load(&plan);
        let (mut parents, mut names) = (Parents::default(), BTreeMap::new());
        for (index, (target, open)) in (0..).zip(plan.targets.iter().zip(&mut self.targets)) {
            let mut report = report_to(&mut self.speaker, &control);
            if !layout::prepare(index, target, open, &mut report)? {
                return Ok(None);
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
        Ok(Some(names))
    }

    /// Tells the kernel how each target will be read.
    fn advise(&mut self) {
        for (index, (target, open)) in (0..).zip(self.plan.targets.iter().zip(&self.targets)) {
            let speaker = &mut self.speaker;
            target::advise(target, open, &mut |text| {
                speaker.say(&Event::Note {
                    text,
                    worker: None,
                    target: Some(index),
                });
            });
        }
    }
}

/// Says what is done before the load; the answer is whether to go on.
fn report_to<'a>(speaker: &'a mut Speaker, control: &'a Control) -> impl FnMut(Event) -> bool + 'a {
    move |event| {
        speaker.say(&event);
        control.stopping() == Stop::No && !speaker.is_alone()
    }
}
