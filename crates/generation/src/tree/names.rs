//! The shape of a tree: its directories and files as numbers, and their names.
//!
//! Knows arithmetic and text. Knows no disk. Directory 0 is the anchor; the others are
//! numbered level by level and within a level in vdbench's order: by their own number
//! first, then by those of their parents. Files are numbered directory by directory.

use loadstone_plan::Tree;

/// Most directories of a tree, and most files.
pub const MAX_DIRECTORIES: u64 = 1 << 28;
/// See [`MAX_DIRECTORIES`].
pub const MAX_FILES: u64 = 1 << 31;
/// Most bytes of a path below the anchor, its end included (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4096;

/// The shape of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeShape {
    width: u32,
    files: u32,
    first_file: u32,
    /// Number of the first directory of each level, and after them how many there are.
    firsts: Box<[u32]>,
    /// First directory that has files.
    first_holder: u32,
}

/// What is wrong with a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMuch {
    /// More than [`MAX_DIRECTORIES`].
    Directories,
    /// More than [`MAX_FILES`].
    Files,
    /// A path is longer than [`MAX_PATH_BYTES`].
    Path,
}

impl TreeShape {
    /// The shape of a tree whose fields are above 0.
    ///
    /// # Errors
    /// When it is larger than any run needs.
    pub fn new(tree: &Tree) -> Result<Self, TooMuch> {
        let longest = u64::from(tree.depth) * "vdb._.dir/".len() as u64;
        if longest >= MAX_PATH_BYTES as u64 {
            return Err(TooMuch::Path);
        }
        let mut firsts = vec![1];
        let (mut total, mut level) = (0u64, 1u64);
        for _ in 0..tree.depth {
            level = level.saturating_mul(u64::from(tree.width));
            total = total.saturating_add(level);
            if total > MAX_DIRECTORIES {
                return Err(TooMuch::Directories);
            }
            firsts.push(total as u32 + 1);
        }
        let holders = if tree.everywhere { total } else { level };
        if holders.saturating_mul(u64::from(tree.files)) > MAX_FILES {
            return Err(TooMuch::Files);
        }
        let lowest = firsts[tree.depth as usize - 1];
        let shape = Self {
            width: tree.width,
            files: tree.files,
            first_file: tree.first_file,
            firsts: firsts.into(),
            first_holder: if tree.everywhere { 1 } else { lowest },
        };
        let mut path = Vec::new();
        shape.file_path(shape.file_count() - 1, &mut path);
        if path.len() > MAX_PATH_BYTES {
            return Err(TooMuch::Path);
        }
        Ok(shape)
    }

    /// Directories below the anchor: numbers 1 to this.
    #[must_use]
    pub fn directory_count(&self) -> u32 {
        self.firsts[self.firsts.len() - 1] - 1
    }

    /// Files: numbers from 0.
    #[must_use]
    pub fn file_count(&self) -> u32 {
        let holders = self.directory_count() + 1 - self.first_holder;
        holders * self.files
    }

    /// Level of a directory (the anchor is level 0) and its place there.
    fn place(&self, directory: u32) -> (usize, u32) {
        if directory == 0 {
            return (0, 0);
        }
        let level = self.firsts.partition_point(|&first| first <= directory);
        (level, directory - self.firsts[level - 1])
    }

    /// Directories of a level.
    fn level_count(&self, level: usize) -> u32 {
        match level {
            0 => 1,
            level => self.firsts[level] - self.firsts[level - 1],
        }
    }

    /// Own number of a directory in its parent, from 0, and its place when a level is in
    /// the order of names from the top.
    fn split(&self, level: usize, place: u32) -> (u32, u32) {
        let parents = self.level_count(level - 1);
        let (own, parent) = (place / parents, place % parents);
        (own, parent * self.width + own)
    }

    /// The place in vdbench's order of a directory from its place in the order of names.
    fn join(&self, level: usize, by_name: u32) -> u32 {
        match level {
            0 => 0,
            level => (by_name % self.width) * self.level_count(level - 1) + by_name / self.width,
        }
    }

    /// The directory above.
    #[must_use]
    pub fn parent(&self, directory: u32) -> u32 {
        let (level, place) = self.place(directory);
        if level <= 1 {
            return 0;
        }
        let (_, by_name) = self.split(level, place);
        self.firsts[level - 2] + self.join(level - 1, by_name / self.width)
    }

    /// The `number`th directory (from 1) in a directory; none below the lowest level.
    #[must_use]
    pub fn child(&self, directory: u32, number: u32) -> Option<u32> {
        let (level, place) = self.place(directory);
        if level + 1 >= self.firsts.len() || !(1..=self.width).contains(&number) {
            return None;
        }
        let by_name = match level {
            0 => 0,
            level => self.split(level, place).1,
        };
        Some(self.firsts[level] + self.join(level + 1, by_name * self.width + number - 1))
    }

    /// Level of the directories in a directory: what their names say.
    #[must_use]
    pub fn level_below(&self, directory: u32) -> usize {
        self.place(directory).0 + 1
    }

    /// The directory a file is in.
    #[must_use]
    pub fn directory_of(&self, file: u32) -> u32 {
        self.first_holder + file / self.files
    }

    /// The file in a directory whose name has this number.
    #[must_use]
    pub fn file(&self, directory: u32, number: u32) -> Option<u32> {
        let at = number.checked_sub(self.first_file)?;
        let holder = directory.checked_sub(self.first_holder)?;
        (at < self.files && directory > 0).then(|| holder * self.files + at)
    }

    /// Path of a directory below the anchor, with a zero byte at its end.
    pub fn directory_path(&self, directory: u32, path: &mut Vec<u8>) {
        path.clear();
        self.push_directory(directory, path);
        end(path);
    }

    /// The same for a file.
    pub fn file_path(&self, file: u32, path: &mut Vec<u8>) {
        path.clear();
        self.push_directory(self.directory_of(file), path);
        path.extend_from_slice(b"vdb_f");
        push_number(path, file % self.files + self.first_file, 4);
        path.extend_from_slice(b".file");
        end(path);
    }

    /// Path with a slash behind each directory.
    fn push_directory(&self, directory: u32, path: &mut Vec<u8>) {
        let (last, place) = self.place(directory);
        if last == 0 {
            return;
        }
        let (_, by_name) = self.split(last, place);
        // From the top, a digit for each level.
        let mut unit = self.level_count(last);
        for level in 1..=last {
            unit /= self.width;
            path.extend_from_slice(b"vdb.");
            push_number(path, level as u32, 1);
            path.push(b'_');
            push_number(path, by_name / unit % self.width + 1, 1);
            path.extend_from_slice(b".dir/");
        }
    }
}

/// Ends a path: a slash at its end goes.
fn end(path: &mut Vec<u8>) {
    if path.last() == Some(&b'/') {
        path.pop();
    }
    path.push(0);
}

/// A number in at least so many digits. Does not allocate where the vector has room.
fn push_number(path: &mut Vec<u8>, number: u32, digits: usize) {
    let mut text = [b'0'; 10];
    let (mut left, mut at) = (number, text.len());
    while left > 0 {
        at -= 1;
        text[at] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    path.extend_from_slice(&text[at.min(text.len() - digits)..]);
}

/// Level and number of a directory with such a name.
#[must_use]
pub fn parse_directory(name: &[u8]) -> Option<(u32, u32)> {
    let name = name.strip_prefix(b"vdb.")?.strip_suffix(b".dir")?;
    let at = name.iter().position(|&byte| byte == b'_')?;
    Some((
        parse_number(&name[..at], 1)?,
        parse_number(&name[at + 1..], 1)?,
    ))
}

/// Number of a file with such a name.
#[must_use]
pub fn parse_file(name: &[u8]) -> Option<u32> {
    parse_number(name.strip_prefix(b"vdb_f")?.strip_suffix(b".file")?, 4)
}

/// Exactly what `push_number` writes.
fn parse_number(text: &[u8], digits: usize) -> Option<u32> {
    let plain = text.len() == digits || (text.len() > digits && text[0] != b'0');
    if !plain || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use loadstone_plan::{FilePart, FileSize, FileSizes};
    use proptest::prelude::*;

    pub(crate) fn tree(depth: u32, width: u32, files: u32, everywhere: bool) -> Tree {
        Tree {
            target: 0,
            depth,
            width,
            files,
            first_file: 1,
            everywhere,
            sizes: FileSizes::Table {
                table: vec![FileSize {
                    bytes: 8192,
                    weight: 1.0,
                }],
            },
            seed: 1,
            total_bytes: 0,
            clear: false,
            part: FilePart { index: 0, count: 1 },
            vouched_ns: None,
        }
    }

    fn text(path: &[u8]) -> String {
        String::from_utf8(path[..path.len() - 1].to_vec()).unwrap()
    }

    fn directories(shape: &TreeShape) -> Vec<String> {
        let mut path = Vec::new();
        let numbers = 1..=shape.directory_count();
        numbers
            .map(|directory| {
                shape.directory_path(directory, &mut path);
                text(&path)
            })
            .collect()
    }

    #[test]
    fn directories_come_by_level_then_by_their_own_number() {
        let shape = TreeShape::new(&tree(2, 2, 1, false)).unwrap();
        assert_eq!(
            directories(&shape),
            [
                "vdb.1_1.dir",
                "vdb.1_2.dir",
                "vdb.1_1.dir/vdb.2_1.dir",
                "vdb.1_2.dir/vdb.2_1.dir",
                "vdb.1_1.dir/vdb.2_2.dir",
                "vdb.1_2.dir/vdb.2_2.dir",
            ]
        );
    }

    #[test]
    fn files_are_at_the_bottom_or_everywhere() {
        let mut path = Vec::new();
        let shape = TreeShape::new(&tree(2, 3, 2, false)).unwrap();
        assert_eq!((shape.directory_count(), shape.file_count()), (12, 18));
        shape.file_path(1, &mut path);
        assert_eq!(text(&path), "vdb.1_1.dir/vdb.2_1.dir/vdb_f0002.file");
        let shape = TreeShape::new(&tree(2, 3, 20_000, true)).unwrap();
        assert_eq!(shape.file_count(), 12 * 20_000);
        shape.file_path(19_999, &mut path);
        assert_eq!(text(&path), "vdb.1_1.dir/vdb_f20000.file");
        let zero = Tree {
            first_file: 0,
            ..tree(1, 1, 3, false)
        };
        TreeShape::new(&zero).unwrap().file_path(2, &mut path);
        assert_eq!(text(&path), "vdb.1_1.dir/vdb_f0002.file");
    }

    #[test]
    fn only_exact_names_are_the_trees() {
        assert_eq!(parse_directory(b"vdb.12_345.dir"), Some((12, 345)));
        assert_eq!(parse_file(b"vdb_f0000.file"), Some(0));
        assert_eq!(parse_file(b"vdb_f12345.file"), Some(12345));
        for name in [
            "vdb1_1.dir",
            "vdb.1_1.dir2",
            "vdb.01_1.dir",
            "vdb.1_+1.dir",
            "vdb._.dir",
            "vdb.1_99999999999.dir",
        ] {
            assert_eq!(parse_directory(name.as_bytes()), None, "{name}");
        }
        for name in [
            "vdb_f1.file",
            "vdb_f00001.file",
            "vdb_control.file",
            "vdb_f0001.file.gz",
        ] {
            assert_eq!(parse_file(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn what_is_too_large_is_told() {
        let too_much = |depth, width, files| TreeShape::new(&tree(depth, width, files, false));
        assert_eq!(too_much(29, 2, 1), Err(TooMuch::Directories));
        assert_eq!(too_much(u32::MAX, u32::MAX, u32::MAX), Err(TooMuch::Path));
        assert_eq!(too_much(1, 2, u32::MAX), Err(TooMuch::Files));
        assert_eq!(too_much(400, 1, 1), Err(TooMuch::Path));
        assert!(too_much(27, 2, 8).is_ok());
    }

    proptest! {
        #[test]
        fn names_numbers_and_parents_fit_together(
            depth in 1u32..5, width in 1u32..5, files in 1u32..4, everywhere: bool, first_file in 0u32..2,
        ) {
            let plan = Tree { first_file, ..tree(depth, width, files, everywhere) };
            let shape = TreeShape::new(&plan).unwrap();
            let names = directories(&shape);
            prop_assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
            let name_of = |directory: u32| match directory {
                0 => String::new(),
                directory => names[directory as usize - 1].clone(),
            };
            for directory in 1..=shape.directory_count() {
                let name = name_of(directory);
                let (above, own) = name.rsplit_once('/').unwrap_or(("", &name));
                prop_assert_eq!(above, name_of(shape.parent(directory)));
                prop_assert!(shape.parent(directory) < directory);
                let (level, number) = parse_directory(own.as_bytes()).unwrap();
                prop_assert_eq!(level as usize, shape.level_below(shape.parent(directory)));
                prop_assert_eq!(shape.child(shape.parent(directory), number), Some(directory));
            }
            let mut path = Vec::new();
            let mut seen = std::collections::BTreeSet::new();
            for file in 0..shape.file_count() {
                shape.file_path(file, &mut path);
                let path = text(&path);
                let (above, own) = path.rsplit_once('/').unwrap();
                let directory = shape.directory_of(file);
                prop_assert_eq!(above, name_of(directory));
                prop_assert_eq!(shape.file(directory, parse_file(own.as_bytes()).unwrap()), Some(file));
                prop_assert!(seen.insert(path));
            }
        }
    }
}
