use super::*;

#[test]
fn descriptors_are_shared_out_and_never_more_than_there_are() {
    for (limit, logs, connections) in
        [(20_000, OPEN_FILES_MAX, 9_616), (1024, 512, 192), (300, 150, 11), (0, 1, 1)]
    {
        assert_eq!(Descriptors::of(limit), Descriptors { logs, connections }, "{limit}");
    }
    for limit in 256..5000 {
        let Descriptors { logs, connections } = Descriptors::of(limit);
        let all = logs + 2 * connections + OPEN_FILES_RESERVE;
        assert!(all as u64 <= limit + 2, "{limit}");
    }
}
