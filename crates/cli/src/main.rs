//! `loadstone-engine`: runs a Plan, checks one, prints its schema, probes the host.
//!
//! Knows arguments and exit codes. Everything else is the library's.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use loadstone_base::clock;
use loadstone_base::run_error::RunError;
use loadstone_engine::{budget, check, run};
use loadstone_io::probe;
use loadstone_worker::events::{Event, Speaker};
use loadstone_worker::samples;

#[derive(Debug, Parser)]
#[command(
    name = "loadstone-engine",
    version,
    about = "Runs one Loadstone Plan. People use `loadstone`."
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a Plan; events go to standard output, samples into the directory.
    Run {
        /// The Plan, as JSON.
        plan: PathBuf,
        /// Directory of the samples; created when missing.
        #[arg(long)]
        out: PathBuf,
        /// Say `armed` when all is ready, and start when an order `start-at NS` says.
        #[arg(long)]
        arm: bool,
        /// End when whoever holds the other end of this descriptor is gone; may be given several times.
        #[arg(long, value_name = "FD")]
        wanted_by: Vec<i32>,
    },
    /// Check a Plan without touching anything.
    Check {
        /// The Plan, as JSON.
        plan: PathBuf,
    },
    /// Print a JSON schema.
    Schema {
        /// Which one.
        #[arg(value_enum, default_value = "plan")]
        of: Contract,
    },
    /// Print what this host offers, as JSON.
    Probe,
}

/// The parts of the contract.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Contract {
    /// The Plan.
    Plan,
    /// The sample files.
    Samples,
    /// What each backend can do: rows, not a schema.
    Backends,
}

fn main() -> ExitCode {
    let started_ns = clock::monotonic_ns();
    match Arguments::parse().verb {
        Verb::Run {
            plan,
            out,
            arm,
            wanted_by,
        } => {
            let outcome = read(&plan).and_then(|text| {
                run::run(text, &out, started_ns, arm, &wanted_by, Speaker::default())
            });
            // Leave at once: a thread stuck in the kernel must not hold the process.
            std::process::exit(outcome.map_or_else(|fault| complain(&fault), |()| 0))
        }
        Verb::Check { plan } => match read(&plan).and_then(|text| checked(&text)) {
            Ok(memory_bytes) => {
                println!("{{\"memory_bytes\":{memory_bytes}}}");
                ExitCode::SUCCESS
            }
            Err(fault) => ExitCode::from(complain(&fault) as u8),
        },
        Verb::Schema { of: Contract::Plan } => print_json(&schemars_plan()),
        Verb::Schema {
            of: Contract::Samples,
        } => print_json(&samples::describe()),
        Verb::Schema {
            of: Contract::Backends,
        } => print_json(&loadstone_plan::BACKENDS),
        Verb::Probe => print_json(&probe::probe()),
    }
}

fn read(path: &Path) -> Result<String, RunError> {
    std::fs::read_to_string(path).map_err(|error| RunError::Plan {
        path: path.display().to_string(),
        message: format!("cannot be read: {error}"),
        hint: String::new(),
    })
}

fn checked(text: &str) -> Result<u64, RunError> {
    let plan = check::parse(text)?;
    check::check(&plan)?;
    budget::check(&plan)
}

fn complain(fault: &RunError) -> i32 {
    Speaker::default().say(&Event::Fatal {
        code: fault.code(),
        message: fault.to_string(),
        hint: fault.hint().to_owned(),
    });
    fault.code()
}

fn schemars_plan() -> serde_json::Value {
    loadstone_plan::schema()
}

fn print_json(document: &impl serde::Serialize) -> ExitCode {
    match serde_json::to_string_pretty(document) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("loadstone-engine: {error}");
            ExitCode::from(4)
        }
    }
}
