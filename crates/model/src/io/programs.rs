//! Names of threads over time: by the program that each started last, by the name with which it ended, by what else a tracer
//! tells.

use std::collections::HashMap;

use super::{IoEventKind, IoRecording};
use crate::Nanos;

/// The names of all threads of a recording.
#[derive(Debug, Clone, Default)]
pub struct ThreadNames<'a> {
    /// starts of programs, in the order of time
    started: HashMap<i32, Vec<(Nanos, &'a str)>>,
    named: HashMap<i32, &'a str>,
}

impl<'a> ThreadNames<'a> {
    /// Collects them.
    pub fn from_recording(recording: &'a IoRecording) -> Self {
        let mut all = ThreadNames::default();
        let told = recording.told.names.iter();
        all.named.extend(told.map(|(pid, name)| (*pid, name.as_str())));
        for event in &recording.events {
            let Some(name) = event.name.as_deref() else { continue };
            match event.kind {
                IoEventKind::Exec => {
                    all.started.entry(event.pid).or_default().push((event.at, base_name(name)))
                }
                IoEventKind::Exit => drop(all.named.insert(event.pid, name)),
                _ => {}
            }
        }
        all
    }

    /// The name of a thread at a time; none where nothing told it.
    pub fn name_at(&self, pid: i32, at: Nanos) -> Option<&'a str> {
        let started = self.started.get(&pid);
        let last = started.and_then(|all| all.iter().rev().find(|(since, _)| *since <= at));
        last.map(|(_, name)| *name).or_else(|| self.named.get(&pid).copied())
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{DeviceNumber, IoEvent, IoTraceSummary};

    #[test]
    fn a_thread_has_the_name_of_what_it_started_last() {
        let event = |at, pid, kind, name: &str| IoEvent {
            at: Nanos(at),
            pid,
            kind,
            device: DeviceNumber::default(),
            inode: 0,
            first: 0,
            count: 0,
            name: Some(name.into()),
        };
        let recording = IoRecording {
            events: vec![
                event(5, 1, IoEventKind::Exec, "/bin/sh"),
                event(9, 1, IoEventKind::Exec, "/usr/bin/git"),
                event(12, 2, IoEventKind::Exit, "worker"),
                event(13, 1, IoEventKind::Exit, "git"),
            ],
            told: IoTraceSummary { names: [(3, "kjournald".into())].into(), ..IoTraceSummary::default() },
            ..IoRecording::default()
        };
        let programs = ThreadNames::from_recording(&recording);
        let name = |pid, at| programs.name_at(pid, Nanos(at));
        assert_eq!([name(1, 6), name(1, 9)], [Some("sh"), Some("git")]);
        assert_eq!([name(2, 1), name(3, 1), name(4, 1)], [Some("worker"), Some("kjournald"), None]);
    }
}
