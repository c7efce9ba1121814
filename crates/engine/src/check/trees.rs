//! Rules of trees and of what streams do in them.

use super::{need, Checked};
use crate::plan::{Backend, Plan, TargetKind};

/// No file operations yet: whatever asks for them is refused.
pub(super) fn check_trees(plan: &Plan) -> Checked {
    let asks = !plan.trees.is_empty()
        || plan.streams.iter().any(|stream| stream.tree.is_some())
        || (plan.targets.iter()).any(|target| target.kind == TargetKind::Tree)
        || (plan.workers.iter()).any(|worker| matches!(worker.backend, Backend::Files {}));
    need(
        !asks,
        || "/trees".into(),
        || "this engine cannot do file operations".into(),
    )
}
