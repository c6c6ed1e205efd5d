//! Sampling guests from outside: what it costs a guest, and whether it finds what a guest is known to do.
//!
//!     cargo bench -p perflab --bench outside -- cost [HZ] [ROUNDS]    hackbench in two virtual processors, with and without, in turns
//!     cargo bench -p perflab --bench outside -- loops [HZ] [ROUNDS]   the same with two loops of a shell, which wait for nothing
//!     cargo bench -p perflab --bench outside -- bias [HZ] [SECONDS]   a kernel whose interrupts are off for known shares of its time
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
use perflab_stacks::ProcessorSample;
use perflab_stats::mean_with_interval;

/// How long a window with or without sampling is.
const WINDOW: Duration = Duration::from_secs(3);

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |index: usize, usual: u32| words.get(index).map_or(Ok(usual), |word| word.parse());
    match words.first().map(String::as_str) {
        Some("cost") => {
            measure_cost("hackbench -g 1 -l 10 > /dev/null; echo", number(1, 50)?, number(2, 24)?)
        }
        Some("loops") => {
            let count = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
            let two = format!("{{ {count}; }} & {count}; wait; echo");
            measure_cost(&two, number(1, 50)?, number(2, 24)?)
        }
        Some("bias") => measure_bias(number(1, 50)?, number(2, 60)?),
        _ => bail!("say `cost`, `loops` or `bias`"),
    }
}

/// Units of work done in equal windows of this host's time.
fn measure_cost(unit: &str, frequency: u32, rounds: u32) -> anyhow::Result<()> {
    let kernel = perflab_guest::find_kernel("debian-cloud", None)?;
    let programs = ["sh", "cat", "hackbench"].map(String::from).to_vec();
    let machine = GuestMachine {
        cpus: 2,
        root: GuestRootSource::Bare { programs },
        ..GuestMachine::new("outside", kernel.clone())
    };
    let script = format!("cat /proc/kallsyms; echo; echo that is all; while :; do {unit}; done");
    let command = GuestCommand {
        argv: vec!["sh".into(), "-c".into(), script],
        directory: PathBuf::from("/"),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
    };
    let (folder, stop) = (tempfile::tempdir()?, StopRequest::new());
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let work = GuestWork::Command(command);
    let guest =
        boot_guest(&machine, &BootOptions { perflab, logs: folder.path(), work, stays: false, stop: &stop })?;
    println!("{}, a unit of work is `{unit}`", guest.accelerator().accelerator);
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
        let mut changes = [Vec::new(), Vec::new()];
        let mut all = Vec::new();
        for round in 0..rounds as usize {
            let mut rates = [[0.0, 0.0]; 2];
            // Which comes first changes from round to round.
            for with in [round % 2, 1 - round % 2] {
                let running = if with == 1 { Err(sampler.start(frequency)?) } else { Ok(sampler) };
                rates[with] = measure_rates(done, guest.pid())?;
                sampler = match running {
                    Ok(sampler) => sampler,
                    Err(running) => {
                        let (sampler, recording) = running.stop()?;
                        all.push(recording);
                        sampler
                    }
                };
            }
            let [without, with] = rates;
            for (changes, (with, without)) in changes.iter_mut().zip(with.into_iter().zip(without)) {
                changes.push(with / without - 1.0);
            }
            println!(
                "{:.2} units a second without, {:.2} with; {:.3} a second of the processors without, {:.3} with",
                without[0], with[0], without[1], with[1]
            );
        }
        print_stops(&all);
        for (changes, of) in changes.iter().zip(["a second", "a second of the processors"]) {
            let change = mean_with_interval(changes, 0.95)?;
            let interval = change.interval.context("too few rounds")?;
            println!(
                "work {of} with {frequency} stops a second: {:+.2} % [{:+.2}, {:+.2}]",
                100.0 * change.value,
                100.0 * interval.low,
                100.0 * interval.high
            );
        }
        drop(sampler);
        drop(guest);
        Ok(())
    })
}

/// The CPU time of a guest's processors so far, in seconds. On a busy host, work is held against this: a guest whose processors
/// sleep 50 times a second gets more of such a host than one whose processors never do.
fn processor_time(pid: u32) -> anyhow::Result<f64> {
    let mut nanos = 0_u64;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        if std::fs::read_to_string(thread.path().join("comm"))?.starts_with("CPU ") {
            let text = std::fs::read_to_string(thread.path().join("schedstat"))?;
            nanos += text.split(' ').next().context("no time")?.parse::<u64>()?;
        }
    }
    Ok(nanos as f64 / 1e9)
}

/// Whole units a second, and a second of the processors: from the end of one to the end of another.
fn measure_rates(done: &AtomicU64, pid: u32) -> anyhow::Result<[f64; 2]> {
    let next = || {
        let before = done.load(Ordering::SeqCst);
        while done.load(Ordering::SeqCst) == before {
            std::thread::sleep(Duration::from_micros(200));
        }
        anyhow::Ok((Instant::now(), processor_time(pid)?, done.load(Ordering::SeqCst)))
    };
    let (begun, processors_before, first) = next()?;
    std::thread::sleep(WINDOW);
    let (ended, processors_after, last) = next()?;
    let units = (last - first) as f64;
    Ok([units / (ended - begun).as_secs_f64(), units / (processors_after - processors_before)])
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
        let off = place_of(&guest, "without_interrupts")?..place_of(&guest, "with_interrupts")?;
        let is_off = |sample: &&ProcessorSample| {
            let kernel = sample.stack.kernel.as_ref();
            kernel.is_some_and(|stack| stack.addresses.iter().any(|address| off.contains(address)))
        };
        let inside = recording.samples.iter().filter(is_off).count();
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

/// Turns of a whole period: some milliseconds.
const PERIOD: u32 = 1_000_000;

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
