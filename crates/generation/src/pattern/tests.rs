//! The generator as a whole, against the rules of its module.

use super::*;
use loadstone_plan::plain;
pub(super) use loadstone_plan::plain::order as source;
use loadstone_plan::{FileChoice, FileUse, OpPattern, RandomOrder, SizeWeight, Stream, Zone};
use proptest::prelude::*;

pub(super) const KIB: u64 = 1024;

pub(super) fn uniform(repeat: bool) -> RandomOrder {
    RandomOrder::Uniform { repeat }
}

/// Sizes of 4 and 16 KiB.
pub(super) fn four_or_sixteen() -> OpPattern {
    let entry = |bytes| SizeWeight { bytes, weight: 1.0 };
    OpPattern {
        sizes: plan::Sizes::Split {
            table: vec![entry(4096), entry(16384)],
        },
        ..source(100, 4096)
    }
}

pub(super) fn file(target: u32, offset_bytes: u64, length_bytes: u64) -> FileUse {
    FileUse {
        target,
        cell: 0,
        offset_bytes,
        length_bytes,
    }
}

/// A stream that only reads.
pub(super) fn reads(source: OpPattern, files: Vec<FileUse>) -> Stream {
    mixed([100, 0, 0], source, files)
}

pub(super) fn mixed(shares: [u32; 3], source: OpPattern, files: Vec<FileUse>) -> Stream {
    Stream {
        files,
        seed: 42,
        pattern: plain::pattern(shares, &source),
        ..plain::stream()
    }
}

pub(super) fn take(stream: &Stream, count: usize) -> Vec<NextIo> {
    let mut generator = Generator::new(stream);
    (0..count).map(|_| generator.next()).collect()
}

pub(super) fn offsets_kib(stream: &Stream, count: usize) -> Vec<u64> {
    take(stream, count)
        .iter()
        .map(|io| io.offset / KIB)
        .collect()
}

#[test]
fn operations_keep_their_shares_and_their_own_positions() {
    let stream = mixed([70, 20, 10], source(0, 4096), vec![file(0, 0, 1 << 40)]);
    let mut next = [0u64; 3];
    for io in take(&stream, 100_000) {
        assert_eq!(io.offset, next[io.op.index()]);
        next[io.op.index()] += 4096;
    }
    for (op, share) in [0.7, 0.2, 0.1].into_iter().enumerate() {
        let got = (next[op] / 4096) as f64;
        let deviation = f64::sqrt(1e5 * share * (1.0 - share));
        assert!((got - 1e5 * share).abs() < 4.0 * deviation, "{op}: {got}");
    }
}

#[test]
fn an_operation_that_is_asked_for_goes_on_from_its_own_position() {
    let stream = mixed([70, 30, 0], source(0, 4096), vec![file(0, 0, 1 << 30)]);
    let mut generator = Generator::new(&stream);
    for i in 0..20 {
        for op in [Op::Write, Op::Read] {
            let expected = NextIo {
                op,
                file: 0,
                offset: i * 4096,
                len: 4096,
            };
            assert_eq!(generator.next_op(op), expected);
        }
    }
}

#[test]
fn a_trimmed_block_is_written_next() {
    let mut stream = mixed([0, 0, 100], source(100, 4096), vec![file(0, 0, 1 << 24)]);
    stream.pattern.trim_then_write = true;
    for pair in take(&stream, 1000).chunks(2) {
        assert_eq!(pair[0].op, Op::Trim);
        assert_eq!(
            pair[1],
            NextIo {
                op: Op::Write,
                ..pair[0]
            }
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_ios_and_another_seed_does_not() {
    let mut stream = mixed([50, 30, 20], source(60, 4096), vec![file(0, 0, 1 << 30)]);
    let first = take(&stream, 1000);
    assert_eq!(first, take(&stream, 1000));
    stream.seed += 1;
    assert_ne!(first, take(&stream, 1000));
}

fn any_order() -> impl Strategy<Value = RandomOrder> {
    let center = || proptest::option::of(0.0..=1.0);
    prop_oneof![
        any::<bool>().prop_map(uniform),
        (0.05f64..3.0, center()).prop_map(|(theta, center)| RandomOrder::Zipf { theta, center }),
        (0.01f64..0.99, center()).prop_map(|(h, center)| RandomOrder::Pareto { h, center }),
        (0.0f64..100.0, center()).prop_map(|(deviation_percent, center)| RandomOrder::Normal {
            deviation_percent,
            center
        }),
        proptest::collection::vec((0.0f64..50.0, 1u64..1 << 22), 1..6).prop_map(|zones| {
            let zone = |(access_percent, length_bytes)| Zone {
                access_percent,
                length_bytes,
            };
            RandomOrder::Zoned {
                zones: zones.into_iter().map(zone).collect(),
            }
        }),
    ]
}

fn any_sizes() -> impl Strategy<Value = plan::Sizes> {
    prop_oneof![
        (1u32..70_000).prop_map(|bytes| plan::Sizes::Fixed { bytes }),
        (1u32..5000, 0u32..60_000, 1u32..5000).prop_map(|(min_bytes, more, step_bytes)| {
            plan::Sizes::Range {
                min_bytes,
                max_bytes: min_bytes + more,
                step_bytes,
            }
        }),
        proptest::collection::vec((1u32..70_000, 0.01f64..100.0), 1..8).prop_map(|table| {
            let entry = |(bytes, weight)| SizeWeight { bytes, weight };
            plan::Sizes::Split {
                table: table.into_iter().map(entry).collect(),
            }
        }),
    ]
}

fn any_source() -> impl Strategy<Value = OpPattern> {
    let percent = prop_oneof![Just(0u32), Just(100), 1u32..100];
    let stride = prop_oneof![Just(0i64), -200_000i64..200_000];
    (
        percent,
        any_order(),
        (stride, prop_oneof![Just(0u64), 1u64..100_000]),
        1u32..10,
        any::<bool>(),
        any_sizes(),
        1u64..9000,
    )
        .prop_map(
            |(
                random_percent,
                random,
                (stride_bytes, stride_spread_bytes),
                run_length,
                run_identical,
                sizes,
                align_bytes,
            )| {
                OpPattern {
                    random_percent,
                    random,
                    stride_bytes,
                    stride_spread_bytes,
                    run_length,
                    run_identical,
                    sizes,
                    align_bytes,
                }
            },
        )
}

fn allowed(sizes: &plan::Sizes, len: u32) -> bool {
    match sizes {
        plan::Sizes::Fixed { bytes } => len == *bytes,
        plan::Sizes::Range {
            min_bytes,
            max_bytes,
            step_bytes,
        } => (*min_bytes..=*max_bytes).contains(&len) && (len - min_bytes) % step_bytes == 0,
        plan::Sizes::Split { table } => table.iter().any(|entry| entry.bytes == len),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_io_leaves_its_range_and_every_size_is_one_that_was_asked_for(
        ops in (any_source(), any_source(), any_source()),
        shares in (0u32..50, 0u32..50, 1u32..50),
        trim_then_write: bool,
        files in proptest::collection::vec((0u64..1 << 40, 70_000u64..1 << 22), 1..5),
        choice in 0..3,
        every in 1u32..4,
        seed: u64,
    ) {
        let files = files.into_iter().map(|(at, len)| file(0, at, len)).collect();
        let mut stream = mixed([shares.0, shares.1, shares.2], ops.0, files);
        stream.pattern.write = ops.1;
        stream.pattern.trim = ops.2;
        stream.pattern.trim_then_write = trim_then_write;
        stream.seed = seed;
        stream.file_choice = match choice {
            0 => FileChoice::RoundRobin { every },
            1 => FileChoice::Random { every },
            _ => FileChoice::Sequential {},
        };
        let mut trimmed = None;
        for io in take(&stream, 300) {
            let range = stream.files[io.file as usize];
            prop_assert!(io.offset >= range.offset_bytes);
            prop_assert!(io.offset + u64::from(io.len) <= range.offset_bytes + range.length_bytes);
            let pattern = &stream.pattern;
            let sizes = match io.op {
                Op::Write if trimmed.take().is_some() => &pattern.trim.sizes,
                Op::Read => &pattern.read.sizes,
                Op::Write => &pattern.write.sizes,
                _ => &pattern.trim.sizes,
            };
            prop_assert!(allowed(sizes, io.len), "{:?} of {:?}", io, sizes);
            if trim_then_write && io.op == Op::Trim {
                trimmed = Some(io);
            }
        }
    }

    #[test]
    fn random_addresses_are_aligned(align_bytes in 1u64..10_000, order in any_order(), seed: u64) {
        let pattern = OpPattern { random: order, align_bytes, ..source(100, 4096) };
        let mut stream = reads(pattern, vec![file(0, 12_345, 1 << 22)]);
        stream.seed = seed;
        for io in take(&stream, 200) {
            prop_assert_eq!((io.offset - 12_345) % align_bytes, 0);
        }
    }
}

#[test]
fn a_stream_that_is_not_well_formed_still_gives_ios_inside_its_range() {
    // Larger than the range, and no shares at all.
    for random_percent in [0, 50, 100] {
        let stream = mixed(
            [0, 0, 0],
            source(random_percent, 8192),
            vec![file(0, 100, 4096)],
        );
        for io in take(&stream, 20) {
            assert_eq!((io.offset, io.len), (100, 4096));
        }
    }
}

/// Streams whose I/Os cost differently to generate.
fn costly_and_cheap() -> [(&'static str, Stream); 9] {
    let center = None;
    let zipf = RandomOrder::Zipf { theta: 1.2, center };
    let pareto = RandomOrder::Pareto { h: 0.2, center };
    let normal = RandomOrder::Normal {
        deviation_percent: 10.0,
        center,
    };
    let odd = vec![file(0, 0, 1_000_003 * 4096)];
    let order = |random| OpPattern {
        random,
        ..source(100, 4096)
    };
    [
        ("sequential", reads(source(0, 4096), odd.clone())),
        ("random, each once", reads(source(100, 4096), odd.clone())),
        (
            "random, each once, 2^20",
            reads(source(100, 4096), vec![file(0, 0, 1 << 32)]),
        ),
        (
            "random with repeats",
            reads(order(uniform(true)), odd.clone()),
        ),
        (
            "random 70/30",
            mixed([70, 30, 0], source(100, 4096), odd.clone()),
        ),
        ("half random", reads(source(50, 4096), odd.clone())),
        ("zipf 1.2", reads(order(zipf), odd.clone())),
        ("pareto 0.2", reads(order(pareto), odd.clone())),
        ("normal 10", reads(order(normal), odd)),
    ]
}

/// Prints the cost of one I/O: `cargo test --release -- --ignored --nocapture cost_of`.
#[test]
#[ignore = "a measurement, not a test"]
fn cost_of_a_generated_io() {
    for (name, stream) in costly_and_cheap() {
        let mut generator = Generator::new(&stream);
        let count = 5_000_000u64;
        let start = std::time::Instant::now();
        let mut sum = 0u64;
        for _ in 0..count {
            sum = sum.wrapping_add(generator.next().offset);
        }
        let cost = start.elapsed().as_nanos() as f64 / count as f64;
        println!("{name:28} {cost:6.2} ns (sum {sum:x})");
    }
}
