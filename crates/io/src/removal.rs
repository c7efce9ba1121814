//! Which targets are removed: by the load, and after the run.
//!
//! Knows the Plan and what was opened. How a name goes, and what stays, is the name's.

use std::collections::BTreeSet;
use std::io;

use crate::name::Parents;
use crate::target::OpenTarget;
use loadstone_plan::{Backend, NameOperation, Plan, Target, TargetKind};

/// Targets that the load removes by their names.
#[must_use]
pub fn removed_by_load(plan: &Plan) -> BTreeSet<u32> {
    let removes = |backend: &Backend| {
        matches!(
            backend,
            Backend::Names {
                operation: NameOperation::Delete | NameOperation::Rmdir
            }
        )
    };
    plan.streams
        .iter()
        .filter(|stream| removes(&plan.workers[stream.worker as usize].backend))
        .flat_map(|stream| stream.files.iter().map(|file| file.target))
        .collect()
}

/// Removes the files the Plan wants removed, and nothing else that stands at their paths by
/// now; gives what was left.
#[must_use]
pub fn unlink_all(plan: &Plan, targets: &[OpenTarget]) -> Vec<String> {
    // What was never opened was not made either.
    plan.targets
        .iter()
        .zip(targets)
        .filter(|(target, _)| target.unlink && target.kind == TargetKind::File)
        .filter_map(|(target, open)| match unlink(target, open) {
            Err(error) if target.named.is_none() || error.kind() != io::ErrorKind::NotFound => {
                Some(format!("{}: could not be removed: {error}", target.path))
            }
            _ => None,
        })
        .collect()
}

fn unlink(target: &Target, open: &OpenTarget) -> io::Result<()> {
    Parents::default()
        .hold(&target.path, open.identity())?
        .remove()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::target::open;
    use loadstone_plan::{plain, Named};

    /// A directory of its own, gone when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir()
                .join(format!("loadstone-unlink-{}-{name}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn removed_after_the_run(path: &Path) -> Plan {
        let mut plan = plain::plan(Backend::Psync {}, vec![]);
        let target = plain::target(path.to_str().unwrap(), TargetKind::File, 4096);
        plan.targets = vec![Target {
            create: true,
            unlink: true,
            ..target
        }];
        plan
    }

    fn opened(plan: &Plan) -> Vec<OpenTarget> {
        plan.targets.iter().map(|one| open(one).unwrap()).collect()
    }

    #[test]
    fn a_file_of_the_run_is_removed() {
        let folder = Folder::new("own");
        let plan = removed_after_the_run(&folder.0.join("f"));
        let targets = opened(&plan);
        assert_eq!(unlink_all(&plan, &targets), [""; 0]);
        assert!(!folder.0.join("f").exists());
    }

    #[test]
    fn a_link_that_named_the_target_is_removed_and_the_file_is_not() {
        let folder = Folder::new("link");
        fs::write(folder.0.join("f"), "kept").unwrap();
        symlink("f", folder.0.join("l")).unwrap();
        let plan = removed_after_the_run(&folder.0.join("l"));
        let targets = opened(&plan);
        assert_eq!(unlink_all(&plan, &targets), [""; 0]);
        assert!(!folder.0.join("l").is_symlink() && folder.0.join("f").exists());
    }

    #[test]
    fn a_file_that_took_the_name_meanwhile_stays() {
        let folder = Folder::new("other");
        let path = folder.0.join("f");
        let plan = removed_after_the_run(&path);
        let targets = opened(&plan);
        fs::write(folder.0.join("g"), "somebody's").unwrap();
        fs::rename(folder.0.join("g"), &path).unwrap();
        let told = unlink_all(&plan, &targets);
        assert!(
            told[0].contains("another file stands there now"),
            "{told:?}"
        );
        assert_eq!(fs::read(path).unwrap(), b"somebody's");
    }

    #[test]
    fn a_file_in_a_directory_that_took_the_place_of_the_targets_stays() {
        let folder = Folder::new("directory");
        let (here, there) = (folder.0.join("here"), folder.0.join("there"));
        fs::create_dir(&here).unwrap();
        fs::create_dir(&there).unwrap();
        fs::write(there.join("f"), "somebody's").unwrap();
        let plan = removed_after_the_run(&here.join("f"));
        let targets = opened(&plan);
        fs::rename(&here, folder.0.join("away")).unwrap();
        symlink(&there, &here).unwrap();
        assert_eq!(unlink_all(&plan, &targets).len(), 1);
        assert_eq!(fs::read(there.join("f")).unwrap(), b"somebody's");
        assert!(folder.0.join("away").join("f").exists());
    }

    #[test]
    fn of_names_only_what_is_empty_is_removed() {
        let folder = Folder::new("names");
        let path = folder.0.join("f");
        let mut plan = removed_after_the_run(&path);
        plan.targets[0].named = Some(Named::AsFound);
        let targets = opened(&plan);
        assert_eq!(unlink_all(&plan, &targets), [""; 0], "it was never made");
        fs::write(&path, "").unwrap();
        assert_eq!(unlink_all(&plan, &targets), [""; 0]);
        assert!(!path.exists());
        fs::write(&path, "somebody's").unwrap();
        assert_eq!(unlink_all(&plan, &targets).len(), 1);
        assert!(path.exists());
    }

    #[test]
    fn what_was_never_opened_stays() {
        let folder = Folder::new("unopened");
        let path = folder.0.join("f");
        fs::write(&path, "").unwrap();
        assert_eq!(unlink_all(&removed_after_the_run(&path), &[]), [""; 0]);
        assert!(path.exists());
    }

    #[test]
    fn a_file_that_takes_the_name_at_any_moment_keeps_its_data() {
        let folder = Folder::new("race");
        let (path, other) = (folder.0.join("f"), folder.0.join("g"));
        let holder = fs::File::open(&folder.0).unwrap();
        for _ in 0..400 {
            let plan = removed_after_the_run(&path);
            let targets = opened(&plan);
            fs::write(&other, "somebody's").unwrap();
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        exchange(&holder, c"f", c"g");
                    }
                });
                let _ = unlink_all(&plan, &targets);
                over.store(true, Ordering::Relaxed);
            });
            let left = fs::read_dir(&folder.0)
                .unwrap()
                .map(|one| one.unwrap().path());
            let held: Vec<_> = left.map(|one| (fs::read(&one).unwrap(), one)).collect();
            assert!(
                held.iter().any(|(data, _)| data == b"somebody's"),
                "{held:?}"
            );
            for (_, path) in held {
                fs::remove_file(path).unwrap();
            }
        }
    }

    /// Two names change places.
    fn exchange(holder: &fs::File, one: &CStr, two: &CStr) {
        use std::os::fd::AsRawFd;

        let (here, flags) = (holder.as_raw_fd(), libc::RENAME_EXCHANGE);
        let (number, one, two) = (libc::SYS_renameat2, one.as_ptr(), two.as_ptr());
        // SAFETY: both names are texts with their ends.
        let _ = unsafe { libc::syscall(number, here, one, here, two, flags) };
    }
}
