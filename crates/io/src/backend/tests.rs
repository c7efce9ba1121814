//! The real backends against files: what is written is read, what fails says so.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, FromRawFd};

use super::libaio::Libaio;
use super::mmap::Mmap;
use super::psync::Psync;
use super::uring::{Uring, UringOptions};
use super::{Done, Io, IoBackend, Op, OpenFile, Outcome, SyncKind};
use crate::memory::Mapping;
use loadstone_base::clock::{monotonic_ns, Clock};
use loadstone_plan::TargetKind;

const BLOCK: usize = 4096;
const DEPTH: u32 = 16;

/// A file in memory.
fn memory_file(size_bytes: u64) -> File {
    // SAFETY: a valid name; the descriptor belongs to nobody else.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"loadstone-test".as_ptr(), 0)) };
    file.set_len(size_bytes).unwrap();
    file
}

fn open_file(file: &File, kind: TargetKind) -> OpenFile {
    let size_bytes = file.metadata().unwrap().len();
    OpenFile {
        fd: file.as_raw_fd(),
        direct: false,
        kind,
        size_bytes,
    }
}

/// Buffers for the slots, aligned as `O_DIRECT` wants them.
struct Buffers(Vec<[AlignedBlock; 1]>);

#[repr(align(4096))]
#[derive(Clone, Copy)]
struct AlignedBlock([u8; BLOCK]);

impl Buffers {
    fn new() -> Self {
        Self(vec![[AlignedBlock([0; BLOCK])]; DEPTH as usize])
    }

    fn at(&mut self, slot: u32) -> &mut [u8; BLOCK] {
        &mut self.0[slot as usize][0].0
    }
}

fn io(buffers: &mut Buffers, slot: u32, op: Op, offset: u64, len: u32) -> Io {
    Io {
        slot,
        op,
        file: 0,
        offset,
        len,
        buffer: buffers.at(slot).as_mut_ptr(),
        priority: 0,
    }
}

fn reap_all(backend: &mut impl IoBackend, expected: u32) -> Vec<Done> {
    let mut all = Vec::new();
    let deadline = monotonic_ns() + 10_000_000_000;
    while (all.len() as u32) < expected {
        backend
            .flush(expected - all.len() as u32, deadline)
            .unwrap();
        backend.reap(expected, &mut |done| all.push(done));
        assert!(
            monotonic_ns() < deadline,
            "{} of {expected} after ten seconds",
            all.len()
        );
    }
    all.sort_by_key(|done| done.slot);
    all
}

fn one(backend: &mut impl IoBackend, io: Io) -> Outcome {
    backend.push(io);
    reap_all(backend, 1)[0].outcome
}

/// What every backend must do with an ordinary file.
fn exercise(backend: &mut impl IoBackend) {
    let buffers = &mut Buffers::new();
    for slot in 0..DEPTH {
        buffers.at(slot).fill(slot as u8 + 1);
        backend.push(io(
            buffers,
            slot,
            Op::Write,
            u64::from(slot) * BLOCK as u64,
            BLOCK as u32,
        ));
    }
    for (slot, done) in reap_all(backend, DEPTH).into_iter().enumerate() {
        assert_eq!(
            (done.slot, done.outcome),
            (slot as u32, Outcome::moved(BLOCK as u32))
        );
    }
    for kind in [SyncKind::File, SyncKind::Data] {
        let flush = io(buffers, 0, Op::Sync(kind), 0, 0);
        assert_eq!(one(backend, flush), Outcome::moved(0), "{kind:?}");
    }
    // Each slot reads the block of the slot mirrored.
    for slot in 0..DEPTH {
        let offset = u64::from(DEPTH - 1 - slot) * BLOCK as u64;
        backend.push(io(buffers, slot, Op::Read, offset, BLOCK as u32));
    }
    assert!(reap_all(backend, DEPTH)
        .iter()
        .all(|done| done.outcome == Outcome::moved(BLOCK as u32)));
    for slot in 0..DEPTH {
        assert_eq!(
            buffers.at(slot),
            &[(DEPTH - slot) as u8; BLOCK],
            "slot {slot}"
        );
    }
    exercise_trims(backend, buffers);
}

/// Of a file whose blocks hold what [`exercise`] wrote.
fn exercise_trims(backend: &mut impl IoBackend, buffers: &mut Buffers) {
    assert_eq!(
        one(backend, io(buffers, 3, Op::Trim, 4096, 8192)),
        Outcome::moved(8192)
    );
    assert_eq!(
        one(backend, io(buffers, 3, Op::Read, 4096, 4096)),
        Outcome::moved(4096)
    );
    assert_eq!(
        buffers.at(3),
        &[0; BLOCK],
        "a trimmed block of a file is a hole"
    );
    assert_eq!(
        one(backend, io(buffers, 3, Op::Read, 3 * 4096, 4096)),
        Outcome::moved(4096)
    );
    assert_eq!(buffers.at(3), &[4; BLOCK], "and its neighbour is not");
}

#[test]
fn psync_reads_what_was_written() {
    let file = memory_file(1 << 20);
    let files = [open_file(&file, TargetKind::File)];
    exercise(&mut Psync::new(Clock::monotonic(), &files, DEPTH));
}

#[test]
fn mmap_reads_what_was_written() {
    let file = memory_file(1 << 20);
    let files = [open_file(&file, TargetKind::File)];
    exercise(&mut Mmap::new(Clock::monotonic(), &files, DEPTH).unwrap());
}

#[test]
fn libaio_reads_what_was_written() {
    let file = memory_file(1 << 20);
    let files = [open_file(&file, TargetKind::File)];
    exercise(&mut Libaio::new(Clock::monotonic(), &files, DEPTH).unwrap());
}

#[test]
fn libaio_reads_what_was_written_directly() {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE | libc::O_DIRECT);
    let file = match options.open(std::env::temp_dir()) {
        Ok(file) => file,
        Err(error) => {
            println!("skipped: no direct file in the temporary directory: {error}");
            return;
        }
    };
    file.set_len(1 << 20).unwrap();
    let files = [OpenFile {
        direct: true,
        ..open_file(&file, TargetKind::File)
    }];
    exercise(&mut Libaio::new(Clock::monotonic(), &files, DEPTH).unwrap());
}

#[test]
fn a_read_at_the_end_is_short_and_beyond_it_empty() {
    let mut file = memory_file(0);
    file.write_all(&[7; 5000]).unwrap();
    let files = [open_file(&file, TargetKind::File)];
    fn check(backend: &mut impl IoBackend) {
        let buffers = &mut Buffers::new();
        assert_eq!(
            one(backend, io(buffers, 0, Op::Read, 4096, 4096)),
            Outcome::moved(904)
        );
        assert_eq!(
            one(backend, io(buffers, 0, Op::Read, 8192, 4096)),
            Outcome::moved(0)
        );
    }
    check(&mut Psync::new(Clock::monotonic(), &files, DEPTH));
    check(&mut Libaio::new(Clock::monotonic(), &files, DEPTH).unwrap());
}

#[test]
fn errors_come_back_with_their_number_and_the_backend_goes_on() {
    let file = File::open("/dev/zero").unwrap();
    let files = [open_file(&file, TargetKind::Char)];
    fn check(backend: &mut impl IoBackend) {
        let buffers = &mut Buffers::new();
        assert_eq!(
            one(backend, io(buffers, 1, Op::Write, 0, 4096)),
            Outcome::of(-libc::EBADF),
            "read-only"
        );
        assert_eq!(
            one(backend, io(buffers, 1, Op::Trim, 0, 4096)),
            Outcome::of(-libc::EOPNOTSUPP)
        );
        // One refused between two that are not.
        for (slot, op) in [(0, Op::Read), (1, Op::Write), (2, Op::Read)] {
            backend.push(io(buffers, slot, op, 0, 4096));
        }
        let results: Vec<_> = reap_all(backend, 3)
            .iter()
            .map(|done| done.outcome)
            .collect();
        assert_eq!(results, [4096, -libc::EBADF, 4096].map(Outcome::of));
    }
    check(&mut Psync::new(Clock::monotonic(), &files, DEPTH));
    check(&mut Libaio::new(Clock::monotonic(), &files, DEPTH).unwrap());
}

#[test]
fn a_flush_that_aio_does_not_know_is_done_by_a_system_call() {
    // Neither knows the null device: the answer of the system call comes back.
    let file = File::open("/dev/null").unwrap();
    let files = [open_file(&file, TargetKind::Char)];
    let mut backend = Libaio::new(Clock::monotonic(), &files, DEPTH).unwrap();
    let buffers = &mut Buffers::new();
    assert_eq!(
        one(&mut backend, io(buffers, 0, Op::Sync(SyncKind::File), 0, 0)),
        Outcome::of(-libc::EINVAL)
    );
}

#[test]
fn a_file_cut_short_under_a_mapping_is_an_error_of_the_ios_beyond_its_end() {
    let file = memory_file(1 << 20);
    let files = [open_file(&file, TargetKind::File)];
    let mut backend = Mmap::new(Clock::monotonic(), &files, DEPTH).unwrap();
    let buffers = &mut Buffers::new();
    buffers.at(0).fill(9);
    file.set_len(8192).unwrap();
    for _ in 0..3 {
        for op in [Op::Read, Op::Write] {
            assert_eq!(
                one(&mut backend, io(buffers, 1, op, 65536, 4096)),
                Outcome::of(-libc::EIO)
            );
            // Unaligned, across several pages.
            assert_eq!(
                one(&mut backend, io(buffers, 1, op, 70_000, 3000)),
                Outcome::of(-libc::EIO)
            );
        }
        assert_eq!(
            one(&mut backend, io(buffers, 0, Op::Write, 4096, 4096)),
            Outcome::moved(4096)
        );
    }
    file.set_len(1 << 20).unwrap();
    assert_eq!(
        one(&mut backend, io(buffers, 0, Op::Write, 65536, 4096)),
        Outcome::moved(4096)
    );
    let mut psync = Psync::new(Clock::monotonic(), &files, DEPTH);
    buffers.at(2).fill(1);
    assert_eq!(
        one(&mut psync, io(buffers, 2, Op::Read, 65536, 4096)),
        Outcome::moved(4096)
    );
    assert_eq!(
        buffers.at(2),
        &[9; BLOCK],
        "the mapping leads to the file again"
    );
}

#[test]
fn mappings_of_several_threads_fault_independently() {
    let file = memory_file(1 << 20);
    let files = [open_file(&file, TargetKind::File)];
    file.set_len(4096).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut backend = Mmap::new(Clock::monotonic(), &files, DEPTH).unwrap();
                let buffers = &mut Buffers::new();
                for _ in 0..200 {
                    assert_eq!(
                        one(&mut backend, io(buffers, 0, Op::Read, 0, 4096)),
                        Outcome::moved(4096)
                    );
                    assert_eq!(
                        one(&mut backend, io(buffers, 0, Op::Read, 8192, 4096)),
                        Outcome::of(-libc::EIO)
                    );
                }
            });
        }
    });
}

#[test]
fn a_read_only_mapping_refuses_writes_and_an_unmappable_target_is_named() {
    let file = memory_file(1 << 16);
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let read_only = File::open(path).unwrap();
    let files = [open_file(&read_only, TargetKind::File)];
    let mut backend = Mmap::new(Clock::monotonic(), &files, DEPTH).unwrap();
    let buffers = &mut Buffers::new();
    assert_eq!(
        one(&mut backend, io(buffers, 0, Op::Write, 0, 4096)),
        Outcome::of(-libc::EBADF)
    );
    assert_eq!(
        one(&mut backend, io(buffers, 0, Op::Read, 0, 4096)),
        Outcome::moved(4096)
    );
    assert_eq!(
        one(&mut backend, io(buffers, 0, Op::Read, 1 << 16, 4096)),
        Outcome::of(-libc::EINVAL)
    );
    let null = File::open("/dev/null").unwrap();
    let files = [
        files[0],
        OpenFile {
            size_bytes: 4096,
            ..open_file(&null, TargetKind::Char)
        },
    ];
    let (index, error) = Mmap::new(Clock::monotonic(), &files, DEPTH).unwrap_err();
    assert_eq!((index, error.raw_os_error()), (1, Some(libc::ENODEV)));
}

#[test]
fn waiting_with_nothing_in_flight_ends_at_the_time() {
    let file = memory_file(4096);
    let files = [open_file(&file, TargetKind::File)];
    fn check(backend: &mut impl IoBackend) {
        let until = backend.now_ns() + 2_000_000;
        backend.flush(0, until).unwrap();
        assert!(backend.now_ns() >= until);
        assert_eq!(backend.reap(1, &mut |_| panic!("nothing was pushed")), 0);
    }
    check(&mut Psync::new(Clock::monotonic(), &files, DEPTH));
    check(&mut Libaio::new(Clock::monotonic(), &files, DEPTH).unwrap());
    check(&mut Mmap::new(Clock::monotonic(), &files, DEPTH).unwrap());
}

/// A ring of one file.
fn ring_on(file: OpenFile) -> Uring {
    Uring::new(
        Clock::monotonic(),
        UringOptions {
            registered_files: true,
            fixed_buffers: false,
            iopoll: false,
            sqpoll: false,
            whole_batches: false,
            has_room: false,
        },
        &[file],
        DEPTH,
        &Mapping::new(BLOCK, false).unwrap(),
        &mut Vec::new(),
    )
    .unwrap()
}

/// The alarm is one timeout for many waits: it has to end those for several completions,
/// too, must be set anew, and a shorter wait must not last until it goes off.
#[test]
fn waiting_for_what_does_not_come_ends_at_the_time() {
    let (from, into) = std::io::pipe().unwrap();
    let mut backend = ring_on(OpenFile {
        fd: from.as_raw_fd(),
        direct: false,
        kind: TargetKind::Char,
        size_bytes: 0,
    });
    let buffers = &mut Buffers::new();
    for slot in 0..4 {
        backend.push(io(buffers, slot, Op::Read, 0, 512));
    }
    let mut none = |_| panic!("nothing was written yet");
    for wait_for in [1, 4, 2] {
        let until = monotonic_ns() + 20_000_000;
        backend.flush(wait_for, until).unwrap();
        assert!(monotonic_ns() + 1_000_000 >= until, "too soon");
        assert_eq!(backend.reap(DEPTH, &mut none), 0);
    }
    // One comes where two are waited for.
    (&into).write_all(&[7; 512]).unwrap();
    backend.flush(2, monotonic_ns() + 20_000_000).unwrap();
    assert_eq!(reap_all(&mut backend, 1).len(), 1);
    // A wait that something else ends leaves its alarm far off behind.
    (&into).write_all(&[7; 512]).unwrap();
    backend.flush(1, monotonic_ns() + 20_000_000_000).unwrap();
    assert_eq!(reap_all(&mut backend, 1).len(), 1);
    let start = monotonic_ns();
    backend.flush(1, start + 5_000_000).unwrap();
    let waited_ms = (monotonic_ns() - start) / 1_000_000;
    assert!((4..10_000).contains(&waited_ms), "{waited_ms} ms of 5");
    assert_eq!(backend.reap(DEPTH, &mut none), 0);
    (&into).write_all(&[7; 2 * 512]).unwrap();
    assert!(reap_all(&mut backend, 2)
        .iter()
        .all(|one| one.outcome == Outcome::moved(512)));
}
