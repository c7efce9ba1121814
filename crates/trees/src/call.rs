//! The system calls on files and directories by name.
//!
//! Knows paths below an anchor and error numbers. Knows no registry and no time. No name
//! leads out of the anchor: a file, and the directory in which a name is made or removed, is
//! opened without following any symbolic link on the way where the kernel can do that
//! (`openat2(2)`), and never its last one; names are the tree's own, and what was found below
//! the anchor before the run had no link among them.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use super::tag::{Expected, FileTag, Kept};
use loadstone_generation::tree::names::MAX_PATH_BYTES;
use loadstone_io::directory::{done, result, retried, Directory, FileStatus};
use loadstone_plan::{OpenSync, Target};

pub use loadstone_io::directory::OsResult;

/// `RESOLVE_NO_XDEV`, `RESOLVE_NO_MAGICLINKS`, `RESOLVE_NO_SYMLINKS` and `RESOLVE_BENEATH`
/// of `linux/openat2.h`.
const RESOLVE: u64 = 0x01 | 0x02 | 0x04 | 0x08;

/// Looks at a name itself.
const NO_LINK: i32 = libc::AT_SYMLINK_NOFOLLOW;

/// `struct open_how` of `linux/openat2.h`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// The directory everything is below, and how files there are opened.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    here: Directory,
    flags: i32,
    openat2: bool,
    /// What tells its files apart.
    pub kept: Kept,
    /// What is cached of a file is dropped when it is opened.
    clears_cache: bool,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read.
    Read,
    /// To read and write.
    Write,
    /// To read and write, and it must not be there yet.
    Create,
}

impl Anchor {
    /// The anchor of an open target.
    #[must_use]
    pub fn new(opened: &impl AsRawFd, target: &Target) -> Self {
        let direct = if target.direct { libc::O_DIRECT } else { 0 };
        let sync = match target.sync {
            OpenSync::None => 0,
            OpenSync::Sync => libc::O_SYNC,
            OpenSync::Dsync => libc::O_DSYNC,
        };
        let mut this = Self {
            here: Directory::held(opened),
            flags: direct | sync | libc::O_CLOEXEC | libc::O_NOFOLLOW,
            openat2: true,
            kept: Kept::by(opened),
            clears_cache: target.invalidate,
        };
        let probed = this.open2(c".", libc::O_RDONLY | libc::O_DIRECTORY, 0);
        this.openat2 = probed.is_ok();
        this
    }

    /// Opens a file, and drops what is cached of it where that is asked for.
    ///
    /// # Errors
    /// The error number of `openat(2)` or `openat2(2)`, or of what the dropping took; `EMLINK`
    /// when a file to write has another name, and `ESTALE` when it is not the `known` one. The
    /// file is not open then.
    pub fn open(&self, path: &[u8], access: Access, known: Expected) -> OsResult<RawFd> {
        let fd = self.open_as_it_is(path, access)?;
        if let Err(errno) = self.prepared(fd, access, known) {
            let _ = close(fd);
            return Err(errno);
        }
        Ok(fd)
    }

    /// The tag of an open file.
    ///
    /// # Errors
    /// The error number of `statx(2)`.
    pub fn tag_of(&self, fd: RawFd) -> OsResult<FileTag> {
        Ok(self
            .kept
            .tag(&Directory::held(&fd).look_at_itself()?.identity))
    }

    fn prepared(&self, fd: RawFd, access: Access, known: Expected) -> OsResult<()> {
        if access == Access::Write {
            self.own(&Directory::held(&fd).look_at_itself()?, known)?;
        }
        if self.clears_cache && access != Access::Create {
            drop_cache(fd)?;
        }
        Ok(())
    }

    fn open_as_it_is(&self, path: &[u8], access: Access) -> OsResult<RawFd> {
        let (flags, mode) = match access {
            Access::Read => (libc::O_RDONLY, 0),
            Access::Write => (libc::O_RDWR, 0),
            Access::Create => (libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o644),
        };
        let flags = flags | self.flags;
        let opened = if self.openat2 {
            self.open2(text(path), flags, mode)
        } else {
            self.here.open(text(path), flags, mode)
        };
        opened.map(OwnedFd::into_raw_fd)
    }

    fn open2(&self, path: &CStr, flags: i32, mode: libc::mode_t) -> OsResult<OwnedFd> {
        let how = OpenHow {
            flags: flags as u64,
            mode: u64::from(mode),
            resolve: RESOLVE,
        };
        let (how, bytes) = (std::ptr::from_ref(&how), size_of::<OpenHow>());
        let (here, path) = (self.here.number(), path.as_ptr());
        // SAFETY: the path ends with a zero byte; the kernel reads so many bytes at `how`.
        let call = || unsafe { libc::syscall(libc::SYS_openat2, here, path, how, bytes) };
        let fd = retried(|| call() as i32)?;
        // SAFETY: the descriptor was just opened and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Makes a call with the directory a path leads to, and its last name there. The directory
    /// is held meanwhile: what is put in its place by others is not touched.
    fn in_parent(
        &self,
        path: &[u8],
        call: impl FnOnce(Directory, &CStr) -> OsResult<()>,
    ) -> OsResult<()> {
        let last = path.iter().rposition(|&byte| byte == b'/');
        let Some(last) = last.filter(|_| self.openat2) else {
            return call(self.here, text(path));
        };
        let mut parent = [0; MAX_PATH_BYTES];
        parent[..last].copy_from_slice(&path[..last]);
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let held = self.open2(text(&parent[..=last]), flags, 0)?;
        call(Directory::held(&held), text(&path[last + 1..]))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// The error number of the system call or that of opening the directory it is in, as of all
    /// that follow.
    pub fn mkdir(&self, path: &[u8]) -> OsResult<()> {
        self.in_parent(path, |parent, name| parent.mkdir(name, 0o755))
    }

    /// Removes a directory.
    ///
    /// # Errors
    /// As above.
    pub fn rmdir(&self, path: &[u8]) -> OsResult<()> {
        self.in_parent(path, Directory::rmdir)
    }

    /// Removes a file that is the `known` one: it is looked at just before.
    ///
    /// # Errors
    /// As above; `ESTALE` for another file.
    pub fn delete(&self, path: &[u8], known: Expected) -> OsResult<()> {
        self.in_parent(path, |parent, name| {
            let found = parent.look(name, NO_LINK)?;
            self.is_known(&found, known)?;
            parent.unlink(name)
        })
    }

    /// Refuses a file to write that is not the known one, or has another name: somebody put it
    /// into the tree after that was looked at.
    fn own(&self, found: &FileStatus, known: Expected) -> OsResult<()> {
        match found.links {
            0 | 1 => self.is_known(found, known),
            _ => Err(libc::EMLINK),
        }
    }

    fn is_known(&self, found: &FileStatus, known: Expected) -> OsResult<()> {
        if self.kept.is(found, known) {
            return Ok(());
        }
        Err(libc::ESTALE)
    }

    /// The size of a regular file.
    ///
    /// # Errors
    /// As above; `ELOOP` and the like when it is something else.
    pub fn getattr(&self, path: &[u8]) -> OsResult<u64> {
        let found = self.here.look(text(path), NO_LINK)?;
        if found.is_file() {
            return Ok(found.size_bytes);
        }
        Err(if found.is_link() {
            libc::ELOOP
        } else if found.is_directory() {
            libc::EISDIR
        } else {
            libc::EINVAL
        })
    }

    /// Sets both times to the present one.
    ///
    /// # Errors
    /// As above.
    pub fn setattr(&self, path: &[u8]) -> OsResult<()> {
        self.in_parent(path, Directory::touch)
    }

    /// Asks whether a file may be read.
    ///
    /// # Errors
    /// As above.
    pub fn access(&self, path: &[u8]) -> OsResult<()> {
        self.here.access(text(path))
    }

    /// Moves a file that is the `known` one to another anchor; what is `replaced` there goes,
    /// and nothing else.
    ///
    /// # Errors
    /// As above; `ESTALE` for another file in either place, `EEXIST` for one that came meanwhile.
    pub fn rename(
        &self,
        (path, known): (&[u8], Expected),
        to: &Self,
        (to_path, replaced): (&[u8], Expected),
    ) -> OsResult<()> {
        self.in_parent(path, |from, name| {
            self.is_known(&from.look(name, NO_LINK)?, known)?;
            to.in_parent(to_path, |into, other| {
                match into.look(other, NO_LINK) {
                    Ok(found) => to.is_known(&found, replaced)?,
                    Err(libc::ENOENT) => match from.rename_to_free(name, into, other) {
                        Err(libc::EINVAL | libc::ENOSYS) => {}
                        outcome => return outcome,
                    },
                    Err(errno) => return Err(errno),
                }
                from.rename(name, into, other)
            })
        })
    }
}

/// `close(2)`. Not made again when interrupted: the descriptor is gone.
///
/// # Errors
/// As above.
pub fn close(fd: RawFd) -> OsResult<()> {
    // SAFETY: the caller owns the descriptor and uses it no more.
    done(result(unsafe { libc::close(fd) }))
}

/// `fsync(2)`.
///
/// # Errors
/// As above.
pub fn flush(fd: RawFd) -> OsResult<()> {
    // SAFETY: the caller owns the descriptor.
    done(retried(|| unsafe { libc::fsync(fd) }))
}

/// Drops the cached pages of a file. Dirty ones are not dropped, so they are written first.
fn drop_cache(fd: RawFd) -> OsResult<()> {
    // SAFETY: the caller owns the descriptor, here and below.
    done(retried(|| unsafe { libc::fdatasync(fd) }))?;
    // SAFETY: as above; it returns its error.
    match unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        errno => Err(errno),
    }
}

/// A path as the kernel takes it.
fn text(path: &[u8]) -> &CStr {
    debug_assert_eq!(path.last(), Some(&0));
    // SAFETY: all paths of a tree are made with a zero byte at their end and none before it.
    unsafe { CStr::from_bytes_with_nul_unchecked(path) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;
    use loadstone_plan::{plain, TargetKind};

    /// Is removed with all that is in it.
    struct ScratchTree(PathBuf);

    impl Drop for ScratchTree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn known(anchor: &Anchor, name: &CStr) -> Expected {
        let found = anchor.here.look(name, NO_LINK).unwrap();
        Expected {
            tag: anchor.kept.tag(&found.identity),
            size_bytes: found.size_bytes,
            settled: true,
        }
    }

    #[test]
    fn what_is_linked_into_a_tree_during_a_run_is_not_opened_to_write() {
        let name = format!("loadstone-names-{}", std::process::id());
        let scratch = ScratchTree(std::env::temp_dir().join(name));
        let tree = scratch.0.join("tree");
        fs::create_dir_all(&tree).unwrap();
        let mine = scratch.0.join("mine");
        fs::write(&mine, "kept").unwrap();
        fs::write(tree.join("own"), "ours").unwrap();
        let opened = fs::File::open(&tree).unwrap();
        let anchor = Anchor::new(&opened, &plain::target("tree", TargetKind::File, 0));
        let known = known(&anchor, c"own");
        let open = |access| anchor.open(b"own\0", access, known).map(close);
        assert_eq!(open(Access::Write), Ok(Ok(())));
        fs::remove_file(tree.join("own")).unwrap();
        fs::hard_link(&mine, tree.join("own")).unwrap();
        assert_eq!(open(Access::Write), Err(libc::EMLINK));
        assert_eq!(open(Access::Read), Ok(Ok(())));
    }

    /// A tree with a file of its own, and with a link to what lies beside the tree.
    fn tree_with_a_link(name: &str) -> (ScratchTree, fs::File) {
        let name = format!("loadstone-{name}-{}", std::process::id());
        let scratch = ScratchTree(std::env::temp_dir().join(name));
        let (tree, outside) = (scratch.0.join("tree"), scratch.0.join("outside"));
        for directory in [tree.join("own"), outside.join("empty")] {
            fs::create_dir_all(directory).unwrap();
        }
        for file in [tree.join("own/file"), outside.join("file")] {
            fs::write(file, "kept").unwrap();
        }
        symlink(&outside, tree.join("link")).unwrap();
        let opened = fs::File::open(&tree).unwrap();
        (scratch, opened)
    }

    #[test]
    fn what_is_behind_a_link_on_the_way_is_neither_made_nor_removed_nor_moved() {
        let (scratch, opened) = tree_with_a_link("behind");
        let anchor = Anchor::new(&opened, &plain::target("tree", TargetKind::File, 0));
        if !anchor.openat2 {
            return eprintln!("skipped: this kernel has no openat2(2) (needs Linux 5.6)");
        }
        let outside = scratch.0.join("outside");
        let modified = || fs::metadata(outside.join("file")).unwrap().modified();
        let (before, refused) = (modified().unwrap(), Err(libc::ELOOP));
        assert_eq!(anchor.mkdir(b"link/new\0"), refused);
        assert_eq!(anchor.rmdir(b"link/empty\0"), refused);
        let known = known(&anchor, c"own/file");
        assert_eq!(anchor.delete(b"link/file\0", known), refused);
        assert_eq!(anchor.setattr(b"link/file\0"), refused);
        assert_eq!(
            anchor.rename(
                (b"link/file\0", known),
                &anchor,
                (b"own/new\0", Expected::NONE)
            ),
            refused
        );
        assert_eq!(
            anchor.rename((b"own/file\0", known), &anchor, (b"link/file\0", known)),
            refused
        );
        let mut left: Vec<_> = fs::read_dir(&outside)
            .unwrap()
            .map(|one| one.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["empty", "file"]);
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"kept");
        assert_eq!(modified().unwrap(), before);
    }

    #[test]
    fn where_no_link_is_on_the_way_a_tree_s_own_is_made_moved_and_removed() {
        let (_scratch, opened) = tree_with_a_link("own");
        let anchor = Anchor::new(&opened, &plain::target("tree", TargetKind::File, 0));
        if !anchor.openat2 {
            return eprintln!("skipped: this kernel has no openat2(2) (needs Linux 5.6)");
        }
        let known = known(&anchor, c"own/file");
        assert_eq!(anchor.mkdir(b"own/new\0"), Ok(()));
        assert_eq!(
            anchor.rename(
                (b"own/file\0", known),
                &anchor,
                (b"own/new/file\0", Expected::NONE)
            ),
            Ok(())
        );
        assert_eq!(anchor.setattr(b"own/new/file\0"), Ok(()));
        assert_eq!(
            anchor.delete(b"own/new/file\0", Expected::NONE),
            Err(libc::ESTALE)
        );
        assert_eq!(anchor.delete(b"own/new/file\0", known), Ok(()));
        assert_eq!(anchor.rmdir(b"own/new\0"), Ok(()));
        assert_eq!(anchor.rmdir(b"own\0"), Ok(()));
    }
}
