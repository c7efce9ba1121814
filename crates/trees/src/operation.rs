//! Operations by name: what each does on the disk, and what the registry learns of it.
//!
//! Knows one operation on something that was taken. Knows nothing of how it was chosen.

use super::call::{Access, Anchor, OsResult};
use super::open_file::OpenTreeFile;
use super::registry::KnownFile;
use super::tag::{Expected, FileTag};
use super::take::{give, Taken, GONE};
use super::transfer::Filled;
use super::worker::FileWorker;
use super::Trees;
use loadstone_base::ops::FileOp;
use loadstone_plan::FileOperation;
use loadstone_worker::state::files::{OperationStep, Times};

impl FileWorker {
    /// Does the operation of a stream on what it took, and gives that back.
    pub(super) fn operate(
        &mut self,
        index: u32,
        operation: FileOperation,
        taken: &Taken,
        times: Times,
    ) {
        match operation {
            FileOperation::Mkdir {} => self.mkdir(index, taken, times),
            FileOperation::Rmdir {} => self.rmdir(index, taken, times),
            FileOperation::Create { fill } => self.create(index, taken, times, fill),
            FileOperation::Delete {} => {
                self.name_file(index, taken.number);
                let outcome = self.delete_file(index, taken.number, Some(times));
                if outcome.is_ok() {
                    self.forget(index, taken.number);
                }
                self.give_unless_gone(index, taken, outcome.is_ok(), outcome);
            }
            FileOperation::Open {} => self.open_and_close(index, taken, times, Access::Read),
            FileOperation::Close {} => self.open_and_close(index, taken, times, Access::Write),
            FileOperation::Getattr {} => {
                let call = |anchor: &Anchor, path: &[u8]| anchor.getattr(path).map(|_| ());
                self.look(index, (taken, times), FileOp::Getattr, call);
            }
            FileOperation::Setattr {} => {
                self.look(index, (taken, times), FileOp::Setattr, Anchor::setattr)
            }
            FileOperation::Access {} => {
                self.look(index, (taken, times), FileOp::Access, Anchor::access)
            }
            FileOperation::Copy { to } => self.copy(index, taken, times, to),
            FileOperation::Move { to } => self.rename(index, taken, times, to),
            FileOperation::Transfer { .. } => {}
        }
    }

    /// Writes down the path of a file of the stream's tree.
    pub(super) fn name_file(&mut self, index: u32, number: u32) {
        let job = &mut self.jobs[index as usize];
        let shape = &self.trees.trees[job.in_tree.tree as usize].shape;
        shape.file_path(number, &mut job.path);
        job.number = number;
    }

    fn name_directory(&mut self, index: u32, number: u32) {
        let job = &mut self.jobs[index as usize];
        let shape = &self.trees.trees[job.in_tree.tree as usize].shape;
        shape.directory_path(number, &mut job.path);
    }

    /// A step that is one system call on that path.
    pub(super) fn call(
        &mut self,
        index: u32,
        op: FileOp,
        times: Option<Times>,
        call: impl FnOnce(&Anchor, &[u8]) -> OsResult<()>,
    ) -> OsResult<()> {
        let step = self.step_by_name(index, op);
        let outcome = self.step(index, step, times, |trees, job| {
            call(&trees.trees[job.in_tree.tree as usize].anchor, &job.path).map(|()| 0)
        });
        outcome.map(|_| ())
    }

    /// A step that opens the file of that path.
    pub(super) fn open_file(
        &mut self,
        index: u32,
        access: Access,
        times: Option<Times>,
    ) -> OsResult<i32> {
        let mut opened = Err(libc::EIO);
        let number = self.jobs[index as usize].number;
        let known = self.tree(index).registry.expected(number);
        self.call(index, FileOp::Open, times, |anchor, path| {
            opened = anchor.open(path, access, known);
            opened.map(|_| ())
        })?;
        opened
    }

    /// A step that removes the file of that path.
    pub(super) fn delete_file(
        &mut self,
        index: u32,
        number: u32,
        times: Option<Times>,
    ) -> OsResult<()> {
        let known = self.tree(index).registry.expected(number);
        self.call(index, FileOp::Delete, times, |anchor, path| {
            anchor.delete(path, known)
        })?;
        self.tree(index).registry.set_tag(number, FileTag::NONE);
        Ok(())
    }

    /// A create that is only the open that makes the file: two steps, one within the other.
    pub(super) fn create_file(&mut self, index: u32) -> OsResult<i32> {
        let step = self.step_by_name(index, FileOp::Create);
        let handed_ns = self.clock.now_ns();
        let outer = self.state.begin_step(index, &step, None, handed_ns);
        let made = self.make_file(index, None);
        let now = self.clock.now_ns();
        let outcome = made.map(|_| 0);
        self.state.end_step(index, outer, outcome, now);
        if made.is_err() {
            self.say_failure(index, &step, outcome, now);
        }
        made
    }

    /// The open within a create, in the stream's tree or in another one. What fails there
    /// is told as the create's.
    fn make_file(&mut self, index: u32, other: Option<u32>) -> OsResult<i32> {
        let trees = self.trees.clone();
        let own = self.jobs[index as usize].in_tree.tree;
        let tree = &trees.trees[other.unwrap_or(own) as usize];
        let step = OperationStep {
            target: tree.target,
            ..self.step_by_name(index, FileOp::Open)
        };
        let anchor = tree.anchor;
        let handed_ns = self.clock.now_ns();
        let outer = self.state.begin_step(index, &step, None, handed_ns);
        let job = &self.jobs[index as usize];
        let path = other.map_or(&job.path, |_| &job.other_path);
        let made = anchor.open(path, Access::Create, Expected::NONE);
        let now = self.clock.now_ns();
        self.state.end_step(index, outer, made.map(|_| 0), now);
        if let Ok(fd) = made {
            // What cannot be looked at is not known again, so it is not written again.
            let tag = anchor.tag_of(fd).unwrap_or(FileTag::NONE);
            tree.registry.set_tag(job.number, tag);
        }
        made
    }

    fn mkdir(&mut self, index: u32, taken: &Taken, times: Times) {
        self.name_directory(index, taken.number);
        // Of a tree of several hosts each makes all directories: the others found theirs made.
        let divided = self.tree(index).part.count > 1;
        let outcome = self.call(
            index,
            FileOp::Mkdir,
            Some(times),
            |anchor, path| match anchor.mkdir(path) {
                Err(libc::EEXIST) if divided => Ok(()),
                outcome => outcome,
            },
        );
        let tree = self.tree(index);
        match outcome {
            Ok(()) => tree.registry.give_directory(taken.number, true),
            // Somebody else made it, and may have put something there.
            Err(libc::EEXIST) => tree.registry.give_occupied(taken.number),
            Err(_) => {
                tree.registry.give_directory(taken.number, false);
                tree.registry.leave(tree.shape.parent(taken.number));
                return;
            }
        }
        self.trees.changed();
    }

    fn rmdir(&mut self, index: u32, taken: &Taken, times: Times) {
        self.name_directory(index, taken.number);
        let outcome = self.call(index, FileOp::Rmdir, Some(times), Anchor::rmdir);
        let tree = self.tree(index);
        match outcome {
            Ok(()) | Err(libc::ENOENT) => {
                tree.registry.give_directory(taken.number, false);
                tree.registry.leave(tree.shape.parent(taken.number));
                self.trees.changed();
            }
            Err(libc::ENOTEMPTY | libc::EEXIST) => tree.registry.give_occupied(taken.number),
            Err(_) => tree.registry.give_directory(taken.number, true),
        }
    }

    /// One call that changes nothing the registry knows.
    fn look(
        &mut self,
        index: u32,
        (taken, times): (&Taken, Times),
        op: FileOp,
        call: impl FnOnce(&Anchor, &[u8]) -> OsResult<()>,
    ) {
        self.name_file(index, taken.number);
        let outcome = self.call(index, op, Some(times), call);
        self.give_unless_gone(index, taken, false, outcome);
    }

    fn open_and_close(&mut self, index: u32, taken: &Taken, times: Times, access: Access) {
        self.name_file(index, taken.number);
        let opened = self.open_file(index, access, Some(times));
        if let Ok(fd) = opened {
            let target = self.tree(index).target;
            let _ = self.close(index, target, fd);
        }
        self.give_unless_gone(index, taken, false, opened.map(|_| ()));
    }

    /// Makes a file and fills it; `create` is all of it, up to the close.
    fn create(&mut self, index: u32, taken: &Taken, times: Times, fill: bool) {
        self.name_file(index, taken.number);
        let step = self.step_by_name(index, FileOp::Create);
        let handed_ns = self.clock.now_ns();
        let outer = self.state.begin_step(index, &step, Some(times), handed_ns);
        let opened = if taken.known.exists {
            self.open_file(index, Access::Write, None)
        } else {
            self.make_file(index, None)
        };
        let mut left = taken.known;
        let filled = match opened {
            Ok(fd) => {
                left.exists = true;
                let filled = if fill {
                    self.fill(index, fd, taken.number, &mut left)
                } else {
                    Filled::Whole
                };
                match self.close(index, step.target, fd) {
                    Err(errno) => Filled::Failed(errno),
                    Ok(_) => filled,
                }
            }
            Err(errno) => Filled::Failed(errno),
        };
        let now = self.clock.now_ns();
        match filled {
            Filled::Whole => self.state.end_step(index, outer, Ok(0), now),
            Filled::Failed(errno) => self.state.end_step(index, outer, Err(errno), now),
            Filled::Stopped => self.state.abandon_step(index, outer, now),
        }
        // What failed inside was said already.
        if let (Err(errno), false) = (opened, taken.known.exists) {
            self.say_failure(index, &step, Err(errno), now);
            left = self.seen_again(index, errno, left);
        }
        self.finish(index, taken, left);
    }

    /// Copies a file, whole; what is at the other place goes first.
    fn copy(&mut self, index: u32, taken: &Taken, times: Times, to: u32) {
        self.name_both(index, taken.number, to);
        let step = self.step_by_name(index, FileOp::Copy);
        let handed_ns = self.clock.now_ns();
        let outer = self.state.begin_step(index, &step, Some(times), handed_ns);
        let mut other = taken.other;
        let outcome = self.copy_steps(index, taken, to, &mut other);
        let now = self.clock.now_ns();
        match outcome {
            Filled::Whole => self.state.end_step(index, outer, Ok(0), now),
            Filled::Failed(errno) => self.state.end_step(index, outer, Err(errno), now),
            Filled::Stopped => self.state.abandon_step(index, outer, now),
        }
        self.finish_other(to, taken, other);
        self.finish(index, taken, taken.known);
    }

    fn copy_steps(&mut self, index: u32, taken: &Taken, to: u32, other: &mut KnownFile) -> Filled {
        let target = self.trees.trees[to as usize].target;
        let in_other = |op| OperationStep {
            target,
            ..self.step_by_name(index, op)
        };
        let (delete, create) = (in_other(FileOp::Delete), in_other(FileOp::Create));
        if other.exists {
            let deleted = self.step(index, delete, None, |trees, job| {
                let other = &trees.trees[to as usize];
                let known = other.registry.expected(job.number);
                other.anchor.delete(&job.other_path, known)?;
                other.registry.set_tag(job.number, FileTag::NONE);
                Ok(0)
            });
            match deleted {
                Ok(_) | Err(libc::ENOENT) => *other = GONE,
                Err(errno) => return Filled::Failed(errno),
            }
        }
        let from = match self.open_file(index, Access::Read, None) {
            Ok(fd) => fd,
            Err(errno) => return Filled::Failed(errno),
        };
        let handed_ns = self.clock.now_ns();
        let outer = self.state.begin_step(index, &create, None, handed_ns);
        let made = self.make_file(index, Some(to));
        let now = self.clock.now_ns();
        self.state.end_step(index, outer, made.map(|_| 0), now);
        if made.is_err() {
            self.say_failure(index, &create, made.map(|_| 0), now);
        }
        let mut outcome = match made {
            Ok(fd) => {
                other.exists = true;
                let moved = self.copy_bytes(index, (from, fd), taken, target, other);
                match self.close(index, target, fd) {
                    Err(errno) => Filled::Failed(errno),
                    Ok(_) => moved,
                }
            }
            Err(errno) => Filled::Failed(errno),
        };
        let own = self.tree(index).target;
        if let Err(errno) = self.close(index, own, from) {
            outcome = Filled::Failed(errno);
        }
        outcome
    }

    /// Moves a file; what is at the other place is replaced.
    fn rename(&mut self, index: u32, taken: &Taken, times: Times, to: u32) {
        self.name_both(index, taken.number, to);
        let step = self.step_by_name(index, FileOp::Move);
        let outcome = self.step(index, step, Some(times), |trees: &Trees, job| {
            let from = &trees.trees[job.in_tree.tree as usize];
            let to = &trees.trees[to as usize];
            let known = from.registry.expected(job.number);
            let replaced = to.registry.expected(job.number);
            let places = ((&*job.path, known), (&*job.other_path, replaced));
            from.anchor.rename(places.0, &to.anchor, places.1)?;
            to.registry.set_tag(job.number, known.tag);
            from.registry.set_tag(job.number, FileTag::NONE);
            Ok(0)
        });
        let other = match outcome {
            Ok(_) => taken.known,
            Err(_) => taken.other,
        };
        self.finish_other(to, taken, other);
        self.give_unless_gone(index, taken, outcome.is_ok(), outcome.map(|_| ()));
    }

    fn name_both(&mut self, index: u32, number: u32, to: u32) {
        self.name_file(index, number);
        let job = &mut self.jobs[index as usize];
        self.trees.trees[to as usize]
            .shape
            .file_path(number, &mut job.other_path);
    }

    /// Gives a file back: gone when the operation removed it, or somebody else had.
    fn give_unless_gone(
        &mut self,
        index: u32,
        taken: &Taken,
        removed: bool,
        outcome: OsResult<()>,
    ) {
        let missing = taken.alone && outcome == Err(libc::ENOENT);
        let left = if removed || missing {
            GONE
        } else {
            taken.known
        };
        self.finish(index, taken, left);
    }

    /// Gives a file of the stream's tree back.
    pub(super) fn finish(&self, index: u32, taken: &Taken, left: KnownFile) {
        let tree = self.tree(index);
        if !left.exists {
            tree.registry.leave(tree.shape.directory_of(taken.number));
        }
        if give(&tree.registry, taken, left) {
            self.trees.changed();
        }
    }

    /// Gives a file of the tree that was copied or moved to back.
    fn finish_other(&self, to: u32, taken: &Taken, left: KnownFile) {
        let tree = &self.trees.trees[to as usize];
        if !left.exists {
            tree.registry.leave(tree.shape.directory_of(taken.number));
        }
        if tree.registry.give(taken.number, left) {
            self.trees.changed();
        }
    }

    /// What there is of a file that could not be made: somebody else's, perhaps.
    pub(super) fn seen_again(&self, index: u32, errno: i32, before: KnownFile) -> KnownFile {
        let path = &self.jobs[index as usize].path;
        match (errno, self.tree(index).anchor.getattr(path)) {
            (libc::EEXIST, Ok(size_bytes)) => KnownFile {
                exists: true,
                size_bytes,
            },
            _ => before,
        }
    }

    /// Closes the file a stream transfers to or from.
    pub(super) fn close_file(&mut self, index: u32) {
        if let Some(open) = self.jobs[index as usize].open.take() {
            self.close_open(index, &open);
        }
    }

    fn close_open(&mut self, index: u32, open: &OpenTreeFile) {
        let target = self.tree(index).target;
        let _ = self.close(index, target, open.fd);
        self.state.streams[index as usize].flushes.leave_out();
        let registry = &self.tree(index).registry;
        registry.set_position(open.taken.number, open.position);
        self.finish(index, &open.taken, open.left);
    }
}
