use super::*;

#[test]
fn the_table_has_a_request_and_a_response_of_every_key() {
    assert_eq!(MESSAGES.len(), 2 * ApiKey::ALL.len());
    for &api_key in ApiKey::ALL {
        assert_eq!(ApiKey::from_code(api_key as i16), Some(api_key));
        for kind in [Kind::Request, Kind::Response] {
            let of_kind = |codec: &&Codec| codec.api_key == api_key && codec.kind == kind;
            assert_eq!(MESSAGES.iter().filter(of_kind).count(), 1, "{api_key:?} {kind:?}");
        }
    }
    assert_eq!(ApiKey::from_code(i16::MAX), None);
    assert_eq!(ApiKey::from_code(-1), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_version_reads_back_what_it_wrote(seed: u64) {
        for codec in MESSAGES {
            for version in codec.versions() {
                (codec.check_round_trip)(&mut Draw::new(seed), version);
            }
        }
    }
}
