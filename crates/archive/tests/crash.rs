//! kill -9 at any moment leaves a run that reads: from the journal up to its last whole line, or, once it
//! is closed, from its tables. The victim is this test program itself, started again.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use perflab_archive::{Archive, RunDir, RunRecorder};
use perflab_model::{RunEventKind, RunStatus};

const VICTIM: &str = "PERFLAB_TEST_VICTIM";
const WAITS: &str = "PERFLAB_TEST_VICTIM_WAITS_BEFORE";
const CASES: u32 = 20;
const ITERATIONS: u32 = 60;
const SAMPLES: usize = 2 * (CASES * ITERATIONS) as usize;

/// Not a test unless it is started by one: records a run and says how far it is, each sample before it
/// is recorded. Before sample [`WAITS`] it waits for its end: one that is to die while it records may
/// not be through when the signal comes late.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(VICTIM) else { return };
    let waits_before: usize = std::env::var(WAITS).unwrap().parse().unwrap();
    let manifest = fixtures::run_events::make_manifest(CASES, ITERATIONS);
    let mut recorder = Archive::open(Path::new(&directory)).unwrap().begin_run(&manifest).unwrap();
    let mut samples = 0;
    for event in fixtures::run_events::run_events(&manifest) {
        if matches!(event.what, RunEventKind::Sample(_)) {
            samples += 1;
            if samples == waits_before {
                wait_until_killed();
            }
            report_progress(&samples.to_string());
        }
        recorder.record(&event).unwrap();
    }
    report_progress("closing");
    recorder.finish().unwrap();
    report_progress("closed");
}

/// Waits until it is killed, or until the one who would do it is gone.
fn wait_until_killed() {
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    std::process::exit(1);
}

fn report_progress(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("said {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

struct VictimProcess {
    child: Child,
    out: BufReader<ChildStdout>,
    said: usize,
}

impl VictimProcess {
    /// Records into `archive`, and waits before sample `waits_before` if it gets there.
    fn spawn(archive: &Path, waits_before: usize) -> VictimProcess {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "victim", "--nocapture"]);
        command.env(VICTIM, archive).env(WAITS, waits_before.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        VictimProcess { child, out, said: 0 }
    }

    /// Listens until `until` is said, or to the end.
    fn wait_for_line(&mut self, until: &str) {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            // The test harness writes `test victim ... ` in front of the first line.
            let said = line.split_once("said ").map_or("", |(_, said)| said.trim()).to_owned();
            line.clear();
            self.said = said.parse().unwrap_or(self.said);
            if said == until {
                return;
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.wait_for_line("nothing more");
    }
}

/// Random moments that are the same in every run of the test (splitmix64, Steele et al. 2014).
struct RandomMoments(u64);

impl RandomMoments {
    fn next_below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn find_only_run(archive: &Path) -> RunDir {
    Archive::open(archive).unwrap().find_runs("@latest").unwrap().pop().unwrap()
}

#[test]
fn killed_while_recording_a_run_keeps_every_sample_that_was_written() {
    let mut moments = RandomMoments(1);
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let sample = 2 + usize::try_from(moments.next_below(SAMPLES as u64 - 500)).unwrap();
        let mut victim = VictimProcess::spawn(directory.path(), sample + 500);
        victim.wait_for_line(&sample.to_string());
        std::thread::sleep(Duration::from_micros(moments.next_below(2_000)));
        victim.kill();
        check_interrupted_run(&find_only_run(directory.path()), victim.said);
    }
}

fn check_interrupted_run(run: &RunDir, said: usize) {
    let record = run.read_record().unwrap();
    let found = record.samples.len();
    assert_eq!(record.manifest.status, RunStatus::Interrupted);
    assert!(found > 0 && found <= said, "{found} samples of {said}");
    assert!(found + 1 >= said, "only the sample that was under way may be missing: {found} of {said}");
    assert!(run.count_damaged_lines().unwrap() <= 1);
    assert!(!run.read_series("vmstat").unwrap().at.is_empty());
    let recovered = RunRecorder::recover(run.path()).unwrap().read_record().unwrap();
    assert_eq!(recovered.manifest.status, RunStatus::Interrupted);
    assert_eq!(recovered.samples, record.samples);
    assert_eq!(recovered.iterations, record.iterations);
}

#[test]
fn killed_while_closing_a_run_loses_nothing() {
    let mut moments = RandomMoments(2);
    let mut interrupted = 0;
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let mut victim = VictimProcess::spawn(directory.path(), usize::MAX);
        victim.wait_for_line("closing");
        std::thread::sleep(Duration::from_micros(moments.next_below(120_000)));
        victim.kill();
        let run = find_only_run(directory.path());
        interrupted += u32::from(run.status().unwrap() == RunStatus::Interrupted);
        check_whole_run(&run);
        check_whole_run(&RunRecorder::recover(run.path()).unwrap());
        assert_eq!(run.status().unwrap(), RunStatus::Finished);
    }
    eprintln!("{interrupted} of 20 kills came before the run was closed");
}

fn check_whole_run(run: &RunDir) {
    let record = run.read_record().unwrap();
    assert!(matches!(record.manifest.status, RunStatus::Interrupted | RunStatus::Finished));
    assert_eq!(record.samples.len(), SAMPLES);
    assert_eq!(record.iterations.len(), record.manifest.plan.slots.len());
    assert_eq!(run.read_series("vmstat").unwrap().at.len(), 2 * record.iterations.len());
    assert_eq!(run.read_output(Some(9), "stdout").unwrap().as_deref(), Some("slot 9\n"));
    assert_eq!(run.count_damaged_lines().unwrap(), 0);
}
