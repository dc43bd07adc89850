//! `duolog`: arguments, then configuration, then run.

fn main() {}
