//! One run of the engine, as its caller sees it: a Plan goes in, events and an exit code
//! come out.
//!
//! Knows the command line and the events as JSON. Knows nothing of what is in the Plan or
//! in the files a run leaves.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use serde_json::Value;

/// A directory that goes with its owner.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        Self::in_directory(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    pub fn in_directory(parent: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("run-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How a run ended and all it said.
#[derive(Debug)]
pub struct EngineRun {
    pub code: i32,
    pub events: Vec<Value>,
}

pub fn of_type<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

/// The engine under test.
pub fn engine() -> Command {
    Command::new(env!("CARGO_BIN_EXE_loadstone-engine"))
}

/// Starts a run by the engine, or by a command that ends with it; its files come to `dir`.
pub fn start(mut engine: Command, plan: &impl Serialize, dir: &Path) -> Child {
    let plan_path = dir.join("plan.json");
    std::fs::write(&plan_path, serde_json::to_vec(plan).unwrap()).unwrap();
    engine
        .arg("run")
        .arg(&plan_path)
        .arg("--out")
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets a run come to its end; `hear` has each event at once.
pub fn finish(mut child: Child, mut hear: impl FnMut(&Value)) -> EngineRun {
    // To wait closes what is still in the child, and the engine stops at the end of its input.
    let stdin = child.stdin.take();
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let event = serde_json::from_str(&line).expect(&line);
        hear(&event);
        events.push(event);
    }
    let status = child.wait().unwrap();
    drop(stdin);
    EngineRun {
        code: status.code().unwrap_or_else(|| panic!("{status}")),
        events,
    }
}
