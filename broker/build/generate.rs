//! Writes the Rust types of the messages with their decoders and encoders.

use std::fmt::{self, Write as _};

use crate::schema::{Field, Kind, Message, Struct, Type, Versions};

type Result<T = ()> = std::result::Result<T, fmt::Error>;

/// The whole of `messages.rs`.
pub fn messages(messages: &[Message]) -> Result<String> {
    let mut out = String::new();
    api_keys(&mut out, messages)?;
    for message in messages {
        let module = snake(&format!("{}{}", message.name, message.kind));
        writeln!(out, "\n/// {} {}, key {}.", message.name, message.kind, message.api_key)?;
        writeln!(out, "pub mod {module} {{\n#[allow(unused_imports)]\nuse super::super::{{")?;
        writeln!(out, "DecodeError, Message, Reader, Records, SegmentedBuf, Str, Uuid, Wire}};")?;
        writeln!(out, "#[allow(unused_imports)]\nuse bytes::Bytes;")?;
        let mut context = Context { out: &mut out, message };
        for each in &message.structs {
            context.type_of(each)?;
            context.default_of(each)?;
            context.codec_of(each)?;
        }
        let name = format!("{}{}", message.name, message.kind);
        writeln!(out, "impl Message for {name} {{")?;
        writeln!(out, "const API_KEY: super::ApiKey = super::ApiKey::{};\n}}\n}}", message.name)?;
        writeln!(out, "pub use {module}::{name};")?;
    }
    Ok(out)
}

fn api_keys(out: &mut String, messages: &[Message]) -> Result {
    let requests = || messages.iter().filter(|message| message.kind == Kind::Request);
    writeln!(out, "/// The APIs that have a codec.")?;
    writeln!(out, "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]")?;
    writeln!(out, "#[repr(i16)]\npub enum ApiKey {{")?;
    for message in requests() {
        writeln!(out, "{} = {},", message.name, message.api_key)?;
    }
    writeln!(out, "}}\nimpl ApiKey {{\n/// In the order of their codes.")?;
    writeln!(out, "pub const ALL: &'static [Self] = &[")?;
    requests().try_for_each(|message| writeln!(out, "Self::{},", message.name))?;
    writeln!(out, "];\n/// The API of a request header's code, if it has a codec.")?;
    writeln!(out, "#[must_use]\npub fn from_code(code: i16) -> Option<Self> {{")?;
    writeln!(out, "Some(match code {{")?;
    for message in requests() {
        writeln!(out, "{} => Self::{},", message.api_key, message.name)?;
    }
    writeln!(out, "_ => return None,\n}})\n}}\n/// Kafka's name of it.")?;
    writeln!(out, "#[must_use]\npub fn name(self) -> &'static str {{\nmatch self {{")?;
    for message in requests() {
        writeln!(out, "Self::{0} => \"{0}\",", message.name)?;
    }
    writeln!(out, "}}\n}}\n/// Lowest and highest version with a codec, inclusive.")?;
    writeln!(out, "#[must_use]\npub fn versions(self) -> (i16, i16) {{\nmatch self {{")?;
    for message in requests() {
        let Versions { low, high } = message.versions;
        writeln!(out, "Self::{} => ({low}, {high}),", message.name)?;
    }
    writeln!(
        out,
        "}}\n}}\n/// The first version with compact lengths and tagged fields (KIP-482)."
    )?;
    writeln!(out, "#[must_use]\npub fn flexible_from(self) -> Option<i16> {{\nmatch self {{")?;
    for message in requests() {
        let from = message.flexible.map(|range| range.low);
        writeln!(out, "Self::{} => {from:?},", message.name)?;
    }
    writeln!(out, "}}\n}}\n}}")
}

/// `LastKnownElr` to `last_known_elr`.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    for (index, char) in name.char_indices() {
        if char.is_uppercase() && index > 0 {
            out.push('_');
        }
        out.extend(char.to_lowercase());
    }
    if matches!(out.as_str(), "type" | "match" | "use") { format!("r#{out}") } else { out }
}

fn element_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::Int8 => "i8".into(),
        Type::Int16 => "i16".into(),
        Type::Uint16 => "u16".into(),
        Type::Int32 => "i32".into(),
        Type::Int64 => "i64".into(),
        Type::Float64 => "f64".into(),
        Type::Uuid => "Uuid".into(),
        Type::String => "Str".into(),
        Type::Bytes => "Bytes".into(),
        Type::Records => "Records".into(),
        Type::Struct(name) => name.clone(),
        Type::Array(element) => format!("Vec<{}>", element_type(element)),
    }
}

fn rust_type(field: &Field) -> String {
    let ty = element_type(&field.ty);
    if field.nullable.is_some() { format!("Option<{ty}>") } else { ty }
}

fn is_copy(ty: &Type) -> bool {
    !matches!(ty, Type::String | Type::Bytes | Type::Records | Type::Struct(_) | Type::Array(_))
}

/// The method name of a primitive in the reader and the buffer.
fn method(ty: &Type) -> String {
    match ty {
        Type::Uuid => "uuid".into(),
        Type::String => "string".into(),
        Type::Bytes => "bytes".into(),
        Type::Records => "records".into(),
        Type::Struct(_) => "struct".into(),
        Type::Array(_) => "array".into(),
        number => element_type(number),
    }
}

/// The value of a field that is not on the wire. Kafka's rule: null only where the table says so.
pub fn default_of(field: &Field) -> String {
    let null = field.default.as_deref() == Some("null");
    if field.nullable.is_some() && (null || field.ty == Type::Records) {
        return "None".into();
    }
    let value = match (&field.ty, field.default.as_deref()) {
        (Type::Bool, default) => default.unwrap_or("false").into(),
        (Type::Float64, default) => default.unwrap_or("0.0").into(),
        (Type::Uuid, _) => "Uuid::ZERO".into(),
        (Type::String, Some(text)) => format!("Str::from({text:?})"),
        (Type::String, None) => "Str::default()".into(),
        (Type::Bytes, _) => "Bytes::new()".into(),
        (Type::Records, _) => "Records::EMPTY".into(),
        (Type::Struct(name), _) => format!("{name}::default()"),
        (Type::Array(_), _) => "Vec::new()".into(),
        (_, number) => number.unwrap_or("0").into(),
    };
    if field.nullable.is_some() { format!("Some({value})") } else { value }
}

fn is_derived(default: &str) -> bool {
    let plain = ["0", "0.0", "false", "None", "Uuid::ZERO", "Str::default()", "Vec::new()"];
    plain.contains(&default) || (!default.starts_with("Some") && default.ends_with("::default()"))
}

/// A condition on `version` that tells `inside` from the rest of `outside`; `None` if there is
/// no rest.
pub fn condition(inside: Versions, outside: Versions) -> Option<String> {
    let low = inside.low > outside.low;
    let high = inside.high < outside.high;
    match (low, high) {
        (false, false) => None,
        (true, false) => Some(format!("version >= {}", inside.low)),
        (false, true) => Some(format!("version <= {}", inside.high)),
        (true, true) => Some(format!("({}..={}).contains(&version)", inside.low, inside.high)),
    }
}

/// Whether `word` stands in `code` as an identifier of its own.
pub fn mentions(code: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    code.match_indices(word).any(|(at, _)| {
        let (before, after) = (code.get(..at), code.get(at + word.len()..));
        !before.is_some_and(|text| text.ends_with(is_part))
            && !after.is_some_and(|text| text.starts_with(is_part))
    })
}

struct Context<'a> {
    out: &'a mut String,
    message: &'a Message,
}

impl Context<'_> {
    fn type_of(&mut self, each: &Struct) -> Result {
        let derived = each.fields.iter().all(|field| is_derived(&default_of(field)));
        let default = if derived { ", Default" } else { "" };
        let Versions { low, high } = each.versions;
        writeln!(self.out, "\n/// Versions {low} to {high}.")?;
        writeln!(self.out, "#[derive(Clone, Debug, PartialEq{default})]")?;
        writeln!(self.out, "pub struct {} {{", each.name)?;
        for field in &each.fields {
            if let Some(condition) = condition(field.versions, each.versions) {
                writeln!(self.out, "/// Where `{condition}`.")?;
            }
            writeln!(self.out, "pub {}: {},", snake(&field.name), rust_type(field))?;
        }
        writeln!(self.out, "}}")
    }

    fn default_of(&mut self, each: &Struct) -> Result {
        if each.fields.iter().all(|field| is_derived(&default_of(field))) {
            return Ok(());
        }
        writeln!(self.out, "impl Default for {} {{\nfn default() -> Self {{\nSelf {{", each.name)?;
        for field in &each.fields {
            writeln!(self.out, "{}: {},", snake(&field.name), default_of(field))?;
        }
        writeln!(self.out, "}}\n}}\n}}")
    }

    fn codec_of(&mut self, each: &Struct) -> Result {
        let flexible = self.message.flexible.and_then(|range| range.overlap(each.versions));
        let flag = match flexible {
            None => "const FLEXIBLE: bool = false;".into(),
            Some(range) => match condition(range, each.versions) {
                None => "const FLEXIBLE: bool = true;".into(),
                Some(condition) => format!("let flexible = {condition};"),
            },
        };
        let always = flexible == Some(each.versions);
        let name = if flag.starts_with("let") { "flexible" } else { "FLEXIBLE" };
        let decode = decode_body(each, name, flexible.is_some(), always)?;
        let encode = encode_body(each, name, flexible.is_some(), always)?;
        let flag_for = |body: &str| if mentions(body, name) { flag.as_str() } else { "" };
        let version = |body: &str| {
            let used = mentions(body, "version") || mentions(flag_for(body), "version");
            if used { "version" } else { "_version" }
        };
        writeln!(self.out, "impl Wire for {} {{", each.name)?;
        writeln!(self.out, "const BYTES_MIN: usize = {};", self.bytes_min(each))?;
        let parameter = version(&decode);
        writeln!(self.out, "fn decode(reader: &mut Reader<'_>, {parameter}: i16)")?;
        writeln!(self.out, "-> Result<Self, DecodeError> {{")?;
        writeln!(self.out, "{}\n{decode}}}", flag_for(&decode))?;
        let parameter = version(&encode);
        writeln!(self.out, "fn encode(&self, {parameter}: i16, out: &mut SegmentedBuf) {{")?;
        writeln!(self.out, "{}\n{encode}}}\n}}", flag_for(&encode))
    }

    /// A lower bound of the struct's bytes over all its versions.
    fn bytes_min(&self, each: &Struct) -> usize {
        let flexible = self.message.flexible.and_then(|range| range.overlap(each.versions));
        let present = |field: &&Field| field.versions == each.versions && field.tag.is_none();
        let fields: usize = each
            .fields
            .iter()
            .filter(present)
            .map(|field| match &field.ty {
                Type::Bool | Type::Int8 => 1,
                Type::Int16 | Type::Uint16 => 2,
                Type::Int32 => 4,
                Type::Int64 | Type::Float64 => 8,
                Type::Uuid => 16,
                Type::Struct(_) if field.nullable.is_some() => 1,
                Type::Struct(name) => {
                    let found = self.message.structs.iter().find(|each| each.name == *name);
                    found.map_or(1, |each| self.bytes_min(each))
                }
                _ if flexible.is_some() => 1,
                Type::String => 2,
                Type::Bytes | Type::Records | Type::Array(_) => 4,
            })
            .sum();
        fields + usize::from(flexible == Some(each.versions))
    }
}

fn element_min(ty: &Type) -> String {
    match ty {
        Type::Struct(name) => format!("{name}::BYTES_MIN"),
        Type::Bool | Type::Int8 | Type::String | Type::Bytes | Type::Records | Type::Array(_) => {
            "1".into()
        }
        other => format!("size_of::<{}>()", element_type(other)),
    }
}

fn read(ty: &Type, nullable: bool, flexible: &str) -> String {
    let null = if nullable { "nullable_" } else { "" };
    match ty {
        Type::Struct(_) if nullable => "reader.nullable_struct(version)?".into(),
        Type::Struct(name) => format!("{name}::decode(reader, version)?"),
        Type::Array(element) => {
            let min = element_min(element);
            let each = match element.as_ref() {
                Type::Struct(name) => format!("{name}::decode(reader, version)"),
                Type::String | Type::Bytes => format!("reader.{}({flexible})", method(element)),
                other => format!("reader.{}()", method(other)),
            };
            format!("reader.{null}array({flexible}, {min}, |reader| {each})?")
        }
        Type::String | Type::Bytes | Type::Records => {
            format!("reader.{null}{}({flexible})?", method(ty))
        }
        other => format!("reader.{}()?", method(other)),
    }
}

/// The value of a field in a version that has it.
fn read_field(field: &Field, flexible: &str) -> String {
    let Some(nullable) = field.nullable else { return read(&field.ty, false, flexible) };
    match condition(nullable, field.versions) {
        None => read(&field.ty, true, flexible),
        Some(condition) => format!(
            "if {condition} {{ {} }} else {{ Some({}) }}",
            read(&field.ty, true, flexible),
            read(&field.ty, false, flexible)
        ),
    }
}

fn tagged(each: &Struct) -> Vec<(u32, &Field)> {
    let mut fields: Vec<_> =
        each.fields.iter().filter_map(|field| Some((field.tag?, field))).collect();
    fields.sort_by_key(|(tag, _)| *tag);
    fields
}

fn decode_body(each: &Struct, flexible: &str, tags: bool, always: bool) -> Result<String> {
    let mut out = String::new();
    for field in each.fields.iter().filter(|field| field.tag.is_none()) {
        let name = snake(&field.name);
        let value = read_field(field, flexible);
        match condition(field.versions, each.versions) {
            None => writeln!(out, "let {name} = {value};")?,
            Some(condition) => {
                let default = default_of(field);
                writeln!(out, "let {name} = if {condition} {{ {value} }} else {{ {default} }};")?;
            }
        }
    }
    let tagged = tagged(each);
    for (_, field) in &tagged {
        writeln!(out, "let mut {} = {};", snake(&field.name), default_of(field))?;
    }
    if tags {
        if !always {
            writeln!(out, "if {flexible} {{")?;
        }
        if tagged.is_empty() {
            writeln!(out, "reader.skip_tagged_fields()?;")?;
        } else {
            writeln!(out, "reader.tagged_fields(|tag, reader| {{\nmatch tag {{")?;
            for (tag, field) in &tagged {
                let guard = condition(field.versions, each.versions);
                let guard = guard.map_or(String::new(), |guard| format!(" if {guard}"));
                let value = read_field(field, "true");
                writeln!(out, "{tag}{guard} => {} = {value},", snake(&field.name))?;
            }
            writeln!(out, "_ => return Ok(false),\n}}\nOk(true)\n}})?;")?;
        }
        if !always {
            writeln!(out, "}}")?;
        }
    }
    let names: Vec<_> = each.fields.iter().map(|field| snake(&field.name)).collect();
    writeln!(out, "Ok(Self {{ {} }})", names.join(", "))?;
    Ok(out)
}

/// Writes `value`, which is a reference, or a plain value when the type is `Copy`.
fn write(ty: &Type, value: &str, flexible: &str) -> String {
    match ty {
        Type::Struct(_) => format!("{value}.encode(version, out)"),
        Type::Array(element) => {
            let each = match element.as_ref() {
                copy if is_copy(copy) => write(copy, "*each", flexible),
                other => write(other, "each", flexible),
            };
            format!("out.array({value}, {flexible}, |out, each| {each})")
        }
        Type::String | Type::Bytes | Type::Records => {
            format!("out.{}({value}, {flexible})", method(ty))
        }
        other => format!("out.{}({value})", method(other)),
    }
}

fn write_nullable(ty: &Type, value: &str, flexible: &str) -> String {
    match ty {
        Type::Struct(_) => format!("out.nullable_struct({value}.as_ref(), version)"),
        Type::Array(element) => {
            let each = match element.as_ref() {
                copy if is_copy(copy) => write(copy, "*each", flexible),
                other => write(other, "each", flexible),
            };
            format!("out.nullable_array({value}.as_ref(), {flexible}, |out, each| {each})")
        }
        other => format!("out.nullable_{}({value}.as_ref(), {flexible})", method(other)),
    }
}

/// A statement that writes a field in a version that has it.
fn write_field(each: &Struct, field: &Field, flexible: &str) -> String {
    let value = format!("self.{}", snake(&field.name));
    let Some(nullable) = field.nullable else {
        let by_value = is_copy(&field.ty) || matches!(field.ty, Type::Struct(_));
        let value = if by_value { value } else { format!("&{value}") };
        return format!("{};", write(&field.ty, &value, flexible));
    };
    let may_be_null = write_nullable(&field.ty, &value, flexible);
    let Some(condition) = condition(nullable, field.versions) else {
        return format!("{may_be_null};");
    };
    let plain = write(&field.ty, "value", flexible);
    let path = format!("{}.{}", each.name, field.name);
    format!(
        "if {condition} {{ {may_be_null}; }} else {{ match &{value} {{\n\
         Some(value) => {plain},\nNone => out.null_in({path:?}),\n}} }}"
    )
}

fn encode_body(each: &Struct, flexible: &str, tags: bool, always: bool) -> Result<String> {
    let mut out = String::new();
    for field in each.fields.iter().filter(|field| field.tag.is_none()) {
        let statement = write_field(each, field, flexible);
        match condition(field.versions, each.versions) {
            None => writeln!(out, "{statement}")?,
            Some(condition) => writeln!(out, "if {condition} {{ {statement} }}")?,
        }
    }
    if !tags {
        return Ok(out);
    }
    if !always {
        writeln!(out, "if {flexible} {{")?;
    }
    let tagged = tagged(each);
    let mut count = String::from("0");
    for (tag, field) in &tagged {
        let set = is_set(field);
        let set = match condition(field.versions, each.versions) {
            None => set,
            Some(condition) => format!("{condition} && {set}"),
        };
        writeln!(out, "let tag_{tag} = {set};")?;
        write!(count, " + u32::from(tag_{tag})")?;
    }
    let count = count.strip_prefix("0 + ").unwrap_or(&count);
    writeln!(out, "out.unsigned_varint({count});")?;
    for (tag, field) in &tagged {
        let statement = write_field(each, field, "true");
        writeln!(out, "if tag_{tag} {{ out.tagged_field({tag}, |out| {{ {statement} }}); }}")?;
    }
    if !always {
        writeln!(out, "}}")?;
    }
    Ok(out)
}

/// Whether a tagged field has another value than its default and so is written at all.
fn is_set(field: &Field) -> String {
    let value = format!("self.{}", snake(&field.name));
    match (&field.ty, default_of(field).as_str()) {
        (_, "None") => format!("{value}.is_some()"),
        (_, "Vec::new()" | "Str::default()" | "Bytes::new()") => format!("!{value}.is_empty()"),
        (Type::Bool, "false") => value,
        (_, default) => format!("{value} != {default}"),
    }
}
