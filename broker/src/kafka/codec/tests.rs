//! Every message in every version: what is written is read back, and no input harms a decoder.

use bytes::Bytes;
use proptest::prelude::*;

use super::segments::SegmentedBuf;
use super::{ApiKey, DecodeError, Message, Records, Str, Uuid, messages};

mod golden;
mod hostile;
mod round_trip;
mod second_opinion;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Response,
}

/// A message type behind plain functions, so that a test can walk over all of them.
#[derive(Clone, Copy)]
struct Codec {
    name: &'static str,
    kind: Kind,
    api_key: ApiKey,
    /// Decodes a body and encodes it again.
    recode: fn(&Bytes, i16) -> Result<Bytes, DecodeError>,
    /// Encodes a random message.
    sample: fn(&mut Draw, i16) -> Bytes,
    /// Fails unless a random message survives encoding and decoding.
    check_round_trip: fn(&mut Draw, i16),
}

impl Codec {
    const fn of<M: Message + Sample + PartialEq + std::fmt::Debug>(
        name: &'static str,
        kind: Kind,
    ) -> Self {
        Self {
            name,
            kind,
            api_key: M::API_KEY,
            recode: |body, version| Ok(body_of(&M::from_body(body, version)?, version)),
            sample: |draw, version| body_of(&M::sample(draw, version), version),
            check_round_trip: |draw, version| {
                let message = M::sample(draw, version);
                let body = body_of(&message, version);
                assert!(body.len() >= M::BYTES_MIN, "BYTES_MIN is a lower bound");
                assert_eq!(M::from_body(&body, version), Ok(message));
            },
        }
    }

    fn versions(&self) -> std::ops::RangeInclusive<i16> {
        let (low, high) = self.api_key.versions();
        low..=high
    }
}

fn body_of<M: Message>(message: &M, version: i16) -> Bytes {
    let mut out = SegmentedBuf::new();
    message.encode(version, &mut out);
    out.finish().expect("the version carries the message").to_bytes().slice(4..)
}

/// Makes a random message whose values all survive `version`.
trait Sample {
    fn sample(draw: &mut Draw, version: i16) -> Self;
}

/// A small generator of its own, seeded by proptest: xorshift64*.
struct Draw(u64);

impl Draw {
    fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn number(&mut self) -> i64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) as i64;
        // Half of the numbers are the small ones that real messages hold.
        if bits & 1 == 0 { bits >> 1 } else { bits >> 58 }
    }

    fn below(&mut self, bound: u64) -> usize {
        (self.number().unsigned_abs() % bound) as usize
    }

    fn bool(&mut self) -> bool {
        self.below(2) == 1
    }

    fn uuid(&mut self) -> Uuid {
        let half = self.number().to_be_bytes();
        let mut bytes = [0; 16];
        bytes[4..12].copy_from_slice(&half);
        duolog_log_core::ids::TopicId(bytes)
    }

    fn string(&mut self) -> Str {
        let texts = ["", "t", "group-1", "zwölf", "日本", &"x".repeat(200)];
        texts[self.below(texts.len() as u64)].into()
    }

    fn bytes(&mut self) -> Bytes {
        let sizes = [0, 1, 61, 127, 128, 129, 5000];
        let size = sizes[self.below(sizes.len() as u64)];
        vec![self.number() as u8; size].into()
    }

    fn array<T>(&mut self, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| element(self)).collect()
    }
}

include!(concat!(env!("OUT_DIR"), "/samples.rs"));
