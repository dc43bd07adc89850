//! The words of an expression. The longest that fits is the one, as with the original's generated scanner.

use std::borrow::Cow;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_until, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, digit1, one_of};
use nom::combinator::{opt, recognize, value};
use nom::multi::many0_count;
use nom::sequence::{delimited, terminated};
use nom::{IResult, Parser};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Keyword(Keyword),
    /// A property's name.
    Name(&'a str),
    /// Its value, quotes taken off.
    Text(Cow<'a, str>),
    /// Digits, without the `L` that may end them.
    Whole(&'a str),
    /// A number with a point or an exponent.
    Fraction(&'a str),
    Sign(Sign),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Not,
    And,
    Or,
    Between,
    In,
    True,
    False,
    Null,
    Is,
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Open,
    Comma,
    Close,
    Plus,
    Minus,
}

const KEYWORDS: [(&str, Keyword); 12] = [
    ("NOT", Keyword::Not),
    ("AND", Keyword::And),
    ("OR", Keyword::Or),
    ("BETWEEN", Keyword::Between),
    ("IN", Keyword::In),
    ("TRUE", Keyword::True),
    ("FALSE", Keyword::False),
    ("NULL", Keyword::Null),
    ("IS", Keyword::Is),
    ("CONTAINS", Keyword::Contains),
    ("STARTSWITH", Keyword::StartsWith),
    ("ENDSWITH", Keyword::EndsWith),
];

/// What follows white space and comments. A comment that does not end is none.
pub(super) fn without_space(input: &str) -> &str {
    let line = (tag("--"), take_while(|char| char != '\n' && char != '\r'), one_of("\n\r"));
    let block = (tag("/*"), take_until("*/"), tag("*/"));
    let space = take_while1(|char| matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0c'));
    let mut skip = many0_count(alt((recognize(space), recognize(line), recognize(block))));
    let skipped: IResult<&str, usize> = skip.parse(input);
    skipped.map_or(input, |(rest, _)| rest)
}

/// The token that `input` begins with; what follows it comes first.
pub(super) fn token(input: &str) -> IResult<&str, Token<'_>> {
    alt((word, fraction, whole, text, sign)).parse(input)
}

fn word(input: &str) -> IResult<&str, Token<'_>> {
    let is_first = |char: char| char.is_ascii_alphabetic() || matches!(char, '_' | '$');
    let is_next = move |char: char| is_first(char) || char.is_ascii_digit();
    let (rest, word) =
        recognize((take_while_m_n(1, 1, is_first), take_while(is_next))).parse(input)?;
    let keyword = KEYWORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    Ok((rest, keyword.map_or(Token::Name(word), |(_, keyword)| Token::Keyword(*keyword))))
}

fn exponent(input: &str) -> IResult<&str, &str> {
    recognize((one_of("eE"), opt(one_of("+-")), digit1)).parse(input)
}

/// `5.5`, `5.`, `.5` or `5E1`, each with or without an exponent.
fn fraction(input: &str) -> IResult<&str, Token<'_>> {
    let pointed = recognize((digit1, char('.'), opt(digit1), opt(exponent)));
    let bare = recognize((char('.'), digit1, opt(exponent)));
    let scaled = recognize((digit1, exponent));
    alt((pointed, bare, scaled)).map(Token::Fraction).parse(input)
}

/// Digits; a 0 stands alone, so that `007` is 0 and something else.
fn whole(input: &str) -> IResult<&str, Token<'_>> {
    let longer = terminated(recognize((one_of("123456789"), opt(digit1))), opt(one_of("lL")));
    alt((tag("0"), longer)).map(Token::Whole).parse(input)
}

/// In single quotes; two of them are one of its own.
fn text(input: &str) -> IResult<&str, Token<'_>> {
    let pieces = many0_count(alt((tag("''"), take_while1(|char| char != '\''))));
    let (rest, raw) = delimited(char('\''), recognize(pieces), char('\'')).parse(input)?;
    let decoded =
        if raw.contains('\'') { Cow::Owned(raw.replace("''", "'")) } else { Cow::Borrowed(raw) };
    Ok((rest, Token::Text(decoded)))
}

fn sign(input: &str) -> IResult<&str, Token<'_>> {
    let (rest, sign) = alt((
        value(Sign::NotEqual, tag("<>")),
        value(Sign::LessOrEqual, tag("<=")),
        value(Sign::GreaterOrEqual, tag(">=")),
        value(Sign::Less, tag("<")),
        value(Sign::Greater, tag(">")),
        value(Sign::Equal, tag("=")),
        value(Sign::Open, tag("(")),
        value(Sign::Comma, tag(",")),
        value(Sign::Close, tag(")")),
        value(Sign::Plus, tag("+")),
        value(Sign::Minus, tag("-")),
    ))
    .parse(input)?;
    Ok((rest, Token::Sign(sign)))
}
