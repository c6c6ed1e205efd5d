//! The race: one file of points, one file of a picture, each entrant in a process of its own, in turns.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::spent::SpentResources;

/// Beyond, gnuplot's terminal `pngcairo` is left out: it takes microseconds a point.
const MOST_FOR_CAIRO: usize = 2_000_000;

/// One who draws: its picture's name, and how it is drawn once more.
type RaceEntrant = (String, Box<dyn FnMut() -> Option<SpentResources>>);

/// All who are there, over so many points.
pub(crate) fn run_race(points: usize, rounds: usize) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("points");
    write_points(&path, points).expect("room for the points in $TMPDIR");
    println!("{points} points, from a file to a PNG, each by a process of its own:");
    let mut entrants = list_entrants(&path, points);
    let mut best: Vec<Option<SpentResources>> = vec![None; entrants.len()];
    for _ in 0..rounds {
        for ((_, draw), best) in entrants.iter_mut().zip(&mut best) {
            *best = draw().map(|spent| best.map_or(spent, |best| best.least_of_both(spent)));
        }
    }
    for ((name, _), best) in entrants.iter().zip(best) {
        let bytes = std::fs::metadata(folder.path().join(name)).map_or(0, |file| file.len());
        let told = best.map_or("SKIP: it failed".into(), |spent| format!("{spent}, {bytes} bytes"));
        println!("  {name:14} {told}");
    }
}

fn write_points(path: &Path, points: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    for at in 0..points as u64 {
        file.write_all(&(at as u32).to_le_bytes())?;
        file.write_all(&(crate::operation_time(at) as u32).to_le_bytes())?;
    }
    file.flush()
}

fn list_entrants(points: &Path, count: usize) -> Vec<RaceEntrant> {
    let picture = |name: &str| points.with_file_name(name);
    let mut all: Vec<RaceEntrant> = Vec::new();
    let ours = std::env::current_exe().expect("this program's own path");
    let mut command = Command::new(ours);
    command.arg("--draw").arg(points).arg(picture("perflab"));
    all.push(("perflab".into(), Box::new(move || run_reporting_command(&mut command))));
    for terminal in ["png", "pngcairo"].into_iter().take(if count > MOST_FOR_CAIRO { 1 } else { 2 }) {
        let name = format!("gnuplot {terminal}");
        let mut command = gnuplot_command(terminal, points, &picture(&name));
        all.push((name, Box::new(move || run_reporting_command(&mut command))));
    }
    match std::env::var_os("PERFLAB_DATASHADER") {
        None => println!("  SKIP datashader: PERFLAB_DATASHADER does not name a Python that has it"),
        Some(python) => {
            let mut command = Command::new(python);
            command.arg(peer_script_path("peer_datashader.py")).arg(points).arg(picture("datashader"));
            let mut warm = WarmProcess(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok());
            all.push(("datashader".into(), Box::new(move || warm.draw())));
        }
    }
    all
}

fn peer_script_path(name: &str) -> String {
    format!("{}/benches/dots/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn gnuplot_command(terminal: &str, points: &Path, picture: &Path) -> Command {
    let program = std::env::var_os("PERFLAB_GNUPLOT").unwrap_or("gnuplot".into());
    let mut command = Command::new(program);
    let (points, picture) = (points.display(), picture.display());
    command.arg("-e").arg(format!("points='{points}'; picture='{picture}'; terminal='{terminal}'"));
    command.arg(peer_script_path("peer.gnuplot"));
    command
}

/// Runs a command that says at its end how many nanoseconds of CPU it took, and KiB; none where there is no such program.
fn run_reporting_command(command: &mut Command) -> Option<SpentResources> {
    let since = Instant::now();
    let output = command.output().ok()?;
    parse_spent_line(&String::from_utf8_lossy(&output.stderr), Some(since.elapsed()))
}

fn parse_spent_line(text: &str, wall: Option<Duration>) -> Option<SpentResources> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    let (cpu, peak_kib) = (words.next()??, words.next()??);
    let wall = wall.or_else(|| words.next()?.map(Duration::from_nanos))?;
    Some(SpentResources { cpu: Duration::from_nanos(cpu), wall, peak_kib })
}

/// A process that stays, so that what it imports and compiles is not measured.
struct WarmProcess(Option<Child>);

impl WarmProcess {
    fn draw(&mut self) -> Option<SpentResources> {
        let child = self.0.as_mut()?;
        child.stdin.as_mut()?.write_all(b"\n").ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut()?).read_line(&mut line).ok()?;
        parse_spent_line(&line, None)
    }
}

impl Drop for WarmProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
