use super::java_double;

#[test]
fn doubles_are_read_as_java_reads_them() {
    let read = [
        ("5", 5.0),
        (" -5.5\t", -5.5),
        ("+.5e1", 5.0),
        ("5.", 5.0),
        ("5d", 5.0),
        ("5.F", 5.0),
        ("Infinity", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("1e400", f64::INFINITY),
    ];
    for (text, expected) in read {
        assert_eq!(java_double(text), Some(expected), "{text}");
    }
    assert!(java_double("-NaN").is_some_and(|nan| nan.is_nan() && nan.is_sign_positive()));
    for text in ["", " ", "+", "--5", "nan", "inf", "infinity", "5x", "5e", "d", ".", "1_0", "5 5"]
    {
        assert_eq!(java_double(text), None, "{text}");
    }
}
