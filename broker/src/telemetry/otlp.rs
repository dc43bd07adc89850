//! Metrics as clients send them: OpenTelemetry's `MetricsData` in protobuf, read in place.
//!
//! Only what is shown is read: names, attributes, numbers, and of histograms and summaries their count and sum.
//! Source: opentelemetry-proto metrics/v1/metrics.proto, common/v1/common.proto, resource/v1/resource.proto.

use std::fmt::Write as _;

/// Bytes that are not such a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not OTLP metrics: {0}")]
pub struct OtlpError(&'static str);

/// What a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A level at one moment.
    Gauge,
    /// What was added since the last push.
    Delta,
    /// All that was added since the client began.
    Total,
}

/// An attribute, or a label made of one.
pub type Label = (String, String);

/// One number that a client sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The metric's name, as sent.
    pub name: String,
    /// What the number says.
    pub kind: Kind,
    /// Attributes of the client, then of the point.
    pub labels: Vec<Label>,
    /// The number.
    pub value: f64,
}

/// Attributes of one client, and of one point.
const LABELS_MAX: usize = 16;

/// Reads at most `samples_max` numbers; returns how many more there were.
pub fn read(bytes: &[u8], samples_max: usize) -> Result<(Vec<Sample>, u64), OtlpError> {
    let mut reader = Samples { all: Vec::new(), max: samples_max, left_out: 0 };
    for resource in Fields(bytes).messages(1) {
        let resource = resource?;
        let mut labels = Vec::new();
        for described in Fields(resource).messages(1) {
            read_labels(described?, 1, &mut labels)?;
        }
        for scope in Fields(resource).messages(2) {
            for metric in Fields(scope?).messages(2) {
                reader.metric(metric?, &labels)?;
            }
        }
    }
    Ok((reader.all, reader.left_out))
}

struct Samples {
    all: Vec<Sample>,
    max: usize,
    left_out: u64,
}

/// Numbers of the fields of a metric that hold its points, and of what a point of them says.
struct Shape {
    field: u32,
    attributes: u32,
    /// Its fields of numbers: what is behind the metric's name, and how it is written.
    numbers: &'static [(u32, &'static str, Written)],
    adds_up: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Double,
    Signed,
    Unsigned,
}

const NUMBER: &[(u32, &str, Written)] = &[(4, "", Written::Double), (6, "", Written::Signed)];
const COUNT_AND_SUM: &[(u32, &str, Written)] =
    &[(4, ".count", Written::Unsigned), (5, ".sum", Written::Double)];

/// Gauge, sum, histogram, exponential histogram, summary.
const SHAPES: [Shape; 5] = [
    Shape { field: 5, attributes: 7, numbers: NUMBER, adds_up: false },
    Shape { field: 7, attributes: 7, numbers: NUMBER, adds_up: true },
    Shape { field: 9, attributes: 9, numbers: COUNT_AND_SUM, adds_up: true },
    Shape { field: 10, attributes: 1, numbers: COUNT_AND_SUM, adds_up: true },
    Shape { field: 11, attributes: 7, numbers: COUNT_AND_SUM, adds_up: false },
];

/// `AggregationTemporality`, field 2 of all that adds up.
const DELTA: u64 = 1;

impl Samples {
    fn metric(&mut self, metric: &[u8], resource: &[Label]) -> Result<(), OtlpError> {
        let name = match Fields(metric).messages(1).last() {
            Some(name) => text(name?)?,
            None => return Err(OtlpError("a metric without a name")),
        };
        for shape in &SHAPES {
            for data in Fields(metric).messages(shape.field) {
                let data = data?;
                let kind = kind(data, shape)?;
                for point in Fields(data).messages(1) {
                    self.point(name, kind, shape, point?, resource)?;
                }
            }
        }
        Ok(())
    }

    fn point(
        &mut self,
        name: &str,
        kind: Kind,
        shape: &Shape,
        point: &[u8],
        resource: &[Label],
    ) -> Result<(), OtlpError> {
        let mut labels = resource.to_vec();
        read_labels(point, shape.attributes, &mut labels)?;
        for field in Fields(point) {
            let (number, value) = field?;
            let wanted = shape.numbers.iter().find(|(field, ..)| *field == number);
            let (Some((_, suffix, written)), Value::Fixed64(bits)) = (wanted, value) else {
                continue;
            };
            if self.all.len() >= self.max {
                self.left_out += 1;
                continue;
            }
            let value = match written {
                Written::Double => f64::from_bits(bits),
                Written::Signed => bits.cast_signed() as f64,
                Written::Unsigned => bits as f64,
            };
            let name = format!("{name}{suffix}");
            self.all.push(Sample { name, kind, labels: labels.clone(), value });
        }
        Ok(())
    }
}

fn kind(data: &[u8], shape: &Shape) -> Result<Kind, OtlpError> {
    if !shape.adds_up {
        return Ok(Kind::Gauge);
    }
    // A sum that may fall is a level; of histograms count and sum only rise.
    let (mut delta, mut monotonic) = (false, shape.numbers != NUMBER);
    for field in Fields(data) {
        match field? {
            (2, Value::Varint(temporality)) => delta = temporality == DELTA,
            (3, Value::Varint(flag)) if shape.numbers == NUMBER => monotonic = flag != 0,
            _ => {}
        }
    }
    Ok(match (delta, monotonic) {
        (true, _) => Kind::Delta,
        (false, true) => Kind::Total,
        (false, false) => Kind::Gauge,
    })
}

/// Adds the attributes in field `number`; what is beyond [`LABELS_MAX`] is left out.
fn read_labels(message: &[u8], number: u32, labels: &mut Vec<Label>) -> Result<(), OtlpError> {
    let before = labels.len();
    for attribute in Fields(message).messages(number) {
        let attribute = attribute?;
        let Some(name) = Fields(attribute).messages(1).last() else { continue };
        let value = match Fields(attribute).messages(2).last() {
            Some(value) => attribute_value(value?)?,
            None => String::new(),
        };
        if labels.len() < before + LABELS_MAX {
            labels.push((text(name?)?.to_owned(), value));
        }
    }
    Ok(())
}

/// Texts, truth values and numbers; lists and the like are shown empty.
fn attribute_value(value: &[u8]) -> Result<String, OtlpError> {
    let mut shown = String::new();
    for field in Fields(value) {
        // Writing to a String cannot fail.
        let _ = match field? {
            (1, Value::Bytes(bytes)) => write!(shown, "{}", text(bytes)?),
            (2, Value::Varint(flag)) => write!(shown, "{}", flag != 0),
            (3, Value::Varint(number)) => write!(shown, "{}", number.cast_signed()),
            (4, Value::Fixed64(bits)) => write!(shown, "{}", f64::from_bits(bits)),
            _ => Ok(()),
        };
    }
    Ok(shown)
}

fn text(bytes: &[u8]) -> Result<&str, OtlpError> {
    std::str::from_utf8(bytes).map_err(|_| OtlpError("a text that is not UTF-8"))
}

/// A field's value, as far as it is needed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// The fields of a message, in the order sent.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The messages or texts in field `number`.
    fn messages(self, number: u32) -> impl Iterator<Item = Result<&'a [u8], OtlpError>> {
        self.filter_map(move |field| match field {
            Ok((at, Value::Bytes(bytes))) if at == number => Some(Ok(bytes)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }

    fn varint(&mut self) -> Result<u64, OtlpError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(OtlpError("ends inside a number"))?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(OtlpError("a number without end"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], OtlpError> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (head, rest) =
            self.0.split_at_checked(length).ok_or(OtlpError("ends inside a field"))?;
        self.0 = rest;
        Ok(head)
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), OtlpError> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| OtlpError("a field number too large"))?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?.try_into().map_err(|_| OtlpError("eight bytes"))?;
                Value::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Value::Fixed32
            }
            _ => return Err(OtlpError("an unknown kind of field")),
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), OtlpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // Nothing behind it can be read.
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
pub(super) mod tests;
