//! Sends the same requests to a real Kafka and to Duolog and says where their answers differ.
//!
//! `differential KAFKA DUOLOG --seed 1 --count 1000`, or `--script FILE` instead of a seed; `--record FILE`
//! keeps the requests with Kafka's answers; `--all` shows differences that are there on purpose too.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, bail};
use duolog_tests::differential::compare::differences;
use duolog_tests::differential::known::KNOWN;
use duolog_tests::differential::side::{Side, Who};
use duolog_tests::differential::{plan, script};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let kafka = words.next().context("the address of a Kafka")?;
    let duolog = words.next().context("the address of a Duolog")?;
    let (mut seed, mut count, mut file, mut record, mut all) = (1, 500, None, None, false);
    while let Some(word) = words.next() {
        let mut next = || words.next().with_context(|| format!("what follows {word}"));
        match word.as_str() {
            "--seed" => seed = next()?.parse()?,
            "--count" => count = next()?.parse()?,
            "--script" => file = Some(next()?),
            "--record" => record = Some(next()?),
            "--all" => all = true,
            _ => bail!("{word}: not an option"),
        }
    }
    let steps = match file {
        Some(file) => {
            script::parse(&fs::read_to_string(file)?)?.into_iter().map(|it| it.0).collect()
        }
        None => plan::steps(seed, count),
    };
    let (mut kafka, mut duolog) =
        (Side::new(Who::Kafka, &kafka)?, Side::new(Who::Duolog, &duolog)?);
    kafka.prepare()?;
    duolog.prepare()?;
    let (mut text, mut new, mut on_purpose) = (String::new(), 0, 0);
    for (number, step) in steps.iter().enumerate() {
        let (theirs, ours) = (kafka.perform(step)?, duolog.perform(step)?);
        writeln!(text, "{step}\n= {theirs}")?;
        for difference in differences(&theirs, &ours) {
            let known = KNOWN.iter().find(|known| known.covers(step, &difference));
            match known {
                Some(_) => on_purpose += 1,
                None => new += 1,
            }
            if known.is_none() || all {
                println!("{number} {step}\n    {difference}");
            }
        }
    }
    if let Some(file) = record {
        fs::write(file, text)?;
    }
    println!("{} requests, {new} differences, {on_purpose} on purpose", steps.len());
    Ok(())
}
