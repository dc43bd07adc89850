//! Records what the cases of the behaviour suite see of a real RocketMQ, or says where a node differs from what is recorded.
//!
//! `behaviour NAMESRV short|stock [--record] [ARGUMENTS OF THE SUITE]`; tests/golden/rocketmq-behaviour/README.md says how that
//! broker is set.

use anyhow::{Context, bail, ensure};
use duolog_tests::behaviour::{Settings, Verdicts, Wanted};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let namesrv = words.next().context("the address of a name server")?;
    let settings = match words.next().as_deref() {
        Some("short") => Settings::Short,
        Some("stock") => Settings::Stock,
        other => bail!("{other:?}: not short and not stock"),
    };
    let mut arguments: Vec<String> = words.collect();
    let is_recording = arguments.first().is_some_and(|word| word == "--record");
    if is_recording {
        arguments.remove(0);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let verdicts = Verdicts::of(&namesrv, settings, &arguments)?;
    if is_recording {
        return verdicts.record(settings);
    }
    let differences = verdicts.differences(&Verdicts::recorded(settings)?, Wanted::Some);
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}
