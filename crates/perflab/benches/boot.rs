//! From the command to an agent that is ready, against the bare boot of the same kernel: by turns, in one run.
//!
//!     cargo bench -p perflab --bench boot
//!
//! Bare is QEMU with the same machine and an initramfs that holds one program of 24 bytes, which powers off at once:
//! once with the kernel's own habits, once with the words that perflab gives its guests' kernels.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use perflab_guest::BootOptions;
use perflab_guest::CpioWriter;
use perflab_guest::GuestWork;
use perflab_guest::{Guest, GuestMachine, GuestRootSource, boot_guest};
use perflab_model::StopRequest;

#[path = "../tests/it/tiny.rs"]
#[expect(dead_code, reason = "others write one that ends; a kernel's first program must not")]
mod tiny;

const ROUNDS: usize = 7;

/// `reboot(LINUX_REBOOT_MAGIC1, MAGIC2, POWER_OFF)`, and nothing else.
const POWER_OFF: &[u8] = &[
    0xbf, 0xad, 0xde, 0xe1, 0xfe, 0xbe, 0x69, 0x19, 0x12, 0x28, 0xba, 0xdc, 0xfe, 0x21, 0x43, 0xb8, 0xa9, 0,
    0, 0, 0x0f, 0x05, 0xeb, 0xfe,
];

/// What any guest under TCG needs on a busy host,
const PLAIN: &str = "console=ttyS0 panic=-1 no_timer_check";
/// and what perflab says besides.
const SAME: &str = "console=ttyS0 panic=-1 no_timer_check cryptomgr.notests";

fn boot_bare_kernel(machine: &GuestMachine, folder: &Path, append: &str) -> anyhow::Result<f64> {
    let initramfs = folder.join("bare");
    let mut archive = CpioWriter::new(fs::File::create(&initramfs)?);
    archive.add_device(Path::new("/dev/console"), 5, 1)?;
    archive.add_file(Path::new("/init"), &tiny::tiny_elf_bytes(POWER_OFF))?;
    archive.finish()?;
    let accelerator = machine.accelerator.choose()?.accelerator;
    let model = if accelerator.to_string() == "kvm" { "host" } else { "max" };
    let words = "-nodefaults -no-user-config -display none -no-reboot -machine q35 -m 512 -smp 1";
    let begun = Instant::now();
    let status = Command::new("qemu-system-x86_64")
        .args(words.split(' '))
        .args(["-accel", &accelerator.to_string(), "-cpu", model])
        .arg("-serial")
        .arg(format!("file:{}", folder.join("bare.log").display()))
        .arg("-kernel")
        .arg(&machine.kernel.image)
        .arg("-initrd")
        .arg(&initramfs)
        .args(["-append", append])
        .stdin(Stdio::null())
        .status()?;
    ensure!(status.success(), "QEMU ended with {status}");
    Ok(begun.elapsed().as_secs_f64())
}

/// Seconds until the agent greets.
fn boot_to_agent(machine: &GuestMachine, folder: &Path) -> anyhow::Result<(f64, Guest)> {
    let stop = StopRequest::new();
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let around = BootOptions { perflab, logs: folder, work: GuestWork::Agent, stays: false, stop: &stop };
    let begun = Instant::now();
    let guest = boot_guest(machine, &around)?;
    let mut stream = fs::File::from(guest.connect_agent()?);
    let mut first = [0];
    stream.read_exact(&mut first)?;
    Ok((begun.elapsed().as_secs_f64(), guest))
}

fn median_seconds(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> anyhow::Result<()> {
    let kernel = perflab_guest::find_kernel("debian-cloud", None)
        .context("run `perflab kernel fetch debian-cloud` first")?;
    let root = GuestRootSource::Bare { programs: Vec::new() };
    let machine =
        |name: String| GuestMachine { root: root.clone(), ..GuestMachine::new(name, kernel.clone()) };
    let folder = tempfile::tempdir()?;
    let one = machine("bench".into());
    let chosen = one.accelerator.choose()?;
    println!("{}: {}", chosen.accelerator, chosen.because);
    let (mut bares, mut same, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bares.push(boot_bare_kernel(&one, folder.path(), PLAIN)?);
        same.push(boot_bare_kernel(&one, folder.path(), SAME)?);
        ours.push(boot_to_agent(&one, folder.path())?.0);
    }
    println!("bare boot to power off   {bares:.2?}");
    println!("the same, perflab's words {same:.2?}");
    println!("command to agent ready   {ours:.2?}");
    let (bare, same, ours) = (median_seconds(bares), median_seconds(same), median_seconds(ours));
    println!("medians: {bare:.2} s, {same:.2} s, {ours:.2} s");
    println!("ratio to bare {:.2}, to bare with the same words {:.2}", ours / bare, ours / same);
    let begun = Instant::now();
    let guests = std::thread::scope(|scope| {
        let (machine, folder) = (&machine, folder.path());
        let all: Vec<_> = (0..4)
            .map(|n| scope.spawn(move || boot_to_agent(&machine(format!("bench{n}")), folder)))
            .collect();
        let ended = all.into_iter().filter_map(|one| one.join().ok());
        ended.map(|ready| Ok(ready?.1)).collect::<anyhow::Result<Vec<Guest>>>()
    })?;
    ensure!(guests.len() == 4, "a guest's thread panicked");
    println!("four at once: all ready after {:.2} s", begun.elapsed().as_secs_f64());
    drop(guests);
    Ok(())
}
