//! The generator as a whole, against the rules of its module.

use super::*;
use crate::plan::{FileUse, OpPattern, Pattern, SizeWeight, Stream, Zone};
use proptest::prelude::*;

const KIB: u64 = 1024;

fn uniform(repeat: bool) -> RandomOrder {
    RandomOrder::Uniform { repeat }
}

fn source(random_percent: u32, bytes: u32) -> OpPattern {
    OpPattern {
        random_percent,
        random: uniform(false),
        stride_bytes: 0,
        run_length: 1,
        run_identical: false,
        sizes: plan::Sizes::Fixed { bytes },
        align_bytes: u64::from(bytes),
    }
}

fn file(target: u32, offset_bytes: u64, length_bytes: u64) -> FileUse {
    FileUse {
        target,
        cell: 0,
        offset_bytes,
        length_bytes,
    }
}

/// A stream that only reads.
fn reads(source: OpPattern, files: Vec<FileUse>) -> Stream {
    mixed([100, 0, 0], source, files)
}

fn mixed(shares: [u32; 3], source: OpPattern, files: Vec<FileUse>) -> Stream {
    Stream {
        name: "test.0".into(),
        worker: 0,
        files,
        file_choice: FileChoice::RoundRobin { every: 1 },
        seed: 42,
        iodepth: 1,
        batch: None,
        pattern: Pattern {
            read_percent: shares[0],
            write_percent: shares[1],
            trim_percent: shares[2],
            trim_then_write: false,
            read: source.clone(),
            write: source.clone(),
            trim: source,
            strided: None,
            rows: None,
        },
        pace: plan::Pace {
            read: None,
            write: None,
            trim: None,
            think: None,
        },
        flush: plan::Flush {
            fsync_every: 0,
            fdatasync_every: 0,
            at_end: false,
            on_close: false,
        },
        payload: plan::Payload {
            fill: plan::Fill::Random {},
            refill: false,
            stamp: true,
            compress_percent: 0,
            compress_chunk_bytes: 0,
            dedupe_percent: 0,
            dedupe_set: None,
        },
        limits: plan::Limits {
            start_delay_ns: 0,
            ramp_ns: 0,
            runtime_ns: 0,
            time_based: false,
            bytes: 0,
            ops: 0,
            ends_stage: false,
            max_latency_ns: [0; 3],
        },
        errors: plan::ErrorPolicy {
            continue_read: false,
            continue_write: false,
            ignore_read: vec![],
            ignore_write: vec![],
        },
        log_ios: false,
        verify: None,
        flow: None,
        serialize_overlap: false,
        wait_for: Vec::new(),
        search: None,
        tree: None,
    }
}

fn take(stream: &Stream, count: usize) -> Vec<Next> {
    let mut generator = Generator::new(stream);
    (0..count).map(|_| generator.next()).collect()
}

fn offsets_kib(stream: &Stream, count: usize) -> Vec<u64> {
    take(stream, count)
        .iter()
        .map(|io| io.offset / KIB)
        .collect()
}

#[test]
fn sequential_reads_walk_the_range_and_start_again() {
    let stream = reads(source(0, 4096), vec![file(0, 8 * KIB, 14 * KIB)]);
    assert_eq!(offsets_kib(&stream, 7), [8, 12, 16, 8, 12, 16, 8]);
}

#[test]
fn a_stride_leaves_holes_and_wraps() {
    let with_stride = |stride_bytes| OpPattern {
        stride_bytes,
        ..source(0, 4096)
    };
    let stream = reads(with_stride(4096), vec![file(0, 0, 20 * KIB)]);
    assert_eq!(offsets_kib(&stream, 7), [0, 8, 16, 0, 8, 16, 0]);
    let stream = reads(with_stride(-8192), vec![file(0, 4 * KIB, 16 * KIB)]);
    assert_eq!(
        offsets_kib(&stream, 7),
        [12, 8, 4, 12, 8, 4, 12],
        "backwards"
    );
}

#[test]
fn a_stride_follows_each_run() {
    let source = OpPattern {
        stride_bytes: 8192,
        run_length: 2,
        ..source(0, 4096)
    };
    let stream = reads(source, vec![file(0, 0, 64 * KIB)]);
    assert_eq!(offsets_kib(&stream, 7), [0, 4, 16, 20, 32, 36, 48]);
}

#[test]
fn identical_runs_repeat_the_address() {
    let source = OpPattern {
        run_length: 3,
        run_identical: true,
        ..source(0, 4096)
    };
    let stream = reads(source.clone(), vec![file(0, 0, 64 * KIB)]);
    assert_eq!(offsets_kib(&stream, 7), [0, 0, 0, 4, 4, 4, 8]);
    let stream = reads(
        OpPattern {
            random_percent: 100,
            ..source
        },
        vec![file(0, 0, 64 * KIB)],
    );
    let ios = offsets_kib(&stream, 16 * 3);
    assert!(
        ios.chunks(3)
            .all(|run| run[0] == run[1] && run[1] == run[2]),
        "{ios:?}"
    );
    let mut places: Vec<_> = ios.iter().step_by(3).copied().collect();
    places.sort_unstable();
    assert_eq!(
        places,
        (0..16).map(|i| i * 4).collect::<Vec<_>>(),
        "and cover the range"
    );
}

#[test]
fn random_runs_are_sequential_inside() {
    let source = OpPattern {
        run_length: 8,
        ..source(100, 4096)
    };
    let stream = reads(source, vec![file(0, 0, 4096 * KIB)]);
    let ios = offsets_kib(&stream, 8 * 200);
    let mut jumps = 0;
    for run in ios.chunks(8) {
        // A run may go round the end once.
        assert!(run.windows(2).all(|w| w[1] == (w[0] + 4) % 4096), "{run:?}");
    }
    for ends in ios[7..].windows(2).step_by(8) {
        jumps += usize::from(ends[1] != ends[0] + 4);
    }
    assert!(jumps > 190, "{jumps} of 199 runs begin elsewhere");
}

#[test]
fn a_share_of_random_addresses_lets_sequential_ones_go_on_from_there() {
    let stream = reads(source(30, 4096), vec![file(0, 0, 1 << 30)]);
    let ios = take(&stream, 20_000);
    let follows = |w: &&[Next]| w[1].offset == w[0].offset + 4096;
    let sequential = ios.windows(2).filter(follows).count();
    // Binomial, mean 14,000, deviation 65.
    assert!((13_700..14_300).contains(&sequential), "{sequential}");
}

#[test]
fn random_reads_touch_every_block_once_per_pass_for_any_length() {
    for blocks in [1u64, 2, 3, 7, 64, 1000, 4097] {
        let length = blocks * 4096 + 100;
        let stream = reads(source(100, 4096), vec![file(0, 512, length)]);
        let ios = take(&stream, blocks as usize * 3);
        for pass in ios.chunks(blocks as usize) {
            let mut places: Vec<_> = pass.iter().map(|io| io.offset).collect();
            places.sort_unstable();
            let expected: Vec<_> = (0..blocks).map(|i| 512 + i * 4096).collect();
            assert_eq!(places, expected, "{blocks} blocks");
        }
    }
}

#[test]
fn reads_and_writes_share_one_pass() {
    let stream = mixed(
        [50, 50, 0],
        source(100, 4096),
        vec![file(0, 0, 1000 * 4096)],
    );
    let mut places: Vec<_> = take(&stream, 1000)
        .iter()
        .map(|io| io.offset / 4096)
        .collect();
    places.sort_unstable();
    assert_eq!(places, (0..1000).collect::<Vec<_>>());
}

#[test]
fn repeats_are_uniform() {
    let source = OpPattern {
        random: uniform(true),
        ..source(100, 4096)
    };
    let stream = reads(source, vec![file(0, 0, 100 * 4096)]);
    let mut counts = [0u32; 100];
    for io in take(&stream, 100_000) {
        counts[(io.offset / 4096) as usize] += 1;
    }
    let statistic: f64 = counts
        .iter()
        .map(|&c| (f64::from(c) - 1e3).powi(2) / 1e3)
        .sum();
    // 99 degrees of freedom: mean 99, deviation 14.
    assert!((50.0..155.0).contains(&statistic), "{statistic}");
}

#[test]
fn operations_keep_their_shares_and_their_own_positions() {
    let stream = mixed([70, 20, 10], source(0, 4096), vec![file(0, 0, 1 << 40)]);
    let mut next = [0u64; 3];
    for io in take(&stream, 100_000) {
        assert_eq!(io.offset, next[io.op as usize]);
        next[io.op as usize] += 4096;
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
            let expected = Next {
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
            Next {
                op: Op::Write,
                ..pair[0]
            }
        );
    }
}

#[test]
fn files_are_chosen_in_turn() {
    let files = vec![
        file(0, 0, 1 << 20),
        file(1, 0, 1 << 20),
        file(2, 0, 1 << 20),
    ];
    let mut stream = reads(source(0, 4096), files);
    stream.file_choice = FileChoice::RoundRobin { every: 2 };
    let ios = take(&stream, 8);
    assert_eq!(
        ios.iter().map(|io| io.file).collect::<Vec<_>>(),
        [0, 0, 1, 1, 2, 2, 0, 0]
    );
    assert_eq!(ios[6].offset, 8192, "each file keeps its position");
}

#[test]
fn files_are_chosen_at_random_and_kept() {
    let files = (0..4).map(|i| file(i, 0, 1 << 20)).collect();
    let mut stream = reads(source(0, 4096), files);
    stream.file_choice = FileChoice::Random { every: 5 };
    let ios = take(&stream, 20_000);
    let mut counts = [0u32; 4];
    for run in ios.chunks(5) {
        assert!(run.iter().all(|io| io.file == run[0].file));
        counts[run[0].file as usize] += 1;
    }
    // Binomial, mean 1000, deviation 27.
    assert!(counts.iter().all(|c| (880..1120).contains(c)), "{counts:?}");
}

#[test]
fn files_are_finished_one_after_the_other() {
    for random_percent in [0, 100] {
        let files = vec![
            file(0, 0, 4 * 4096),
            file(1, 4096, 2 * 4096),
            file(2, 0, 3 * 4096),
        ];
        let mut stream = reads(source(random_percent, 4096), files);
        stream.file_choice = FileChoice::Sequential {};
        let mut ios = take(&stream, 18);
        let order: Vec<_> = ios.iter().map(|io| io.file).collect();
        assert_eq!(
            order,
            [0, 0, 0, 0, 1, 1, 2, 2, 2, 0, 0, 0, 0, 1, 1, 2, 2, 2]
        );
        ios[..4].sort_by_key(|io| io.offset);
        assert_eq!(
            ios[..4]
                .iter()
                .map(|io| io.offset / 4096)
                .collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
    }
}

#[test]
fn a_file_with_holes_is_finished_at_its_end() {
    let mut stream = reads(
        OpPattern {
            stride_bytes: 4096,
            ..source(0, 4096)
        },
        vec![file(0, 0, 5 * 4096), file(1, 0, 5 * 4096)],
    );
    stream.file_choice = FileChoice::Sequential {};
    let order: Vec<_> = take(&stream, 9).iter().map(|io| io.file).collect();
    assert_eq!(order, [0, 0, 0, 1, 1, 1, 0, 0, 0]);
}

#[test]
fn a_sequential_range_of_sizes_reaches_the_end_before_it_starts_again() {
    let sizes = plan::Sizes::Range {
        min_bytes: 512,
        max_bytes: 16384,
        step_bytes: 512,
    };
    let stream = reads(
        OpPattern {
            sizes,
            ..source(0, 512)
        },
        vec![file(0, 0, 100 * KIB)],
    );
    let ios = take(&stream, 2000);
    let mut expected = 0;
    let mut passes = 0;
    for io in ios {
        assert_eq!(io.offset, expected, "no gaps and no overlap");
        expected = io.offset + u64::from(io.len);
        if expected == 100 * KIB {
            (expected, passes) = (0, passes + 1);
        }
    }
    assert!(passes > 100);
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
        stride,
        1u32..10,
        any::<bool>(),
        any_sizes(),
        1u64..9000,
    )
        .prop_map(
            |(
                random_percent,
                random,
                stride_bytes,
                run_length,
                run_identical,
                sizes,
                align_bytes,
            )| {
                OpPattern {
                    random_percent,
                    random,
                    stride_bytes,
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

/// Sizes of 4 and 16 KiB.
fn four_or_sixteen() -> OpPattern {
    let entry = |bytes| SizeWeight { bytes, weight: 1.0 };
    OpPattern {
        sizes: plan::Sizes::Split {
            table: vec![entry(4096), entry(16384)],
        },
        ..source(100, 4096)
    }
}

/// Counts the 4 KiB blocks of each file that the I/Os of one pass touch.
fn touched(stream: &Stream, blocks: u64) -> Vec<u32> {
    let mut generator = Generator::new(stream);
    let (mut counts, mut left) = (vec![0; blocks as usize], blocks);
    while left > 0 {
        let io = generator.next();
        let count = u64::from(io.len) / 4096;
        assert!((1..=4).contains(&count), "{io:?}");
        for block in io.offset / 4096..io.offset / 4096 + count {
            counts[block as usize] += 1;
        }
        left = left.saturating_sub(count);
    }
    counts
}

#[test]
fn mixed_sizes_touch_every_block_once_per_pass() {
    let blocks = 1000;
    let stream = reads(four_or_sixteen(), vec![file(0, 0, blocks * 4096)]);
    assert_eq!(touched(&stream, blocks), vec![1; 1000]);
    assert_eq!(touched(&stream, 3 * blocks), {
        let mut counts = vec![3; 1000];
        counts.resize(3000, 0);
        counts
    });
}

#[test]
fn an_io_of_one_size_shares_the_map_with_one_whose_sizes_vary() {
    let mut stream = mixed([50, 50, 0], four_or_sixteen(), vec![file(0, 0, 800 * 4096)]);
    stream.pattern.read = source(100, 4096);
    assert_eq!(touched(&stream, 800), vec![1; 800]);
}

#[test]
fn maps_are_counted_and_only_where_sizes_vary() {
    let files = || vec![file(0, 0, 1 << 30), file(1, 0, 4096 * 64)];
    assert_eq!(map_bytes(&reads(source(100, 4096), files())), 0);
    let mut varied = reads(four_or_sixteen(), files());
    // 2^18 blocks in 4,096 words and 64 above them; 64 blocks in 1 and 1.
    assert_eq!(map_bytes(&varied), 8 * (4096 + 64 + 1 + 1));
    varied.pattern.read.random = uniform(true);
    assert_eq!(map_bytes(&varied), 0);
}

fn strided(source: OpPattern, plan: [u64; 3], file: FileUse) -> Stream {
    let [zone_bytes, range_bytes, skip_bytes] = plan.map(|kib| kib * KIB);
    let mut stream = reads(source, vec![file]);
    stream.pattern.strided = Some(plan::Strided {
        zone_bytes,
        range_bytes,
        skip_bytes,
    });
    stream
}

#[test]
fn windows_move_over_the_file_and_start_again() {
    let sequential = || source(0, 4096);
    let stream = strided(sequential(), [8, 16, 4], file(0, 4 * KIB, 56 * KIB));
    // Windows at 4, 24 and 44 KiB, two reads in each.
    assert_eq!(offsets_kib(&stream, 7), [4, 8, 24, 28, 44, 48, 4]);
    let stream = strided(sequential(), [16, 8, 0], file(0, 0, 16 * KIB));
    assert_eq!(
        offsets_kib(&stream, 9),
        [0, 4, 0, 4, 8, 12, 8, 12, 0],
        "more I/O than there are bytes in a window"
    );
    // The last window is 4 KiB long, the one after it would have 2.
    let stream = strided(sequential(), [8, 8, 0], file(0, 0, 14 * KIB));
    assert_eq!(offsets_kib(&stream, 5), [0, 4, 8, 8, 0]);
}

#[test]
fn random_reads_touch_all_of_each_window() {
    for source in [source(100, 4096), four_or_sixteen()] {
        let (blocks, windows) = (64, 4);
        let stream = strided(
            source,
            [blocks * 4, blocks * 4, 0],
            file(0, 0, windows * blocks * 4 * KIB),
        );
        let mut generator = Generator::new(&stream);
        for window in [0, 1, 2, 3, 0] {
            let (mut counts, mut left) = (vec![0; blocks as usize], blocks);
            while left > 0 {
                let io = generator.next();
                let first = io.offset / 4096 - window * blocks;
                for block in first..first + u64::from(io.len) / 4096 {
                    counts[block as usize] += 1;
                    left -= 1;
                }
            }
            assert_eq!(counts, vec![1; blocks as usize], "window {window}");
        }
    }
}

/// Prints the cost of one I/O: `cargo test --release -- --ignored --nocapture cost_of`.
#[test]
#[ignore = "a measurement, not a test"]
fn cost_of_a_generated_io() {
    let odd = vec![file(0, 0, 1_000_003 * 4096)];
    let order = |random| OpPattern {
        random,
        ..source(100, 4096)
    };
    let cases = [
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
        (
            "zipf 1.2",
            reads(
                order(RandomOrder::Zipf {
                    theta: 1.2,
                    center: None,
                }),
                odd.clone(),
            ),
        ),
        (
            "pareto 0.2",
            reads(
                order(RandomOrder::Pareto {
                    h: 0.2,
                    center: None,
                }),
                odd.clone(),
            ),
        ),
        (
            "normal 10",
            reads(
                order(RandomOrder::Normal {
                    deviation_percent: 10.0,
                    center: None,
                }),
                odd,
            ),
        ),
    ];
    for (name, stream) in cases {
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
