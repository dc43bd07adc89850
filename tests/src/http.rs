//! The node's HTTP port, as a script asks it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// `GET path`: status and body.
pub fn get(address: &str, path: &str) -> anyhow::Result<(u16, String)> {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n"))
}

/// What the node does, as `GET /events` tells it from now on.
pub struct Events {
    lines: Arc<Mutex<Vec<Value>>>,
    stream: TcpStream,
}

impl Events {
    /// Listens; what happens after this returns is told.
    pub fn listen(address: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        // Of version 1.0, so that the answer comes without chunks.
        stream.write_all(b"GET /events HTTP/1.0\r\nhost: node\r\n\r\n")?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut status = String::new();
        reader.read_line(&mut status)?;
        anyhow::ensure!(status.split(' ').nth(1) == Some("200"), "{status}");
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let told = Arc::clone(&lines);
        thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                // What is no JSON are the answer's headers.
                if let Ok(event) = serde_json::from_str(&line) {
                    told.lock().unwrap_or_else(PoisonError::into_inner).push(event);
                }
            }
        });
        Ok(Self { lines, stream })
    }

    /// Those of a kind so far, oldest first. Fails if the node told faster than this listened.
    pub fn of(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let missed = lines.iter().find(|event| event.get("missed").is_some());
        anyhow::ensure!(missed.is_none(), "{missed:?}");
        Ok(lines.iter().filter(|event| event["kind"] == kind).cloned().collect())
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // The node may have ended already; its reader ends either way.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// `POST /gates`: what the node answers.
pub fn gates(address: &str, request: &Value) -> anyhow::Result<Value> {
    let body = request.to_string();
    let head = format!(
        "POST /gates HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (status, answer) = ask(address, &(head + &body))?;
    anyhow::ensure!(status == 200, "status {status}: {answer}");
    Ok(serde_json::from_str(&answer)?)
}

fn ask(address: &str, request: &str) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("a whole answer")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok((status, body.to_owned()))
}
