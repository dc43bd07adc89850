//! What the machine says of itself.

use std::path::Path;

use crate::limits::{OPEN_FILES_MAX, OPEN_FILES_RESERVE, OPEN_FILES_SHARE};

/// Bytes of main memory, or of the part of it that this container may have; 0 where the system does not say.
pub fn memory_bytes() -> u64 {
    // "max", or no such file, where nothing bounds it.
    let bound = std::fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    let machine = machine_memory_bytes();
    bound.trim().parse().map_or(machine, |bound: u64| bound.min(machine))
}

fn machine_memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() * 1024
}

/// How the descriptors that a process may have are shared out, so that no kind takes all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Files of logs that stay open between calls.
    pub logs: usize,
    /// Connections of each protocol.
    pub connections: usize,
}

impl Descriptors {
    /// Shares out `limit` descriptors.
    pub fn of(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let logs = (limit / OPEN_FILES_SHARE).clamp(1, OPEN_FILES_MAX);
        let left = limit.saturating_sub(logs).saturating_sub(OPEN_FILES_RESERVE) / 2;
        Self { logs, connections: left.max(1) }
    }

    /// Shares out what the system gives this process, after asking for all of it.
    pub fn of_this_process() -> Self {
        Self::of(raise_open_files().unwrap_or_else(|error| {
            const ANYWHERE: u64 = 1024;
            tracing::warn!(%error, "cannot raise the bound of open files");
            ANYWHERE
        }))
    }
}

/// Raises the bound of open files to what the system allows this process at most, as a JVM does;
/// returns it.
///
/// Errors: the system refuses; the bound stays what it was.
fn raise_open_files() -> std::io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Sizes of a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// All of it.
    pub total: u64,
    /// What this process may still fill.
    pub usable: u64,
}

/// Sizes of the disk that `path` lies on; `None` where the system does not say.
pub fn disk_space(path: &Path) -> Option<DiskSpace> {
    let disk = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    Some(DiskSpace { total: bytes(disk.f_blocks), usable: bytes(disk.f_bavail) })
}

/// Used part of the disk that `path` lies on, 0 to 1; 0 where the system does not say.
pub fn disk_used_ratio(path: &Path) -> f64 {
    match rustix::fs::statvfs(path) {
        Ok(disk) if disk.f_blocks > 0 => 1.0 - disk.f_bfree as f64 / disk.f_blocks as f64,
        _ => 0.0,
    }
}

/// Bytes of the disk that holds `path`, all and unused; 0 where it cannot be asked.
pub fn disk_bytes(path: &Path) -> [u64; 2] {
    rustix::fs::statvfs(path).map_or([0; 2], |disk| {
        [disk.f_blocks, disk.f_bfree].map(|blocks| blocks.saturating_mul(disk.f_frsize))
    })
}

#[cfg(test)]
mod tests;
