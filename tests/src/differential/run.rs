//! The same steps on both sides, and what came of it.

use std::fmt::Write as _;

use super::compare::differences;
use super::known::KNOWN;
use super::script::Step;
use super::side::Side;

/// What a comparison has found.
#[derive(Debug, Default)]
pub struct Report {
    /// Requests that both were sent.
    pub requests: usize,
    /// Differences that nobody has named, with the step.
    pub new: Vec<String>,
    /// Those that [`KNOWN`] names, likewise.
    pub on_purpose: Vec<String>,
    /// The steps with Kafka's answers, as a script.
    pub recording: String,
}

/// Sends every step to both, in turn.
pub fn compare(kafka: &mut Side, duolog: &mut Side, steps: &[Step]) -> anyhow::Result<Report> {
    kafka.prepare()?;
    duolog.prepare()?;
    let mut report = Report { requests: steps.len(), ..Report::default() };
    for (number, step) in steps.iter().enumerate() {
        let (theirs, ours) = (kafka.perform(step)?, duolog.perform(step)?);
        writeln!(report.recording, "{step}\n= {theirs}")?;
        for difference in differences(&theirs, &ours) {
            let on_purpose = KNOWN.iter().any(|known| known.covers(step, &difference));
            let found = if on_purpose { &mut report.on_purpose } else { &mut report.new };
            found.push(format!("{number} {step}\n    {difference}"));
        }
    }
    Ok(report)
}
