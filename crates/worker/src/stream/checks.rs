//! How a stream's data are checked: not at all, by stamps, or by headers.
//!
//! Knows that it is one of these, and what belongs to each. Knows no bytes.

use std::sync::Arc;

use loadstone_generation::chain::Chains;
use loadstone_plan::Stream;
use loadstone_verification::headers::readback::{Part, Readback};
use loadstone_verification::verify::tables::VerifyTables;
use loadstone_verification::verify::verifier::Verifier;

/// The verification of one stream.
#[derive(Debug)]
pub enum Checks {
    /// Nobody looks at the data.
    Nothing,
    /// Blocks are stamped, and held against a table.
    Stamps {
        /// Stamps and checks.
        verifier: Box<Verifier>,
        /// Writes with reads before and after them.
        chains: Option<Chains>,
    },
    /// Blocks have fio's headers, and the stream reads them back itself.
    Headers(Box<Readback>),
}

impl Checks {
    /// Those of a stream; `bytes` are what it may move in a pass.
    #[must_use]
    pub fn new(stream: &Stream, bytes: u64, tables: &Arc<VerifyTables>) -> Self {
        if let Some(readback) = Readback::new(stream, bytes, tables) {
            return Self::Headers(Box::new(readback));
        }
        match (Verifier::new(stream, tables), &stream.verify) {
            (Some(verifier), Some(plan)) => Self::Stamps {
                verifier: Box::new(verifier),
                chains: Chains::new(plan, stream.iodepth),
            },
            _ => Self::Nothing,
        }
    }

    /// Nobody looks at the data.
    #[inline]
    #[must_use]
    pub fn are_none(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Who stamps and checks stamps.
    #[inline]
    #[must_use]
    pub fn verifier(&self) -> Option<&Verifier> {
        match self {
            Self::Stamps { verifier, .. } => Some(verifier),
            _ => None,
        }
    }

    /// See [`Checks::verifier`].
    #[inline]
    pub fn verifier_mut(&mut self) -> Option<&mut Verifier> {
        match self {
            Self::Stamps { verifier, .. } => Some(verifier),
            _ => None,
        }
    }

    /// Writes with reads beside them.
    #[inline]
    #[must_use]
    pub fn chains(&self) -> Option<&Chains> {
        match self {
            Self::Stamps { chains, .. } => chains.as_ref(),
            _ => None,
        }
    }

    /// See [`Checks::chains`].
    #[inline]
    pub fn chains_mut(&mut self) -> Option<&mut Chains> {
        match self {
            Self::Stamps { chains, .. } => chains.as_mut(),
            _ => None,
        }
    }

    /// Who reads back what has headers.
    #[inline]
    #[must_use]
    pub fn readback(&self) -> Option<&Readback> {
        match self {
            Self::Headers(readback) => Some(readback),
            _ => None,
        }
    }

    /// See [`Checks::readback`].
    #[inline]
    pub fn readback_mut(&mut self) -> Option<&mut Readback> {
        match self {
            Self::Headers(readback) => Some(readback),
            _ => None,
        }
    }

    /// What is done now is to read back what was written, not what was asked for.
    #[inline]
    #[must_use]
    pub fn are_reading_back(&self) -> bool {
        self.readback()
            .is_some_and(|readback| readback.part != Part::Work)
    }
}
