use super::*;

/// Decodes `body` as every message in every version.
fn decode_as_all(body: &Bytes) {
    for codec in MESSAGES {
        for version in codec.versions() {
            let _ = (codec.recode)(body, version);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        decode_as_all(&body.into());
    }

    #[test]
    fn damaged_messages_never_panic(
        seed: u64,
        damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4),
    ) {
        for codec in MESSAGES {
            for version in codec.versions() {
                let mut body = (codec.sample)(&mut Draw::new(seed), version).to_vec();
                for &(position, value) in &damage {
                    let len = body.len().max(1);
                    if let Some(byte) = body.get_mut(usize::from(position) % len) {
                        *byte = value;
                    }
                }
                let _ = (codec.recode)(&body.into(), version);
            }
        }
    }

    #[test]
    fn a_cut_message_is_refused(seed: u64, cut in 1_usize..40) {
        for codec in MESSAGES {
            for version in codec.versions() {
                let body = (codec.sample)(&mut Draw::new(seed), version);
                let kept = body.len().saturating_sub(cut);
                prop_assert!((codec.recode)(&body.slice(..kept), version).is_err() || body.is_empty());
            }
        }
    }

    #[test]
    fn bytes_after_the_message_are_refused(seed: u64) {
        for codec in MESSAGES {
            for version in codec.versions() {
                let mut body = (codec.sample)(&mut Draw::new(seed), version).to_vec();
                body.push(0);
                prop_assert_eq!(
                    (codec.recode)(&body.into(), version),
                    Err(DecodeError::Trailing { left: 1 }),
                    "{} v{}", codec.name, version
                );
            }
        }
    }
}
