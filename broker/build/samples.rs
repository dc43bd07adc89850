//! Writes the makers of random messages that the codec's tests use.

use std::fmt::{self, Write as _};

use crate::generate::{condition, default_of, mentions, snake};
use crate::schema::{Field, Message, Struct, Type};

type Result<T = ()> = std::result::Result<T, fmt::Error>;

/// The whole of `samples.rs`.
pub fn samples(messages: &[Message]) -> Result<String> {
    let mut out = String::new();
    writeln!(out, "const MESSAGES: &[Codec] = &[")?;
    for message in messages {
        let name = format!("{}{}", message.name, message.kind);
        let kind = message.kind;
        writeln!(out, "Codec::of::<messages::{name}>({name:?}, Kind::{kind}),")?;
    }
    writeln!(out, "];")?;
    for message in messages {
        let module = snake(&format!("{}{}", message.name, message.kind));
        writeln!(
            out,
            "mod {module} {{\nuse super::messages::{module}::*;\n#[allow(unused_imports)]"
        )?;
        writeln!(out, "use super::{{Bytes, Draw, Records, Sample, Str, Uuid}};")?;
        message.structs.iter().try_for_each(|each| sample(&mut out, each))?;
        writeln!(out, "}}")?;
    }
    Ok(out)
}

fn sample(out: &mut String, each: &Struct) -> Result {
    let mut fields = String::new();
    for field in &each.fields {
        let value = value_of(field);
        let value = match condition(field.versions, each.versions) {
            None => value,
            Some(condition) => {
                format!("if {condition} {{ {value} }} else {{ {} }}", default_of(field))
            }
        };
        writeln!(fields, "{}: {value},", snake(&field.name))?;
    }
    let version = if mentions(&fields, "version") { "version" } else { "_version" };
    writeln!(out, "impl Sample for {} {{", each.name)?;
    writeln!(out, "fn sample(draw: &mut Draw, {version}: i16) -> Self {{")?;
    writeln!(out, "Self {{\n{fields}}}\n}}\n}}")
}

fn value_of(field: &Field) -> String {
    let value = draw(&field.ty);
    let Some(nullable) = field.nullable else { return value };
    let null = match condition(nullable, field.versions) {
        None => "draw.bool()".to_owned(),
        Some(condition) => format!("{condition} && draw.bool()"),
    };
    format!("if {null} {{ None }} else {{ Some({value}) }}")
}

fn draw(ty: &Type) -> String {
    match ty {
        Type::Bool => "draw.bool()".into(),
        Type::Int8 => "draw.number() as i8".into(),
        Type::Int16 => "draw.number() as i16".into(),
        Type::Uint16 => "draw.number() as u16".into(),
        Type::Int32 => "draw.number() as i32".into(),
        Type::Int64 => "draw.number()".into(),
        Type::Float64 => "draw.number() as i32 as f64".into(),
        Type::Uuid => "draw.uuid()".into(),
        Type::String => "draw.string()".into(),
        Type::Bytes => "draw.bytes()".into(),
        Type::Records => "Records::from(draw.bytes())".into(),
        Type::Struct(name) => format!("{name}::sample(draw, version)"),
        Type::Array(element) => format!("draw.array(|draw| {})", self::draw(element)),
    }
}
