use super::*;

#[test]
fn names_are_read_as_they_are_written() {
    let paths = SegmentPaths::new(Path::new("/d").into(), 4991);
    for kind in FileKind::ALL {
        let path = paths.of(kind);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(parse(name), FileName::Segment(kind, 4991));
    }
    assert_eq!(paths.of(FileKind::Log), Path::new("/d/00000000000000004991.log"));
    let largest = SegmentPaths::new(Path::new("").into(), i64::MAX);
    assert_eq!(largest.of(FileKind::Log), Path::new("09223372036854775807.log"));
}

#[test]
fn foreign_names_are_left_alone_and_leftovers_known() {
    for (name, expected) in [
        ("00000000000000000000.log.deleted", FileName::Stray),
        ("leader-epoch-checkpoint.tmp", FileName::Stray),
        ("00000000000000000000.log.cleaned", FileName::Stray),
        ("00000000000000000000.log.swap", FileName::Stray),
        ("leader-epoch-checkpoint", FileName::Other),
        ("partition.metadata", FileName::Other),
        ("0.log", FileName::Other),
        ("0000000000000000000a.log", FileName::Other),
        ("-0000000000000000001.log", FileName::Other),
        ("99999999999999999999.log", FileName::Other),
        ("00000000000000000007.timeindex", FileName::Segment(FileKind::TimeIndex, 7)),
        ("", FileName::Other),
    ] {
        assert_eq!(parse(name), expected, "{name}");
    }
}
