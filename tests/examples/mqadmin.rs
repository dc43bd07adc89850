//! Records what stock mqadmin prints against a real RocketMQ: `mqadmin NAMESRV BROKER` (tests/golden/mqadmin/README.md).

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [namesrv, broker] = words.as_slice() else { bail!("mqadmin NAMESRV BROKER") };
    duolog_tests::mqadmin::record(namesrv, broker)
}
