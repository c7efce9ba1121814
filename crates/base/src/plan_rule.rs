//! How a broken rule of a Plan is told.
//!
//! Knows the shape of a refusal. Knows no rule.

use crate::run_error::RunError;

/// Nothing, or the rule that is broken.
pub type Checked = Result<(), RunError>;

/// Refuses a Plan at this place with this message, unless the rule holds.
/// # Errors
/// The broken rule.
pub fn need(
    holds: bool,
    path: impl FnOnce() -> String,
    message: impl FnOnce() -> String,
) -> Checked {
    if holds {
        Ok(())
    } else {
        Err(RunError::plan(path(), message()))
    }
}
