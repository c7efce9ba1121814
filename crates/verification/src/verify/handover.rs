//! What a run knows of its verified blocks at its end, for the runs after it.
//!
//! Knows the file. A table is written as its entries, pages of zeros left out, so that it
//! takes four bytes for each block that was ever written; all little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `LOADSTNK` |
//! | 4, 4 | version 1, bytes of a verify block |
//! | 8 | the run whose stamps they are |
//! | per table 4, 4, 8, 8 | number of the target, 0, sequence of its last write, start |
//! | per part 8, 4, 4 × n | first block, n, entries; n = 0 ends the table |
//! | 4, 4 | target `u32::MAX` ends the file, CRC-32C of all before |
//!
//! A write that was still in flight leaves a block unknown.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::expect::{BlockState, BlockTable};

const MAGIC: &[u8; 8] = b"LOADSTNK";
const VERSION: u32 = 1;
const END: u32 = u32::MAX;
/// Entries of a part: a page of them.
const PART: usize = 1024;

/// What a run knew at its end.
#[derive(Debug)]
pub struct Handover {
    /// The run whose stamps they are.
    pub run: u64,
    /// Bytes of a verify block.
    pub block_bytes: u32,
    tables: HashMap<u32, OneTable>,
}

#[derive(Debug, Default)]
struct OneTable {
    sequence: u64,
    start_bytes: u64,
    parts: Vec<(u64, Vec<u32>)>,
}

/// Writes what tables hold.
///
/// # Errors
/// When the file cannot be written.
pub fn write(
    path: &Path,
    run: u64,
    block_bytes: u32,
    tables: &[(u16, &BlockTable)],
) -> io::Result<()> {
    let mut out = Summed {
        file: io::BufWriter::new(File::create(path)?),
        crc: 0,
    };
    out.put(MAGIC)?;
    out.put(&VERSION.to_le_bytes())?;
    out.put(&block_bytes.to_le_bytes())?;
    out.put(&run.to_le_bytes())?;
    for (target, table) in tables {
        out.put(&u32::from(*target).to_le_bytes())?;
        out.put(&0u32.to_le_bytes())?;
        out.put(&table.sequence().to_le_bytes())?;
        out.put(&table.offset(0).to_le_bytes())?;
        let mut first = 0;
        while first < table.len() {
            let count = PART.min(table.len() - first);
            let entries = (first..first + count).map(|index| table.entry(index).at_rest());
            let bytes: Vec<u8> = entries.flat_map(u32::to_le_bytes).collect();
            if bytes.iter().any(|&byte| byte != 0) {
                out.put(&(first as u64).to_le_bytes())?;
                out.put(&(count as u32).to_le_bytes())?;
                out.put(&bytes)?;
            }
            first += count;
        }
        out.put(&0u64.to_le_bytes())?;
        out.put(&0u32.to_le_bytes())?;
    }
    out.put(&END.to_le_bytes())?;
    let crc = out.crc;
    out.put(&crc.to_le_bytes())?;
    out.file.flush()
}

struct Summed<W> {
    file: W,
    crc: u32,
}

impl<W: Write> Summed<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.file.write_all(bytes)
    }
}

impl Handover {
    /// Reads such a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not whole.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&std::fs::read(path)?)
    }

    /// Reads what such a file holds.
    ///
    /// # Errors
    /// When it is not whole.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "it is not whole");
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(broken)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
            return Err(broken());
        }
        ByteReader { rest: body }.known().ok_or_else(broken)
    }

    /// Enters what is known of a target into a table of a range of it.
    pub fn enter(&self, target: u32, table: &mut BlockTable) {
        let Some(one) = self.tables.get(&target) else {
            return;
        };
        let block = u64::from(self.block_bytes);
        let end = table.offset(0) + table.len() as u64 * block;
        for (first, entries) in &one.parts {
            for (&entry, step) in entries.iter().zip(0u64..) {
                // A file of somebody else's may place a block beyond all there is.
                let offset = (first.checked_add(step))
                    .and_then(|number| number.checked_mul(block))
                    .and_then(|bytes| bytes.checked_add(one.start_bytes));
                if let Some(offset) = offset.filter(|at| (table.offset(0)..end).contains(at)) {
                    table.set(table.index(offset), BlockState::of_rest(entry));
                }
            }
        }
        table.set_sequence(one.sequence);
    }
}

/// What is left of a file.
struct ByteReader<'a> {
    rest: &'a [u8],
}

impl ByteReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn known(&mut self) -> Option<Handover> {
        if self.take::<8>()? != *MAGIC || self.word()? != VERSION {
            return None;
        }
        let block_bytes = self.word().filter(|&bytes| bytes > 0)?;
        let run = self.long()?;
        let mut tables = HashMap::new();
        loop {
            let target = self.word()?;
            if target == END {
                break;
            }
            self.word()?;
            let mut one = OneTable {
                sequence: self.long()?,
                start_bytes: self.long()?,
                parts: Vec::new(),
            };
            loop {
                let (first, count) = (self.long()?, self.word()? as usize);
                if count == 0 {
                    break;
                }
                let bytes = self.rest.get(..count.checked_mul(4)?)?;
                self.rest = &self.rest[bytes.len()..];
                let entry = |four: &[u8]| four.try_into().map_or(0, u32::from_le_bytes);
                one.parts
                    .push((first, bytes.chunks_exact(4).map(entry).collect()));
            }
            tables.insert(target, one);
        }
        Some(Handover {
            run,
            block_bytes,
            tables,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect::WriteOutcome;
    use super::*;

    #[test]
    fn what_a_table_holds_comes_back_in_another_range() {
        let table = BlockTable::new(8192, 4096 * 5000, 4096);
        for index in [0, 1, 4999] {
            table.begin(index);
            table.end(index, WriteOutcome::Acknowledged);
        }
        table.begin(7); // never ended
        let sequence = table.next_sequence();
        let path = std::env::temp_dir().join(format!("loadstone-{}.known", std::process::id()));
        write(&path, 99, 4096, &[(3, &table)]).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < 3 * 4096 + 200);
        let known = Handover::read(&path).unwrap();
        assert_eq!((known.run, known.block_bytes), (99, 4096));
        let mut other = BlockTable::new(4096, 4096 * 100, 4096);
        known.enter(3, &mut other);
        known.enter(4, &mut other);
        let state = |index: usize| {
            (
                other.entry(index).generation(),
                other.entry(index).is_known(),
            )
        };
        assert_eq!(
            [state(0), state(1), state(2)],
            [(0, false), (1, true), (1, true)]
        );
        assert_eq!(state(8), (1, false), "a write that never came back");
        assert_eq!(other.sequence(), sequence);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(Handover::read(&path).is_err());
        std::fs::write(&path, &bytes[..20]).unwrap();
        assert!(Handover::read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn of_a_block_without_a_generation_nothing_is_known_whatever_a_file_says() {
        let known = BlockState::of_rest(1 << 29);
        assert_eq!(known, BlockState::default());
        assert!(BlockState::of_rest(1 << 29 | 5).is_known());
    }

    #[test]
    fn blocks_beyond_all_there_is_are_left_out() {
        for (start_bytes, first) in [(0, u64::MAX), (u64::MAX - 1, 1), (0, u64::MAX / 4096 + 1)] {
            let one = OneTable {
                sequence: 7,
                start_bytes,
                parts: vec![(first, vec![1, 1])],
            };
            let known = Handover {
                run: 1,
                block_bytes: 4096,
                tables: [(3, one)].into_iter().collect(),
            };
            let mut table = BlockTable::new(0, 4096 * 8, 4096);
            known.enter(3, &mut table);
            assert_eq!(table.sequence(), 7);
            assert!((0..8).all(|index| table.entry(index).generation() == 0));
        }
    }
}
