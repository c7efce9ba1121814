//! What a simulated storage system is made of: limits, caches, dies, and what they remember.
//!
//! Knows when an I/O that arrives ends, and keeps per target what that depends on: credits,
//! cached blocks, what was written and touched. Knows no clock: the backend tells the time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Io, Op};
use loadstone_base::rng::mix;
use loadstone_plan::SimBehaviour;

/// What is cached is kept in blocks of this size.
const BLOCK_BYTES: u64 = 4096;
/// What was written or touched is kept in chunks of this size.
const CHUNK_BYTES: u64 = 65_536;
const SECOND_NS: u128 = 1_000_000_000;

/// The state of one target, shared by workers and stages.
pub type Remembered = Arc<Mutex<DeviceState>>;

/// What a device remembers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DeviceState {
    /// For each limit, when its bucket would be full again.
    full_ns: Vec<u64>,
    /// Blocks in the cache: their last use, and the reverse.
    cached: HashMap<u64, u64>,
    oldest: BTreeMap<u64, u64>,
    uses: u64,
    /// Bytes in the write cache at a time.
    dirty: (u64, u64),
    written: HashSet<u64>,
    touched: HashSet<u64>,
    contents: HashSet<u64>,
    #[serde(skip)]
    dies_free_ns: Vec<u64>,
    /// The clock of the stage before this one when its last I/O ended.
    last_ns: u64,
}

impl DeviceState {
    /// Reads what a run before this one left; a new device where there is none.
    #[must_use]
    pub fn kept(model: &SimBehaviour, target: usize) -> Self {
        let read = model
            .state
            .as_ref()
            .and_then(|path| std::fs::read(format!("{path}.{target}")).ok());
        read.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Keeps it for the next run; what cannot be written is lost, as in any power failure.
    pub fn keep(&mut self, model: &SimBehaviour, target: usize) {
        self.begin_again();
        if let (Some(path), Ok(text)) = (&model.state, serde_json::to_vec(self)) {
            drop(std::fs::write(format!("{path}.{target}"), text));
        }
    }

    /// The next stage's clock begins at 0: times are moved there.
    pub fn begin_again(&mut self) {
        let last_ns = std::mem::take(&mut self.last_ns);
        for full_ns in &mut self.full_ns {
            *full_ns = full_ns.saturating_sub(last_ns);
        }
        self.dirty.1 = self.dirty.1.saturating_sub(last_ns);
        self.dies_free_ns.clear();
    }

    fn limited(&mut self, model: &SimBehaviour, mut at_ns: u64, bytes: u32) -> u64 {
        self.full_ns.resize(model.limits.len(), 0);
        for (limit, full_ns) in model.limits.iter().zip(&mut self.full_ns) {
            let tokens = if limit.of_bytes { u64::from(bytes) } else { 1 };
            let time_ns = |tokens: u64| {
                (u128::from(tokens) * SECOND_NS / u128::from(limit.per_second.max(1))) as u64
            };
            at_ns = at_ns.max(full_ns.saturating_sub(time_ns(limit.burst)));
            *full_ns = at_ns.max(*full_ns) + time_ns(tokens);
        }
        self.last_ns = self.last_ns.max(at_ns);
        at_ns
    }

    /// Uses the blocks of an I/O: true when all of them were in the cache.
    fn cached(&mut self, model: &SimBehaviour, io: &Io) -> bool {
        let first = io.offset / BLOCK_BYTES;
        let last = (io.offset + u64::from(io.len.max(1)) - 1) / BLOCK_BYTES;
        let mut hit = true;
        for block in first..=last {
            self.uses += 1;
            match self.cached.insert(block, self.uses) {
                Some(before) => drop(self.oldest.remove(&before)),
                None => hit = false,
            }
            self.oldest.insert(self.uses, block);
        }
        while self.oldest.len() as u64 > model.cache_bytes / BLOCK_BYTES {
            if let Some((_, block)) = self.oldest.pop_first() {
                self.cached.remove(&block);
            }
        }
        hit && io.op == Op::Read
    }

    /// When a write finds room in the write cache; it takes it.
    fn room_ns(&mut self, model: &SimBehaviour, at_ns: u64, bytes: u64) -> u64 {
        let drained = |ns: u64| {
            (u128::from(ns) * u128::from(model.drain_bytes_per_second) / SECOND_NS) as u64
        };
        let (dirty, since_ns) = self.dirty;
        let dirty = dirty.saturating_sub(drained(at_ns.saturating_sub(since_ns)));
        let over = u128::from((dirty + bytes).saturating_sub(model.write_cache_bytes));
        let wait_ns = (over * SECOND_NS / u128::from(model.drain_bytes_per_second.max(1))) as u64;
        let room_ns = at_ns.max(since_ns) + wait_ns;
        self.dirty = (dirty.saturating_sub(drained(wait_ns)) + bytes, room_ns);
        room_ns
    }

    /// Notes the chunks of an I/O; true when one is new.
    fn is_new(known: &mut HashSet<u64>, before_bytes: u64, io: &Io, note: bool) -> bool {
        let last = (io.offset + u64::from(io.len.max(1)) - 1) / CHUNK_BYTES;
        let mut new = false;
        for chunk in io.offset / CHUNK_BYTES..=last {
            if (chunk + 1) * CHUNK_BYTES > before_bytes && !known.contains(&chunk) {
                new = true;
                if note {
                    known.insert(chunk);
                }
            }
        }
        new
    }
}

/// Returns when the limits let an I/O pass.
pub fn limited(model: &SimBehaviour, state: &Remembered, arrival_ns: u64, bytes: u32) -> u64 {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.limited(model, arrival_ns, bytes)
}

/// Returns when an I/O ends that the limits let pass at `arrival_ns`; none: never.
pub fn behave(
    model: &SimBehaviour,
    state: &Remembered,
    slots: &mut BinaryHeap<Reverse<u64>>,
    io: &Io,
    arrival_ns: u64,
    service_ns: u64,
    stalled: &dyn Fn(u64, u64) -> Option<u64>,
) -> Option<u64> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let at_once = at_once_ns(model, &mut state, io, arrival_ns);
    let end_ns = if let Some((start_ns, ns)) = at_once {
        stalled(start_ns, ns)?
    } else {
        let service_ns = service(model, &mut state, io, arrival_ns, service_ns);
        let Reverse(free_ns) = slots.pop()?;
        let slot_ns = arrival_ns.max(free_ns);
        state.dies_free_ns.resize(model.dies as usize, 0);
        let die = (model.dies > 0).then(|| {
            (mix((io.offset / CHUNK_BYTES) ^ (io.offset / BLOCK_BYTES)) % u64::from(model.dies))
                as usize
        });
        let start_ns = die.map_or(slot_ns, |die| slot_ns.max(state.dies_free_ns[die]));
        let end_ns = stalled(start_ns, service_ns).unwrap_or(u64::MAX);
        if let Some(die) = die {
            state.dies_free_ns[die] = end_ns;
        }
        slots.push(Reverse(end_ns));
        end_ns
    };
    (end_ns != u64::MAX).then_some(end_ns)
}

/// When an I/O that no medium is needed for begins, and how long it takes.
fn at_once_ns(
    model: &SimBehaviour,
    state: &mut DeviceState,
    io: &Io,
    arrival_ns: u64,
) -> Option<(u64, u64)> {
    if io.op == Op::Write && model.unwritten_ns > 0 {
        DeviceState::is_new(&mut state.written, model.written_bytes, io, true);
    }
    if io.op == Op::Read
        && model.unwritten_ns > 0
        && DeviceState::is_new(&mut state.written, model.written_bytes, io, false)
    {
        return Some((arrival_ns, model.unwritten_ns));
    }
    let cached = model.cache_bytes > 0 && !io.op.is_sync() && state.cached(model, io);
    if cached {
        return Some((arrival_ns, model.cache_hit_ns));
    }
    if model.write_cache_bytes > 0 && io.op == Op::Write {
        let room_ns = state.room_ns(model, arrival_ns, u64::from(io.len));
        return Some((room_ns, model.write_cache_ns));
    }
    None
}

/// How long the medium takes for an I/O.
fn service(
    model: &SimBehaviour,
    state: &mut DeviceState,
    io: &Io,
    at_ns: u64,
    drawn_ns: u64,
) -> u64 {
    if io.op.is_sync() && model.flush_ns > 0 {
        return model.flush_ns;
    }
    let mut ns = drawn_ns + model.kib_ns * u64::from(io.len) / 1024;
    let percent = |ns: u64, percent: u32| ns * u64::from(percent) / 100;
    if model.end_percent > 0 && model.size_bytes > 0 {
        let place = io.offset.min(model.size_bytes) as f64 / model.size_bytes as f64;
        let more = f64::from(model.end_percent) / 100.0 - 1.0;
        ns = (ns as f64 * (1.0 + more * place)) as u64;
    }
    if model.grid_bytes > 0 && (io.offset % model.grid_bytes != 0) {
        ns = percent(ns, model.misaligned_percent);
    }
    if io.op == Op::Write && (model.zero_percent > 0 || model.repeat_percent > 0) {
        let (zero, repeated) = content(state, io);
        if zero && model.zero_percent > 0 {
            ns = percent(ns, model.zero_percent);
        } else if repeated && model.repeat_percent > 0 {
            ns = percent(ns, model.repeat_percent);
        }
    }
    if let Some(slot) = at_ns.checked_div(model.neighbour_ns) {
        if mix(slot ^ 0x6e65_6967) % 1_000_000 < u64::from(model.neighbour_ppm) {
            ns = percent(ns, model.neighbour_percent);
        }
    }
    if model.first_touch_ns > 0
        && DeviceState::is_new(&mut state.touched, model.touched_bytes, io, true)
    {
        ns += model.first_touch_ns;
    }
    ns
}

/// Whether the content of a write is zeros, and whether it was written before.
fn content(state: &mut DeviceState, io: &Io) -> (bool, bool) {
    if io.buffer.is_null() {
        return (false, false);
    }
    // SAFETY: the worker's slot owns `len` bytes at `buffer` until the I/O is reaped.
    let bytes = unsafe { std::slice::from_raw_parts(io.buffer, (io.len as usize).min(4096)) };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    (
        bytes.iter().all(|&byte| byte == 0),
        !state.contents.insert(hasher.finish()),
    )
}
