//! What an expression is, and what it comes to for the properties of a message.

use std::cmp::Ordering;

use super::number::java_double;
use crate::translate::properties::Properties;

/// What a part of an expression comes to. `Null` is "unknown" where a condition stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Boolean(bool),
    Text(&'a str),
    Integer(i32),
    Long(i64),
    Double(f64),
}

/// The evaluation failed, as by an exception in the original: nothing matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Null,
    Boolean(bool),
    Text(Box<str>),
    Integer(i32),
    Long(i64),
    Double(f64),
}

/// How values are put in order by `<`, `<=`, `>`, `>=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Where in a text another one is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Anywhere,
    Start,
    End,
}

/// Whether a condition has a NOT of its own, as in `NOT IN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    Plain,
    Negated,
}

impl Sense {
    fn of(self, is_so: bool) -> bool {
        is_so == (self == Self::Plain)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Property(Box<str>),
    Constant(Constant),
    /// Unknown for what is no number, and so for every property.
    Negate(Box<Self>),
    Not(Box<Self>),
    /// A property where a condition is due: its value is a text and so not true.
    IsTrue(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
    Equal(Box<[Self; 2]>),
    Ordered(Order, Box<[Self; 2]>),
    In {
        property: Box<str>,
        texts: Vec<Box<str>>,
        sense: Sense,
    },
    Holds {
        value: Box<Self>,
        text: Box<str>,
        spot: Spot,
        sense: Sense,
    },
}

impl Constant {
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(boolean) => Value::Boolean(*boolean),
            Self::Text(text) => Value::Text(text),
            Self::Integer(integer) => Value::Integer(*integer),
            Self::Long(long) => Value::Long(*long),
            Self::Double(double) => Value::Double(*double),
        }
    }
}

impl Expression {
    /// Does it come to true, false or unknown, and to nothing else?
    pub(super) fn is_condition(&self) -> bool {
        match self {
            Self::Property(_) | Self::Negate(_) => false,
            Self::Constant(constant) => matches!(constant, Constant::Null | Constant::Boolean(_)),
            Self::Not(_)
            | Self::IsTrue(_)
            | Self::All(_)
            | Self::Any(_)
            | Self::Equal(_)
            | Self::Ordered(..)
            | Self::In { .. }
            | Self::Holds { .. } => true,
        }
    }

    pub(super) fn evaluate<'a>(&'a self, properties: Properties<'a>) -> Result<Value<'a>, Failed> {
        Ok(match self {
            Self::Property(name) => properties.get(name).map_or(Value::Null, Value::Text),
            Self::Constant(constant) => constant.value(),
            Self::Negate(number) => match number.evaluate(properties)? {
                Value::Integer(integer) => Value::Integer(integer.wrapping_neg()),
                Value::Long(long) => Value::Long(long.wrapping_neg()),
                Value::Double(double) => Value::Double(-double),
                Value::Null | Value::Boolean(_) | Value::Text(_) => Value::Null,
            },
            Self::Not(condition) => match condition.evaluate(properties)? {
                Value::Boolean(boolean) => Value::Boolean(!boolean),
                _ => Value::Null,
            },
            Self::IsTrue(value) => match value.evaluate(properties)? {
                Value::Null => Value::Null,
                value => Value::Boolean(value == Value::Boolean(true)),
            },
            Self::All(conditions) => decide(conditions, false, properties)?,
            Self::Any(conditions) => decide(conditions, true, properties)?,
            Self::Equal(sides) => equal(sides, properties)?,
            Self::Ordered(order, sides) => ordered(*order, sides, properties)?,
            Self::In { property, texts, sense } => match properties.get(property) {
                None => Value::Null,
                Some(found) => Value::Boolean(sense.of(texts.iter().any(|text| **text == *found))),
            },
            // Nothing is looked for in a value that may not even be had.
            Self::Holds { text, .. } if text.is_empty() => Value::Boolean(false),
            Self::Holds { value, text, spot, sense } => match value.evaluate(properties)? {
                Value::Text(found) => Value::Boolean(sense.of(match spot {
                    Spot::Anywhere => found.contains(&**text),
                    Spot::Start => found.starts_with(&**text),
                    Spot::End => found.ends_with(&**text),
                })),
                _ => Value::Boolean(false),
            },
        })
    }
}

/// The first condition that is `deciding` ends it; else unknown, if one is; else the contrary.
fn decide<'a>(
    conditions: &'a [Expression],
    deciding: bool,
    properties: Properties<'a>,
) -> Result<Value<'a>, Failed> {
    let mut is_unknown = false;
    for condition in conditions {
        match condition.evaluate(properties)? {
            Value::Boolean(boolean) if boolean == deciding => return Ok(Value::Boolean(deciding)),
            Value::Boolean(_) => {}
            _ => is_unknown = true,
        }
    }
    Ok(if is_unknown { Value::Null } else { Value::Boolean(!deciding) })
}

/// A value that is there does not equal one that is not; the other way round it is unknown.
fn equal<'a>(
    [left, right]: &'a [Expression; 2],
    properties: Properties<'a>,
) -> Result<Value<'a>, Failed> {
    let (left, right) = (left.evaluate(properties)?, right.evaluate(properties)?);
    Ok(match (left, right) {
        (Value::Null, Value::Null) => Value::Boolean(true),
        (Value::Null, _) => Value::Null,
        (_, Value::Null) => Value::Boolean(false),
        _ => Value::Boolean(compare(left, right)?.is_eq()),
    })
}

fn ordered<'a>(
    order: Order,
    [left, right]: &'a [Expression; 2],
    properties: Properties<'a>,
) -> Result<Value<'a>, Failed> {
    let left = left.evaluate(properties)?;
    if left == Value::Null {
        return Ok(Value::Null);
    }
    let right = right.evaluate(properties)?;
    let found = match (left, right) {
        (_, Value::Null) => return Ok(Value::Null),
        (Value::Text(left), Value::Text(right)) => {
            let doubles = java_double(left).zip(java_double(right));
            let (left, right) = doubles.ok_or(Failed)?;
            compare(Value::Double(left), Value::Double(right))?
        }
        _ => compare(left, right)?,
    };
    Ok(Value::Boolean(match order {
        Order::Less => found.is_lt(),
        Order::LessOrEqual => found.is_le(),
        Order::Greater => found.is_gt(),
        Order::GreaterOrEqual => found.is_ge(),
    }))
}

/// Two values that are there. A text beside a number is read as a number of that kind; what cannot be compared is
/// less. Source: ComparisonExpression.__compare.
pub(super) fn compare(left: Value<'_>, right: Value<'_>) -> Result<Ordering, Failed> {
    use Value::{Boolean, Double, Integer, Long, Text};
    Ok(match (left, right) {
        (Boolean(left), Boolean(right)) => left.cmp(&right),
        (Text(left), Text(right)) => left.cmp(right),
        (Integer(left), Integer(right)) => left.cmp(&right),
        (Long(left), Long(right)) => left.cmp(&right),
        // As Double.compare: NaN above all, -0 below 0.
        (Double(left), Double(right)) => left.total_cmp(&right),
        (Integer(left), Long(right)) => i64::from(left).cmp(&right),
        (Long(left), Integer(right)) => left.cmp(&i64::from(right)),
        (Integer(left), Double(right)) => f64::from(left).total_cmp(&right),
        (Double(left), Integer(right)) => left.total_cmp(&f64::from(right)),
        (Long(left), Double(right)) => rounded(left).total_cmp(&right),
        (Double(left), Long(right)) => left.total_cmp(&rounded(right)),
        // The original casts the Boolean to a String, which throws.
        (Boolean(_), Text(_)) => return Err(Failed),
        (Text(left), Boolean(right)) => left.eq_ignore_ascii_case("true").cmp(&right),
        (Text(left), Integer(right)) => left.parse::<i32>().map_err(|_| Failed)?.cmp(&right),
        (Integer(left), Text(right)) => left.cmp(&right.parse::<i32>().map_err(|_| Failed)?),
        (Text(left), Long(right)) => left.parse::<i64>().map_err(|_| Failed)?.cmp(&right),
        (Long(left), Text(right)) => left.cmp(&right.parse::<i64>().map_err(|_| Failed)?),
        (Text(left), Double(right)) => java_double(left).ok_or(Failed)?.total_cmp(&right),
        (Double(left), Text(right)) => left.total_cmp(&java_double(right).ok_or(Failed)?),
        (Boolean(_), _) | (_, Boolean(_)) | (Value::Null, _) | (_, Value::Null) => Ordering::Less,
    })
}

#[expect(clippy::cast_precision_loss, reason = "Java's conversion, which rounds as well")]
fn rounded(long: i64) -> f64 {
    long as f64
}
