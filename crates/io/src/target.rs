//! Targets: opened, checked and prepared.
//!
//! Knows `open(2)` and what the Plan says of a target. Knows no stream. Nothing is
//! written to anything but what the Plan names, after its identity was checked.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};

use crate::backend::nvme::namespace::Namespace;
use crate::backend::OpenFile;
use crate::directory::FileStatus;
use loadstone_base::run_error::RunError;
use loadstone_plan::{Advice, Identity, Named, OpenSync, Target, TargetKind};

/// An open target; virtual ones have no file.
#[derive(Debug)]
pub struct OpenTarget {
    file: Option<File>,
    view: OpenFile,
    /// What was opened; none where nothing was.
    identity: Option<Identity>,
    /// Keeps everybody else out while it is open.
    _held: Option<File>,
}

impl OpenTarget {
    /// As backends see it.
    #[must_use]
    pub fn view(&self) -> OpenFile {
        self.view
    }

    /// Closes it: from now on it is used by its name.
    pub fn let_go(&mut self) {
        (self.file, self.view.fd) = (None, -1);
    }

    /// What was opened, for whoever meets its name later; none where nothing was.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The file; none for a virtual target.
    #[must_use]
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }
}

/// A target that a stream opens again and again, each time as what was checked, while the run has it
/// open besides: neither its inode nor its device can become another one's meanwhile.
#[derive(Debug, Clone)]
pub struct ReopenedTarget {
    target: Target,
}

impl ReopenedTarget {
    /// None where nothing is open.
    #[must_use]
    pub fn of(target: &Target, open: &OpenTarget) -> Option<Self> {
        let identity = *open.identity()?;
        let target = Target {
            create: false,
            exclusive: false,
            identity: Some(identity),
            ..target.clone()
        };
        Some(Self { target })
    }

    /// Opens what has its name now. Does not wait for anything, whatever that is.
    ///
    /// # Errors
    /// Of `open(2)`.
    pub fn open(&self) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(!self.target.read_only)
            .custom_flags(open_flags(&self.target) | libc::O_NONBLOCK)
            .open(&self.target.path)
    }

    /// Makes sure that it is what was checked. Before that nothing may be done with it.
    ///
    /// # Errors
    /// [`RunError::Target`].
    pub fn check(&self, file: &File) -> Result<(), RunError> {
        check_identity(&self.target, file)?;
        // SAFETY: plain numbers, of a file that is open.
        let outcome = unsafe {
            let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK)
        };
        if outcome < 0 {
            let error = io::Error::last_os_error();
            return Err(RunError::target(&self.target.path, "cannot use", &error));
        }
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.target.path
    }
}

/// Opens one target and makes sure it is what the planner saw; creates it when it is
/// missing and may be. Nothing is written. This is the only look-up of its name: what is
/// prepared later is this very file.
///
/// # Errors
/// [`RunError::Target`].
pub fn open(target: &Target) -> Result<OpenTarget, RunError> {
    let view = OpenFile {
        fd: -1,
        direct: target.direct,
        kind: target.kind,
        size_bytes: target.size_bytes,
    };
    let without_file = OpenTarget {
        file: None,
        view,
        identity: target.identity,
        _held: None,
    };
    if target.kind == TargetKind::Virtual || target.named == Some(Named::AsFound) {
        return Ok(without_file);
    }
    if target.named == Some(Named::Directory) {
        make_directory(target).map_err(|error| open_fault(target, &error))?;
        return Ok(without_file);
    }
    if target.kind == TargetKind::Tree {
        let file = open_anchor(target).map_err(|error| open_fault(target, &error))?;
        check_identity(target, &file)?;
        return Ok(OpenTarget {
            view: OpenFile {
                fd: file.as_raw_fd(),
                ..view
            },
            file: Some(file),
            ..without_file
        });
    }
    open_data(target, view)
}

/// Opens a file, a device or a namespace.
fn open_data(target: &Target, view: OpenFile) -> Result<OpenTarget, RunError> {
    let _held = hold(target)?;
    let file = OpenOptions::new()
        .read(true)
        .write(!target.read_only)
        .mode(0o644)
        .custom_flags(open_flags(target))
        .open(&target.path)
        .map_err(|error| open_fault(target, &error))?;
    check_identity(target, &file)?;
    if target.kind == TargetKind::Nvme {
        check_namespace(target, &file)?;
    }
    let identity = match target.identity {
        Some(identity) => identity,
        None => identity_of(&target.path, &file)?,
    };
    Ok(OpenTarget {
        view: OpenFile {
            fd: file.as_raw_fd(),
            ..view
        },
        file: Some(file),
        identity: Some(identity),
        _held,
    })
}

fn open_flags(target: &Target) -> i32 {
    let mut flags = libc::O_CLOEXEC;
    if target.create && target.identity.is_none() {
        // Through the flags, because a file that is only read may have to be created, too.
        flags |= libc::O_CREAT;
    }
    if target.direct && target.kind != TargetKind::Nvme {
        flags |= libc::O_DIRECT;
    }
    if target.exclusive && target.kind == TargetKind::Block {
        flags |= libc::O_EXCL;
    }
    flags
        | match target.sync {
            OpenSync::None => 0,
            OpenSync::Sync => libc::O_SYNC,
            OpenSync::Dsync => libc::O_DSYNC,
        }
}

/// Opens the block device with the same data where that has to keep others away: fails when it
/// is in use.
fn hold(target: &Target) -> Result<Option<File>, RunError> {
    let Some(namesake) = target.namesake.as_ref().filter(|_| target.exclusive) else {
        return Ok(None);
    };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_EXCL)
        .open(&namesake.path)
        .map_err(|error| RunError::Target {
            path: target.path.clone(),
            message: format!(
                "cannot claim {}, which has the same data: {error}",
                namesake.path
            ),
            hint: match error.raw_os_error() {
                Some(libc::EBUSY) => IN_USE.into(),
                Some(errno) => loadstone_base::errno::hint_for(errno).into(),
                None => String::new(),
            },
        })?;
    if let Some(expected) = &namesake.identity {
        is_same(&namesake.path, &file, expected)?;
    }
    Ok(Some(file))
}

/// Refuses a namespace that is not as long as planned, or that commands cannot be made for.
fn check_namespace(target: &Target, file: &File) -> Result<(), RunError> {
    let refused = |message: String, hint: &str| RunError::Target {
        path: target.path.clone(),
        message,
        hint: hint.into(),
    };
    let found =
        Namespace::of(file.as_raw_fd()).map_err(|why| refused(why.to_string(), why.hint()))?;
    if target.size_bytes > found.size_bytes {
        return Err(refused(
            format!(
                "has {} bytes, the Plan was made for {}",
                found.size_bytes, target.size_bytes
            ),
            "make the Plan again",
        ));
    }
    Ok(())
}

/// Makes a directory that operations by name are done on, unless something is there.
fn make_directory(target: &Target) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(&target.path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}

/// Opens the directory a tree is in; makes it, but nothing above it, when it is missing and
/// may be.
fn open_anchor(target: &Target) -> io::Result<File> {
    if target.create && target.identity.is_none() {
        match std::fs::create_dir(&target.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_DIRECTORY)
        .open(&target.path)
}

const IN_USE: &str = "the kernel says it is in use (mounted, swap, RAID or LVM member): free it or choose another device";

fn open_fault(target: &Target, error: &io::Error) -> RunError {
    let hint = match error.raw_os_error() {
        Some(libc::EINVAL) if target.direct => "its file system has no direct I/O: set direct=0",
        Some(libc::ENOENT) if target.kind == TargetKind::Tree => {
            "only the anchor itself is made, and where the job may: make the directories above it"
        }
        Some(libc::ENOTDIR) if target.kind == TargetKind::Tree => {
            "a tree is below a directory: choose another anchor"
        }
        Some(libc::EBUSY) => IN_USE,
        Some(errno) => loadstone_base::errno::hint_for(errno),
        None => "",
    };
    RunError::Target {
        path: target.path.clone(),
        message: format!("cannot open: {error}"),
        hint: hint.into(),
    }
}

/// Refuses anything but what the safety check of the planner saw.
fn check_identity(target: &Target, file: &File) -> Result<(), RunError> {
    let found = file
        .metadata()
        .map_err(|error| RunError::target(&target.path, "cannot stat", &error))?;
    let kind = found.file_type();
    let (is_planned, planned) = match target.kind {
        TargetKind::Block => (kind.is_block_device(), "a block device"),
        TargetKind::Char | TargetKind::Nvme => (kind.is_char_device(), "a character device"),
        TargetKind::Tree => (kind.is_dir(), "a directory"),
        TargetKind::File | TargetKind::Virtual => (kind.is_file(), "a regular file"),
    };
    if !is_planned {
        return Err(RunError::Target {
            path: target.path.clone(),
            message: format!("is not {planned}, for which the Plan was made"),
            hint: "make the Plan again: the path means something else now".into(),
        });
    }
    match &target.identity {
        Some(expected) => is_same(&target.path, file, expected),
        None => Ok(()),
    }
}

/// Refuses a file that is not the one the safety check saw.
fn is_same(path: &str, file: &File, expected: &Identity) -> Result<(), RunError> {
    match found(path, file)?.difference(expected) {
        None => Ok(()),
        Some(what) => Err(RunError::Target {
            path: path.into(),
            message: format!("is not what was checked: {what}"),
            hint: REPLACED.into(),
        }),
    }
}

/// Tells one file from another by number; not when it was made, which no file system need tell
/// twice alike.
fn identity_of(path: &str, file: &File) -> Result<Identity, RunError> {
    let found = found(path, file)?;
    Ok(Identity {
        born_ns: None,
        ..found.identity
    })
}

fn found(path: &str, file: &File) -> Result<FileStatus, RunError> {
    FileStatus::of(file).map_err(|errno| {
        RunError::target(path, "cannot stat", &io::Error::from_raw_os_error(errno))
    })
}

const REPLACED: &str = "somebody replaced it between the safety check and the run: run again";

/// Drops a block device's cached pages; `_IO(0x12, 97)` of `linux/fs.h`.
const BLKFLSBUF: libc::c_ulong = 0x1261;

/// Drops cached pages and gives advice. What does not work is told as a note.
pub fn advise(target: &Target, open: &OpenTarget, note: &mut dyn FnMut(String)) {
    let Some(file) = open.file() else { return };
    if !matches!(target.kind, TargetKind::File | TargetKind::Block) {
        return;
    }
    if target.invalidate {
        if target.kind == TargetKind::File {
            // Dirty pages are not dropped: write them first.
            let _ = file.sync_data();
        }
        // SAFETY: the request takes no argument.
        let flushed = target.kind == TargetKind::Block
            && unsafe { libc::ioctl(file.as_raw_fd(), BLKFLSBUF as _, 0) } == 0;
        if target.kind == TargetKind::Block && !flushed {
            let error = io::Error::last_os_error();
            note(format!(
                "{}: its cache was not flushed (that needs CAP_SYS_ADMIN), its clean pages are dropped: {error}",
                target.path
            ));
        }
        if !flushed {
            fadvise(target, file, libc::POSIX_FADV_DONTNEED, note);
        }
    }
    if let Some(advice) = target.advice {
        let advice = match advice {
            Advice::Random => libc::POSIX_FADV_RANDOM,
            Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
            Advice::Noreuse => libc::POSIX_FADV_NOREUSE,
        };
        fadvise(target, file, advice, note);
    }
}

fn fadvise(target: &Target, file: &File, advice: i32, note: &mut dyn FnMut(String)) {
    // SAFETY: the descriptor is open.
    let errno = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
    if errno != 0 {
        note(format!(
            "{}: advice {advice} was not taken: {}",
            target.path,
            io::Error::from_raw_os_error(errno)
        ));
    }
}

/// Raises the limit of open files where the Plan needs it, and has the kernel make room
/// for them at once. To be called before there is a second thread: from then on each time
/// the table of descriptors doubles waits for every CPU (`synchronize_rcu`), which
/// for thousands of files takes longer than to open them.
///
/// # Errors
/// [`RunError::Target`] when the hard limit is too low and may not be raised.
pub fn allow_open_files(needed: u64) -> Result<(), RunError> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if limit.rlim_cur >= needed {
        make_room(needed);
        return Ok(());
    }
    let wanted = libc::rlimit {
        rlim_cur: needed,
        rlim_max: limit.rlim_max.max(needed),
    };
    // SAFETY: as above.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) } == 0 {
        make_room(needed);
        return Ok(());
    }
    Err(RunError::Target {
        path: "open files".into(),
        message: format!(
            "the Plan needs {needed}, the hard limit is {}",
            limit.rlim_max
        ),
        hint: format!("raise it: ulimit -Hn {needed}, or use fewer files"),
    })
}

/// The table keeps its size when the highest descriptor is closed again. Failure changes
/// nothing: it grows later, then.
fn make_room(needed: u64) {
    let highest = i32::try_from(needed).unwrap_or(i32::MAX) - 1;
    // SAFETY: plain numbers; the descriptor that is closed is the one just made.
    unsafe {
        let room = libc::fcntl(libc::STDIN_FILENO, libc::F_DUPFD_CLOEXEC, highest);
        if room >= 0 {
            libc::close(room);
        }
    }
}
