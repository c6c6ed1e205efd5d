//! A real machine that ssh reaches, booted into another kernel by kexec, and back into its own at the end.
//!
//! What is booted is installed there: an image and an initial file system that fit its disks. What runs afterwards is looked at, and
//! must be what the image holds, by its build id. That the machine is to come back to its own kernel is promised in the undo journal
//! before it is first rebooted; it comes back as a machine does when its power returns, by its own boot loader.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use perflab_guest::KernelIdentity;
use perflab_model::study::TargetSpec;
use perflab_model::{StopRequest, describe_error_chain, remove_control_characters};
use perflab_settings::{UndoEntry, UndoJournal, run_stoppable_command};
use perflab_stacks::parse_build_id;
use perflab_workload::argv_element::quote_word;

use crate::launcher::ssh::SshDestination;

/// From the order to boot to the first answer of its sshd, where the study says nothing: the firmware of a server takes minutes.
pub const REBOOT_LIMIT: Duration = Duration::from_secs(540);

/// Between two attempts to reach a machine that boots.
const LOOK: Duration = Duration::from_millis(500);

/// A kernel image has fewer bytes.
const LARGEST_IMAGE: usize = 256 << 20;

/// What is asked of a machine: a line each for its boot, release, version and command line, then its kernel's notes.
const PROBE: &str = "cat /proc/sys/kernel/random/boot_id && uname -r && uname -v && cat /proc/cmdline && cat /sys/kernel/notes";

/// Programs of the system's administrator are no part of a login's path everywhere.
const PATH: &str = "PATH=$PATH:/usr/sbin:/sbin";

/// The kernel that runs on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningKernel {
    /// Which it is.
    pub identity: KernelIdentity,
    /// Tells boots apart.
    pub boot_id: String,
    /// What it was booted with.
    pub command_line: String,
}

impl RunningKernel {
    /// Asks the machine.
    ///
    /// # Errors
    /// It is not reached, or answers otherwise than a Linux.
    pub fn ask(machine: &SshDestination, stop: &StopRequest) -> io::Result<Self> {
        let answer = run_there(machine, PROBE, stop)?;
        Self::parse(&answer).ok_or_else(|| io::Error::other("it does not say which kernel it runs"))
    }

    fn parse(answer: &[u8]) -> Option<Self> {
        let mut parts = answer.splitn(5, |byte| *byte == b'\n');
        let mut line = || Some(String::from_utf8_lossy(parts.next()?).trim().to_owned());
        let (boot_id, release, version, command_line) = (line()?, line()?, line()?, line()?);
        let build_id = parse_build_id(parts.next()?);
        let identity = KernelIdentity { build_id, release, version };
        Some(RunningKernel { identity, boot_id, command_line }).filter(|found| !found.boot_id.is_empty())
    }
}

/// Runs a script of the shell's there; what it printed.
fn run_there(machine: &SshDestination, script: &str, stop: &StopRequest) -> io::Result<Vec<u8>> {
    let mut command =
        machine.command(&["ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"]);
    let output = run_stoppable_command(command.arg(script).stdin(Stdio::null()), stop)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = remove_control_characters(String::from_utf8_lossy(&output.stderr).trim());
    Err(io::Error::other(if said.is_empty() { format!("ssh ended with {}", output.status) } else { said }))
}

/// Where a release's image and initial file system are looked for, as distributions put them.
const IMAGES: &str = "/boot/vmlinuz-$r /boot/bzImage-$r /boot/kernel-$r /lib/modules/$r/vmlinuz";

const INITIAL_FILE_SYSTEMS: &str =
    "/boot/initrd.img-$r /boot/initramfs-$r.img /boot/initramfs-$r /boot/initrd-$r";

/// A kernel that is installed on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InstalledKernel {
    image: String,
    initrd: Option<String>,
}

impl InstalledKernel {
    /// Finds a release (`6.1.0-56-amd64`), or takes an image by its path.
    fn find(
        machine: &SshDestination,
        spec: &TargetSpec,
        running: &RunningKernel,
        stop: &StopRequest,
    ) -> io::Result<Self> {
        let wanted = spec.kernel.as_deref().unwrap_or(&running.identity.release);
        let (image, found) = if wanted.starts_with('/') {
            (wanted.to_owned(), None)
        } else {
            let first = |mark: &str, places: &str| {
                format!("for f in {places}; do [ -f $f ] && echo {mark}$f && break; done")
            };
            let (images, file_systems) = (first("image:", IMAGES), first("initrd:", INITIAL_FILE_SYSTEMS));
            let said = run_there(
                machine,
                &format!("r={}; {images}; {file_systems}; true", quote_word(wanted)),
                stop,
            )?;
            let said = String::from_utf8_lossy(&said).into_owned();
            let path = |mark: &str| said.lines().find_map(|line| line.strip_prefix(mark).map(str::to_owned));
            let missing = || {
                let shown = remove_control_characters(wanted);
                io::Error::other(format!(
                    "no kernel {shown} is installed there ({}); install it, or name its image by a path",
                    IMAGES.replace("$r", &shown)
                ))
            };
            (path("image:").ok_or_else(missing)?, path("initrd:"))
        };
        Ok(InstalledKernel { image, initrd: spec.initrd.clone().or(found) })
    }

    /// Which kernel its image holds.
    fn read_identity(&self, machine: &SshDestination, stop: &StopRequest) -> io::Result<KernelIdentity> {
        let content =
            run_there(machine, &format!("head -c {LARGEST_IMAGE} < {}", quote_word(&self.image)), stop)?;
        let identity = KernelIdentity::of_image(&content);
        identity.ok_or_else(|| io::Error::other(format!("{} there is no kernel image", self.image)))
    }

    /// Has the machine boot it, soon after this has returned.
    fn boot(&self, machine: &SshDestination, command_line: &str, stop: &StopRequest) -> io::Result<()> {
        let initrd =
            self.initrd.as_deref().map_or(String::new(), |path| format!("--initrd={}", quote_word(path)));
        let script = format!(
            "{PATH}; say() {{ echo \"$*\" >&2; exit 3; }}\n\
             command -v kexec >/dev/null || say kexec is not installed there: package kexec-tools\n\
             [ -e /sys/kernel/kexec_loaded ] || say its kernel cannot start another one: CONFIG_KEXEC\n\
             kexec -l {} {initrd} --command-line={} || exit 3\n\
             sync\n\
             (sleep 1; if [ -d /run/systemd/system ]; then systemctl kexec; \
             else echo u >/proc/sysrq-trigger; kexec -e; fi) >/dev/null 2>&1 </dev/null &",
            quote_word(&self.image),
            quote_word(command_line),
        );
        run_there(machine, &script, stop).map(drop)
    }
}

/// The words that a kernel was booted with and another is booted with, too: those about images are the boot loader's.
fn kept_words(command_line: &str) -> impl Iterator<Item = &str> {
    let is_loader = |word: &&str| {
        ["BOOT_IMAGE=", "initrd=", "kexec_jump_back_entry="].iter().any(|own| word.starts_with(own))
    };
    command_line.split_whitespace().filter(move |word| !is_loader(word))
}

/// Waits until the machine has booted anew; the kernel that it runs then.
fn await_boot(
    machine: &SshDestination,
    before: &RunningKernel,
    within: Duration,
    stop: &StopRequest,
) -> io::Result<RunningKernel> {
    let begun = Instant::now();
    loop {
        let last = match RunningKernel::ask(machine, stop) {
            Ok(running) if running.boot_id != before.boot_id => return Ok(running),
            Ok(_) => "it still runs as before".to_owned(),
            Err(error) => error.to_string(),
        };
        if stop.is_requested() {
            return Err(io::Error::other("stopped while it booted"));
        }
        if begun.elapsed() > within {
            let last = last.lines().last().unwrap_or_default();
            return Err(io::Error::other(format!(
                "it did not come back within {} s: {last}",
                within.as_secs()
            )));
        }
        std::thread::sleep(LOOK);
    }
}

fn describe_kernel(identity: &KernelIdentity) -> String {
    let id = HEXLOWER.encode(&identity.build_id);
    let id = id.get(..id.len().min(12)).unwrap_or_default();
    remove_control_characters(&format!("{} {} (build id {id})", identity.release, identity.version))
}

/// Has a machine return to its own kernel by its own boot loader, and looks whether it did. One that runs it stays as it is.
///
/// # Errors
/// It is not reached, does not come back, or comes back with another kernel.
pub fn return_machine(
    machine: &SshDestination,
    own: &KernelIdentity,
    command_line: &str,
    within: Duration,
) -> io::Result<()> {
    // Whoever wishes to stop wants it back all the same.
    let never = StopRequest::new();
    let begun = Instant::now();
    // It may be booting.
    let running = loop {
        match RunningKernel::ask(machine, &never) {
            Ok(running) => break running,
            Err(error) if begun.elapsed() > within => return Err(error),
            Err(_) => std::thread::sleep(LOOK),
        }
    };
    let is_back = |running: &RunningKernel| {
        running.identity.is_same(own) && kept_words(&running.command_line).eq(kept_words(command_line))
    };
    if is_back(&running) {
        return Ok(());
    }
    let script = format!(
        "{PATH}; sync; (sleep 1; if [ -d /run/systemd/system ]; then systemctl reboot; \
         elif command -v reboot; then reboot; else echo b >/proc/sysrq-trigger; fi) >/dev/null 2>&1 </dev/null &"
    );
    run_there(machine, &script, &never)?;
    let running = await_boot(machine, &running, within, &never)?;
    if is_back(&running) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "it booted {} with `{}`, and ran {} with `{}` before the run",
        describe_kernel(&running.identity),
        remove_control_characters(&running.command_line),
        describe_kernel(own),
        remove_control_characters(command_line)
    )))
}

/// The machines that a run boots, and what is promised of each.
#[derive(Debug)]
pub(crate) struct MachineReboots {
    state: Mutex<RebootedMachines>,
    perflab: PathBuf,
}

#[derive(Debug)]
struct RebootedMachines {
    journal: UndoJournal,
    /// By machine: what it ran when it was first reached, and the number of its promise.
    known: HashMap<SshDestination, (RunningKernel, u32)>,
    /// By machine and path: which kernel an image holds.
    images: HashMap<(SshDestination, String), KernelIdentity>,
}

impl MachineReboots {
    /// None yet; promises are kept in a journal of the run's own.
    pub(crate) fn new(journal: UndoJournal, perflab: &Path) -> Self {
        let state = Mutex::new(RebootedMachines { journal, known: HashMap::new(), images: HashMap::new() });
        MachineReboots { state, perflab: perflab.to_owned() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RebootedMachines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Boots a machine into the kernel that its target names, and returns once it runs it.
    pub(crate) fn boot(&self, name: &str, spec: &TargetSpec, stop: &StopRequest) -> io::Result<()> {
        let machine = &SshDestination::of_target(spec);
        let running = RunningKernel::ask(machine, stop)?;
        let own = self.own_kernel(machine).unwrap_or_else(|| running.clone());
        let wanted = InstalledKernel::find(machine, spec, &own, stop)?;
        let identity = self.image_identity(machine, &wanted, stop)?;
        self.promise_return(name, machine, &own)?;
        let words = kept_words(&own.command_line).chain(spec.append.iter().map(String::as_str));
        let command_line = words.collect::<Vec<&str>>().join(" ");
        wanted.boot(machine, &command_line, stop)?;
        let within = spec.boot_within.map_or(REBOOT_LIMIT, |span| Duration::from(span.0));
        let running = await_boot(machine, &running, within, stop)?;
        if running.identity.is_same(&identity) {
            return Ok(());
        }
        let (is, was) = (describe_kernel(&running.identity), describe_kernel(&identity));
        Err(io::Error::other(format!("it booted {is}, not {was} of {}", wanted.image)))
    }

    /// Which kernel an image holds, looked at once.
    fn image_identity(
        &self,
        machine: &SshDestination,
        installed: &InstalledKernel,
        stop: &StopRequest,
    ) -> io::Result<KernelIdentity> {
        let key = (machine.clone(), installed.image.clone());
        if let Some(known) = self.lock().images.get(&key) {
            return Ok(known.clone());
        }
        let found = installed.read_identity(machine, stop)?;
        self.lock().images.insert(key, found.clone());
        Ok(found)
    }

    /// What it ran when it was first booted by this run.
    fn own_kernel(&self, machine: &SshDestination) -> Option<RunningKernel> {
        self.lock().known.get(machine).map(|(own, _)| own.clone())
    }

    /// Promises that a machine returns to what it runs before this run boots it first.
    fn promise_return(
        &self,
        name: &str,
        machine: &SshDestination,
        running: &RunningKernel,
    ) -> io::Result<()> {
        let mut state = self.lock();
        if state.known.contains_key(machine) {
            return Ok(());
        }
        let own = &running.identity;
        let mut argv = vec![
            self.perflab.display().to_string(),
            "return-machine".into(),
            format!("--address={}", machine.address),
            format!("--build-id={}", HEXLOWER.encode(&own.build_id)),
            format!("--release={}", own.release),
            format!("--kernel-version={}", own.version),
            format!("--command-line={}", running.command_line),
        ];
        argv.extend(machine.options.iter().map(|option| format!("--ssh-option={option}")));
        let undo = UndoEntry::Run { factor: format!("the kernel of {name}"), argv };
        let number = state.journal.promise(undo).map_err(io::Error::other)?;
        state.known.insert(machine.clone(), (running.clone(), number));
        Ok(())
    }

    /// Has every machine return to its own kernel; says which did not.
    pub(crate) fn put_back(self) -> Vec<String> {
        let RebootedMachines { mut journal, known, .. } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let undo = |(_, number): &(RunningKernel, u32)| journal.undo(*number).err();
        let failed: Vec<_> = known.values().filter_map(undo).collect();
        let mut left: Vec<String> = failed.iter().map(|error| describe_error_chain(error)).collect();
        left.extend(journal.close().err().map(|error| describe_error_chain(&error)));
        left
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_machine_answers_is_read_and_anything_else_is_not() {
        let mut answer =
            b"4c1b\n6.1.0-x\n#1 SMP Debian\nBOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro quiet\n".to_vec();
        for word in [4_u32, 3, 3] {
            answer.extend(word.to_ne_bytes());
        }
        answer.extend(b"GNU\0\x0a\x0b\x0c\0");
        let found = RunningKernel::parse(&answer).unwrap();
        assert_eq!(found.identity.build_id, [10, 11, 12]);
        assert_eq!((found.identity.release.as_str(), found.boot_id.as_str()), ("6.1.0-x", "4c1b"));
        assert_eq!(kept_words(&found.command_line).collect::<Vec<_>>(), ["root=/dev/vda1", "ro", "quiet"]);
        assert_eq!(RunningKernel::parse(b"login: \n"), None);
        assert_eq!(RunningKernel::parse(b"\n\n\n\n"), None);
    }

    #[test]
    fn a_word_of_the_shell_is_one_word() {
        let said = Command::new("sh")
            .arg("-c")
            .arg(format!("printf %s {}", quote_word("a'b $c `d` \"e\"")))
            .output();
        assert_eq!(said.unwrap().stdout, b"a'b $c `d` \"e\"");
    }
}
