//! Looks at the disk before and after a run: what there is of a tree, and what has to go first.
//!
//! Knows directories and how to read them. Follows no symbolic link, leaves no file system
//! and removes nothing whose name is not a tree's.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use loadstone_generation::tree::names::{parse_directory, parse_file, TreeShape};
use loadstone_io::directory::{Directory, FileStatus, OsResult};

/// Time between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(200);
/// Names removed at a time.
const AT_A_TIME: usize = 1024;

/// Why a walk did not come to its end.
#[derive(Debug)]
pub enum Halt {
    /// It was stopped.
    Stopped,
    /// Something is not as it must be: where, what, and the remedy.
    Unfit(String, String, &'static str),
    /// An error of the system.
    Error(String, io::Error),
}

/// Told with every file how many there were; says whether to go on.
pub type Report<'a> = &'a mut dyn FnMut(u64) -> bool;

/// A walk below an anchor.
struct DirectoryWalk<'a> {
    /// File system it stays on.
    device: u64,
    path: String,
    /// Files and directories with a later ctime end it; not the anchor, where the mark is written.
    vouched_ns: Option<u64>,
    files: u64,
    directories: u64,
    reported: Instant,
    report: Report<'a>,
}

/// What a name in a directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectoryEntry {
    Directory(u32),
    File(u32),
    /// Not a tree's.
    Foreign,
}

/// What a walk comes across.
#[derive(Debug)]
pub enum WalkItem<'a> {
    /// A file of the tree, by its number.
    File(u32, &'a FileStatus),
    /// A file whose name this tree has no use for, as one with other numbers would.
    Other(&'a FileStatus),
    /// A directory of the tree with so many entries.
    Directory(u32, u32),
    /// A directory below the anchor, of this tree or one with other numbers.
    Below(&'a FileStatus),
}

/// Told what is seen; of a file also its place.
pub type Visit<'a> = &'a mut dyn FnMut(WalkItem, &dyn Fn() -> String);

/// Finds what there is of a tree; gives the number of its files.
///
/// # Errors
/// [`Halt`].
pub fn scan(
    anchor: &File,
    shape: &TreeShape,
    vouched_ns: Option<u64>,
    visit: Visit,
    report: Report,
) -> Result<u64, Halt> {
    let mut walk = DirectoryWalk::new(anchor, vouched_ns, report)?;
    let top = walk.reopened(anchor)?;
    walk.scan(&top, shape, (1, Some(0)), visit)?;
    Ok(walk.files)
}

/// Removes every file and directory with a tree's name; gives how many of each.
///
/// # Errors
/// [`Halt`].
pub fn clear(anchor: &File, vouched_ns: Option<u64>, report: Report) -> Result<(u64, u64), Halt> {
    let mut walk = DirectoryWalk::new(anchor, vouched_ns, report)?;
    let top = walk.reopened(anchor)?;
    walk.clear(&top, 1)?;
    Ok((walk.files, walk.directories))
}

impl<'a> DirectoryWalk<'a> {
    fn new(anchor: &File, vouched_ns: Option<u64>, report: Report<'a>) -> Result<Self, Halt> {
        let found = anchor.metadata();
        let found = found.map_err(|error| Halt::Error(String::new(), error))?;
        Ok(Self {
            device: found.dev(),
            path: String::new(),
            vouched_ns,
            files: 0,
            directories: 0,
            reported: Instant::now(),
            report,
        })
    }

    /// `directory`: its number; none for one that only another tree has.
    fn scan(
        &mut self,
        here: &File,
        shape: &TreeShape,
        (level, directory): (u32, Option<u32>),
        visit: Visit,
    ) -> Result<(), Halt> {
        let mut entries = 0u32;
        for name in self.names(here)? {
            let name = name.map_err(|error| Halt::Error(self.path.clone(), error))?;
            entries = entries.saturating_add(1);
            match entry(&name, level) {
                DirectoryEntry::Directory(number) => {
                    let child = directory.and_then(|parent| shape.child(parent, number));
                    self.within(&name, |walk| {
                        let (below, found) = walk.enter(here, &name)?;
                        visit(WalkItem::Below(&found), &String::new);
                        walk.scan(&below, shape, (level + 1, child), visit)
                    })?;
                }
                DirectoryEntry::File(number) => {
                    let found = self.file(here, &name)?;
                    let file = directory.and_then(|parent| shape.file(parent, number));
                    let seen =
                        file.map_or(WalkItem::Other(&found), |file| WalkItem::File(file, &found));
                    visit(seen, &|| self.place(&name));
                    self.count_file()?;
                }
                DirectoryEntry::Foreign => {}
            }
        }
        if let Some(directory) = directory {
            visit(WalkItem::Directory(directory, entries), &String::new);
        }
        Ok(())
    }

    /// Some at a time, each time from the start: a directory that changes is not read on.
    fn clear(&mut self, here: &File, level: u32) -> Result<(), Halt> {
        loop {
            let ours = self.names(here)?.filter(|name| {
                let is_ours = |name| entry(name, level) != DirectoryEntry::Foreign;
                name.as_ref().map_or(true, is_ours)
            });
            let ours: io::Result<Vec<CString>> = ours.take(AT_A_TIME).collect();
            let ours = ours.map_err(|error| Halt::Error(self.path.clone(), error))?;
            if ours.is_empty() {
                return Ok(());
            }
            self.clear_these(here, level, &ours)?;
        }
    }

    fn clear_these(&mut self, here: &File, level: u32, names: &[CString]) -> Result<(), Halt> {
        for name in names {
            match entry(name, level) {
                DirectoryEntry::File(_) => {
                    self.file(here, name)?;
                    self.removed(name, Directory::held(here).unlink(name))?;
                    self.count_file()?;
                }
                DirectoryEntry::Directory(_) => {
                    self.within(name, |walk| {
                        let (below, _) = walk.enter(here, name)?;
                        walk.clear(&below, level + 1)
                    })?;
                    self.removed(name, Directory::held(here).rmdir(name))?;
                    self.directories += 1;
                }
                DirectoryEntry::Foreign => {}
            }
        }
        Ok(())
    }

    /// Reports now and then.
    fn count_file(&mut self) -> Result<(), Halt> {
        self.files += 1;
        if self.files % 64 == 0 && self.reported.elapsed() >= REPORT_EVERY {
            self.reported = Instant::now();
            if !(self.report)(self.files) {
                return Err(Halt::Stopped);
            }
        }
        Ok(())
    }

    fn within<T>(
        &mut self,
        name: &CString,
        action: impl FnOnce(&mut Self) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        let length = self.path.len();
        self.path.push_str(&name.to_string_lossy());
        self.path.push('/');
        let outcome = action(self)?;
        self.path.truncate(length);
        Ok(outcome)
    }

    fn place(&self, name: &CString) -> String {
        format!("{}{}", self.path, name.to_string_lossy())
    }

    /// Reading the anchor's descriptor itself would move its position for everybody.
    fn reopened(&self, anchor: &File) -> Result<File, Halt> {
        self.open(anchor, &c".".into())
    }

    /// Opens a directory here.
    fn open(&self, here: &File, name: &CString) -> Result<File, Halt> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let opened = Directory::held(here).open(name, flags, 0);
        let file = File::from(opened.map_err(|errno| self.failed(name, errno))?);
        match file.metadata() {
            Ok(found) if found.dev() == self.device => Ok(file),
            Ok(_) => Err(Halt::Unfit(
                self.place(name),
                "another file system is mounted there: a tree stays on one".into(),
                "unmount it, or choose another anchor",
            )),
            Err(error) => Err(Halt::Error(self.place(name), error)),
        }
    }

    /// Opens a directory below the anchor. One that was moved here has a later ctime; what is in
    /// it has not.
    fn enter(&self, here: &File, name: &CString) -> Result<(File, FileStatus), Halt> {
        let below = self.open(here, name)?;
        let found = FileStatus::of(&below).map_err(|errno| self.broken(name, errno))?;
        self.vouched(&found, || self.path.trim_end_matches('/').to_owned())?;
        Ok((below, found))
    }

    /// Ends the walk where something came after the tree was looked at.
    fn vouched(&self, found: &FileStatus, place: impl Fn() -> String) -> Result<(), Halt> {
        match self.vouched_ns {
            Some(limit_ns) if found.changed_ns > limit_ns => Err(Halt::Unfit(
                place(),
                "came or was changed after the tree was looked at".into(),
                "move it away, and run again",
            )),
            _ => Ok(()),
        }
    }

    /// A regular file here.
    fn file(&self, here: &File, name: &CString) -> Result<FileStatus, Halt> {
        let found = Directory::held(here).look(name, libc::AT_SYMLINK_NOFOLLOW);
        let found = found.map_err(|errno| self.broken(name, errno))?;
        if found.is_link() {
            return Err(self.link(name));
        }
        if !found.is_file() {
            return Err(self.other(name, "a regular file"));
        }
        self.vouched(&found, || self.place(name))?;
        Ok(found)
    }

    /// Judges a removal.
    fn removed(&self, name: &CString, outcome: OsResult<()>) -> Result<(), Halt> {
        outcome.map_err(|errno| match errno {
            libc::ENOTEMPTY | libc::EEXIST => Halt::Unfit(
                self.place(name),
                "cannot be removed: it holds something that is not a tree's".into(),
                "look what it is, and move or remove it yourself",
            ),
            _ => self.broken(name, errno),
        })
    }

    fn broken(&self, name: &CString, errno: i32) -> Halt {
        Halt::Error(self.place(name), io::Error::from_raw_os_error(errno))
    }

    /// A directory that could not be opened.
    fn failed(&self, name: &CString, errno: i32) -> Halt {
        match errno {
            libc::ELOOP => self.link(name),
            // What of the two a link gives depends on the flags.
            libc::ENOTDIR => self.other(name, "a directory"),
            _ => self.broken(name, errno),
        }
    }

    fn link(&self, name: &CString) -> Halt {
        self.other(name, "a file or directory of its own")
    }

    fn other(&self, name: &CString, expected: &str) -> Halt {
        Halt::Unfit(
            self.place(name),
            format!("is not {expected}, as a tree has: no symbolic link is followed"),
            "move it away, or choose another anchor",
        )
    }

    /// Names in a directory.
    fn names(&self, here: &File) -> Result<impl Iterator<Item = io::Result<CString>>, Halt> {
        let entries = std::fs::read_dir(format!("/proc/self/fd/{}", here.as_raw_fd()))
            .map_err(|error| Halt::Error(self.path.clone(), error))?;
        Ok(entries.map(|entry| Ok(CString::new(entry?.file_name().as_bytes())?)))
    }
}

fn entry(name: &CString, level: u32) -> DirectoryEntry {
    if let Some((of, number)) = parse_directory(name.as_bytes()) {
        if of == level {
            return DirectoryEntry::Directory(number);
        }
    }
    match parse_file(name.as_bytes()) {
        Some(number) => DirectoryEntry::File(number),
        None => DirectoryEntry::Foreign,
    }
}
