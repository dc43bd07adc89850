//! What the machine says of itself.

use std::path::Path;

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

/// Raises the bound of open files to what the system allows this process at most, as a JVM does;
/// returns it.
///
/// Errors: the system refuses; the bound stays what it was.
pub fn raise_open_files() -> std::io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Used part of the disk that `path` lies on, 0 to 1; 0 where the system does not say.
pub fn disk_used_ratio(path: &Path) -> f64 {
    match rustix::fs::statvfs(path) {
        Ok(disk) if disk.f_blocks > 0 => 1.0 - disk.f_bfree as f64 / disk.f_blocks as f64,
        _ => 0.0,
    }
}
