//! Which process owns a kernel object that all PID namespaces share: by its pid, the time of its start, and the PID
//! namespace in which the pid counts.
//!
//! The question is when that process is certainly gone: about another namespace's, nothing is guessed.

use std::collections::BTreeSet;
use std::fs;

use perflab_formats::kernel::process::ProcessStat;

/// The inode of the machine's own PID namespace: from it, every process is seen.
const FIRST_NAMESPACE: u64 = 0xefff_fffc;

/// A process, named beyond its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessOwner {
    pid: u32,
    /// in ticks after boot
    started: u64,
    /// the inode of its PID namespace; 0 where /proc does not have it
    namespace: u64,
}

impl ProcessOwner {
    /// This process.
    pub(crate) fn current() -> Self {
        let pid = std::process::id();
        let started = read_start_time("self").unwrap_or_default();
        ProcessOwner { pid, started, namespace: read_own_namespace().unwrap_or_default() }
    }

    /// From the first three words of: number, start, namespace.
    pub(crate) fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let [pid, started, namespace] = [words.next()?, words.next()?, words.next()?];
        Some(ProcessOwner {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
            namespace: namespace.parse().ok()?,
        })
    }

    /// Whether the process is gone for certain.
    pub(crate) fn is_gone(&self) -> bool {
        let Some(own) = read_own_namespace().filter(|_| self.namespace != 0) else { return false };
        match self.namespace == own {
            true => read_start_time(&self.pid.to_string()) != Some(self.started),
            false => own == FIRST_NAMESPACE && is_namespace_empty(self.namespace),
        }
    }

    /// The three words, with something between them.
    pub(crate) fn join_fields(&self, between: char) -> String {
        format!("{}{between}{}{between}{}", self.pid, self.started, self.namespace)
    }
}

/// The inode of this process's PID namespace; none where /proc is of another one, so that numbers in it are not ours.
fn read_own_namespace() -> Option<u64> {
    let is_ours = u32::try_from(read_stat("self")?.pid) == Ok(std::process::id());
    is_ours.then(|| read_namespace("self"))?
}

fn read_namespace(process: &str) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{process}/ns/pid")).ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether no process is in a namespace; `false` where one cannot be looked at.
fn is_namespace_empty(wanted: u64) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    // The first process is in the first namespace, and may be unreadable.
    let pids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && name != "1");
    let found = pids.filter_map(|pid| match read_namespace(&pid) {
        // It is in none any more.
        None if has_process_ended(&pid) => None,
        found => Some(found),
    });
    let found: BTreeSet<Option<u64>> = found.collect();
    !found.contains(&Some(wanted)) && !found.contains(&None)
}

fn has_process_ended(process: &str) -> bool {
    read_stat(process).is_none_or(|stat| !stat.is_alive())
}

/// When a process began, in ticks since the boot; none of one that is gone.
fn read_start_time(process: &str) -> Option<u64> {
    Some(read_stat(process)?.started)
}

fn read_stat(process: &str) -> Option<ProcessStat> {
    ProcessStat::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_the_own_namespace_is_known_to_be_gone() {
        let own = ProcessOwner::current();
        assert!(!own.is_gone() && own.namespace != 0 && own.started != 0);
        let later = ProcessOwner { started: own.started + 1, ..own };
        assert!(later.is_gone(), "the number is there again, and another process");
        let unknown = ProcessOwner { pid: 4_194_304, namespace: 0, ..own };
        assert!(!unknown.is_gone(), "nothing tells where its number counts");
        let parsed = ProcessOwner::parse(own.join_fields('-').split('-'));
        assert_eq!(parsed, Some(own));
        assert_eq!(ProcessOwner::parse("1-2-pages-0".split('-')), None, "written by an older perflab");
    }

    #[test]
    fn a_namespace_with_a_process_is_not_gone_root() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut inside = std::process::Command::new("unshare");
        let inside = inside.args(["--pid", "--fork", "--kill-child", "sh", "-c", "echo; read x"]);
        inside.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut inside = inside.spawn().unwrap();
        let mut line = [0];
        std::io::Read::read_exact(inside.stdout.as_mut().unwrap(), &mut line).unwrap();
        let children = format!("/proc/{0}/task/{0}/children", inside.id());
        let child = fs::read_to_string(children).unwrap().trim().to_owned();
        let owner = ProcessOwner { pid: 1, started: 0, namespace: read_namespace(&child).unwrap() };
        assert!(owner.namespace != read_own_namespace().unwrap());
        assert!(!owner.is_gone(), "its number 1 is not ours");
        drop(inside.stdin.take());
        inside.wait().unwrap();
        if read_own_namespace() != Some(FIRST_NAMESPACE) {
            // From another namespace, one that is not seen may be there all the same.
            return assert!(!owner.is_gone());
        }
        // Some process may be on its way out, and report nothing at the moment.
        let begun = std::time::Instant::now();
        while !owner.is_gone() {
            assert!(begun.elapsed().as_secs() < 60, "nobody is in it any more");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
