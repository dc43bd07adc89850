use super::*;

#[test]
fn rates_are_averages_of_their_span() {
    let mut samples = Samples::default();
    assert_eq!(samples.per_second(10), [0.0, 0.0]);
    for second in 0..700_u64 {
        samples.add([second * 5, second * second], 0);
    }
    assert_eq!(samples.totals.len(), 601);
    assert_eq!(samples.per_second(10), [5.0, 1388.0]);
    assert_eq!(samples.per_second(600)[0], 5.0);
}

#[test]
fn a_new_day_moves_the_mornings_on() {
    let mut samples = Samples::default();
    samples.add([1, 1], 0);
    samples.add([5, 2], DAY_MS);
    samples.add([9, 3], 2 * DAY_MS + 1);
    assert_eq!(samples.mornings, [[5, 2], [9, 3]]);
}
