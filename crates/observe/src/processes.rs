//! Threads, names and mappings of processes before a recording begins: records report only changes.

use perflab_stacks::{MappedFile, RecordedProcess};

use crate::root::Root;

/// All processes, or one.
pub(crate) fn list_processes(root: &Root, only: Option<i32>) -> Vec<RecordedProcess> {
    let all = || root.list("/proc").into_iter().filter_map(|name| name.parse().ok()).collect();
    let pids: Vec<i32> = only.map_or_else(all, |pid| vec![pid]);
    pids.into_iter().map(|pid| read_process(root, pid)).collect()
}

/// The threads of a process.
pub(crate) fn list_threads(root: &Root, pid: i32) -> Vec<i32> {
    root.list(&format!("/proc/{pid}/task")).into_iter().filter_map(|name| name.parse().ok()).collect()
}

/// A process that has ended in the meantime has neither threads nor mappings.
fn read_process(root: &Root, pid: i32) -> RecordedProcess {
    let name = |tid: i32| Some((tid, root.read(&format!("/proc/{pid}/task/{tid}/comm")).ok()?));
    let maps = root.read(&format!("/proc/{pid}/maps")).unwrap_or_default();
    RecordedProcess {
        pid,
        threads: list_threads(root, pid).into_iter().filter_map(name).collect(),
        files: maps.lines().filter_map(parse_maps_line).collect(),
    }
}

/// A line `begin-end r-xp offset device inode path`, where it is code.
fn parse_maps_line(line: &str) -> Option<MappedFile> {
    let mut parts = line.splitn(6, ' ');
    let (begin, end) = parts.next()?.split_once('-')?;
    if !parts.next()?.contains('x') {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end, offset) = (hex(begin)?, hex(end)?, hex(parts.next()?)?);
    let path = parts.nth(2).unwrap_or_default().trim();
    let path = if path.is_empty() { "//anon" } else { path };
    Some(MappedFile { start, length: end.checked_sub(start)?, offset, path: path.into() })
}

/// Whether tasks have the numbers here that the kernel itself gives them (`PROC_PID_INIT_INO` in include/linux/proc_ns.h).
pub(crate) fn is_in_first_pid_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_from_maps_and_data_is_not() {
        let line = "55d0c000-55d0d000 r-xp 00001000 fe:00 123                    /usr/bin/my tool (deleted)";
        let found = parse_maps_line(line).unwrap();
        let wanted = (0x55d0c000, 0x1000, 0x1000, "/usr/bin/my tool (deleted)");
        assert_eq!((found.start, found.length, found.offset, found.path.as_str()), wanted);
        assert_eq!(parse_maps_line("7f00-7f10 rw-p 00000000 00:00 0"), None);
        assert_eq!(parse_maps_line("7f00-7f10 r-xp 00000000 00:00 0 ").unwrap().path, "//anon");
        assert_eq!(parse_maps_line("rubbish"), None);
    }
}
