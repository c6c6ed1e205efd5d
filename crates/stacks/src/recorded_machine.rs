//! Whether a profile is of this machine, and which symbols may be used for it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::imported_profile::ProfileBuilder;
use crate::kernel_symbols::KernelSymbols;
use crate::recorded_files::{RecordedFiles, are_one_build_id};
use crate::stack_converter::SymbolSources;

/// What is read of a profile, and where the symbols of its kernel are.
#[derive(Debug, Clone, Default)]
pub struct SymbolOptions {
    /// Which event of a perf.data with several is read; all together where left out.
    pub event: Option<String>,
    /// A copy of the recorded machine's /proc/kallsyms; this machine's where left out and the same kernel.
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel with debug information, for inlined functions; an installed one where left out.
    pub vmlinux: Option<PathBuf>,
    /// A folder with a copy of the recorded machine's files; this machine's are not looked at then.
    pub symfs: Option<PathBuf>,
    /// Kernel symbols to look up whether or not a sample hit them; normalised names.
    pub anchors: Vec<String>,
}

/// What identifies a machine and its kernel; empty where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordedMachine {
    pub(crate) release: String,
    pub(crate) arch: String,
    pub(crate) host: String,
    pub(crate) kernel_build_id: Vec<u8>,
}

impl RecordedMachine {
    /// This one.
    fn this_machine() -> RecordedMachine {
        let text = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        RecordedMachine {
            release: text("/proc/sys/kernel/osrelease"),
            arch: std::env::consts::ARCH.into(),
            host: text("/proc/sys/kernel/hostname"),
            kernel_build_id: parse_build_id(&fs::read("/sys/kernel/notes").unwrap_or_default()),
        }
    }

    fn is_identified(&self) -> bool {
        !self.release.is_empty() || !self.kernel_build_id.is_empty()
    }

    /// Whether both run the same kernel: its build id says so, else its release and architecture.
    fn has_kernel_of(&self, other: &RecordedMachine) -> bool {
        if !self.kernel_build_id.is_empty() && !other.kernel_build_id.is_empty() {
            return are_one_build_id(&self.kernel_build_id, &other.kernel_build_id);
        }
        self.release == other.release && self.arch == other.arch
    }
}

/// The GNU build id in a text of the form of /sys/kernel/notes; empty where there is none.
pub fn parse_build_id(notes: &[u8]) -> Vec<u8> {
    let word = |at: usize| {
        let raw = notes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(raw) as usize)
    };
    let mut at = 0;
    while let (Some(name), Some(size), Some(kind)) = (word(at), word(at + 4), word(at + 8)) {
        let begin = at + 12 + name.next_multiple_of(4);
        if kind == 3 && notes.get(at + 12..at + 16) == Some(b"GNU\0") {
            return notes.get(begin..begin + size).unwrap_or_default().to_vec();
        }
        at = begin + size.next_multiple_of(4);
    }
    Vec::new()
}

/// The symbols to use for a profile of `recorded`; an error is a reason. What has to stay without names is noted.
pub(crate) fn choose_symbols(
    recorded: &RecordedMachine,
    options: &SymbolOptions,
    reading: &mut ProfileBuilder,
) -> Result<SymbolSources, String> {
    let here = RecordedMachine::this_machine();
    let is_same = recorded.is_identified() && recorded.has_kernel_of(&here);
    let is_here =
        !recorded.is_identified() || (is_same && (recorded.host.is_empty() || recorded.host == here.host));
    let files = match &options.symfs {
        Some(root) => Some(
            RecordedFiles::copied_to(root).map_err(|error| {
                format!(
                    "--symfs {}: {error}; name the folder below which the recorded machine's files lie by their paths",
                    root.display()
                )
            })?,
        ),
        None => is_here.then(|| RecordedFiles::of_this_machine_at(reading.recorded)),
    };
    if let Some(path) = &options.kallsyms {
        let kernel = Some(with_installed_vmlinux(
            read_given_kallsyms(path)?,
            options,
            files.as_ref(),
            &recorded.release,
        ));
        return Ok(SymbolSources { kernel, kernel_distance: 0, files, is_certain: true });
    }
    if recorded.is_identified() && !is_same {
        reading.add_note(
            format!(
                "recorded on kernel {} ({}), this is {} ({}): kernel functions have no names",
                recorded.release, recorded.arch, here.release, here.arch
            ),
            match files {
                Some(_) => "copy /proc/kallsyms of that machine (as root) and give it as --kallsyms FILE",
                None => {
                    "copy /proc/kallsyms of that machine (as root) and give it as --kallsyms FILE; programs' names are \
                     left out too, as their files may be other ones here: give a copy of them as --symfs DIR"
                }
            },
        );
        return Ok(SymbolSources { files, ..SymbolSources::default() });
    }
    if !recorded.is_identified() {
        reading.add_note(
            "the file does not say which machine it is of; its names are this machine's where the kernel lay at the \
             same address",
            "give --kallsyms FILE if they are missing or wrong",
        );
    }
    let kernel = running_kernel_symbols(reading)
        .map(|kernel| with_installed_vmlinux(kernel, options, files.as_ref(), &here.release));
    Ok(SymbolSources { kernel, kernel_distance: 0, files, is_certain: is_same })
}

fn read_given_kallsyms(path: &Path) -> Result<KernelSymbols, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("--kallsyms {}: {error}", path.display()))?;
    KernelSymbols::parse(text).map_err(|error| format!("--kallsyms {}: {error}", path.display()))
}

fn running_kernel_symbols(reading: &mut ProfileBuilder) -> Option<KernelSymbols> {
    let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let parsed = KernelSymbols::parse(text);
    if let Err(error) = &parsed {
        reading
            .add_note(format!("kernel functions have no names: /proc/kallsyms: {error}"), "import as root");
    }
    parsed.ok()
}

/// This machine's kernel with an installed vmlinux of it.
pub(crate) fn with_own_vmlinux(kernel: KernelSymbols) -> KernelSymbols {
    with_installed_vmlinux(kernel, &SymbolOptions::default(), None, &RecordedMachine::this_machine().release)
}

/// The kernel's symbols with the vmlinux that was given, or that distributions install for this release.
fn with_installed_vmlinux(
    kernel: KernelSymbols,
    options: &SymbolOptions,
    files: Option<&RecordedFiles>,
    release: &str,
) -> KernelSymbols {
    let installed = || {
        let own = RecordedFiles::of_this_machine();
        let files = files.unwrap_or(&own);
        let places = [
            format!("/usr/lib/debug/boot/vmlinux-{release}"),
            format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
            format!("/lib/modules/{release}/build/vmlinux"),
        ];
        places.iter().filter_map(|place| files.locate(place)).find(|path| path.is_file())
    };
    match options.vmlinux.clone().or_else(installed) {
        Some(path) => kernel.with_vmlinux(&path),
        None => kernel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_among_the_notes() {
        let note = |kind: u32, name: &[u8; 4], text: &[u8]| {
            let mut bytes = Vec::new();
            for word in [4, text.len() as u32, kind] {
                bytes.extend(word.to_ne_bytes());
            }
            bytes.extend(name);
            bytes.extend(text);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let notes = [note(3, b"Xen\0", b"abcde"), note(3, b"GNU\0", &[1, 2, 3])].concat();
        assert_eq!(parse_build_id(&notes), [1, 2, 3]);
        assert!(parse_build_id(&notes[..10]).is_empty());
    }

    #[test]
    fn build_ids_decide_before_releases() {
        let machine = |release: &str, id: &[u8]| RecordedMachine {
            release: release.into(),
            kernel_build_id: id.into(),
            ..RecordedMachine::default()
        };
        assert!(machine("6.1", &[1, 2]).has_kernel_of(&machine("6.2", &[1, 2, 0])));
        assert!(!machine("6.1", &[1, 2]).has_kernel_of(&machine("6.1", &[1, 3])));
        assert!(machine("6.1", &[]).has_kernel_of(&machine("6.1", &[1, 3])));
    }
}
