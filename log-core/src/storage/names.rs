//! The names of the files in a partition's folder: base offset in 20 digits, then what they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One kind of file that a segment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// Record batches.
    Log,
    /// Offset to position.
    OffsetIndex,
    /// Timestamp to offset.
    TimeIndex,
    /// Aborted transactions.
    TxnIndex,
    /// Producer state at the base offset.
    Snapshot,
    /// Append time to offset; see docs/formats.md.
    AppendTimeIndex,
    /// Tag codes; see docs/formats.md.
    TagIndex,
    /// Hashes of keys to offsets; see docs/formats.md.
    KeyIndex,
}

impl FileKind {
    /// Every kind, the log itself first.
    pub const ALL: [Self; 8] = [
        Self::Log,
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TxnIndex,
        Self::Snapshot,
        Self::AppendTimeIndex,
        Self::TagIndex,
        Self::KeyIndex,
    ];

    /// The part after the base offset.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TxnIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
            Self::AppendTimeIndex => ".appendtime",
            Self::TagIndex => ".tags",
            Self::KeyIndex => ".keys",
        }
    }
}

/// Put after the name of a file that is no longer part of the log and will be removed.
pub const DELETED_SUFFIX: &str = ".deleted";
/// Put after the name of a file that is being written, until it takes its final name.
pub const TEMPORARY_SUFFIX: &str = ".tmp";
/// Put after the names of what compaction is still writing.
pub const CLEANED_SUFFIX: &str = ".cleaned";
/// Put after the names of what compaction has written whole, while it takes the place of older segments.
pub const SWAP_SUFFIX: &str = ".swap";

/// What a name in a partition's folder says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// A file of the segment, or the snapshot, at this offset.
    Segment(FileKind, i64),
    /// Left over from a deletion or an unfinished write.
    Stray,
    /// Something else: a checkpoint, or not ours.
    Other,
}

/// Reads a file's name.
#[must_use]
pub fn parse(name: &str) -> FileName {
    let ends = |suffix: &&str| name.ends_with(*suffix);
    let strays = [DELETED_SUFFIX, TEMPORARY_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX];
    if strays.iter().any(ends) {
        return FileName::Stray;
    }
    match segment_file(name) {
        Some((kind, offset)) => FileName::Segment(kind, offset),
        None => FileName::Other,
    }
}

/// The file of a segment whose name is followed by `suffix`.
#[must_use]
pub fn parse_suffixed(name: &str, suffix: &str) -> Option<(FileKind, i64)> {
    segment_file(name.strip_suffix(suffix)?)
}

fn segment_file(name: &str) -> Option<(FileKind, i64)> {
    for kind in FileKind::ALL {
        let digits = name.strip_suffix(kind.suffix());
        let digits = digits.filter(|d| d.len() == 20 && d.bytes().all(|b| b.is_ascii_digit()));
        if let Some(offset) = digits.and_then(|digits| digits.parse().ok()) {
            return Some((kind, offset));
        }
    }
    None
}

/// The files of one segment.
#[derive(Clone, Debug)]
pub struct SegmentPaths {
    dir: Arc<Path>,
    base_offset: i64,
}

impl SegmentPaths {
    /// Those with this base offset in `dir`.
    #[must_use]
    pub const fn new(dir: Arc<Path>, base_offset: i64) -> Self {
        Self { dir, base_offset }
    }

    /// Where a file of this kind is.
    #[must_use]
    pub fn of(&self, kind: FileKind) -> PathBuf {
        self.dir.join(format!("{:020}{}", self.base_offset, kind.suffix()))
    }
}

/// `path` with `suffix` after its name.
#[must_use]
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
