//! One small Plan for every seed: streams, depths, mixes, sizes, paces, limits and faults.
//!
//! Knows what a Plan may ask for. Knows nothing of what comes of it.

use loadstone_base::rng::{mix, Rng};
use loadstone_plan::plain::{self, SECOND_NS};
use loadstone_plan::*;

const MS: u64 = 1_000_000;

struct Dice(Rng);

impl Dice {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0.below(most + 1)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    fn part(&mut self) -> f64 {
        self.0.unit()
    }
}

/// The Plan of a seed.
pub fn of(seed: u64) -> Plan {
    let mut dice = Dice(Rng::new(mix(seed)));
    let mut device = device(&mut dice);
    let files = dice.between(1, 2) as u32;
    let count = if dice.chance(50) {
        1
    } else {
        dice.between(2, 3)
    };
    let mut streams = (0..count)
        .map(|index| stream(&mut dice, index, files, &device))
        .collect::<Vec<_>>();
    if dice.chance(5) {
        calm(&mut dice, &mut device, &mut streams);
    }
    let used = streams
        .iter()
        .flat_map(|s| &s.files)
        .map(|f| f.target)
        .max()
        .unwrap_or(0)
        + 1;
    let target = plain::target("simulated", TargetKind::Virtual, 1 << 40);
    Plan {
        interval_ns: dice.between(1, 8) * MS,
        grace_ns: dice.between(1, 100) * MS,
        targets: vec![target; used as usize],
        cells: (0..used)
            .map(|target| Cell {
                unit: 0,
                target: Some(target),
            })
            .collect(),
        ..plain::plan(Backend::Sim { device }, streams)
    }
}

fn device(dice: &mut Dice) -> SimDevice {
    let read_ns = dice.between(1_000, 100_000);
    let stalls = dice.chance(15);
    let faults = dice.chance(40);
    let mut ppm = |most: u64| if faults { dice.up_to(most) as u32 } else { 0 };
    let (error_ppm, short_ppm, hang_ppm) = (ppm(50_000), ppm(50_000), ppm(1_000));
    SimDevice {
        seed: dice.up_to(u64::MAX - 1),
        servers: dice.between(1, 6) as u32,
        read_ns,
        write_ns: if dice.chance(50) {
            read_ns
        } else {
            dice.between(1_000, 100_000)
        },
        service: match dice.up_to(2) {
            0 => ServiceTime::Constant,
            1 => ServiceTime::Exponential,
            _ => ServiceTime::Uniform,
        },
        stall_every_ns: if stalls { dice.between(MS, 5 * MS) } else { 0 },
        stall_ns: if stalls { dice.between(1, MS) } else { 0 },
        error_ppm,
        short_ppm,
        hang_ppm,
        faults: None,
        behaviour: None,
    }
}

/// One stream that is paced well below what a steady device can do.
fn calm(dice: &mut Dice, device: &mut SimDevice, streams: &mut Vec<Stream>) {
    streams.truncate(1);
    device.service = ServiceTime::Constant;
    device.stall_ns = 0;
    (device.error_ppm, device.short_ppm, device.hang_ppm) = (0, 0, 0);
    let stream = &mut streams[0];
    stream.batch = None;
    (stream.flush.fsync_every, stream.flush.fdatasync_every) = (0, 0);
    let share = &mut stream.pattern;
    (share.read_percent, share.write_percent, share.trim_percent) = (100, 0, 0);
    stream.pace = Pace {
        read: Some(Rate {
            amount: RateAmount::Ops {
                per_second: (0.1 + 0.35 * dice.part()) * 1e9 / device.read_ns as f64,
            },
            phase: dice.part(),
            ..plain::rate(0.0)
        }),
        ..plain::stream().pace
    };
}

fn stream(dice: &mut Dice, index: u64, files: u32, device: &SimDevice) -> Stream {
    let iodepth = match dice.up_to(3) {
        0 => 1,
        1 => dice.between(2, 8) as u32,
        _ => dice.between(2, 32) as u32,
    };
    let pattern = pattern(dice);
    let files = (0..dice.between(1, u64::from(files)) as u32)
        .map(|target| FileUse {
            target,
            cell: target,
            offset_bytes: dice.up_to(1 << 20) * 512,
            length_bytes: dice.between(64 << 10, 8 << 20),
        })
        .collect();
    let every = dice.between(1, 5) as u32;
    let file_choice = match dice.0.below(3) {
        0 => FileChoice::Random { every },
        1 => FileChoice::Sequential {},
        _ => FileChoice::RoundRobin { every },
    };
    let pace = pace(dice, &pattern, device);
    let flushes = dice.chance(20);
    Stream {
        name: format!("seed.{index}"),
        worker: 0,
        files,
        file_choice,
        seed: dice.up_to(u64::MAX - 1),
        iodepth,
        batch: dice.chance(25).then(|| batch(dice, iodepth)),
        pattern,
        pace,
        flush: Flush {
            fsync_every: if flushes { dice.up_to(20) as u32 } else { 0 },
            fdatasync_every: if flushes { dice.up_to(20) as u32 } else { 0 },
            at_end: flushes && dice.chance(50),
            on_close: false,
        },
        payload: payload(dice),
        limits: limits(dice),
        errors: errors(dice),
        log_ios: dice.chance(30),
        ..plain::stream()
    }
}

fn payload(dice: &mut Dice) -> Payload {
    Payload {
        fill: if dice.chance(50) {
            Fill::Zero {}
        } else {
            Fill::Random {}
        },
        stamp: false,
        ..plain::stream().payload
    }
}

fn errors(dice: &mut Dice) -> ErrorPolicy {
    ErrorPolicy {
        continue_read: dice.chance(80),
        continue_write: dice.chance(80),
        ignore_read: if dice.chance(10) {
            vec![libc_eio()]
        } else {
            vec![]
        },
        ignore_write: vec![],
        continue_after: vec![],
    }
}

/// `EIO`, the only error the simulated device knows.
fn libc_eio() -> i32 {
    5
}

fn limits(dice: &mut Dice) -> Limits {
    let time_based = dice.chance(70);
    let bounded = |dice: &mut Dice, most: u64| {
        if dice.chance(50) {
            dice.between(1, most)
        } else {
            0
        }
    };
    Limits {
        start_delay_ns: if dice.chance(20) {
            dice.up_to(5 * MS)
        } else {
            0
        },
        ramp_ns: if dice.chance(30) {
            dice.up_to(5 * MS)
        } else {
            0
        },
        runtime_ns: dice.between(MS, 15 * MS),
        time_based,
        bytes: if time_based {
            0
        } else {
            bounded(dice, 8 << 20)
        },
        ops: if time_based { 0 } else { bounded(dice, 500) },
        ends_stage: dice.chance(5),
        ends_stage_on_error: dice.chance(5),
        max_latency_ns: [0; 3],
        prepare_only: false,
    }
}

fn batch(dice: &mut Dice, iodepth: u32) -> Batch {
    let depth = u64::from(iodepth);
    let complete_min = dice.up_to(depth) as u32;
    Batch {
        submit: dice.between(1, depth) as u32,
        complete_min,
        complete_max: dice.between(
            u64::from(complete_min.max(1)),
            depth.max(u64::from(complete_min)),
        ) as u32,
        low: dice.between(1, depth) as u32,
    }
}

fn pattern(dice: &mut Dice) -> Pattern {
    let (read_percent, write_percent) = match dice.up_to(4) {
        0 => (100, 0),
        1 => (0, 100),
        2 => (dice.up_to(100) as u32, 0),
        _ => {
            let read = dice.up_to(100);
            (read as u32, dice.up_to(100 - read) as u32)
        }
    };
    let trim_percent = 100 - read_percent - write_percent;
    Pattern {
        read_percent,
        write_percent,
        trim_percent,
        trim_then_write: false,
        read: order(dice),
        write: order(dice),
        trim: order(dice),
        strided: None,
        rows: None,
    }
}

fn order(dice: &mut Dice) -> OpPattern {
    let random_percent = if dice.chance(60) {
        100
    } else {
        dice.up_to(100) as u32
    };
    let random = match dice.up_to(7) {
        0 => RandomOrder::Zipf {
            theta: 0.2 + dice.part() * 0.7,
            center: None,
        },
        1 => RandomOrder::Pareto {
            h: 0.1 + dice.part() * 0.8,
            center: None,
        },
        2 => RandomOrder::Normal {
            deviation_percent: 1.0 + dice.part() * 30.0,
            center: None,
        },
        3 => RandomOrder::Reuse {
            leaf_bytes: 64 << 10,
            least_leaves: dice.between(1, 128),
            climb_percent: dice.up_to(100) as u32,
            step_leaves: dice.between(1, 8),
            again_percent: dice.up_to(100) as u32,
        },
        4 => RandomOrder::Aged {
            again_blocks: vec![dice.up_to(50), dice.up_to(50), 0],
            region_blocks: 50,
            at_the_end: dice.chance(50),
        },
        n => RandomOrder::Uniform { repeat: n == 5 },
    };
    let sizes = sizes(dice);
    OpPattern {
        random_percent,
        random,
        stride_bytes: 0,
        stride_spread_bytes: 0,
        run_length: dice.between(1, 4) as u32,
        run_identical: false,
        sizes,
        align_bytes: 512,
    }
}

fn sizes(dice: &mut Dice) -> Sizes {
    match dice.up_to(3) {
        0 => Sizes::Range {
            min_bytes: 512,
            max_bytes: dice.between(1, 16) as u32 * 4096,
            step_bytes: 512,
        },
        1 => Sizes::Split {
            table: (0..dice.between(1, 4))
                .map(|_| SizeWeight {
                    bytes: dice.between(1, 64) as u32 * 512,
                    weight: 0.1 + dice.part(),
                })
                .collect(),
        },
        _ => Sizes::Fixed {
            bytes: 512 << dice.up_to(5),
        },
    }
}

/// Rates around what the device can do: some far below, some above.
fn pace(dice: &mut Dice, pattern: &Pattern, device: &SimDevice) -> Pace {
    let paced = dice.chance(45);
    let load = if dice.chance(50) {
        0.05 + 0.3 * dice.part()
    } else {
        1.5 * dice.part() + 0.01
    };
    let process = process(dice);
    let by_bytes = dice.chance(20);
    let profile = if dice.chance(25) {
        profile(dice)
    } else {
        vec![]
    };
    let mut rate = |percent: u32, service_ns: u64| {
        if !paced || percent == 0 {
            return None;
        }
        let capacity = f64::from(device.servers) * 1e9 / service_ns as f64;
        let per_second = capacity * load * f64::from(percent) / 100.0;
        Some(Rate {
            amount: if by_bytes {
                RateAmount::Bytes {
                    per_second: per_second * 4096.0,
                }
            } else {
                RateAmount::Ops { per_second }
            },
            process,
            profile: profile.clone(),
            phase: if process == RateProcess::Linear {
                dice.part()
            } else {
                0.0
            },
            minimum: 0.0,
            min_window_ns: SECOND_NS,
        })
    };
    Pace {
        read: rate(pattern.read_percent, device.read_ns),
        write: rate(pattern.write_percent, device.write_ns),
        trim: rate(pattern.trim_percent, device.write_ns),
        think: dice.chance(10).then(|| think(dice)),
    }
}

fn process(dice: &mut Dice) -> RateProcess {
    if dice.chance(60) {
        return RateProcess::Linear;
    }
    match dice.up_to(3) {
        0 => RateProcess::Uniform,
        1 => RateProcess::Spike,
        _ => RateProcess::Poisson,
    }
}

fn think(dice: &mut Dice) -> Think {
    Think {
        pause_ns: dice.up_to(MS),
        spin_ns: 0,
        every_ios: dice.between(1, 10) as u32,
        count_issued: dice.chance(50),
        every_ns: 0,
    }
}

fn profile(dice: &mut Dice) -> Vec<RatePoint> {
    let mut at_ns = 0;
    let mut points: Vec<RatePoint> = (0..dice.between(1, 4))
        .map(|_| {
            at_ns += dice.up_to(4 * MS);
            let share = if dice.chance(20) { 0.0 } else { dice.part() };
            RatePoint { at_ns, share }
        })
        .collect();
    points.push(RatePoint { at_ns, share: 1.0 });
    points
}
