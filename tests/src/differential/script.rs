//! Steps as text: one request a line, what its peer answered below it.
//!
//! ```text
//! # a comment
//! API VERSION [bind=NAME] [on=CONNECTION] [later] [until=CODE|TEXT] [cut=BYTES] {"Field":value}
//! = {"ErrorCode":0}
//! ```
//!
//! In a request `"$pid:NAME"`, `"$epoch:NAME"`, `"$tid:TOPIC"`, `"$member:NAME"`, `"$gen:NAME"`, `"$mepoch:NAME"` and
//! `"$session:NAME"` are what an earlier answer said, by the name that its step has in `bind`; `"$now"`
//! is an hour before the run began. Numbers may be moved: `"$epoch:p-1"`. `Answer 0 on=N` takes the
//! answer of the request that was sent there with `later`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use serde_json::Value;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub api: String,
    pub version: i16,
    /// What the answer's ids are called in later steps.
    pub bind: Option<String>,
    pub connection: u8,
    /// Sent, but its answer is taken later.
    pub later: bool,
    /// Asked again until this error code or this text is in the answer.
    pub until: Option<String>,
    /// So many bytes are missing at its end.
    pub cut: usize,
    pub body: Value,
}

impl Step {
    pub fn new(api: &str, version: i16, body: Value) -> Self {
        Self {
            api: api.to_owned(),
            version,
            bind: None,
            connection: 0,
            later: false,
            until: None,
            cut: 0,
            body,
        }
    }

    pub fn bind(mut self, name: &str) -> Self {
        self.bind = Some(name.to_owned());
        self
    }

    pub fn on(mut self, connection: u8) -> Self {
        self.connection = connection;
        self
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api, self.version)?;
        if let Some(name) = &self.bind {
            write!(f, " bind={name}")?;
        }
        if self.connection > 0 {
            write!(f, " on={}", self.connection)?;
        }
        if self.later {
            write!(f, " later")?;
        }
        if let Some(code) = &self.until {
            write!(f, " until={code}")?;
        }
        if self.cut > 0 {
            write!(f, " cut={}", self.cut)?;
        }
        write!(f, " {}", self.body)
    }
}

impl FromStr for Step {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let at = line.find(" {").context("a body")?;
        let (head, body) = line.split_at(at);
        let mut words = head.split(' ');
        let api = words.next().context("an API")?;
        let version = words.next().context("a version")?.parse()?;
        let mut step = Self::new(api, version, serde_json::from_str(body)?);
        for word in words {
            match word.split_once('=') {
                Some(("bind", name)) => step.bind = Some(name.to_owned()),
                Some(("on", number)) => step.connection = number.parse()?,
                Some(("until", code)) => step.until = Some(code.to_owned()),
                Some(("cut", bytes)) => step.cut = bytes.parse()?,
                None if word == "later" => step.later = true,
                _ => bail!("{word}: not an option"),
            }
        }
        Ok(step)
    }
}

/// Steps, each with the answer below it if there is one.
pub fn parse(text: &str) -> anyhow::Result<Vec<(Step, Option<Value>)>> {
    let mut steps: Vec<(Step, Option<Value>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_prefix("= ") {
            Some(answer) => {
                let last = steps.last_mut().context("an answer without a request")?;
                last.1 = Some(serde_json::from_str(answer)?);
            }
            None => {
                let step = line.parse().with_context(|| format!("line {}", number + 1))?;
                steps.push((step, None));
            }
        }
    }
    Ok(steps)
}
