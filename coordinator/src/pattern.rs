//! Regular expressions of clients, read as RE2 reads them: what Kafka uses for topics of consumer groups
//! (KIP-848) and for transactional ids (KIP-1152). The time of a match is linear in the text.
//!
//! The crate that matches knows more than RE2 (operators in classes, properties, Unicode's digits) and less
//! (`\Q…\E`): what they do not share is written anew or refused here.

use regex::Regex;

use crate::limits::REGEX_BYTES_MAX;

/// General categories of Unicode; every other name of `\p` is a script's.
const CATEGORIES: [&str; 39] = [
    "Any", "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "LC", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc",
    "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc",
    "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// What may stand between `[:` and `:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// An expression that a whole text must match. Errors: why it is none.
pub fn whole(text: &str) -> Result<Regex, String> {
    if text.len() > REGEX_BYTES_MAX {
        return Err(format!("longer than {REGEX_BYTES_MAX} bytes"));
    }
    let translated = Translation::of(text)?;
    // By itself first: a parenthesis of its own must not pair with the one around it.
    let whole = Regex::new(&translated).and_then(|_| Regex::new(&format!(r"\A(?:{translated})\z")));
    whole.map_err(|error| {
        let reason = error.to_string();
        reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// An expression on its way from RE2's language to the crate's.
struct Translation<'a> {
    rest: &'a str,
    out: String,
    /// The last thing written repeats what was before it.
    repeats: bool,
}

impl<'a> Translation<'a> {
    fn of(text: &'a str) -> Result<String, String> {
        let mut this = Self { rest: text, out: String::with_capacity(text.len()), repeats: false };
        while let Some(next) = this.take() {
            let repeats = match next {
                '\\' => {
                    this.escape()?;
                    false
                }
                '[' => {
                    this.class()?;
                    false
                }
                '*' | '+' | '?' => this.repeat(next, "")?,
                '{' => match this.count() {
                    Some(count) => this.repeat('{', count)?,
                    // Without a number it is itself.
                    None => {
                        this.out.push_str(r"\{");
                        false
                    }
                },
                _ => {
                    this.out.push(next);
                    false
                }
            };
            this.repeats = repeats;
        }
        Ok(this.out)
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
        Some(next)
    }

    /// What is behind `{` up to `}`, if it counts.
    fn count(&mut self) -> Option<&'a str> {
        let (count, rest) = self.rest.split_once('}')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let (low, high) = count.split_once(',').unwrap_or((count, ""));
        if !is_number(low) || !(high.is_empty() || is_number(high)) {
            return None;
        }
        self.rest = rest;
        Some(count)
    }

    /// A repetition, lazy or not; none may follow another.
    fn repeat(&mut self, sign: char, count: &str) -> Result<bool, String> {
        // Behind `(` the sign is a group's.
        if sign == '?' && self.out.ends_with('(') && !self.out.ends_with(r"\(") {
            self.out.push('?');
            return Ok(false);
        }
        if self.repeats {
            return Err(format!("invalid nested repetition operator: {sign}"));
        }
        self.out.push(sign);
        if sign == '{' {
            self.out.push_str(count);
            self.out.push('}');
        }
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
            self.out.push('?');
        }
        Ok(true)
    }

    /// What is behind a backslash, outside of a class or in one.
    fn escape(&mut self) -> Result<(), String> {
        let Some(next) = self.take() else { return Err("trailing backslash".to_owned()) };
        match next {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            's' => self.out.push_str(r"[\t\n\f\r ]"),
            'S' => self.out.push_str(r"[^\t\n\f\r ]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            'Q' => {
                let (literal, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex::escape(literal));
                self.rest = rest;
            }
            'p' | 'P' => self.property(next)?,
            _ => {
                self.out.push('\\');
                self.out.push(next);
            }
        }
        Ok(())
    }

    fn property(&mut self, sign: char) -> Result<(), String> {
        let name = match self.take() {
            Some('{') => {
                let (name, rest) =
                    self.rest.split_once('}').ok_or("invalid character class range")?;
                self.rest = rest;
                name.to_owned()
            }
            Some(letter) => letter.to_string(),
            None => return Err("invalid character class range".to_owned()),
        };
        let (sign, name) = match name.strip_prefix('^') {
            Some(name) if sign == 'p' => ('P', name),
            Some(name) => ('p', name),
            None => (sign, name.as_str()),
        };
        let script = if CATEGORIES.contains(&name) { "" } else { "Script=" };
        self.out.push_str(&format!(r"\{sign}{{{script}{name}}}"));
        Ok(())
    }

    /// A class: in RE2 nothing in it is an operator but ranges, and classes of POSIX.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.rest = rest;
            self.out.push('^');
        }
        let mut first = true;
        while let Some(next) = self.take() {
            match next {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.rest.starts_with(':') => {
                    let (name, rest) =
                        self.rest.split_once(":]").ok_or("invalid character class range")?;
                    let known = name.trim_start_matches(':').trim_start_matches('^');
                    if !POSIX.contains(&known) {
                        return Err("invalid character class range".to_owned());
                    }
                    self.out.push_str(&format!("[{name}:]"));
                    self.rest = rest;
                }
                '\\' => self.escape()?,
                '[' | ']' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(next);
                }
                '-' if self.out.ends_with('-') => self.out.push_str(r"\-"),
                _ => self.out.push(next),
            }
            first = false;
        }
        Err("missing closing ]".to_owned())
    }
}

#[cfg(test)]
mod tests;
