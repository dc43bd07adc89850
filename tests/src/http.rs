//! The node's HTTP port, as a script asks it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// `GET path`: status and body.
pub fn get(address: &str, path: &str) -> anyhow::Result<(u16, String)> {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n"))
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
