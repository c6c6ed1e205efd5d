//! `queue-discipline:eth0 = netem delay 10ms | fq | default`: how packets of a network device wait to be sent, by tc.
//!
//! Ours has a handle of its own, so that nobody else's is ever removed. A device that has neither ours nor the kernel's first choice
//! is left alone: what tc lists of it cannot be written back.

use std::path::PathBuf;

use perflab_model::Refusal;
use perflab_observe::Root;

use crate::child_command::run_command;
use crate::error::SettingError;
use crate::setting_file::{PresetFileState, expand_pattern};

/// The level at which a device has the kernel's first choice.
pub(crate) const DEFAULT: &str = "default";

/// What the kernel calls its own choices, and we ours.
const KERNELS_HANDLE: &str = "0:";
const OUR_HANDLE: &str = "7e1f:";

/// The root discipline of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueDiscipline {
    handle: String,
    /// Kind and options, as tc lists them: `netem limit 1000 delay 10ms`.
    pub(crate) words: String,
}

impl QueueDiscipline {
    /// # Errors
    /// There is no such device, or no tc.
    pub(crate) fn of_device(device: &str) -> Result<Self, SettingError> {
        let listed = run_command(&["tc", "qdisc", "show", "dev", device, "root"].map(str::to_owned))?;
        Ok(Self::from_line(listed.lines().next().unwrap_or_default()))
    }

    /// Of `qdisc netem 7e1f: root refcnt 2 limit 1000 delay 10ms`; of an empty line, as of a device that is down, the kernel's own.
    fn from_line(line: &str) -> Self {
        let mut words = line.split_whitespace().skip(1);
        let kind = words.next().unwrap_or("noop");
        let handle = words.next().unwrap_or(KERNELS_HANDLE).to_owned();
        let mut options = words.filter(|word| *word != "root").collect::<Vec<_>>();
        // What moves by itself is no option.
        for counter in ["refcnt", "direct_packets_stat"] {
            if let Some(place) = options.iter().position(|word| *word == counter) {
                options.drain(place..options.len().min(place + 2));
            }
        }
        QueueDiscipline { handle, words: [&[kind], &options[..]].concat().join(" ") }
    }

    /// Whether somebody else has made it.
    pub(crate) fn is_foreign(&self) -> bool {
        ![KERNELS_HANDLE, OUR_HANDLE].contains(&self.handle.as_str())
    }

    /// Refuses to touch one that somebody else has made.
    pub(crate) fn check_free(&self, name: &str) -> Result<(), SettingError> {
        let hint = match self.handle.as_str() {
            KERNELS_HANDLE => return Ok(()),
            OUR_HANDLE => {
                "perflab has made it: wait for that run, `perflab undo`, or `perflab tune --undo`".to_owned()
            }
            _ => "it could not be put back: name another device, or `tc qdisc del` it yourself".to_owned(),
        };
        let what = format!("{name}: the device has the queue discipline `{}`", self.words);
        Err(SettingError::Refused(Refusal { what, hint }))
    }
}

/// What a level has tc do.
fn parse_level(name: &str, level: &str) -> Result<Vec<String>, SettingError> {
    let words: Vec<String> = level.split_whitespace().map(str::to_owned).collect();
    let is_plain = |word: &String| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word.chars().all(|each| each.is_ascii_alphanumeric() || "_-.%/:".contains(each))
    };
    if words.is_empty() || !words.iter().all(is_plain) {
        let what = format!("{name}: `{level}` is no queue discipline");
        let hint =
            "write it as for tc, without `dev` and `root`: `netem delay 10ms`, `fq`; or `default`".into();
        return Err(SettingError::Refused(Refusal { what, hint }));
    }
    Ok(words)
}

/// Whether a level can be had here, as far as is known before; whether this kernel has the kind is not.
///
/// # Errors
/// Why not.
pub(crate) fn check_discipline(
    name: &str,
    device: &str,
    level: &str,
    root: &Root,
) -> Result<(), SettingError> {
    let refuse = |what: &str, hint: &str| {
        Err(SettingError::Refused(Refusal { what: format!("{name}: {what}"), hint: hint.into() }))
    };
    parse_level(name, level)?;
    if !root.is_host() {
        return refuse("only this machine's devices have one that can be set", "leave it out");
    }
    if !device_folder(device).exists() {
        return refuse("there is no such network device", "name one of /sys/class/net");
    }
    if !rustix::process::geteuid().is_root() {
        return refuse("only root may change it", "run as root, or leave it out");
    }
    QueueDiscipline::of_device(device)?.check_free(name)
}

/// Gives a device whose discipline is the kernel's the one of a level, and reads it back.
///
/// # Errors
/// tc refuses, or the kernel has made another one of it.
pub(crate) fn add_discipline(name: &str, device: &str, level: &str) -> Result<QueueDiscipline, SettingError> {
    let words = parse_level(name, level)?;
    let argv = ["tc", "qdisc", "add", "dev", device, "root", "handle", OUR_HANDLE].map(str::to_owned);
    run_command(&[&argv[..], &words[..]].concat())?;
    let now = QueueDiscipline::of_device(device)?;
    if now.handle == OUR_HANDLE {
        return Ok(now);
    }
    Err(SettingError::ValueAltered { path: device_folder(device), asked: level.into(), now: now.words })
}

/// Gives a device the kernel's own choice again, where it is there and still has ours.
///
/// # Errors
/// tc refuses.
pub(crate) fn remove_discipline(device: &str) -> Result<(), SettingError> {
    if !device_folder(device).exists() || QueueDiscipline::of_device(device)?.handle != OUR_HANDLE {
        return Ok(());
    }
    run_command(&["tc", "qdisc", "del", "dev", device, "root"].map(str::to_owned)).map(drop)
}

/// The folder of a device.
pub(crate) fn device_folder(device: &str) -> PathBuf {
    PathBuf::from("/sys/class/net").join(device)
}

/// What a device has, or all of them.
pub(crate) fn read_state(device: Option<&str>, root: &Root) -> Vec<PresetFileState> {
    if !root.is_host() {
        return Vec::new();
    }
    let pattern = device_folder(device.unwrap_or("*")).display().to_string();
    let state = |path: PathBuf| {
        let device = path.file_name()?.to_string_lossy().into_owned();
        let value = QueueDiscipline::of_device(&device).ok()?.words;
        Some(PresetFileState { path, level: Some(value.clone()), value: Some(value), offered: Vec::new() })
    };
    expand_pattern(&root.0, &pattern).into_iter().filter_map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tc_lists_is_a_kind_and_options() {
        let read = |line: &str| {
            let found = QueueDiscipline::from_line(line);
            (found.handle.clone(), found.words.clone(), found.check_free("q:eth0").is_ok())
        };
        let words = |handle: &str, words: &str, free: bool| (handle.to_owned(), words.to_owned(), free);
        // iproute2 6.1 on Linux 6.18.
        assert_eq!(
            read("qdisc tbf 8001: root refcnt 3 rate 100Mbit burst 4Kb lat 400ms "),
            words("8001:", "tbf rate 100Mbit burst 4Kb lat 400ms", false)
        );
        assert_eq!(
            read("qdisc htb 7e1f: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 20 direct_qlen 1000"),
            words("7e1f:", "htb r2q 10 default 0x1 direct_qlen 1000", false)
        );
        assert_eq!(read("qdisc noqueue 0: root refcnt 2 "), words("0:", "noqueue", true));
        assert_eq!(read(""), words("0:", "noop", true));
    }

    #[test]
    fn a_level_is_what_tc_takes_and_no_option_of_its_own() {
        for level in ["netem delay 10ms 2ms loss 0.1%", "fq", "tbf rate 1gbit burst 1540/8 latency 50ms"] {
            assert_eq!(parse_level("q", level).unwrap().len(), level.split(' ').count(), "{level}");
        }
        for level in ["", "  ", "-batch /tmp/x", "fq; reboot", "netem delay $(x)"] {
            assert!(matches!(parse_level("q", level), Err(SettingError::Refused(_))), "{level}");
        }
    }
}
