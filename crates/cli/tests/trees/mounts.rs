//! File systems for one test, which go with their owner. None where they cannot be mounted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Mount(pub PathBuf);

/// A mount that stands still until this goes.
pub struct Frozen<'a>(&'a Mount);

impl Mount {
    /// In memory, with options such as its size.
    pub fn tmpfs(path: &Path, options: &str) -> Option<Self> {
        std::fs::create_dir(path).unwrap();
        let mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs"];
        does(&mount, path).then(|| Self(path.into()))
    }

    /// Of so many bytes, on a loop device.
    pub fn ext4(path: &Path, bytes: u64) -> Option<Self> {
        let image = path.with_extension("image");
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(bytes).unwrap();
        std::fs::create_dir(path).unwrap();
        let mount = ["mount", "-o", "loop", image.to_str().unwrap()];
        let mounted = does(&["mkfs.ext4", "-q", "-F"], &image) && does(&mount, path);
        mounted.then(|| Self(path.into()))
    }

    /// Lets every change of the file system wait.
    pub fn freeze(&self) -> Frozen<'_> {
        assert!(does(&["fsfreeze", "--freeze"], &self.0));
        Frozen(self)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        does(&["umount"], &self.0);
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        does(&["fsfreeze", "--unfreeze"], &self.0 .0);
    }
}

fn does(command: &[&str], path: &Path) -> bool {
    let mut run = Command::new(command[0]);
    run.args(&command[1..]).arg(path);
    let quiet = run.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
