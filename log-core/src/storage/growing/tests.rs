use super::*;

#[test]
fn places_are_contiguous_over_chunk_ends() {
    let mut expected = (0, 0);
    for index in 0..100_000 {
        assert_eq!(place(index), expected, "{index}");
        expected.1 += 1;
        if expected.1 == FIRST_CHUNK << (2 * expected.0) {
            expected = (expected.0 + 1, 0);
        }
    }
}

#[test]
fn readers_see_a_prefix_while_the_owner_adds() {
    let list = GrowingList::new();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while seen < 20_000 {
                let len = list.len();
                assert!(len >= seen);
                for index in seen..len {
                    assert_eq!(list.get(index), Some(&(index * 7)));
                }
                seen = len;
            }
        });
        for value in 0..20_000 {
            assert!(list.push(value * 7));
        }
        reader.join().unwrap();
    });
    assert_eq!(list.get(20_000), None);
    assert_eq!(list.iter_from(19_998).collect::<Vec<_>>(), [139_986, 139_993]);
}
