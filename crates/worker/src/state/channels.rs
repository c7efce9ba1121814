//! What goes between a worker and the main thread.
//!
//! Knows the ways there and back. Knows nothing of what is sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock};

use crate::control::{Control, Message};
use crate::record::CounterTable;
use crate::samples::IoRecord;

/// A worker's ways to the main thread and back.
#[derive(Debug)]
pub struct Lines {
    /// Orders.
    pub control: Arc<Control>,
    /// Where messages go.
    pub out: Sender<Message>,
    /// Where tables come back.
    pub spare: Receiver<Box<CounterTable>>,
    /// Where blocks of records come back.
    pub log_spare: Receiver<Vec<IoRecord>>,
    /// Address of the table in use, to be looked at when the worker cannot answer.
    pub table_in_use: Arc<AtomicUsize>,
    /// Name of the backend that stands in for the Plan's; unset where the Plan's runs.
    pub fallback: Arc<OnceLock<&'static str>>,
}

impl Lines {
    /// Sends a message; a main thread that is gone needs none.
    pub fn say(&self, message: Message) {
        let _ = self.out.send(message);
    }

    /// Says which table is in use from now on.
    pub fn use_table(&self, table: &CounterTable) {
        self.table_in_use.store(table.address(), Ordering::Release);
    }
}
