//! What there is of a tree: which directories and files, how large, and which are in use.
//!
//! Knows one atomic word for each file and directory; nobody waits for anybody. Knows no
//! name and no disk: who changes the disk takes what it changes before, and gives it back
//! with what came of it. A directory counts what is in it, so an empty one can be removed
//! and one that is being removed gets nothing new.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::tag::{Expected, FileTag};

/// Bytes of memory for each file (its state and its tag), for each directory, and for each file where positions
/// are kept.
pub const FILE_BYTES: u64 = 16;
/// See [`FILE_BYTES`].
pub const DIRECTORY_BYTES: u64 = 4;
/// See [`FILE_BYTES`].
pub const POSITION_BYTES: u64 = 8;

/// Largest file.
pub const MAX_SIZE_BYTES: u64 = (1 << SIZE_BITS) - 1;
const SIZE_BITS: u32 = 48;
const EXISTS: u64 = 1 << SIZE_BITS;
const USER: u64 = EXISTS << 1;
/// Users of a file that one has for itself.
const ALONE: u64 = (1 << (63 - SIZE_BITS)) - 1;

const THERE: u32 = 1 << 31;
/// Being made or removed.
const CHANGING: u32 = 1 << 30;
const ENTRIES: u32 = CHANGING - 1;

/// A file as the registry knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFile {
    /// It is there.
    pub exists: bool,
    /// Its size; 0 while it is not there.
    pub size_bytes: u64,
}

/// Why something was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is not what is wanted, and that changes only by somebody's operation.
    Unfit,
    /// Somebody has it: what will be of it is not known yet.
    Busy,
}

/// State of a tree's directories and files.
#[derive(Debug)]
pub struct Registry {
    files: Box<[AtomicU64]>,
    /// By file: which one it is.
    tags: Box<[AtomicU64]>,
    /// The anchor first.
    directories: Box<[AtomicU32]>,
    /// Where sequential transfers go on; empty: nobody asks.
    positions: Box<[AtomicU64]>,
}

fn known(word: u64) -> KnownFile {
    KnownFile {
        exists: word & EXISTS != 0,
        size_bytes: word & MAX_SIZE_BYTES,
    }
}

fn word_of(known: KnownFile) -> u64 {
    if known.exists {
        EXISTS | known.size_bytes.min(MAX_SIZE_BYTES)
    } else {
        0
    }
}

impl Registry {
    /// Nothing is there but the anchor.
    #[must_use]
    pub fn new(files: u32, directories: u32, positions: bool) -> Self {
        let this = Self {
            files: (0..files).map(|_| AtomicU64::new(0)).collect(),
            tags: (0..files)
                .map(|_| AtomicU64::new(FileTag::NONE.0))
                .collect(),
            directories: (0..=directories).map(|_| AtomicU32::new(0)).collect(),
            positions: (0..if positions { files } else { 0 })
                .map(|_| AtomicU64::new(0))
                .collect(),
        };
        this.directories[0].store(THERE, Ordering::Relaxed);
        this
    }

    /// Notes what was found on the disk, before anybody uses the registry.
    pub fn found_file(&self, file: u32, size_bytes: u64, tag: FileTag) {
        let exists = true;
        self.set_tag(file, tag);
        self.files[file as usize]
            .store(word_of(KnownFile { exists, size_bytes }), Ordering::Relaxed);
    }

    /// The same of a directory with so many entries.
    pub fn found_directory(&self, directory: u32, entries: u32) {
        let entries = entries.min(ENTRIES / 2);
        self.directories[directory as usize].store(THERE | entries, Ordering::Relaxed);
    }

    /// What is known of a file.
    #[must_use]
    pub fn file(&self, file: u32) -> KnownFile {
        known(self.files[file as usize].load(Ordering::Acquire))
    }

    /// True when a directory is there.
    #[must_use]
    pub fn has_directory(&self, directory: u32) -> bool {
        self.directories[directory as usize].load(Ordering::Acquire) & THERE != 0
    }

    /// Takes a file that is as wanted, alone or with others.
    ///
    /// # Errors
    /// When it is not, or somebody else has it.
    pub fn take(
        &self,
        file: u32,
        alone: bool,
        wanted: impl Fn(KnownFile) -> bool,
    ) -> Result<KnownFile, Refused> {
        let place = &self.files[file as usize];
        let mut word = place.load(Ordering::Acquire);
        loop {
            let users = word / USER;
            if users == ALONE {
                return Err(Refused::Busy);
            }
            let seen = known(word);
            if !wanted(seen) {
                return Err(Refused::Unfit);
            }
            if (alone && users > 0) || users + 1 == ALONE {
                return Err(Refused::Busy);
            }
            let next = word + if alone { ALONE } else { 1 } * USER;
            match place.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(seen),
                Err(now) => word = now,
            }
        }
    }

    /// Gives back a file one had for oneself. True when something changed.
    pub fn give(&self, file: u32, left: KnownFile) -> bool {
        let before = self.files[file as usize].swap(word_of(left), Ordering::AcqRel);
        debug_assert_eq!(before / USER, ALONE);
        known(before) != left
    }

    /// Gives back a file one had with others, which has at least `size_bytes` now. True
    /// when something changed.
    pub fn give_shared(&self, file: u32, size_bytes: u64) -> bool {
        let place = &self.files[file as usize];
        let mut word = place.load(Ordering::Acquire);
        loop {
            debug_assert!(word / USER > 0 && word / USER < ALONE);
            let mut left = known(word);
            left.size_bytes = left.size_bytes.max(size_bytes.min(MAX_SIZE_BYTES));
            let next = word_of(left) | ((word / USER - 1) * USER);
            match place.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return left != known(word),
                Err(now) => word = now,
            }
        }
    }

    /// The file that this run found or made under this number. Changed by who has it alone.
    #[must_use]
    pub fn expected(&self, file: u32) -> Expected {
        let word = self.files[file as usize].load(Ordering::Acquire);
        Expected {
            tag: FileTag(self.tags[file as usize].load(Ordering::Acquire)),
            size_bytes: known(word).size_bytes,
            settled: matches!(word / USER, 0 | ALONE),
        }
    }

    /// Notes that it is another one now.
    pub fn set_tag(&self, file: u32, tag: FileTag) {
        self.tags[file as usize].store(tag.0, Ordering::Release);
    }

    /// Where sequential transfers on a file go on; 0 where nobody asks.
    #[must_use]
    pub fn position(&self, file: u32) -> u64 {
        self.positions
            .get(file as usize)
            .map_or(0, |place| place.load(Ordering::Relaxed))
    }

    /// Sets it.
    pub fn set_position(&self, file: u32, position: u64) {
        if let Some(place) = self.positions.get(file as usize) {
            place.store(position, Ordering::Relaxed);
        }
    }

    /// Announces one more entry of a directory, which keeps it.
    ///
    /// # Errors
    /// When the directory is not there, or is about to be made or removed.
    pub fn enter(&self, directory: u32) -> Result<(), Refused> {
        self.change(directory, |word| {
            if word & CHANGING != 0 {
                Err(Refused::Busy)
            } else if word & THERE == 0 {
                Err(Refused::Unfit)
            } else {
                Ok(word + 1)
            }
        })
    }

    /// Takes an entry out.
    pub fn leave(&self, directory: u32) {
        let before = self.directories[directory as usize].fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before & ENTRIES > 0);
    }

    /// Takes a directory that is not there, to make it.
    ///
    /// # Errors
    /// When it is there, or somebody has it.
    pub fn take_missing(&self, directory: u32) -> Result<(), Refused> {
        self.change(directory, |word| {
            if word & CHANGING != 0 {
                Err(Refused::Busy)
            } else if word & THERE != 0 {
                Err(Refused::Unfit)
            } else {
                Ok(CHANGING)
            }
        })
    }

    /// Takes an empty directory, to remove it.
    ///
    /// # Errors
    /// When it is not there or not empty, or somebody has it.
    pub fn take_empty(&self, directory: u32) -> Result<(), Refused> {
        self.change(directory, |word| match word {
            THERE => Ok(THERE | CHANGING),
            word if word & CHANGING != 0 => Err(Refused::Busy),
            _ => Err(Refused::Unfit),
        })
    }

    /// Gives back a directory one made or removed, or did not.
    pub fn give_directory(&self, directory: u32, exists: bool) {
        let word = if exists { THERE } else { 0 };
        self.directories[directory as usize].store(word, Ordering::Release);
    }

    /// Gives back a directory that turned out to hold what is not the tree's: it is never
    /// empty from now on.
    pub fn give_occupied(&self, directory: u32) {
        self.directories[directory as usize].store(THERE | 1, Ordering::Release);
    }

    fn change(
        &self,
        directory: u32,
        next: impl Fn(u32) -> Result<u32, Refused>,
    ) -> Result<(), Refused> {
        let place = &self.directories[directory as usize];
        let mut word = place.load(Ordering::Acquire);
        loop {
            let next = next(word)?;
            match place.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_base::rng::Rng;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicI64;

    const GONE: KnownFile = KnownFile {
        exists: false,
        size_bytes: 0,
    };

    fn there(size_bytes: u64) -> KnownFile {
        KnownFile {
            exists: true,
            size_bytes,
        }
    }

    #[test]
    fn a_file_is_taken_as_it_is_wanted() {
        let registry = Registry::new(2, 1, false);
        assert_eq!(
            registry.take(0, true, |file| file.exists),
            Err(Refused::Unfit)
        );
        assert_eq!(registry.take(0, true, |file| !file.exists), Ok(GONE));
        // What will be of it is not known: even who does not want it has to look again.
        assert_eq!(
            registry.take(0, true, |file| file.exists),
            Err(Refused::Busy)
        );
        assert!(registry.give(0, there(5)));
        assert_eq!(registry.take(0, false, |file| file.exists), Ok(there(5)));
        assert_eq!(registry.take(0, false, |file| file.exists), Ok(there(5)));
        assert_eq!(
            registry.take(0, true, |file| file.exists),
            Err(Refused::Busy)
        );
        assert!(registry.give_shared(0, 9));
        assert!(!registry.give_shared(0, 7));
        assert_eq!(registry.take(0, true, |_| true), Ok(there(9)));
        assert!(!registry.give(0, there(9)));
        assert_eq!(registry.file(1), GONE);
    }

    #[test]
    fn a_directory_goes_only_when_nothing_is_in_it_and_nothing_comes() {
        let registry = Registry::new(1, 2, false);
        assert_eq!(registry.enter(1), Err(Refused::Unfit));
        assert_eq!(registry.take_missing(1), Ok(()));
        assert_eq!(registry.enter(1), Err(Refused::Busy));
        assert_eq!(registry.take_missing(1), Err(Refused::Busy));
        registry.give_directory(1, true);
        assert_eq!(registry.enter(1), Ok(()));
        assert_eq!(registry.take_empty(1), Err(Refused::Unfit));
        registry.leave(1);
        assert_eq!(registry.take_empty(1), Ok(()));
        assert_eq!(registry.enter(1), Err(Refused::Busy));
        registry.give_directory(1, false);
        assert!(!registry.has_directory(1) && registry.has_directory(0));
    }

    #[test]
    fn the_memory_is_what_the_budget_says() {
        assert_eq!(2 * size_of::<AtomicU64>() as u64, FILE_BYTES);
        assert_eq!(size_of::<AtomicU32>() as u64, DIRECTORY_BYTES);
        assert_eq!(size_of::<AtomicU64>() as u64, POSITION_BYTES);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Threads take and give files and make and remove their directory: nobody has for
        /// himself what another has, and the directory is not empty while a file is in it.
        #[test]
        fn nobody_has_for_himself_what_another_has(seed: u64) {
            const FILES: u32 = 3;
            let registry = Registry::new(FILES, 1, false);
            let holders: Vec<AtomicI64> = (0..FILES).map(|_| AtomicI64::new(0)).collect();
            let inside = AtomicI64::new(0);
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let (registry, holders, inside) = (&registry, &holders, &inside);
                    scope.spawn(move || {
                        let mut rng = Rng::new(seed ^ thread);
                        for _ in 0..3_000 {
                            let file = rng.below(u64::from(FILES)) as u32;
                            let holder = &holders[file as usize];
                            match rng.below(4) {
                                0 if registry.take_missing(1).is_ok() => {
                                    registry.give_directory(1, true);
                                }
                                1 if registry.take_empty(1).is_ok() => {
                                    assert_eq!(inside.load(Ordering::SeqCst), 0);
                                    registry.give_directory(1, false);
                                }
                                2 => if let Ok(seen) = registry.take(file, true, |_| true) {
                                    assert_eq!(holder.swap(-1, Ordering::SeqCst), 0);
                                    let mut left = seen;
                                    if seen.exists {
                                        inside.fetch_sub(1, Ordering::SeqCst);
                                        registry.leave(1);
                                        left = GONE;
                                    } else if registry.enter(1).is_ok() {
                                        inside.fetch_add(1, Ordering::SeqCst);
                                        left = there(1);
                                    }
                                    assert_eq!(holder.swap(0, Ordering::SeqCst), -1);
                                    registry.give(file, left);
                                },
                                _ => if registry.take(file, false, |file| file.exists).is_ok() {
                                    assert!(holder.fetch_add(1, Ordering::SeqCst) >= 0);
                                    assert!(holder.fetch_sub(1, Ordering::SeqCst) >= 1);
                                    registry.give_shared(file, 0);
                                },
                            }
                        }
                    });
                }
            });
            let left = (0..FILES).filter(|&file| registry.file(file).exists).count();
            prop_assert_eq!(inside.load(Ordering::SeqCst), left as i64);
        }
    }
}
