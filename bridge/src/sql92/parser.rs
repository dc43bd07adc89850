//! From the text of an expression to the expression.
//!
//! ```text
//! any      = all (OR all)*
//! all      = equality (AND equality)*
//! equality = ordered ("=" ordered | "<>" ordered | IS [NOT] NULL)*
//! ordered  = unary (("<" | "<=" | ">" | ">=") unary
//!                   | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) text
//!                   | [NOT] BETWEEN unary AND unary
//!                   | [NOT] IN "(" text ("," text)* ")")*
//! unary    = ("+" | "-" | NOT) unary | text | number | TRUE | FALSE | NULL | name | "(" any ")"
//! ```
//! Source: SelectorParser.jj.

use super::SqlError;
use super::expression::{Constant, Expression, Order, Sense, Spot, compare};
use super::token::{self, Keyword, Sign, Token};
use crate::limits::SQL_DEPTH_MAX;

/// The expression that `text` begins with; of what follows one token is looked at.
pub(super) fn parse(text: &str) -> Result<Expression, SqlError> {
    let mut parser = Parser { text, rest: text, peeked: None, nesting: 0 };
    let part = parser.any()?;
    parser.condition(part).map(|part| part.expression)
}

/// A part of the expression, and how deep it is.
struct Part {
    expression: Expression,
    depth: usize,
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    /// The next token, and what follows it.
    peeked: Option<(Token<'a>, &'a str)>,
    /// Parts that are being read inside one another.
    nesting: usize,
}

impl<'a> Parser<'a> {
    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    /// The next token; `None` at the end.
    fn peek(&mut self) -> Result<Option<&Token<'a>>, SqlError> {
        if self.peeked.is_none() {
            self.rest = token::without_space(self.rest);
            if self.rest.is_empty() {
                return Ok(None);
            }
            let at = self.at();
            let (after, token) =
                token::token(self.rest).map_err(|_| SqlError::UnknownToken { at })?;
            self.peeked = Some((token, after));
        }
        Ok(self.peeked.as_ref().map(|(token, _)| token))
    }

    fn next(&mut self) -> Result<Option<Token<'a>>, SqlError> {
        self.peek()?;
        Ok(self.peeked.take().map(|(token, after)| {
            self.rest = after;
            token
        }))
    }

    /// Takes the next token if it is this one.
    fn takes(&mut self, wanted: &Token<'_>) -> Result<bool, SqlError> {
        let is_wanted = self.peek()? == Some(wanted);
        if is_wanted {
            self.next()?;
        }
        Ok(is_wanted)
    }

    fn takes_word(&mut self, keyword: Keyword) -> Result<bool, SqlError> {
        self.takes(&Token::Keyword(keyword))
    }

    fn expect(&mut self, token: &Token<'_>, expected: &'static str) -> Result<(), SqlError> {
        if self.takes(token)? { Ok(()) } else { Err(self.expected(expected)) }
    }

    fn expected(&self, expected: &'static str) -> SqlError {
        SqlError::Expected { expected, at: self.at() }
    }

    /// `part`, where only a condition can stand.
    fn condition(&self, part: Part) -> Result<Part, SqlError> {
        if part.expression.is_condition() {
            return Ok(part);
        }
        if matches!(part.expression, Expression::Property(_)) {
            return around([part], |[property]| Expression::IsTrue(Box::new(property)));
        }
        Err(SqlError::NotACondition { at: self.at() })
    }

    fn any(&mut self) -> Result<Part, SqlError> {
        self.joined(Keyword::Or, Self::all, Expression::Any)
    }

    fn all(&mut self) -> Result<Part, SqlError> {
        self.joined(Keyword::And, Self::equality, Expression::All)
    }

    /// `part (keyword part)*`
    fn joined(
        &mut self,
        keyword: Keyword,
        part: fn(&mut Self) -> Result<Part, SqlError>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Result<Part, SqlError> {
        let first = part(self)?;
        if self.peek()? != Some(&Token::Keyword(keyword)) {
            return Ok(first);
        }
        let first = self.condition(first)?;
        let mut depth = first.depth;
        let mut conditions = vec![first.expression];
        while self.takes_word(keyword)? {
            let next = part(self)?;
            let next = self.condition(next)?;
            depth = depth.max(next.depth);
            conditions.push(next.expression);
        }
        deeper(join(conditions), depth)
    }

    fn equality(&mut self) -> Result<Part, SqlError> {
        let mut left = self.ordered()?;
        loop {
            left = if self.takes(&Token::Sign(Sign::Equal))? {
                self.equal(left)?
            } else if self.takes(&Token::Sign(Sign::NotEqual))? {
                not(self.equal(left)?)?
            } else if self.takes_word(Keyword::Is)? {
                let sense = self.sense()?;
                self.expect(&Token::Keyword(Keyword::Null), "NULL")?;
                let null = leaf(Expression::Constant(Constant::Null));
                let is_null = around([left, null], |sides| Expression::Equal(Box::new(sides)))?;
                if sense == Sense::Negated { not(is_null)? } else { is_null }
            } else {
                return Ok(left);
            };
        }
    }

    fn sense(&mut self) -> Result<Sense, SqlError> {
        let is_negated = self.takes_word(Keyword::Not)?;
        Ok(if is_negated { Sense::Negated } else { Sense::Plain })
    }

    /// NULL equals nothing, and a condition that is a constant no constant of another kind.
    fn equal(&mut self, left: Part) -> Result<Part, SqlError> {
        let right = self.ordered()?;
        let is_refused = match (&left.expression, &right.expression) {
            (Expression::Constant(Constant::Null), _)
            | (_, Expression::Constant(Constant::Null)) => true,
            (Expression::Constant(left), Expression::Constant(right)) => {
                matches!(left, Constant::Boolean(_)) && !matches!(right, Constant::Boolean(_))
            }
            _ => false,
        };
        if is_refused {
            return Err(SqlError::NotComparable { at: self.at() });
        }
        around([left, right], |sides| Expression::Equal(Box::new(sides)))
    }

    fn ordered(&mut self) -> Result<Part, SqlError> {
        let mut left = self.unary()?;
        loop {
            let order = match self.peek()? {
                Some(Token::Sign(Sign::Less)) => Some(Order::Less),
                Some(Token::Sign(Sign::LessOrEqual)) => Some(Order::LessOrEqual),
                Some(Token::Sign(Sign::Greater)) => Some(Order::Greater),
                Some(Token::Sign(Sign::GreaterOrEqual)) => Some(Order::GreaterOrEqual),
                _ => None,
            };
            left = if let Some(order) = order {
                self.next()?;
                let right = self.unary()?;
                self.in_order(order, left, right)?
            } else {
                let sense = self.sense()?;
                match self.peek()? {
                    Some(Token::Keyword(Keyword::Contains)) => {
                        self.holds(left, Spot::Anywhere, sense)?
                    }
                    Some(Token::Keyword(Keyword::StartsWith)) => {
                        self.holds(left, Spot::Start, sense)?
                    }
                    Some(Token::Keyword(Keyword::EndsWith)) => {
                        self.holds(left, Spot::End, sense)?
                    }
                    Some(Token::Keyword(Keyword::Between)) => self.between(left, sense)?,
                    Some(Token::Keyword(Keyword::In)) => self.listed(left, sense)?,
                    _ if sense == Sense::Negated => {
                        let words = "CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN";
                        return Err(self.expected(words));
                    }
                    _ => return Ok(left),
                }
            };
        }
    }

    /// Only numbers are in order, and what may be one.
    fn in_order(&self, order: Order, left: Part, right: Part) -> Result<Part, SqlError> {
        let has_order = |part: &Part| match &part.expression {
            Expression::Constant(constant) => {
                matches!(constant, Constant::Integer(_) | Constant::Long(_) | Constant::Double(_))
            }
            other => !other.is_condition(),
        };
        if !has_order(&left) || !has_order(&right) {
            return Err(SqlError::NotComparable { at: self.at() });
        }
        around([left, right], |sides| Expression::Ordered(order, Box::new(sides)))
    }

    fn holds(&mut self, value: Part, spot: Spot, sense: Sense) -> Result<Part, SqlError> {
        self.next()?;
        let text = self.text()?;
        around([value], |[value]| Expression::Holds { value: Box::new(value), text, spot, sense })
    }

    fn between(&mut self, value: Part, sense: Sense) -> Result<Part, SqlError> {
        self.next()?;
        let low = self.unary()?;
        self.expect(&Token::Keyword(Keyword::And), "AND")?;
        let high = self.unary()?;
        let again = Part { expression: value.expression.clone(), depth: value.depth };
        if sense == Sense::Negated {
            let below = self.in_order(Order::Less, value, low)?;
            let above = self.in_order(Order::Greater, again, high)?;
            return around([below, above], |sides| Expression::Any(sides.into()));
        }
        if let (Expression::Constant(low), Expression::Constant(high)) =
            (&low.expression, &high.expression)
            && compare(high.value(), low.value()).is_ok_and(std::cmp::Ordering::is_lt)
        {
            return Err(SqlError::EmptyRange { at: self.at() });
        }
        let from = self.in_order(Order::GreaterOrEqual, value, low)?;
        let to = self.in_order(Order::LessOrEqual, again, high)?;
        around([from, to], |sides| Expression::All(sides.into()))
    }

    fn listed(&mut self, value: Part, sense: Sense) -> Result<Part, SqlError> {
        self.next()?;
        self.expect(&Token::Sign(Sign::Open), "(")?;
        let mut texts = vec![self.text()?];
        while self.takes(&Token::Sign(Sign::Comma))? {
            texts.push(self.text()?);
        }
        self.expect(&Token::Sign(Sign::Close), ")")?;
        let Expression::Property(property) = value.expression else {
            return Err(SqlError::InWithoutProperty { at: self.at() });
        };
        Ok(leaf(Expression::In { property, texts, sense }))
    }

    fn text(&mut self) -> Result<Box<str>, SqlError> {
        match self.peek()? {
            Some(Token::Text(text)) => {
                let text = text.as_ref().into();
                self.next()?;
                Ok(text)
            }
            _ => Err(self.expected("a text in single quotes")),
        }
    }

    fn unary(&mut self) -> Result<Part, SqlError> {
        self.nesting += 1;
        if self.nesting > SQL_DEPTH_MAX {
            return Err(SqlError::TooDeep);
        }
        self.peek()?;
        let at = self.at();
        let part = match self.next()? {
            Some(Token::Sign(Sign::Plus)) => self.unary()?,
            Some(Token::Sign(Sign::Minus)) => {
                around([self.unary()?], |[number]| Expression::Negate(Box::new(number)))?
            }
            Some(Token::Keyword(Keyword::Not)) => {
                let part = self.unary()?;
                not(self.condition(part)?)?
            }
            Some(Token::Sign(Sign::Open)) => {
                let part = self.any()?;
                self.expect(&Token::Sign(Sign::Close), ")")?;
                part
            }
            Some(Token::Name(name)) => leaf(Expression::Property(name.into())),
            Some(token) => leaf(Expression::Constant(constant(token, at)?)),
            None => return Err(self.expected("a value")),
        };
        self.nesting -= 1;
        Ok(part)
    }
}

fn constant(token: Token<'_>, at: usize) -> Result<Constant, SqlError> {
    Ok(match token {
        Token::Text(text) => Constant::Text(text.into()),
        Token::Whole(digits) => {
            let long = digits.parse().map_err(|_| SqlError::NumberOutOfRange { at })?;
            i32::try_from(long).map_or(Constant::Long(long), Constant::Integer)
        }
        Token::Fraction(digits) => match digits.parse::<f64>() {
            // Double.MIN_VALUE, the least the original takes, is the least above 0.
            Ok(double) if double.is_finite() && double > 0.0 => Constant::Double(double),
            _ => return Err(SqlError::NumberOutOfRange { at }),
        },
        Token::Keyword(Keyword::True) => Constant::Boolean(true),
        Token::Keyword(Keyword::False) => Constant::Boolean(false),
        Token::Keyword(Keyword::Null) => Constant::Null,
        Token::Keyword(_) | Token::Name(_) | Token::Sign(_) => {
            return Err(SqlError::Expected { expected: "a value", at });
        }
    })
}

const fn leaf(expression: Expression) -> Part {
    Part { expression, depth: 1 }
}

fn not(part: Part) -> Result<Part, SqlError> {
    around([part], |[condition]| Expression::Not(Box::new(condition)))
}

/// An expression of `parts`, unless it is too deep.
fn around<const N: usize>(
    parts: [Part; N],
    of: impl FnOnce([Expression; N]) -> Expression,
) -> Result<Part, SqlError> {
    let depth = parts.iter().map(|part| part.depth).max().unwrap_or(0);
    deeper(of(parts.map(|part| part.expression)), depth)
}

fn deeper(expression: Expression, depth: usize) -> Result<Part, SqlError> {
    let depth = depth + 1;
    if depth > SQL_DEPTH_MAX { Err(SqlError::TooDeep) } else { Ok(Part { expression, depth }) }
}
