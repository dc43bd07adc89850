//! SQL92 filters: expressions over a message's properties, as RocketMQ reads them.
//!
//! The grammar is that of its parser, its oddities included: what follows a whole expression is not looked at but for
//! its first token, `0.0` is refused, a property alone is never true. Every value is a text, and is made a number where it
//! is compared with one; a text that is none makes the whole evaluation fail, and what fails does not match.
//! `tests/golden/sql92` holds the original's verdicts.
//! Differs: nesting is bounded ([`SQL_DEPTH_MAX`](crate::limits::SQL_DEPTH_MAX); the original's by its stack), and
//! numbers in hexadecimal or in digits of other scripts are none.
//! Source: SelectorParser.jj, ComparisonExpression, UnaryExpression, LogicExpression.

mod expression;
mod number;
mod parser;
mod token;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::{SELECTORS_MAX, SQL_BYTES_MAX, SQL_DEPTH_MAX};
use crate::translate::properties::Properties;
use expression::{Expression, Value};

/// Why an expression is refused; places count bytes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// Longer than [`SQL_BYTES_MAX`].
    #[error("the expression is longer than {SQL_BYTES_MAX} bytes")]
    TooLong,
    /// Nested deeper than [`SQL_DEPTH_MAX`].
    #[error("the expression is nested deeper than {SQL_DEPTH_MAX}")]
    TooDeep,
    /// No token begins there.
    #[error("nothing known begins at {at}")]
    UnknownToken {
        /// Where.
        at: usize,
    },
    /// Another token was due.
    #[error("{expected} was expected at {at}")]
    Expected {
        /// What was due.
        expected: &'static str,
        /// Where.
        at: usize,
    },
    /// A number that is none of RocketMQ's: whole ones have 64 bits, others are more than 0 and finite.
    #[error("the number at {at} is out of range")]
    NumberOutOfRange {
        /// Where it begins.
        at: usize,
    },
    /// Neither true nor false nor unknown.
    #[error("what stands before {at} is not a condition")]
    NotACondition {
        /// Where it ends.
        at: usize,
    },
    /// Texts, conditions and NULL have no order, and NULL equals nothing.
    #[error("what stands before {at} cannot be compared so")]
    NotComparable {
        /// Where the comparison ends.
        at: usize,
    },
    /// `BETWEEN 5 AND 3`.
    #[error("nothing is between the bounds before {at}")]
    EmptyRange {
        /// Where the second bound ends.
        at: usize,
    },
    /// `IN` asks for a property on its left.
    #[error("IN before {at} does not follow a property")]
    InWithoutProperty {
        /// Where its list ends.
        at: usize,
    },
}

/// A compiled expression. Two are equal if their texts are.
#[derive(Debug)]
pub struct Selector {
    text: Box<str>,
    root: Expression,
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Selector {}

impl Selector {
    /// Compiles `text`.
    ///
    /// # Errors
    /// See [`SqlError`].
    pub fn compile(text: &str) -> Result<Self, SqlError> {
        if text.len() > SQL_BYTES_MAX {
            return Err(SqlError::TooLong);
        }
        Ok(Self { text: text.into(), root: parser::parse(text)? })
    }

    /// Whether a message with these properties is wanted: what is unknown, or fails, is not.
    #[must_use]
    pub fn matches(&self, properties: Properties<'_>) -> bool {
        self.root.evaluate(properties) == Ok(Value::Boolean(true))
    }
}

type Compiled = Result<Arc<Selector>, SqlError>;

/// The last expressions, compiled once; those that are refused, too. Source: SelectorParser.PARSE_CACHE.
#[derive(Debug, Default)]
pub(crate) struct Selectors(Mutex<HashMap<Box<str>, Compiled>>);

impl Selectors {
    pub(crate) fn compile(&self, text: &str) -> Compiled {
        if let Some(known) = self.0.lock().get(text) {
            return known.clone();
        }
        let compiled = Selector::compile(text).map(Arc::new);
        // What is too long is not worth its room.
        if text.len() <= SQL_BYTES_MAX {
            let mut known = self.0.lock();
            if known.len() >= SELECTORS_MAX {
                known.clear();
            }
            known.insert(text.into(), compiled.clone());
        }
        compiled
    }
}

#[cfg(test)]
mod tests;
