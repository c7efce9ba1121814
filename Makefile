# Everything here works from a fresh clone: what is missing is set up first.
# `make V=1 TARGET` shows what pip and cargo say.

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin
# Of the engine; with `dev` it is compiled once for itself and for its tests (`.ci/run`).
PROFILE ?= release
ENGINE := target/$(PROFILE:dev=debug)/loadstone-engine
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
QUIET := $(if $(V),,--quiet)

.PHONY: help build static demo test test-rust test-side-by-side turns robust nightly lint lint-rust lint-python bench fuzz rust-fuzz docs verdicts lab lab-full fit faults safety nvme watch comparisons experiments hosts examples format clean

help:
	@echo "make demo    run four corners on a temporary file and say where the report is"
	@echo "make test    all tests"
	@echo "make turns   the costly tests of all days, before a change that many files feel"
	@echo "make nightly the tests that take minutes: every failure of every file operation, thousands of simulated runs"
	@echo "make robust  all tests ten times beside two spinning processes (hours): which take speed for granted"
	@echo "make lint    formatters, linters, types and the import rules"
	@echo "make build   both programs, in $(VENV)/bin"
	@echo "make bench   the engine beside fio"
	@echo "make fuzz    MINUTES=10 of fuzzing for each reader; make rust-fuzz: the engine's alone"
	@echo "make faults   damage data on a real device (root), and write docs/faults.md"
	@echo "make safety   try to have data destroyed by every verb (root), and write docs/safety.md"
	@echo "make lab     draw some hundred situations, judge them, and say how often the verdict is right (minutes)"
	@echo "make lab-full  5,000 simulated situations and 300 with real parts (root, hours): docs/verdicts.md, docs/probes-tried.md"
	@echo "make fit     fit anew how the verdict combines evidence, on the situations kept in lab/fit"
	@echo "make verdicts stage 58 lies and honest runs with real parts (root), and print what was said of each"
	@echo "make nvme    try NVMe commands in an emulated machine (QEMU; gets a kernel by apt)"
	@echo "make watch   watch a storage server of our own by SSH, SNMP and node_exporter: link, CPU, disk (root)"
	@echo "make static   build an engine that needs no C library, which \`loadstone hosts install\` then sends"
	@echo "make hosts    two clients at one watched server, then what goes wrong on namespace hosts (root): docs/hosts-faults.md"
	@echo "make comparisons  compare pairs with a known difference, 1,000 of them measured by the engine, and write docs/compare-calibration.md"
	@echo "make examples small comparisons as published studies made them, with their pages (fio)"
	@echo "make experiments  analyse 4,600 experiments with planted effects, and write docs/experiment-calibration.md"
	@echo "make docs    write the generated documents anew"
	@echo "make format  format all code"

$(VENV)/.python: pyproject.toml python/loadstone/version.py
	$(PYTHON) -m venv $(VENV)
	@# The pip that comes with an older Python takes twice the CPU time for what follows.
	$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check --no-compile 'pip>=26,<27'
	@# Half of what it would compile is never imported; the first program that imports a module compiles it.
	$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check --no-compile -e '.[dev]'
	@touch $@

# pip builds the engine once for $(VENV)/bin; from then on cargo alone keeps it fresh,
# and `loadstone` takes the newer of the two.
$(ENGINE): $(RUST) | $(VENV)/.python
	$(CARGO) build $(QUIET) --locked --profile $(PROFILE)
	@touch $@

build: $(VENV)/.python $(ENGINE)

# An engine that needs no C library, for `loadstone hosts install` on hosts older than this one.
MUSL := x86_64-unknown-linux-musl
static: build
	rustup target add $(MUSL)
	$(CARGO) build $(QUIET) --release --locked --target $(MUSL)

demo: build
	@examples/demo.sh $(BIN)/loadstone

# Tests wait as well as compute, so more of them run side by side than there are processors. Each of these
# processes collects all tests, which takes 9 s.
JOBS ?= $(shell expr 3 \* $$(nproc) / 2)

# Hundreds of programs are started: without bytecode each would compile all of its modules.
test nightly: export PYTHONDONTWRITEBYTECODE =
# Long lists of cases are sampled, every day another sample; the last line of a run says which.
test nightly: export LOADSTONE_TESTS_DRAW ?= $(shell date +%j)

# The engine's last step has one thread, and tests wait: those of both languages are compiled and run beside it.
test:
	@$(MAKE) --no-print-directory --jobs=2 test-rust test-side-by-side
	$(BIN)/python -m pytest -m 'serial and not nightly' $(PYTEST) $$(grep -rl --include='test_*.py' mark.serial tests)

# What it says is shown when it has ended: the tests beside it tell how far they are.
# Cargo is given none of this make's jobs, and says so where it is told of them.
test-rust: export LOADSTONE_SEEDS ?= 500
test-rust: export LOADSTONE_DAMAGES ?= 20
test-rust:
	@mkdir -p target
	@echo '$(CARGO) test $(QUIET) --locked --workspace'
	@MAKEFLAGS= $(CARGO) test $(QUIET) --locked --workspace > target/test-rust.txt 2>&1; ended=$$?; cat target/test-rust.txt; exit $$ended
	@echo "ran $$LOADSTONE_SEEDS simulated Plans of crates/cli/tests/seeds, and each kind of damage $$LOADSTONE_DAMAGES times; make nightly runs all"

test-side-by-side: build
	@# Once, or else each of the workers would compile every module of a fresh clone.
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only --quiet > /dev/null
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not nightly and not serial' $(PYTEST)

# A fourteenth of the costly tests is run each day: what breaks another is seen on its day, and nowhere before.
turns: export PYTHONDONTWRITEBYTECODE =
turns: export LOADSTONE_TESTS_TURNS := 1
turns: export LOADSTONE_TESTS_DRAW ?= $(shell date +%j)
turns: build
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'in_turn and not nightly' $(PYTEST)

# Ten times beside two processes that spin: what fails takes the host's speed for granted.
robust: build
	$(BIN)/python -m tests.support.under_load $(ROBUST)

# What takes minutes: give a test the marker `nightly`. The last line starts an interpreter for every program.
nightly: build
	$(CARGO) test $(QUIET) --locked --package loadstone-engine --test seeds
	$(CARGO) test $(QUIET) --locked --package loadstone-verification --lib every_kind_is_found
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'nightly and not serial' --timeout 7200 $(PYTEST)
	$(BIN)/python -m pytest -m 'nightly and serial' --timeout 7200 $(PYTEST) $$(grep -rl --include='test_*.py' mark.serial tests)
	LOADSTONE_TESTS_COLD=1 $(BIN)/python -m pytest -n $(JOBS) -m 'not nightly' --timeout 1800 tests/e2e tests/cli $(PYTEST)

# A fresh clone needs the engine for its virtual environment, whose last step has one thread.
lint:
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-rust lint-python

CLIPPY ?= $(CARGO) clippy $(QUIET) --locked --workspace --all-targets -- -D warnings
lint-rust:
	$(CARGO) fmt --check
	$(CLIPPY)

lint-python: $(VENV)/.python
	$(BIN)/ruff check --no-cache
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: build
	$(BIN)/python bench/compare.py $(BENCH)
	$(BIN)/python bench/depths.py $(DEPTHS)

MINUTES ?= 10
FUZZED := job_file vdbench iometer results data_sheet plan documents events arrow_stream parquet \
	parquet_footer_alone marks state_file study_file monitors disk spoken_by_the_engine experiment_file hosts_list \
	watch_secrets watched_by_shell watched_by_exporter watched_by_snmp change_journal said_by_agents experiment_document
fuzz: build rust-fuzz
	$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check 'atheris>=3,<4'
	@for one in $(FUZZED); do $(BIN)/python -m tests.fuzz.guide $$one --minutes $(MINUTES) || exit 1; done
	$(BIN)/python -m tests.fuzz.fuzz_jobfile --minutes $(MINUTES)
	$(BIN)/python -m tests.fuzz.fuzz_plan --minutes $(MINUTES)
	$(BIN)/python -m tests.fuzz.fuzz_vdbench --minutes $(MINUTES)
	$(BIN)/python -m tests.fuzz.fuzz_icf --minutes $(MINUTES)
	$(BIN)/python -m tests.fuzz.fuzz_results --minutes $(MINUTES)

# What reads foreign bytes in the engine, with libFuzzer's instruments: the flags are cargo-fuzz's for
# no sanitizer, which the stable compiler takes. What is found lies in build/fuzz/found.
RUST_FUZZED := plan simulated journal known stamped headers orders namespace
INSTRUMENTS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing
FUZZ := build/fuzz
rust-fuzz:
	RUSTFLAGS='$(INSTRUMENTS)' $(CARGO) build $(QUIET) --locked --release --target-dir $(FUZZ)/target \
		--manifest-path crates/fuzz/Cargo.toml --target $$(rustc -vV | sed -n 's/^host: //p')
	@mkdir -p $(FUZZ)/found $(RUST_FUZZED:%=$(FUZZ)/corpus/%)
	@for one in $(RUST_FUZZED); do \
		$(FUZZ)/target/*/release/$$one -max_total_time=$$(( $(MINUTES) * 60 )) -timeout=20 -rss_limit_mb=2048 \
			-max_len=4096 -print_final_stats=1 -artifact_prefix=$(FUZZ)/found/$$one- \
			$(FUZZ)/corpus/$$one crates/fuzz/corpus/$$one || exit 1; done

docs: build
	$(ENGINE) schema plan > contract/plan.schema.json
	$(ENGINE) schema samples > contract/samples.schema.json
	$(ENGINE) schema backends > contract/backends.json
	$(BIN)/python -m tests.support.backend_table > python/loadstone/plan/backends.json
	$(BIN)/python -m tests.analysis.test_summary > contract/result.schema.json
	$(BIN)/python -m tests.report.test_study_page > contract/study-result.schema.json
	$(BIN)/python -m tests.experiment.test_file > contract/experiment.schema.json
	$(BIN)/python -m tests.report.test_experiment_report > contract/experiment-report.schema.json
	LOADSTONE_WRITE_GENERATED=1 $(BIN)/python -m pytest --quiet tests/cli/test_document.py tests/plan/test_model.py \
		tests/formats/test_document.py tests/audit/test_seeds_audited.py tests/audit/test_rules_document.py tests/audit/test_thresholds_document.py \
		tests/equivalence/test_examples.py::test_the_table_in_the_documents_is_fresh

faults: build
	$(BIN)/python -m lab.faults

safety: build
	$(BIN)/python -m lab.safety $(SAFETY)

nvme: build
	$(BIN)/python -m lab.nvme

watch: build
	$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check -e '.[watch]'
	$(BIN)/python -m lab.watch $(WATCH)

verdicts: build
	$(BIN)/python -m lab.verdicts $(VERDICTS)

# Seeds 100001 to 199999 are for fitting and choosing, those from 200001 on for scoring only.
lab: build
	nice $(BIN)/python -m lab.probes --seeds 300001:300240 --each 2 --whole --check

LAB := build/lab
SIMULATED := 726401:728600 730401:732700 734401:735060
REAL := 8301:8600
HONEST := 14101:14148
OUTSIDE := 531010:531074
AGAIN := 545011:545041
# What is staged gets no more CPU than whatever else this host does: so it is for users, too.
lab-full: export LAB_NICE := 0
lab-full: build
	mkdir -p $(LAB)
	nice $(BIN)/python -m lab.probes --seeds $(SIMULATED) --keep $(LAB)/simulated.jsonl --bundles $(LAB)/simulated --whole > /dev/null
	$(BIN)/python -m lab.verdicts.collect --seeds $(REAL) --keep $(LAB)/real.jsonl --bundles $(LAB)/real
	$(BIN)/python -m lab.verdicts.collect --honest --probe 10s --seeds $(HONEST) --keep $(LAB)/honest.jsonl --bundles $(LAB)/honest
	$(BIN)/python -m lab.verdicts.collect --outside --probe 10s --seeds $(OUTSIDE) --keep $(LAB)/outside.jsonl --bundles $(LAB)/outside
	$(BIN)/python -m lab.verdicts.collect --again --probe 10s --seeds $(AGAIN) --keep $(LAB)/again.jsonl --bundles $(LAB)/again
	$(BIN)/python -m lab.verdicts.cost --keep $(LAB)/cost.jsonl
	nice $(BIN)/python -m lab.probes --seeds $(SIMULATED) --from $(LAB)/simulated.jsonl --real $(LAB)/real.jsonl --honest $(LAB)/honest.jsonl --outside $(LAB)/outside.jsonl $(LAB)/again.jsonl --cost $(LAB)/cost.jsonl --left-out $(LAB)/left-out.jsonl --write verdicts probes

fit: build
	$(BIN)/python -m lab.fit

# Small comparisons as published studies made them, in build/comparisons.
examples: build
	@for one in vostok two-runs passes; do LOADSTONE=$(CURDIR)/$(BIN)/loadstone examples/comparisons/$$one.sh build/comparisons/$$one || exit 1; done

hosts: build
	$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check -e '.[watch]'
	PYTHONPATH=$(CURDIR)/python:$(CURDIR) $(BIN)/python -m lab.hosts.two_clients
	PYTHONPATH=$(CURDIR)/python:$(CURDIR) $(BIN)/python -m lab.hosts

experiments: build
	mkdir -p $(LAB)
	nice -n 15 $(BIN)/python -m lab.experiments --studies 200 --seed 571204 --keep $(LAB)/effects.jsonl > docs/experiment-calibration.md
	nice -n 15 $(BIN)/python -m lab.simulated_experiments --studies 400 --seed 431301 --kinds "skewed latencies,drift,outlier,all of these" --keep $(LAB)/effects-simulated.jsonl > docs/experiment-simulated.md
	$(BIN)/python -m lab.seed_differences > docs/seeds-differences.md

comparisons: build
	@mkdir -p $(LAB)
	nice -n 15 $(BIN)/python -m lab.simulated_comparisons --pairs 1000 --seed 561200 --more 256 --keep $(LAB)/comparisons.jsonl > docs/compare-calibration.md
	nice -n 15 $(BIN)/python -m lab.comparisons --pairs 1000 --seed 20261123 > docs/compare-series.md

format:
	$(CARGO) fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix-only

clean:
	rm -rf $(VENV) target build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
