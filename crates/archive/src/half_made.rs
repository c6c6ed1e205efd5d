//! Folders under `runs/` that are no runs yet, or no more: being made, unpacked, tried or removed.
//!
//! Whoever is killed leaves them behind, so their names tell who made them, and with it when nobody works on them any
//! more.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::run_layout::{self, LOCK};

/// How their names begin.
pub(crate) const HALF: &str = ".half-";

/// How those begin that tell who makes them.
const BY_PERFLAB: &str = ".half-perflab-";

/// How long a folder of an unknown maker may be there without a lock.
const UNLOCKED: Duration = Duration::from_secs(10);

/// How the names of what this process makes begin: its number, and where that number means it.
pub(crate) fn own_name_prefix() -> String {
    format!("{BY_PERFLAB}{}-{}-", std::process::id(), read_pid_scope().unwrap_or_default())
}

/// Where the numbers of processes mean what they mean here: a boot of a machine, and a PID namespace there. Another machine, or a
/// container, may share the archive. Nothing where that is not known.
fn read_pid_scope() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let namespace: String = namespace.to_str()?.chars().filter(char::is_ascii_digit).collect();
    Some(format!("{}.{namespace}", boot.get(..8)?))
}

/// Whether the process that makes it is gone; `None` where its name does not tell.
fn is_maker_gone(name: &str) -> Option<bool> {
    let mut parts = name.strip_prefix(BY_PERFLAB)?.splitn(3, '-');
    let (pid, space): (u32, &str) = (parts.next()?.parse().ok()?, parts.next()?);
    (Some(space) == read_pid_scope().as_deref()).then(|| !is_process_alive(pid))
}

/// One that nobody has reaped yet is dead.
fn is_process_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X' | 'x'))
}

/// Whether nobody makes or removes this any more. Who has only just made a folder may not have come to lock it.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let changed = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let is_old = || changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > UNLOCKED));
    let is_left = || match is_maker_gone(&name) {
        Some(true) => true,
        // Another process may have its number by now.
        Some(false) => is_old(),
        None => path.join(LOCK).exists() || is_old(),
    };
    name.starts_with(HALF) && !run_layout::is_run_live(path) && is_left()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_who_makes_it_and_where_that_number_means_it() {
        assert_eq!(is_maker_gone(&format!("{}x", own_name_prefix())), Some(false));
        let space = read_pid_scope().unwrap();
        assert_eq!(is_maker_gone(&format!("{BY_PERFLAB}4294967295-{space}-x")), Some(true));
        assert_eq!(is_maker_gone(&format!("{BY_PERFLAB}4294967295-deadbeef.1-x")), None, "another machine's");
        assert_eq!(is_maker_gone(".half-01M86D3BNFDJPTHCANQJZN3H5V"), None);
    }
}
