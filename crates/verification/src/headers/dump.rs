//! The content of damaged blocks, kept in files.
//!
//! Knows their names, which are fio's. Never writes over a file that is there.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes each part into a file of its own in `dir`; what is to be said of it, a line each.
#[must_use]
pub fn keep(dir: &str, path: &str, offset: u64, parts: &[(&str, &[u8])]) -> String {
    let mut said = String::new();
    let base = Path::new(path).file_name().unwrap_or_default();
    for (what, bytes) in parts {
        let name = format!("{}.{offset}.{what}", base.to_string_lossy());
        let place = if dir.is_empty() {
            Path::new(&name).to_path_buf()
        } else {
            Path::new(dir).join(&name)
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options
            .open(&place)
            .and_then(|mut file| file.write_all(bytes));
        let shown = place.display();
        let _ = match written {
            Ok(()) => writeln!(said, "       {what} data dumped as {shown}"),
            Err(error) => writeln!(said, "       {what} data not dumped as {shown}: {error}"),
        };
    }
    said
}
