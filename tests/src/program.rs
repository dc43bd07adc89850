//! A Java program that runs by itself, tells what it does as JSON lines, and is killed or ended.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::wait;

const STOP_LIMIT: Duration = Duration::from_secs(120);

/// A running program. Dropping it kills it.
pub struct Program {
    child: Child,
    events: Arc<Mutex<Vec<Value>>>,
    /// Reads standard output to its end.
    reader: Option<JoinHandle<()>>,
    /// Standard error.
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Program {
    pub fn start(mut command: Command) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let output = BufReader::new(child.stdout.take().context("piped")?);
        let events: Arc<Mutex<Vec<Value>>> = Arc::default();
        let told = Arc::clone(&events);
        let reader = thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                told.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            }
        });
        Ok(Self { child, events, reader: Some(reader), log, _folder: folder })
    }

    /// What it has told so far, oldest first; a line that is no JSON is a text.
    pub fn events(&self) -> MutexGuard<'_, Vec<Value>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line to its standard input.
    pub fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let input = self.child.stdin.as_mut().context("piped")?;
        writeln!(input, "{line}").and_then(|()| input.flush()).with_context(|| self.log())
    }

    /// The end of its log, for a complaint.
    pub fn log(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(4000)..]).into_owned()
    }

    /// Fails unless it still runs.
    pub fn lives(&mut self) -> anyhow::Result<()> {
        let status = self.child.try_wait()?;
        ensure!(status.is_none(), "the program ended with {status:?}: {}", self.log());
        Ok(())
    }

    /// Ends it at once, as kill -9 does; returns all that it told.
    pub fn kill(mut self) -> anyhow::Result<Vec<Value>> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.told())
    }

    fn told(&mut self) -> Vec<Value> {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("it does not panic");
        }
        self.events().clone()
    }

    /// Ends it as an operator does, by SIGTERM, and waits for its end; returns all that it told.
    pub fn terminate(mut self) -> anyhow::Result<Vec<Value>> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).context("a process id")?;
        kill_process(pid, Signal::TERM)?;
        self.ended()?;
        Ok(self.told())
    }

    fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let ended = wait::until("the program ends", STOP_LIMIT, || {
            self.child.try_wait()?.context("still running")
        });
        ended.with_context(|| self.log())
    }

    /// Closes its standard input and waits for its end; returns all that it told.
    pub fn stop(mut self) -> anyhow::Result<Vec<Value>> {
        drop(self.child.stdin.take());
        let status = self.ended()?;
        ensure!(status.success(), "{status}: {}", self.log());
        Ok(self.told())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already; then both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
