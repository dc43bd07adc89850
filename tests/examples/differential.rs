//! Sends the same requests to a real Kafka and to Duolog, says where their answers differ, and fails if they do.
//!
//! `differential KAFKA DUOLOG --seeds 1..11 --count 500`, or `--script FILE` instead of seeds; DUOLOG may be `-`: a node is
//! started for the run. `--record FILE` keeps the requests with Kafka's answers; `--all` shows differences that are there
//! on purpose too, `--texts` those of error messages.

use std::fs;
use std::ops::Range;

use anyhow::{Context, bail, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::differential::script::Step;
use duolog_tests::differential::side::{Side, Who};
use duolog_tests::differential::{plan, run, script};

/// What the command line asks for.
struct Asked {
    seeds: Range<u64>,
    count: usize,
    script: Option<String>,
    record: Option<String>,
    all: bool,
    texts: bool,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut asked =
            Self { seeds: 1..2, count: 500, script: None, record: None, all: false, texts: false };
        while let Some(word) = words.next() {
            let mut next = || words.next().with_context(|| format!("what follows {word}"));
            match word.as_str() {
                "--seeds" => {
                    let text = next()?;
                    let (first, end) = text.split_once("..").context("FROM..TO")?;
                    asked.seeds = first.parse()?..end.parse()?;
                }
                "--count" => asked.count = next()?.parse()?,
                "--script" => asked.script = Some(next()?),
                "--record" => asked.record = Some(next()?),
                "--all" => asked.all = true,
                "--texts" => asked.texts = true,
                _ => bail!("{word}: not an option"),
            }
        }
        Ok(asked)
    }

    /// The script, or what each seed draws.
    fn parts(&self) -> anyhow::Result<Vec<Vec<Step>>> {
        let Some(file) = &self.script else {
            return Ok(self.seeds.clone().map(|seed| plan::steps(seed, self.count)).collect());
        };
        let steps = script::parse(&fs::read_to_string(file)?)?;
        Ok(vec![steps.into_iter().map(|(step, _)| step).collect()])
    }
}

fn node(folder: &std::path::Path) -> anyhow::Result<Node> {
    let launch = Launch::new(folder)?
        .set("group.initial.rebalance.delay.ms", 0)
        .set("transaction.abort.timed.out.transaction.cleanup.interval.ms", 100);
    launch.start()
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let kafka = words.next().context("the address of a Kafka")?;
    let duolog = words.next().context("the address of a Duolog, or -")?;
    let asked = Asked::read(words)?;
    let folder = tempfile::tempdir()?;
    let own = if duolog == "-" { Some(node(folder.path())?) } else { None };
    let duolog = own.as_ref().map_or(duolog, Node::kafka);
    let mut kafka = Side::new(Who::Kafka, &kafka)?;
    let mut duolog = Side::new(Who::Duolog, &duolog)?;
    if asked.texts {
        kafka.keep_texts();
        duolog.keep_texts();
    }
    let (mut requests, mut new, mut on_purpose) = (0, 0, 0);
    let mut recording = String::new();
    for steps in asked.parts()? {
        let report = run::compare(&mut kafka, &mut duolog, &steps)?;
        for difference in &report.new {
            println!("{difference}");
        }
        for difference in report.on_purpose.iter().filter(|_| asked.all) {
            println!("on purpose: {difference}");
        }
        requests += report.requests;
        new += report.new.len();
        on_purpose += report.on_purpose.len();
        println!("{requests} requests, {new} differences, {on_purpose} on purpose");
        recording += &report.recording;
    }
    if let Some(file) = asked.record {
        fs::write(file, recording)?;
    }
    ensure!(new == 0, "{new} differences that nobody has named");
    Ok(())
}
