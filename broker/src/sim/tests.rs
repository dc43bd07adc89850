use super::*;

fn replayed(args: &ReplayArgs) -> Vec<Value> {
    let mut out = Vec::new();
    replay(&mut out, args).expect("memory");
    let text = String::from_utf8(out).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_seed_is_told_as_json_lines() {
    let args = ReplayArgs { seed: Some(7), json: true, ..ReplayArgs::default() };
    let lines = replayed(&args);
    assert_eq!(lines[0]["seq"], 0);
    assert!(lines.iter().any(|line| line["kind"] == "leader.elect"));
    assert_eq!(lines.last().expect("an end")["seed"], 7);
    assert_eq!(lines, replayed(&args), "the same again");
}

#[test]
fn the_course_example_ends_each_scene_with_what_was_lost() {
    let case = Some(Case::HwTruncation);
    let args = ReplayArgs { case, json: true, ..ReplayArgs::default() };
    let lines = replayed(&args);
    let lost: Vec<_> = lines.iter().filter_map(|line| line["lost"].as_array()).collect();
    assert_eq!(lost.iter().map(|lost| lost.len()).collect::<Vec<_>>(), [3, 0, 3, 0]);
}

#[test]
fn an_unknown_fault_is_refused_with_the_known_ones() {
    let plant = Some("gremlins".to_owned());
    let args = ReplayArgs { plant, ..ReplayArgs::default() };
    let error = replay(&mut Vec::new(), &args).expect_err("no such fault");
    assert!(error.to_string().contains("forget-epochs"), "{error}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let error = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
    assert!(is_broken_pipe(&error));
    assert!(!is_broken_pipe(&anyhow::anyhow!("something else")));
}
