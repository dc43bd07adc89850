//! What clippy cannot see: file sizes, line widths, open ends.

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
