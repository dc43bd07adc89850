//! Bodies in fastjson's dialect, made comparable.

/// The text with the entries of every object sorted, numbers as keys quoted, and store times gone.
pub(super) fn canonical(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut rest = text;
    let value = value(&mut rest);
    assert_eq!(rest, "", "behind {value}");
    value
}

const TIMES: [&str; 2] = ["\"lastUpdateTimestamp\"", "\"lastTimestamp\""];

fn value(rest: &mut &str) -> String {
    match rest.chars().next().expect("a value") {
        '{' => object(rest),
        '[' => {
            let mut items = list(rest, ']', value);
            // Sets come in any order.
            items.sort();
            format!("[{}]", items.join(","))
        }
        '"' => string(rest),
        _ => {
            let end = rest.find([',', '}', ']', ':']).unwrap_or(rest.len());
            let (plain, after) = rest.split_at(end);
            *rest = after;
            plain.to_owned()
        }
    }
}

fn object(rest: &mut &str) -> String {
    let mut entries = list(rest, '}', |rest| {
        let key = value(rest);
        *rest = rest.strip_prefix(':').expect("a colon");
        let value = value(rest);
        let key = if key.starts_with(['"', '{']) { key } else { format!("\"{key}\"") };
        let is_time = TIMES.contains(&&*key) && value != "0";
        format!("{key}:{}", if is_time { "TIME" } else { &value })
    });
    entries.sort();
    format!("{{{}}}", entries.join(","))
}

fn list(rest: &mut &str, end: char, item: impl Fn(&mut &str) -> String) -> Vec<String> {
    *rest = &rest[1..];
    let mut items = Vec::new();
    while !rest.starts_with(end) {
        items.push(item(rest));
        *rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    *rest = &rest[1..];
    items
}

fn string(rest: &mut &str) -> String {
    let mut is_escaped = false;
    let is_end = |c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    };
    let end = rest[1..].find(is_end).expect("an end") + 2;
    let (string, after) = rest.split_at(end);
    *rest = after;
    string.to_owned()
}
