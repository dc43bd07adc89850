//! The golden files in `tests/golden`, which real RocketMQ classes wrote.

use std::path::PathBuf;

/// A file, such as `sql92/verdicts.tsv`.
pub(crate) fn golden_text(file: &str) -> String {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "tests", "golden", file].iter().collect();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The tab-separated rows of a file of `remoting`, such as `5.5.0/frames.tsv`.
pub(crate) fn rows(file: &str) -> Vec<Vec<String>> {
    let text = golden_text(&format!("remoting/{file}"));
    let rows: Vec<Vec<String>> =
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    assert!(!rows.is_empty(), "{file} is empty");
    rows
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert_eq!(text.len() % 2, 0, "{text}");
    let pair = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(pair).collect()
}

pub(crate) fn unhex_text(text: &str) -> String {
    String::from_utf8(unhex(text)).unwrap()
}
