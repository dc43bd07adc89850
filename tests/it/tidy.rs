//! What clippy cannot see: file sizes, open ends, numbers without a meaning.

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 800;

fn rust_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a readable folder").map(|entry| entry.expect("entry")) {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace root").to_owned()
}

#[test]
fn files_stay_small_and_closed() {
    let mut files = Vec::new();
    rust_files(&workspace(), &mut files);
    assert!(files.len() > 5, "the walk found the sources");
    let mut faults = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("UTF-8");
        if text.lines().count() > LINES_MAX {
            faults.push(format!("{}: more than {LINES_MAX} lines: split it", file.display()));
        }
        for (number, line) in text.lines().enumerate() {
            let open =
                ["TO", "FIX"].map(|word| [word, if word == "TO" { "DO" } else { "ME" }].concat());
            if open.iter().any(|word| line.contains(word.as_str())) {
                faults.push(format!("{}:{}: left open", file.display(), number + 1));
            }
            if line.contains(&["#[ign", "ore"].concat()) {
                faults.push(format!("{}:{}: a test that is skipped", file.display(), number + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A module that nobody names is not compiled, and its tests do not run.
#[test]
fn every_module_is_named_by_the_one_above() {
    let mut files = Vec::new();
    rust_files(&workspace(), &mut files);
    let roots = ["lib", "main", "mod", "build"];
    let mut lost = Vec::new();
    for file in files {
        let (name, folder) = (file.file_stem().expect("a name"), file.parent().expect("a folder"));
        let is_root = roots.iter().any(|root| name == *root);
        if is_root || folder.ends_with("examples") || folder.ends_with("benches") {
            continue;
        }
        let beside = roots.map(|root| folder.join(root).with_extension("rs"));
        let above = beside.into_iter().chain([folder.with_extension("rs")]);
        let words = format!("mod {};", name.to_string_lossy());
        let is_named = above
            .filter_map(|module| fs::read_to_string(module).ok())
            .any(|text| text.lines().any(|line| line.trim_end().ends_with(&words)));
        if !is_named {
            lost.push(file.display().to_string());
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// The numbers of cases in a line, as "case B75" or "fn b75_".
fn cases(line: &str) -> Vec<u32> {
    let number = |word: &str, mark| word.strip_prefix(mark).and_then(|digits| digits.parse().ok());
    let words = line.split(|character: char| !character.is_alphanumeric());
    if line.to_lowercase().contains("case") {
        return words.filter_map(|word| number(word, 'B')).collect();
    }
    let name = line.trim_start().split_once("fn ").map(|(_, name)| name);
    name.and_then(|name| number(name.split('_').next()?, 'b')).into_iter().collect()
}

/// Who reads a case's number must be able to look it up, and to find its test.
#[test]
fn cases_are_in_the_catalogue_and_the_catalogue_is_true() {
    assert_eq!(cases("/// Case B75, and B10."), [75, 10]);
    assert_eq!(cases("    fn b75_spoilt() {"), [75]);
    let catalogue = fs::read_to_string(workspace().join("docs/cases.md")).expect("the catalogue");
    let known: Vec<u32> = catalogue
        .lines()
        .filter_map(|line| line.strip_prefix("| B")?.split_once(' ')?.0.parse().ok())
        .collect();
    let mut files = Vec::new();
    rust_files(&workspace(), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).expect("UTF-8");
        let unknown: Vec<u32> =
            text.lines().flat_map(cases).filter(|case| !known.contains(case)).collect();
        assert!(
            unknown.is_empty(),
            "{}: cases {unknown:?} are not in docs/cases.md",
            file.display()
        );
    }
    let rows = catalogue.lines().filter(|line| line.starts_with("| B"));
    let places = rows
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .filter(|place| place.contains('/') && !workspace().join(place).exists());
    assert_eq!(places.collect::<Vec<_>>(), Vec::<&str>::new(), "tests that are not there");
}
