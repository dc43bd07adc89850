use super::*;

#[test]
fn uuids_are_of_version_4_and_differ() {
    let ids: std::collections::BTreeSet<_> =
        (0..200).map(|_| uuid().expect("random bytes")).collect();
    assert_eq!(ids.len(), 200);
    for id in ids {
        assert_eq!((id.0[6] >> 4, id.0[8] >> 6), (4, 2));
        assert!(!id.to_string().starts_with('-'));
    }
}
