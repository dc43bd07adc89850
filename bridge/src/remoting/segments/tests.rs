use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Slice(Vec<u8>),
    Shared(Vec<u8>),
    Append(Vec<Vec<u8>>),
    Truncate(usize),
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let small = proptest::collection::vec(any::<u8>(), 0..20);
    let large = any::<u8>().prop_map(|byte| vec![byte; SHARED_SEGMENT_BYTES_MIN + 7]);
    prop_oneof![small, large]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        bytes().prop_map(Step::Slice),
        bytes().prop_map(Step::Shared),
        proptest::collection::vec(bytes(), 0..3).prop_map(Step::Append),
        (0..20_000_usize).prop_map(Step::Truncate),
    ]
}

fn run(steps: Vec<Step>) -> (SegmentedOut, Vec<u8>) {
    let (mut out, mut model) = (SegmentedOut::default(), Vec::new());
    for step in steps {
        match step {
            Step::Slice(bytes) => {
                out.put_slice(&bytes);
                model.extend(bytes);
            }
            Step::Shared(bytes) => {
                model.extend_from_slice(&bytes);
                out.put_shared(Bytes::from(bytes));
            }
            Step::Append(pieces) => {
                let mut other = SegmentedOut::default();
                for piece in pieces {
                    model.extend_from_slice(&piece);
                    other.put_shared(Bytes::from(piece));
                }
                out.append(other);
            }
            Step::Truncate(length) => {
                out.truncate(length);
                model.truncate(length);
            }
        }
        assert_eq!(out.len(), model.len());
    }
    (out, model)
}

proptest! {
    #[test]
    fn it_is_the_concatenation_of_its_pieces(
        steps in proptest::collection::vec(step(), 0..12),
        advances in proptest::collection::vec(0..5000_usize, 0..8),
    ) {
        let (mut out, mut model) = run(steps);
        for advance in advances {
            let count = advance.min(model.len());
            out.advance(count);
            model.drain(..count);
            prop_assert_eq!(out.remaining(), model.len());
            let mut slices = [IoSlice::new(b""); 32];
            let filled = out.chunks_vectored(&mut slices);
            let vectored: Vec<u8> =
                slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            prop_assert!(model.starts_with(&vectored));
            prop_assert_eq!(filled == 0, model.is_empty());
        }
        prop_assert_eq!(Vec::from(out.clone().into_segments()).concat(), model.clone());
        prop_assert_eq!(out.into_bytes(), model);
    }
}

#[test]
fn a_part_of_another_buffer_is_copied() {
    let region = Bytes::from(vec![1; 10_000]);
    let foreign = vec![2; 10_000];
    let mut out = SegmentedOut::default();
    out.put_part(Some(&region), &foreign);
    out.put_part(None, &region);
    assert_eq!(out.into_segments().len(), 1);
}
