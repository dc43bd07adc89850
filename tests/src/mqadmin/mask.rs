//! What differs from run to run: addresses, times, ids, measured figures.

use std::collections::BTreeMap;

use regex::Regex;

/// In this order, each put where an expression matches.
const MASKS: [(&str, &str); 16] = [
    (r"\b\d+\.\d+\.\d+\.\d+@\d+#\d+", "{CLIENT}"),
    (r"\b\d+\.\d+\.\d+\.\d+@\d+@(\w)", "{CLIENT}@$1"),
    (r"\b\d+\.\d+\.\d+\.\d+@(\w)", "{CLIENT}@$1"),
    (r"\b\d+\.\d+\.\d+\.\d+:\d+\b", "{ADDRESS}"),
    (r"\b\d+\.\d+\.\d+\.\d+\b", "{HOST}"),
    // Ids of messages; those made on a machine that has no other address than an IPv6 one are longer.
    (r"\b(?:[0-9A-F]{56}|[0-9A-F]{40}|[0-9A-F]{32})\b", "{ID}"),
    (r"\b20\d\d-\d\d-\d\d[ #]\d\d:\d\d:\d\d(?:[,.:]\d{3})?", "{TIME}"),
    // Before times and milliseconds: the digits of a fraction may look like either.
    (r"\b\d+\.\d+(?:[Ee]-?\d+)?\b", "{N.N}"),
    (r"\b20\d{12}(?:\d{3})?\b", "{TIME}"),
    (r"\b(?:1[6-9]|2[0-9])\d{11}\b", "{MS}"),
    (r"@[0-9a-f]{5,8}\b", "@{HASH}"),
    // Settings that name a place on the machine.
    (r"=([ \t]+)/[^\s{]\S*", "=$1{PATH}"),
    // Where and how large: sizes and physical offsets are those of other files, and the properties that
    // RocketMQ's broker adds are not stored (docs/differences.md).
    (r"\b(storeSize|commitLogOffset|physicOffset|physicSize)=\d+", "$1={N}"),
    (r"CommitLog Offset:\s+\d+", "CommitLog Offset: {N}"),
    (r"MSG_REGION=\w+, |CLUSTER=DefaultCluster, |, TRACE_ON=true", ""),
    (r"[ \t]{2,}", "  "),
];
/// Lines of a Java stack trace: where in the client something was thrown.
const FRAMES: &str = r"^\s+(?:at |\.\.\. \d+ )";

pub(super) struct Masks {
    names: Vec<(String, String)>,
    masks: Vec<(Regex, &'static str)>,
    frames: Regex,
}

impl Masks {
    /// `names` are put for their values first.
    pub(super) fn new(names: &BTreeMap<String, String>) -> anyhow::Result<Self> {
        let names = names.iter().map(|(name, value)| (value.clone(), format!("{{{name}}}")));
        let masks: Result<_, regex::Error> =
            MASKS.iter().map(|(expression, put)| Ok((Regex::new(expression)?, *put))).collect();
        Ok(Self { names: names.collect(), masks: masks?, frames: Regex::new(FRAMES)? })
    }

    /// The lines of `out`, masked, without empty ones. Columns are as wide as what they hold.
    pub(super) fn lines(
        &self,
        out: &str,
        masks: &[String],
        skips: &[String],
    ) -> anyhow::Result<Vec<String>> {
        let expressions = |texts: &[String]| {
            texts.iter().map(|text| Regex::new(text)).collect::<Result<Vec<_>, _>>()
        };
        let (own, skips) = (expressions(masks)?, expressions(skips)?);
        let named =
            self.names.iter().fold(out.to_owned(), |out, (value, name)| out.replace(value, name));
        let mut lines = Vec::new();
        for line in named.lines().filter(|line| !self.frames.is_match(line)) {
            let mut line = line.trim_end().to_owned();
            for (expression, put) in &self.masks {
                line = expression.replace_all(&line, *put).into_owned();
            }
            for expression in &own {
                line = expression.replace_all(&line, "*").into_owned();
            }
            let line = line.trim_end();
            if !line.trim().is_empty() && !skips.iter().any(|skip| skip.is_match(line)) {
                lines.push(line.to_owned());
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_masked() {
        let names = BTreeMap::from([("BROKER".to_owned(), "127.0.0.1:30911".to_owned())]);
        let masks = Masks::new(&names).expect("masks");
        for (out, masked) in [
            ("in 127.0.0.1:30911 10.0.0.1:1 10.0.0.1", "in {BROKER} {ADDRESS} {HOST}"),
            ("127.0.0.1@12#34 127.0.0.1@12@a 127.0.0.1@a", "{CLIENT} {CLIENT}@a {CLIENT}@a"),
            ("7F0000010000000000000000FFFFFFFF", "{ID}"),
            (
                "2026-11-30 09:00:00,123 2026-11-30#09:00:00:123 20261130090000",
                "{TIME} {TIME} {TIME}",
            ),
            ("1700000000000 1.5 0.1E-5 17", "{MS} {N.N} {N.N} 17"),
            ("0.20123456789012 0.1712345678901 3.20123456789012345", "{N.N} {N.N} {N.N}"),
            ("home  =  /opt/rocketmq/home", "home  =  {PATH}"),
            ("a     b", "a  b"),
        ] {
            assert_eq!(masks.lines(out, &[], &[]).expect("lines"), [masked]);
        }
        let trace = "java.lang.Exception: x\n\tat a.b(c)\n\t... 3 more\n\n";
        assert_eq!(
            masks.lines(trace, &["x$".into()], &[]).expect("lines"),
            ["java.lang.Exception: *"]
        );
        assert!(masks.lines("a\n", &[], &["a".into()]).expect("lines").is_empty());
    }
}
