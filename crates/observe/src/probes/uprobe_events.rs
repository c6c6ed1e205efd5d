//! Probes in the kernel's own list (`uprobe_events` of tracefs), for those with a condition: the kernel reads the
//! argument when a thread hits the probe, and a string with a bound.
//!
//! What a killed perflab left in the list (it costs nothing there) the next one takes out.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{ProbeError, ProbeSite};
use crate::io::tracefs::TraceFs;
use crate::process_owner::ProcessOwner;

/// How the names of our groups begin; the process follows.
const GROUP: &str = "perflab_";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The kernel's list.
#[derive(Debug, Clone)]
pub(crate) struct UprobeEvents {
    tracefs: TraceFs,
    list: PathBuf,
}

/// One of our probes in the list; taken out when it is dropped.
#[derive(Debug)]
pub(crate) struct DefinedProbe {
    /// What events of it are called.
    pub id: u64,
    list: PathBuf,
    name: String,
    _tracefs: TraceFs,
}

impl UprobeEvents {
    /// Finds it, and takes out what processes left there that are gone.
    pub(crate) fn find() -> Result<Self, ProbeError> {
        let tracefs =
            TraceFs::find().map_err(|source| ProbeError::NoConditions { reason: source.to_string() })?;
        let list = tracefs.path("uprobe_events");
        let left = fs::read_to_string(&list).unwrap_or_default();
        for name in left.lines().filter_map(find_abandoned_probe) {
            let _ = append_to_list(&list, &format!("-:{name}"));
        }
        Ok(Self { tracefs, list })
    }

    /// Puts a probe in, with what is to be fetched there (`arg2=+0(%r12):string`).
    pub(crate) fn define(
        &self,
        path: &Path,
        site: ProbeSite,
        fetched: &str,
    ) -> Result<DefinedProbe, ProbeError> {
        let wrong = |reason: String| ProbeError::NoConditions { reason };
        let text = path.to_str().filter(|text| !text.contains([' ', ':', '\n']));
        let text = text
            .ok_or_else(|| wrong(format!("{}: no blanks and colons may be in its path", path.display())))?;
        let (pid, owner) = (std::process::id(), ProcessOwner::current().join_fields('_'));
        // The kernel's profile has the name without its group: the name itself says which process owns it.
        let name = format!("{GROUP}{owner}/p{pid}_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let semaphore = site.semaphore.map_or(String::new(), |offset| format!("({offset:#x})"));
        let definition = format!("p:{name} {text}:{:#x}{semaphore} {fetched}", site.offset);
        let failed = |error: io::Error| wrong(format!("the kernel does not take `{definition}`: {error}"));
        append_to_list(&self.list, &definition).map_err(failed)?;
        let mut defined =
            DefinedProbe { id: 0, list: self.list.clone(), name, _tracefs: self.tracefs.clone() };
        let id = fs::read_to_string(self.tracefs.path(&format!("events/{}/id", defined.name)));
        defined.id = id.and_then(|id| id.trim().parse().map_err(io::Error::other)).map_err(failed)?;
        Ok(defined)
    }
}

/// How often threads came by these probes, whether or not they met the conditions.
pub(crate) fn count_probe_hits(probes: &[DefinedProbe]) -> u64 {
    let Some(list) = probes.first().map(|probe| probe.list.with_file_name("uprobe_profile")) else {
        return 0;
    };
    let text = fs::read_to_string(list).unwrap_or_default();
    let ours = |name: &str| {
        probes.iter().any(|probe| probe.name.split_once('/').is_some_and(|(_, own)| own == name))
    };
    let hits = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        words.next().filter(|name| ours(name))?;
        words.next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(hits).sum()
}

impl Drop for DefinedProbe {
    fn drop(&mut self) {
        let _ = append_to_list(&self.list, &format!("-:{}", self.name));
    }
}

/// Never anything but appended: a list that is opened for writing from its start loses all probes.
fn append_to_list(list: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(list)?.write_all(format!("{line}\n").as_bytes())
}

/// The name of one of our probes whose process is gone; a line is `p:GROUP/NAME PATH:OFFSET …`.
fn find_abandoned_probe(line: &str) -> Option<&str> {
    let name = line.strip_prefix("p:")?.split(' ').next()?;
    let group = name.strip_prefix(GROUP)?.split_once('/')?.0;
    ProcessOwner::parse(group.split('_'))?.is_gone().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::find_abandoned_probe;
    use crate::process_owner::ProcessOwner;

    #[test]
    fn only_ours_whose_process_is_gone_are_left_behind() {
        let own = ProcessOwner::current().join_fields('_');
        let gone = format!("perflab_9{own}/p3");
        assert_eq!(
            find_abandoned_probe(&format!("p:{gone} /usr/bin/python3.11:0xf20a1")),
            Some(gone.as_str())
        );
        assert_eq!(find_abandoned_probe(&format!("p:perflab_{own}/p0 /x:0x1")), None);
        for other in [
            "p:probe_libc/malloc /lib/libc.so.6:0x1",
            "r:perflab_1_2_3/p0 /x:0x1",
            "p:perflab_x/p0 /x:0x1",
            // Of a namespace that is unknown, and of a perflab that did not know its own.
            "p:perflab_1_2_0/p0 /x:0x1",
            "p:perflab_1_2/p0 /x:0x1",
            "",
        ] {
            assert_eq!(find_abandoned_probe(other), None, "{other}");
        }
    }
}
