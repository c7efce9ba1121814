//! A file of results.
//!
//! Knows that it never goes over what is there, and who may read it. Knows nothing of what it
//! holds.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a file that nothing stands in the place of, for nobody else to read.
///
/// # Errors
/// Those of the file, with its path.
pub fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
