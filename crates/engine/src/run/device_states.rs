//! What simulated devices remember, over the stages of a run and from one run to the next.

use super::Run;
use loadstone_io::backend::sim_behaviour::{DeviceState, Remembered};
use loadstone_plan::{Backend, Plan, SimBehaviour, Worker};
use std::sync::{Arc, Mutex, PoisonError};

impl Run {
    /// Simulated devices remember what they are asked to over stages and runs.
    pub(super) fn keep_states(&self) {
        let model = self.plan.workers.iter().find_map(behaviour_of);
        for (target, state) in self.states.iter().enumerate() {
            if let Some(model) = model {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.keep(model, target);
            }
        }
    }
}

fn behaviour_of(worker: &Worker) -> Option<&SimBehaviour> {
    match &worker.backend {
        Backend::Sim { device } => device.behaviour.as_deref(),
        _ => None,
    }
}

/// What the simulated devices of a Plan remember from the runs before.
pub(super) fn states(plan: &Plan) -> Vec<Remembered> {
    let model = plan.workers.iter().find_map(behaviour_of);
    let kept = |target| {
        model.map_or_else(DeviceState::default, |model| {
            DeviceState::kept(model, target)
        })
    };
    (0..plan.targets.len())
        .map(|target| Arc::new(Mutex::new(kept(target))))
        .collect()
}
