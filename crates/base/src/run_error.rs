//! Why a run ends before its time, with the exit code of each reason.
//!
//! Knows what is said in the `fatal` event. Knows nothing of how it is said.

/// A reason not to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The Plan is not acceptable.
    #[error("{path}: {message}")]
    Plan {
        /// Where in the Plan, as `/streams/3/files/0/target`.
        path: String,
        /// What was found, and what was expected.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// A target could not be opened or prepared.
    #[error("{path}: {message}")]
    Target {
        /// Path of the target.
        path: String,
        /// What happened.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// The engine itself could not go on.
    #[error("{message}")]
    Broken {
        /// What happened.
        message: String,
        /// The remedy.
        hint: String,
    },
}

impl RunError {
    /// A fault of the Plan.
    pub fn plan(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Plan {
            path: path.into(),
            message: message.into(),
            hint: String::new(),
        }
    }

    /// A fault of a target, from an error of the system.
    #[must_use]
    pub fn target(path: &str, doing: &str, error: &std::io::Error) -> Self {
        let hint = error.raw_os_error().map_or("", crate::errno::hint_for);
        Self::Target {
            path: path.into(),
            message: format!("{doing}: {error}"),
            hint: hint.into(),
        }
    }

    /// A fault of the engine.
    pub fn broken(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Broken {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// A file of the engine's own that cannot be written.
    pub fn own_file(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        let hint = crate::errno::own_file_hint(error.raw_os_error());
        Self::broken(format!("{what} cannot be written: {error}"), hint)
    }

    /// Exit code of the process.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::Plan { .. } => 2,
            Self::Target { .. } => 3,
            Self::Broken { .. } => 4,
        }
    }

    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::Plan { hint, .. } | Self::Target { hint, .. } | Self::Broken { hint, .. } => hint,
        }
    }
}
