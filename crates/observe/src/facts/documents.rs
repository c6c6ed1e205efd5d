//! Documents: all tunables, and the kernel's configuration as it is.
//!
//! Nothing in them is waited for, and each is bounded. What identifies a machine or protects it is left out.

use perflab_formats::kernel::sysctl::{append_sysctl_lines, sysctl_name};
use perflab_model::FactDocument;

use crate::error::ObserveError;
use crate::facts::families::find_fact_family;
use crate::facts::kernel::read_kernel_config;
use crate::root::Root;

/// Reads the documents of the families of facts that a study asks for, or of all: `sysctl` and `kernel` have one.
///
/// # Errors
/// [`ObserveError::Unknown`] with the nearest name, where a family is none of ours.
pub fn collect_fact_documents(
    root: &Root,
    families: Option<&[String]>,
) -> Result<Vec<FactDocument>, ObserveError> {
    families.into_iter().flatten().try_for_each(|name| find_fact_family(name).map(drop))?;
    let is_wanted = |family: &str| families.is_none_or(|names| names.iter().any(|name| name == family));
    let tunables = is_wanted("sysctl").then(|| read_tunables(root)).flatten();
    let options = is_wanted("kernel").then(|| read_configuration(root)).flatten();
    Ok(tunables.into_iter().chain(options).collect())
}

fn read_configuration(root: &Root) -> Option<FactDocument> {
    let (text, source) = read_kernel_config(root)?;
    (text.len() <= FactDocument::LONGEST).then(|| make_document(FactDocument::KERNEL_CONFIG, &source, text))
}

fn make_document(name: &str, source: &str, text: String) -> FactDocument {
    FactDocument { name: name.into(), source: source.into(), text }
}

const TUNABLES: &str = "/proc/sys";

/// Tunables that are secret, or tell one machine from all others: its name, keys, ids (random(4),
/// Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl). The end of a path, or a folder.
const PRIVATE: &[&str] = &[
    "kernel/hostname",
    "kernel/domainname",
    "kernel/random/",
    "net/ipv4/tcp_fastopen_key",
    "net/core/netdev_rss_key",
    "/stable_secret",
];

/// What does something when it is read: it gathers statistics of all CPUs, it mounts, it complains in the kernel's log (of the last
/// two `ndisc_warn_deprecated_sysctl` does, in net/ipv6/ndisc.c; they are `base_reachable_time_ms` and `retrans_time_ms` too).
const ACTING: &[&str] =
    &["vm/stat_refresh", "fs/binfmt_misc/", "vm/nr_pdflush_threads", "/base_reachable_time", "/retrans_time"];

/// The tree is no deeper than this.
const DEEPEST: usize = 12;

/// Files that are looked at: a machine with a thousand interfaces has some 100,000, which are more than are kept.
const MOST_FILES: usize = 20_000;

/// Bytes of the longest value: the kernel writes a page at most.
const LONGEST_VALUE: u64 = 4096;

/// Bytes of all values; what comes later is left out.
const LONGEST_LIST: usize = FactDocument::LONGEST / 2;

/// The tree as it is read.
struct TunableList<'a> {
    root: &'a Root,
    text: String,
    files: usize,
    /// How many there was no room for.
    left_out: usize,
}

fn read_tunables(root: &Root) -> Option<FactDocument> {
    let mut list = TunableList { root, text: String::new(), files: 0, left_out: 0 };
    list.read_folder("", DEEPEST);
    if list.text.is_empty() {
        return None;
    }
    if list.left_out > 0 {
        list.text.push_str(&format!("# {} more are left out: there are too many\n", list.left_out));
    }
    Some(make_document(FactDocument::SYSCTL, TUNABLES, list.text))
}

impl TunableList<'_> {
    /// Reads the folder at `path` below /proc/sys, which ends in `/` unless it is empty.
    fn read_folder(&mut self, path: &str, deeper: usize) {
        for (name, is_folder) in list_entries(self.root, &format!("{TUNABLES}/{path}")) {
            let is_listed =
                |known: &&str, path: &str| path == *known || (known.contains('/') && path.ends_with(*known));
            if is_folder {
                let below = format!("{path}{name}/");
                let is_skipped = PRIVATE.iter().chain(ACTING).any(|known| below == *known);
                if deeper > 0 && !is_skipped {
                    self.read_folder(&below, deeper - 1);
                }
            } else {
                let file = format!("{path}{name}");
                if !PRIVATE.iter().chain(ACTING).any(|known| is_listed(known, &file)) {
                    self.read_file(&file);
                }
            }
        }
    }

    fn read_file(&mut self, path: &str) {
        self.files += 1;
        if self.files > MOST_FILES || self.text.len() > LONGEST_LIST {
            self.left_out += 1;
            return;
        }
        // One that cannot be read or is none is not a tunable.
        if let Ok(value) = self.root.read_at_most(&format!("{TUNABLES}/{path}"), LONGEST_VALUE) {
            append_sysctl_lines(&sysctl_name(path), &value, &mut self.text);
        }
    }
}

/// The files and folders in a folder, sorted, and which are folders; links are neither.
fn list_entries(root: &Root, path: &str) -> Vec<(String, bool)> {
    let entries = std::fs::read_dir(root.path(path)).into_iter().flatten().flatten();
    let entry = |entry: std::fs::DirEntry| {
        let kind = entry.file_type().ok().filter(|kind| kind.is_dir() || kind.is_file())?;
        Some((entry.file_name().into_string().ok()?, kind.is_dir()))
    };
    let mut found: Vec<(String, bool)> = entries.filter_map(entry).collect();
    found.sort();
    found
}
