//! Whether a block that was read back is what was written.
//!
//! Knows what each header and sum must be, and says what is wrong in fio's words, so that what
//! looks for them in its output finds them here. Knows no I/O.

use std::fmt::Write as _;

use super::block::{found_bytes, number_of, own_bytes, Header, BYTES, MAGIC};
use super::content::{has_headers, head_bytes, move_head, pattern_byte, step_bytes};
use super::sums::{self, MAX_BYTES};
use loadstone_plan::{HeaderLayout, HeaderPattern, HeaderSum, Headers};

/// A read of something that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderRead {
    /// Index of the file among the stream's.
    pub file: u32,
    /// Place.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Seed and number that headers must have, where they are known.
    pub seed: Option<u64>,
    /// See `seed`.
    pub number: Option<u64>,
    /// It was trimmed and must be zeros.
    pub zeros: bool,
}

/// What is wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Name of the kind, as in the `damage` event.
    pub kind: &'static str,
    /// Place of the block.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
    /// In one sentence.
    pub message: String,
    /// What fio prints.
    pub lines: String,
    /// Seed of the content that was to be there, when its header is sound.
    pub seed: Option<u64>,
}

/// Checks what was read; `path` is the name of the file in messages. Moves heads to the start of
/// their blocks.
#[must_use]
pub fn check(plan: &Headers, reading: &HeaderRead, path: &str, buffer: &mut [u8]) -> Vec<Wrong> {
    let mut wrongs = Vec::new();
    if reading.zeros {
        wrongs.extend(check_zeros(reading, path, buffer));
        return wrongs;
    }
    if plan.sum == HeaderSum::Null {
        return wrongs;
    }
    let step = step_bytes(plan, buffer.len());
    for (index, block) in buffer.chunks_mut(step).enumerate() {
        let head = found_head_bytes(plan, block);
        // The rest of an I/O that is too short for a header has none, whatever its bytes look like.
        if block.len() <= head.max(head_bytes(plan)) {
            continue;
        }
        move_head(plan, head, block);
        let at = CheckedBlock {
            reading,
            path,
            within: index * step,
            bytes: block.len() as u32,
        };
        let Some(wrong) = check_block(plan, &at, block) else {
            continue;
        };
        let over = plan.fatal || wrong.kind == "header";
        wrongs.push(wrong);
        if over {
            break;
        }
    }
    wrongs
}

/// Bytes of the head in a block, of the layout that is found there.
fn found_head_bytes(plan: &Headers, block: &[u8]) -> usize {
    let planned = head_bytes(plan);
    if planned == 0 {
        return 0;
    }
    let own = own_bytes(plan.layout);
    let moved = plan.offset_bytes as usize;
    let at = if moved + planned <= block.len() {
        moved
    } else {
        0
    };
    planned - own + found_bytes(&block[at..])
}

/// A block of an I/O.
struct CheckedBlock<'a> {
    reading: &'a HeaderRead,
    path: &'a str,
    /// From the start of the I/O.
    within: usize,
    bytes: u32,
}

impl CheckedBlock<'_> {
    fn offset(&self) -> u64 {
        self.reading.offset + self.within as u64
    }

    fn wrong(
        &self,
        kind: &'static str,
        message: String,
        lines: String,
        seed: Option<u64>,
    ) -> Wrong {
        Wrong {
            kind,
            offset: self.offset(),
            bytes: self.bytes,
            message,
            lines,
            seed,
        }
    }

    /// The line fio ends the report of a failed sum with.
    fn failed(&self, name: &str) -> String {
        format!(
            "{name:.8}: verify failed at file {} offset {}, length {} (requested block: offset={}, length={}, flags=8)\n",
            self.path,
            self.offset(),
            self.bytes,
            self.reading.offset,
            self.reading.len
        )
    }
}

fn check_zeros(reading: &HeaderRead, path: &str, buffer: &[u8]) -> Option<Wrong> {
    let first = buffer.iter().position(|&byte| byte != 0)?;
    Some(Wrong {
        kind: "not_zero",
        offset: reading.offset,
        bytes: reading.len,
        message: format!(
            "expected zeros after a trim, found {:#04x} at byte {first}",
            buffer[first]
        ),
        lines: format!(
            "trim: verify failed at file {path} offset {}, length {}, block offset {first}\n",
            reading.offset, reading.len
        ),
        seed: None,
    })
}

fn check_block(plan: &Headers, at: &CheckedBlock<'_>, block: &[u8]) -> Option<Wrong> {
    if !has_headers(plan.sum) {
        return check_pattern(plan, at, 0, block, None);
    }
    let header = Header::read(block);
    if let Some(what) = check_header(plan, at, &header) {
        let lines = format!(
            "verify: bad {what} at file {} offset {}, length {} (requested block: offset={}, length={})\n",
            at.path,
            at.offset(),
            at.bytes,
            at.reading.offset,
            at.reading.len
        );
        return Some(at.wrong("header", format!("bad {what}"), lines, None));
    }
    let head = header.own_bytes + sums::bytes(plan.sum);
    if block.len() <= head {
        return None;
    }
    let mut wrong = match plan.sum {
        HeaderSum::PatternHdr => check_pattern(plan, at, head, block, Some(&header)),
        HeaderSum::Meta if plan.pattern.is_some() => {
            check_pattern(plan, at, head, block, Some(&header))
        }
        _ => check_sum(plan, at, head, block, &header),
    };
    if let Some(wrong) = &mut wrong {
        if header.sum != number_of(plan.sum) {
            let _ = writeln!(
                wrong.lines,
                "fio: verify type mismatch ({} media, {} given)",
                header.sum,
                number_of(plan.sum)
            );
        }
    }
    wrong
}

/// What is wrong with a header, and what was wanted.
fn check_header(plan: &Headers, at: &CheckedBlock<'_>, header: &Header) -> Option<String> {
    let reading = at.reading;
    if header.magic != MAGIC {
        return Some(format!("magic header {:x}, wanted {MAGIC:x}", header.magic));
    }
    if header.bytes != at.bytes {
        return Some(format!(
            "header length {}, wanted {}",
            header.bytes, at.bytes
        ));
    }
    if let Some(seed) = reading
        .seed
        .filter(|&seed| plan.check_seed && seed != header.seed)
    {
        return Some(format!("header rand_seed {}, wanted {seed}", header.seed));
    }
    if header.offset != at.offset() {
        return Some(format!(
            "header offset {}, wanted {}",
            header.offset,
            at.offset()
        ));
    }
    if let Some(number) = reading.number.filter(|_| plan.check_number) {
        let wanted = header.shorten(number);
        if header.number != wanted {
            return Some(format!(
                "header numberio {}, wanted {wanted}",
                header.number
            ));
        }
    }
    (header.crc != header.good_crc).then(|| {
        format!(
            "header crc {:x}, calculated {:x}",
            header.crc, header.good_crc
        )
    })
}

fn check_sum(
    plan: &Headers,
    at: &CheckedBlock<'_>,
    head: usize,
    block: &[u8],
    header: &Header,
) -> Option<Wrong> {
    let bytes = sums::bytes(plan.sum);
    let stored = &block[header.own_bytes..head];
    let mut computed = [0u8; MAX_BYTES];
    let computed = &mut computed[..bytes];
    let layout = if header.own_bytes == BYTES {
        HeaderLayout::Earlier
    } else {
        HeaderLayout::Later
    };
    computed.copy_from_slice(stored);
    sums::compute(plan.sum, layout, &block[head..], computed);
    // fio 3.40 has the headers of those before it and the SHA-512 of those after it.
    let later = || stored == sums::later_sha512(&block[head..]);
    if stored == computed || (plan.sum == HeaderSum::Sha512 && later()) {
        return None;
    }
    let name = sums::name(plan.sum);
    let (stored, computed) = (hex(stored), hex(computed));
    let lines = format!(
        "{}       Expected CRC: {stored}\n       Received CRC: {computed}\n",
        at.failed(name)
    );
    let message = format!("{name} of the block is {computed}, its header says {stored}");
    Some(at.wrong("checksum", message, lines, Some(header.seed)))
}

fn check_pattern(
    plan: &Headers,
    at: &CheckedBlock<'_>,
    head: usize,
    block: &[u8],
    header: Option<&Header>,
) -> Option<Wrong> {
    let pattern = plan.pattern.as_ref()?;
    let first = differs(pattern, at, head, block)?;
    let wanted = pattern_byte(pattern, at.reading.offset, at.within + first);
    let found = block[first];
    let bits = (wanted ^ found).count_ones();
    let lines = format!(
        "fio: got pattern '{found:02x}', wanted '{wanted:02x}'. Bad bits {bits}\nfio: bad pattern block offset {}\n{}",
        first - head,
        at.failed("pattern")
    );
    let message = format!(
        "expected {wanted:#04x} of the pattern, found {found:#04x} at byte {first} of the block"
    );
    Some(at.wrong(
        "pattern",
        message,
        lines,
        Some(header.map_or(0, |header| header.seed)),
    ))
}

/// First byte that is not the pattern's.
fn differs(
    pattern: &HeaderPattern,
    at: &CheckedBlock<'_>,
    head: usize,
    block: &[u8],
) -> Option<usize> {
    let plain = pattern.offsets_at.is_empty() && pattern.interval_bytes == 0;
    let period = pattern.bytes.len();
    if plain && block.len() > head + period {
        let start =
            (head..head + period).find(|&i| block[i] != pattern.bytes[(at.within + i) % period]);
        if start.is_none() && block[head + period..] == block[head..block.len() - period] {
            return None;
        }
    }
    (head..block.len())
        .find(|&i| block[i] != pattern_byte(pattern, at.reading.offset, at.within + i))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
