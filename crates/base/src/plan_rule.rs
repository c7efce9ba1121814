//! How a broken rule of a Plan is told.
//!
//! Knows the shape of a refusal. Knows no rule.

use crate::run_error::RunError;

/// Nothing, or the rule that is broken.
pub type Checked = Result<(), RunError>;

/// Ends a check with a refusal, unless the rule holds: `need!(holds, place => "message {}", value)`.
///
/// A place that is written out is a format, too. Neither is made where the rule holds.
#[macro_export]
macro_rules! need {
    ($holds:expr, $place:literal => $($message:tt)+) => {
        $crate::need!($holds, format!($place) => $($message)+)
    };
    ($holds:expr, $place:expr => $($message:tt)+) => {
        if !$holds {
            return Err($crate::run_error::RunError::plan($place, format!($($message)+)));
        }
    };
}
