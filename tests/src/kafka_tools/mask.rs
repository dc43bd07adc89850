//! What no two nodes have in common, and columns whose width follows from it.

use std::path::Path;

use regex::Regex;

/// What is a time, an id or a number of the machine, and what stands for it.
const PATTERNS: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"(?i)(topic ?id|cluster ?id|directory ?id)( ?: *|=)[A-Za-z0-9_-]{22}", "$1${2}ID"),
    (r#"(directoryId": ")[A-Za-z0-9_-]{22}"#, "${1}ID"),
    (r"(?m)^([0-9]+ *\t)[A-Za-z0-9_-]{22}( *\t)", "${1}ID$2"),
    (r"(^|\s)[A-Za-z0-9_-]{22}( +/127\.0\.0\.1)", "${1}MEMBER$2"),
    (r"CONTROLLER://(ADDRESS|127\.0\.0\.1:[0-9]+)", "CONTROLLER://ADDRESS"),
    // Times are stored in as many bytes as they need, and what a batch is counts them.
    (r"\b(position|size|crc|producerId): ?-?[0-9]+", "$1: N"),
    (r#"(roducerId":)-?[0-9]+"#, "${1}N"),
    (r"\bEpoch: [0-9]+", "Epoch: N"),
    (r"\b1[5-9][0-9]{11}\b", "TIME"),
    (r"\b20[0-9]{2}-[01][0-9]-[0-3][0-9]([T ][0-9:.,+]+Z?)?", "DATE"),
];

#[derive(Debug)]
pub struct Mask {
    texts: Vec<(String, &'static str)>,
    patterns: Vec<(Regex, &'static str)>,
    number: Regex,
}

impl Mask {
    pub fn new(address: &str, data: &Path, files: &Path) -> anyhow::Result<Self> {
        let port = address.rsplit(':').next().unwrap_or_default();
        // Alone it may be any number, but not behind the host.
        let port = Regex::new(&format!(r"(127\.0\.0\.1 +){port}\b"))?;
        let compile =
            |&(expression, instead): &(&str, &'static str)| Ok((Regex::new(expression)?, instead));
        let patterns = PATTERNS.iter().map(compile).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self {
            texts: vec![
                (data.display().to_string(), "DATA"),
                (files.display().to_string(), "FILES"),
                (address.to_owned(), "ADDRESS"),
            ],
            patterns: [vec![(port, "${1}PORT")], patterns].concat(),
            number: Regex::new(r"-?[0-9]+([.,][0-9]+)*|NaN")?,
        })
    }

    /// The text without all that, without the frames of Java's traces and with one space between columns.
    pub fn apply(&self, text: &str, sorted: bool, shape: bool) -> String {
        let mut text = text.to_owned();
        for (found, instead) in &self.texts {
            text = text.replace(found, instead);
        }
        for (found, instead) in &self.patterns {
            text = found.replace_all(&text, *instead).into_owned();
        }
        if shape {
            text = self.number.replace_all(&text, "N").into_owned();
        }
        let lines = text.lines().filter(|line| !is_frame(line));
        let mut lines: Vec<String> = lines
            .map(|line| {
                line.split(' ').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
            })
            .collect();
        if sorted {
            lines.sort();
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("at ") && line.ends_with(')')
        || line.starts_with("... ") && line.ends_with(" more")
}
