//! The one place with `unsafe`: a file's content as memory.

use std::fs::File;
use std::io;

use bytes::Bytes;

/// Maps the whole of `file`, which nobody may cut or write to from then on.
///
/// A cut would turn a later access into SIGBUS, a write would change bytes behind a shared slice.
/// The callers map only what is final: index files of sealed segments, which are replaced by
/// another file under the same name, never changed in place.
pub(super) fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        // The system maps no empty file.
        return Ok(Bytes::new());
    }
    #[expect(unsafe_code, reason = "memory mapping has no safe form")]
    // SAFETY: the files given here are final, see above; other programs have no business in a data
    // folder that this process keeps locked.
    let mapping = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(mapping))
}
