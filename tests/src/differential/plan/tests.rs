use super::*;

#[test]
fn a_seed_alone_gives_the_plan_and_a_line_gives_the_step() {
    let plan = steps(7, 400);
    assert_eq!(plan, steps(7, 400));
    assert_ne!(plan, steps(8, 400));
    for step in plan {
        assert_eq!(step.to_string().parse::<Step>().expect("a step"), step);
    }
}
