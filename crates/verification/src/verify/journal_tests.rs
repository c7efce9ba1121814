//! Journals through crashes: whatever was on the disk at the crash, and however much of
//! the journal was lost, sound data are not called damaged and lost writes are found.

use std::path::PathBuf;

use super::check::{check, Verdict};
use super::damage::DamageKind;
use super::expect::{BlockTable, WriteOutcome};
use super::journal::{
    frame_crc, BlockGeneration, Durability, JournalWriter, Record, Settings, FILE_HEADER_BYTES,
    FRAME_HEADER_BYTES, FRAME_MAGIC, RECORD_BYTES,
};
use super::recover::{Recovered, Unusable};
use super::stamp::{PayloadSource, StampWrite, Stamper};
use loadstone_base::rng::Rng;

const BLOCK_BYTES: u32 = 512;
const BLOCKS: usize = 48;
const LENGTH: u64 = BLOCKS as u64 * BLOCK_BYTES as u64;
const STAMPER: Stamper = Stamper {
    run: 77,
    target: 1,
    block_bytes: BLOCK_BYTES,
    content: PayloadSource::Generated,
};

fn settings(durability: Durability) -> Settings {
    Settings {
        run: STAMPER.run,
        block_bytes: BLOCK_BYTES,
        durability,
    }
}

/// A file that goes away with the test.
struct ScratchFile(PathBuf);

impl ScratchFile {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("loadstone-{}-{name}.journal", std::process::id())))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A disk with a volatile cache, the table of the run, and its journal.
struct Machine {
    table: BlockTable,
    journal: JournalWriter,
    durability: Durability,
    /// What is on the medium, and what a read would return.
    medium: Vec<u8>,
    cache: Vec<u8>,
    flying: Vec<(usize, u16, Vec<u8>)>,
    flushes: u64,
    rng: Rng,
}

impl Machine {
    fn new(path: &std::path::Path, durability: Durability, seed: u64, limit_bytes: u64) -> Self {
        Self {
            table: BlockTable::new(0, LENGTH, BLOCK_BYTES),
            journal: JournalWriter::create(path, settings(durability), limit_bytes).unwrap(),
            durability,
            medium: vec![0; LENGTH as usize],
            cache: vec![0; LENGTH as usize],
            flying: Vec::new(),
            flushes: 0,
            rng: Rng::new(seed),
        }
    }

    fn place(index: usize, generation: u16) -> BlockGeneration {
        BlockGeneration {
            target: 1,
            generation,
            offset: index as u64 * u64::from(BLOCK_BYTES),
        }
    }

    fn issue(&mut self) {
        let index = self.rng.below(BLOCKS as u64) as usize;
        let generation = self.table.begin(index);
        let place = Self::place(index, generation);
        self.journal.record(Record::Intent(place)).unwrap();
        let mut data = vec![0; BLOCK_BYTES as usize];
        let write = StampWrite {
            sequence: self.table.next_sequence(),
            bytes: BLOCK_BYTES,
            place_bytes: 0,
        };
        STAMPER.stamp(&mut data, place.offset, generation, write);
        self.flying.push((index, generation, data));
    }

    fn finish_one(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let i = self.rng.below(self.flying.len() as u64) as usize;
        let (index, generation, data) = self.flying.swap_remove(i);
        let at = index * BLOCK_BYTES as usize;
        let end = at + BLOCK_BYTES as usize;
        self.cache[at..end].copy_from_slice(&data);
        if self.durability == Durability::Acknowledged || self.rng.below(3) == 0 {
            self.medium[at..end].copy_from_slice(&data);
        }
        let place = Self::place(index, generation);
        if self.rng.below(20) == 0 {
            self.table.end(index, WriteOutcome::Uncertain);
            self.journal.record(Record::Failed(place)).unwrap();
        } else {
            self.table.end(index, WriteOutcome::Acknowledged);
            self.journal.record(Record::Acknowledged(place)).unwrap();
        }
    }

    fn flush(&mut self) {
        self.flushes += 1;
        let flush = self.flushes;
        self.journal
            .record(Record::FlushBegun { target: 1, flush })
            .unwrap();
        self.medium.copy_from_slice(&self.cache);
        self.journal
            .record(Record::FlushDone { target: 1, flush })
            .unwrap();
        if self.journal.is_long() {
            self.journal.compact(&[(1, &self.table)]).unwrap();
        }
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.rng.below(20) {
                0..=9 if self.flying.len() < 8 => self.issue(),
                0..=17 => self.finish_one(),
                18 => self.flush(),
                _ => self.journal.commit(false).unwrap(),
            }
        }
    }

    /// Power fails: some of the writes in flight reached the medium.
    fn crash(&mut self) {
        for (index, _, data) in std::mem::take(&mut self.flying) {
            if self.rng.below(2) == 0 {
                let at = index * BLOCK_BYTES as usize;
                self.medium[at..at + data.len()].copy_from_slice(&data);
            }
        }
    }
}

/// Verdicts on all blocks of a medium.
fn verify(recovered: &Recovered, medium: &[u8]) -> Vec<Verdict> {
    let table = recovered.table(1, 0, LENGTH);
    medium
        .chunks(BLOCK_BYTES as usize)
        .enumerate()
        .map(|(index, block)| {
            let (expected, _) = table.expectation(index, table.entry(index));
            check(&STAMPER, block, table.offset(index), &expected)
        })
        .collect()
}

fn damaged(verdicts: &[Verdict]) -> usize {
    verdicts
        .iter()
        .filter(|verdict| matches!(verdict, Verdict::Damaged(_)))
        .count()
}

#[test]
fn after_a_crash_nothing_sound_is_called_damaged() {
    let mut known = 0;
    for seed in 0..150 {
        for durability in [Durability::Acknowledged, Durability::Flushed] {
            let scratch = ScratchFile::new(&format!("crash-{seed}-{durability:?}"));
            let limit = if seed % 3 == 0 { 4000 } else { u64::MAX };
            let mut machine = Machine::new(&scratch.0, durability, seed, limit);
            machine.run(800);
            if seed % 2 == 0 {
                machine.journal.commit(true).unwrap();
            }
            machine.crash();
            // Any part of what was not made durable may be missing.
            let length = std::fs::metadata(&scratch.0).unwrap().len();
            let cut = length
                - machine
                    .rng
                    .below((length - FILE_HEADER_BYTES as u64).min(300));
            std::fs::OpenOptions::new()
                .write(true)
                .open(&scratch.0)
                .unwrap()
                .set_len(cut)
                .unwrap();
            let recovered = Recovered::read(&scratch.0).unwrap();
            assert!(!recovered.clean);
            known += recovered.known();
            let verdicts = verify(&recovered, &machine.medium);
            assert_eq!(
                damaged(&verdicts),
                0,
                "seed {seed} {durability:?}: {verdicts:?}"
            );
        }
    }
    assert!(known > 3000, "something is demanded: {known}");
}

#[test]
fn an_acknowledged_write_missing_after_a_crash_is_found() {
    let mut found = 0;
    for seed in 0..200 {
        let scratch = ScratchFile::new(&format!("lost-{seed}"));
        let mut machine = Machine::new(&scratch.0, Durability::Flushed, seed, u64::MAX);
        machine.run(600);
        while !machine.flying.is_empty() {
            machine.finish_one();
        }
        machine.flush();
        let old = machine.medium.clone();
        // One more write, acknowledged and flushed, never arrives.
        machine.issue();
        let (index, ..) = machine.flying[0];
        let generation = machine.flying.remove(0).1;
        machine.table.end(index, WriteOutcome::Acknowledged);
        machine
            .journal
            .record(Record::Acknowledged(Machine::place(index, generation)))
            .unwrap();
        machine.flush();
        machine.journal.commit(true).unwrap();
        let verdicts = verify(&Recovered::read(&scratch.0).unwrap(), &old);
        assert_eq!(damaged(&verdicts), 1);
        match verdicts[index] {
            Verdict::Damaged(damage) => {
                // The first write of a block whose medium was zero cannot be told from zeroing.
                let kind = if generation == 1 {
                    DamageKind::ZeroedBlock
                } else {
                    DamageKind::LostWrite
                };
                assert_eq!(damage.kind, kind);
                found += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(found, 200);
}

#[test]
fn without_a_flush_an_acknowledged_write_may_be_missing() {
    for (durability, expected) in [(Durability::Flushed, 0), (Durability::Acknowledged, 1)] {
        let scratch = ScratchFile::new(&format!("unflushed-{durability:?}"));
        let mut machine = Machine::new(&scratch.0, durability, 1, u64::MAX);
        machine.issue();
        let (index, generation, _) = machine.flying[0].clone();
        machine.table.end(index, WriteOutcome::Acknowledged);
        machine
            .journal
            .record(Record::Acknowledged(Machine::place(index, generation)))
            .unwrap();
        machine.journal.commit(true).unwrap();
        let recovered = Recovered::read(&scratch.0).unwrap();
        assert_eq!(damaged(&verify(&recovered, &machine.medium)), expected);
    }
}

#[test]
fn a_clean_journal_is_as_strict_as_the_run() {
    let scratch = ScratchFile::new("clean");
    let mut machine = Machine::new(&scratch.0, Durability::Acknowledged, 3, 4000);
    machine.run(5000);
    while !machine.flying.is_empty() {
        machine.finish_one();
    }
    machine.journal.compact(&[(1, &machine.table)]).unwrap();
    let Machine {
        table,
        journal,
        medium,
        ..
    } = machine;
    journal.finish(&[(1, &table)]).unwrap();
    let recovered = Recovered::read(&scratch.0).unwrap();
    assert!(recovered.clean && recovered.in_flight() == 0 && recovered.torn_tail_bytes == 0);
    let again = recovered.table(1, 0, LENGTH);
    assert_eq!(again.sequence(), table.sequence());
    for index in 0..BLOCKS {
        let (a, b) = (again.entry(index), table.entry(index));
        assert_eq!(
            (a.generation(), a.span(), a.is_known()),
            (b.generation(), b.span(), b.is_known())
        );
    }
    assert_eq!(damaged(&verify(&recovered, &medium)), 0);
}

#[test]
fn compaction_keeps_the_file_short() {
    let scratch = ScratchFile::new("short");
    let mut machine = Machine::new(&scratch.0, Durability::Acknowledged, 4, 4000);
    let mut longest = 0;
    for _ in 0..200 {
        machine.run(100);
        machine.flush();
        longest = longest.max(machine.journal.file_bytes());
    }
    assert!(longest < 4000 + 100 * 64, "{longest}");
    assert_eq!(
        std::fs::metadata(&scratch.0).unwrap().len(),
        machine.journal.file_bytes()
    );
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let scratch = ScratchFile::new("other");
    let mut header = settings(Durability::Flushed).encode();
    let refusal = |bytes: &[u8]| {
        std::fs::write(&scratch.0, bytes).unwrap();
        match Recovered::read(&scratch.0) {
            Err(Unusable::Foreign(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(refusal(b"").contains("shorter"));
    assert!(refusal(&[b'x'; 100]).contains("LOADSTNJ"));
    header[16] ^= 1;
    assert!(refusal(&header).contains("checksum"));
    header[8] = 9;
    assert!(refusal(&header).contains("version 9"));
}

/// A frame of one record, whole to its checksum.
fn one_frame(record: [u8; RECORD_BYTES]) -> Vec<u8> {
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    frame[..4].copy_from_slice(&FRAME_MAGIC);
    frame[4] = 1;
    frame.extend_from_slice(&record);
    let crc = frame_crc(&frame);
    frame[16..20].copy_from_slice(&crc.to_le_bytes());
    frame
}

#[test]
fn a_generation_that_there_is_not_is_refused_in_place_of_computed_with() {
    let of = |generation| {
        let place = BlockGeneration {
            target: 1,
            generation,
            offset: 0,
        };
        let record = Record::Known { place, span: 200 }.encode();
        let mut file = settings(Durability::Acknowledged).encode().to_vec();
        file.extend(one_frame(record));
        Recovered::read_from(&mut &file[..])
    };
    let table = of(4095).unwrap().table(1, 0, LENGTH);
    assert_eq!(table.entry(0).generation(), 4095);
    for generation in [4096, u16::MAX] {
        let why = of(generation).unwrap_err().to_string();
        assert!(why.contains("a generation that there is not"), "{why}");
    }
}

/// A pipe has no length.
#[test]
fn a_journal_is_read_from_what_has_no_length_and_its_torn_tail_is_counted() {
    let mut file = settings(Durability::Acknowledged).encode().to_vec();
    let sequence = 3;
    file.extend(one_frame(
        Record::CleanEnd {
            target: 1,
            sequence,
        }
        .encode(),
    ));
    for tail in [0, 1, FRAME_HEADER_BYTES, 100, 5000] {
        let mut torn = file.clone();
        torn.resize(file.len() + tail, 0xff);
        let told = Recovered::read_from(&mut &torn[..]).unwrap();
        assert_eq!((told.records, told.torn_tail_bytes), (1, tail as u64));
    }
}
