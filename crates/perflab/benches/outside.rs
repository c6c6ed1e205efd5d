//! Sampling guests from outside: what it costs a guest, and whether it finds what a guest is known to do.
//!
//!     cargo bench -p perflab --bench outside -- cost [HZ]       hackbench in two virtual processors, with and without, in turns
//!     cargo bench -p perflab --bench outside -- bias [HZ] [S]   a kernel whose interrupts are off for known shares of its time
//!
//! Needs root, hackbench and the kernel `debian-cloud`; `bias` needs gcc and binutils.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use perflab_guest::{
    BootOptions, ControlFrame, GuestCommand, GuestMachine, GuestMessage, GuestRootSource, GuestWork,
    ProcessorRecording, ProcessorSampler, SampledGuest, boot_guest,
};
use perflab_model::StopRequest;
use perflab_stats::mean_with_interval;

/// Windows with and without sampling, in turns,
const ROUNDS: usize = 24;

/// of this length each.
const WINDOW: Duration = Duration::from_secs(3);

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |index: usize, usual: u32| words.get(index).map_or(Ok(usual), |word| word.parse());
    match words.first().map(String::as_str) {
        Some("cost") => measure_cost(number(1, 50)?),
        Some("bias") => measure_bias(number(1, 50)?, number(2, 60)?),
        _ => bail!("say `cost [HZ]` or `bias [HZ] [SECONDS]`"),
    }
}

/// Units of work done in equal windows of this host's time.
fn measure_cost(frequency: u32) -> anyhow::Result<()> {
    let kernel = perflab_guest::find_kernel("debian-cloud", None)?;
    let programs = ["sh", "cat", "hackbench"].map(String::from).to_vec();
    let machine = GuestMachine {
        cpus: 2,
        root: GuestRootSource::Bare { programs },
        ..GuestMachine::new("outside", kernel.clone())
    };
    let script = "cat /proc/kallsyms; echo; echo that is all; while :; do hackbench -g 1 -l 10 > /dev/null; echo; done";
    let command = GuestCommand {
        argv: ["sh", "-c", script].map(String::from).to_vec(),
        directory: PathBuf::from("/"),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
    };
    let (folder, stop) = (tempfile::tempdir()?, StopRequest::new());
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let work = GuestWork::Command(command);
    let guest =
        boot_guest(&machine, &BootOptions { perflab, logs: folder.path(), work, stays: false, stop: &stop })?;
    println!("{}", guest.accelerator().accelerator);
    let mut control = guest.control_stream()?;
    let mut said = Vec::new();
    let end = b"\n\nthat is all\n";
    while !said.windows(end.len()).any(|window| window == end) {
        match GuestMessage::read(&mut control)? {
            Some(GuestMessage::Output(bytes)) => said.extend(bytes),
            Some(GuestMessage::Ready) => {}
            other => bail!("the guest said {other:?}"),
        }
    }
    let symbols = perflab_stacks::select_kallsyms(&String::from_utf8_lossy(&said));
    let mut sampler = ProcessorSampler::attach(&guest.sampled(), symbols, &kernel.release, &stop)?;
    let done = &AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok(Some(message)) = GuestMessage::read(&mut control) {
                if let GuestMessage::Output(bytes) = message {
                    done.fetch_add(
                        bytes.iter().filter(|byte| **byte == b'\n').count() as u64,
                        Ordering::SeqCst,
                    );
                }
            }
        });
        let mut changes = Vec::new();
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            let mut rates = [0.0, 0.0];
            // Which comes first changes from round to round.
            for with in [round % 2, 1 - round % 2] {
                let running = if with == 1 { Err(sampler.start(frequency)?) } else { Ok(sampler) };
                rates[with] = measure_rate(done);
                sampler = match running {
                    Ok(sampler) => sampler,
                    Err(running) => {
                        let (sampler, recording) = running.stop()?;
                        all.push(recording);
                        sampler
                    }
                };
            }
            changes.push(rates[1] / rates[0] - 1.0);
            println!("{:.1} hackbenches a second without, {:.1} with", rates[0], rates[1]);
        }
        print_stops(&all);
        let change = mean_with_interval(&changes, 0.95)?;
        let interval = change.interval.context("too few rounds")?;
        println!(
            "the guest's work with {frequency} stops a second: {:+.2} % [{:+.2}, {:+.2}]",
            100.0 * change.value,
            100.0 * interval.low,
            100.0 * interval.high
        );
        drop(sampler);
        drop(guest);
        Ok(())
    })
}

/// Whole units a second: from the end of one to the end of another.
fn measure_rate(done: &AtomicU64) -> f64 {
    let next = || {
        let before = done.load(Ordering::SeqCst);
        while done.load(Ordering::SeqCst) == before {
            std::thread::sleep(Duration::from_micros(200));
        }
        (Instant::now(), done.load(Ordering::SeqCst))
    };
    let (begun, first) = next();
    std::thread::sleep(WINDOW);
    let (ended, last) = next();
    (last - first) as f64 / (ended - begun).as_secs_f64()
}

fn print_stops(all: &[ProcessorRecording]) {
    let mut lengths: Vec<f64> =
        all.iter().flat_map(|one| &one.stops).map(|(_, length)| length.seconds() * 1e6).collect();
    lengths.sort_by(f64::total_cmp);
    let sampled: f64 = all.iter().map(|one| one.ended.since(one.begun).seconds()).sum();
    let at = |share: usize| lengths[(lengths.len() * share / 100).min(lengths.len() - 1)];
    println!(
        "{} stops: {:.0} us in the median, {:.0} us at 90 %, {:.0} us at 99 %; {:.2} % of the time; {:.2} % of a CPU for the sampler",
        lengths.len(),
        at(50),
        at(90),
        at(99),
        lengths.iter().sum::<f64>() / 1e4 / sampled,
        all.iter().map(|one| one.cost.seconds()).sum::<f64>() / sampled * 100.0
    );
}

/// A guest of one processor without a system.
struct BareGuest {
    qemu: Child,
    folder: tempfile::TempDir,
}

impl Drop for BareGuest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

fn measure_bias(frequency: u32, seconds: u32) -> anyhow::Result<()> {
    for share in [10, 37, 80] {
        let guest = start_known_load(share)?;
        // The firmware comes first.
        std::thread::sleep(Duration::from_secs(3));
        let symbols = read_symbols(&guest.folder.path().join("kernel.elf"))?;
        let found = SampledGuest { name: "load".into(), folder: guest.folder.path().into(), cpus: 1 };
        let sampler = ProcessorSampler::attach(&found, symbols, "6.1.0", &StopRequest::new())?;
        let running = sampler.start(frequency)?;
        std::thread::sleep(Duration::from_secs(seconds.into()));
        let (_sampler, recording) = running.stop()?;
        ensure!(recording.failure.is_none(), "{:?}", recording.failure);
        let off = place_of(&guest, "spin_without_interrupts")?..place_of(&guest, "spin_with_interrupts")?;
        let inside = recording.samples.iter().filter(|sample| off.contains(&sample.instruction)).count();
        let count = recording.samples.len() as f64;
        let part = inside as f64 / count;
        println!(
            "interrupts off for {share} %: {:.2} % of {count} samples, {:+.2} points; one standard error is {:.2} points",
            100.0 * part,
            100.0 * part - f64::from(share),
            100.0 * (part * (1.0 - part) / count).sqrt()
        );
        print_stops(&[recording]);
    }
    Ok(())
}

/// Ticks of a whole period: some milliseconds.
const PERIOD: u32 = 9_000_000;

fn start_known_load(share: u32) -> anyhow::Result<BareGuest> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/outside/known_load.S");
    let (period, off) = (format!("-DPERIOD={PERIOD}"), format!("-DOFF={}", PERIOD / 100 * share));
    let (object, elf, image) = (path("kernel.o"), path("kernel.elf"), path("kernel"));
    run_tool("gcc", &["-c", &period, &off, source, "-o", &object])?;
    run_tool(
        "ld",
        &[
            "-m",
            "elf_x86_64",
            "-Ttext",
            "0xffffffff80100000",
            "-N",
            "-e",
            "0",
            "--no-warn-rwx-segments",
            &object,
            "-o",
            &elf,
        ],
    )?;
    run_tool("objcopy", &["-O", "binary", &elf, &image])?;
    let qemu = Command::new("qemu-system-x86_64")
        .args(
            "-nodefaults -no-user-config -display none -machine q35 -m 64 -accel tcg,thread=multi -cpu max"
                .split(' '),
        )
        .args(["-kernel", &image, "-qmp", &format!("unix:{},server=on,wait=off", path("qmp"))])
        .stdin(Stdio::null())
        .spawn()?;
    let guest = BareGuest { qemu, folder };
    let begun = Instant::now();
    while !guest.folder.path().join("qmp").exists() {
        ensure!(begun.elapsed() < Duration::from_secs(20), "QEMU does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(guest)
}

fn run_tool(program: &str, words: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(program).args(words).stderr(Stdio::inherit()).output().context(program.to_owned())?;
    ensure!(output.status.success(), "{program} ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// As /proc/kallsyms would have them.
fn read_symbols(elf: &Path) -> anyhow::Result<String> {
    let listed = run_tool("nm", &["-n", &elf.display().to_string()])?;
    Ok(listed.lines().filter(|line| line.contains(" T ")).map(|line| format!("{line}\n")).collect())
}

fn place_of(guest: &BareGuest, function: &str) -> anyhow::Result<u64> {
    let symbols = read_symbols(&guest.folder.path().join("kernel.elf"))?;
    let line = symbols.lines().find(|line| line.ends_with(&format!(" {function}")));
    let place = line.and_then(|line| line.split(' ').next()).context("no such function")?;
    Ok(u64::from_str_radix(place, 16)?)
}
