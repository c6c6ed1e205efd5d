//! The race: one file of points, one file of a picture, each entrant in a process of its own, in turns.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::spent::Spent;

/// Beyond, gnuplot's terminal `pngcairo` is left out: it takes microseconds a point.
const MOST_FOR_CAIRO: usize = 2_000_000;

/// One who draws: its picture's name, and how it is drawn once more.
type Entrant = (String, Box<dyn FnMut() -> Option<Spent>>);

/// All who are there, over so many points.
pub(crate) fn run(points: usize, rounds: usize) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("points");
    write(&path, points).expect("room for the points in $TMPDIR");
    println!("{points} points, from a file to a PNG, each by a process of its own:");
    let mut entrants = entrants(&path, points);
    let mut best: Vec<Option<Spent>> = vec![None; entrants.len()];
    for _ in 0..rounds {
        for ((_, draw), best) in entrants.iter_mut().zip(&mut best) {
            *best = draw().map(|spent| best.map_or(spent, |best| best.least(spent)));
        }
    }
    for ((name, _), best) in entrants.iter().zip(best) {
        let bytes = std::fs::metadata(folder.path().join(name)).map_or(0, |file| file.len());
        let told = best.map_or("SKIP: it failed".into(), |spent| format!("{spent}, {bytes} bytes"));
        println!("  {name:14} {told}");
    }
}

fn write(path: &Path, points: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    for at in 0..points as u64 {
        file.write_all(&(at as u32).to_le_bytes())?;
        file.write_all(&(crate::time(at) as u32).to_le_bytes())?;
    }
    file.flush()
}

fn entrants(points: &Path, count: usize) -> Vec<Entrant> {
    let picture = |name: &str| points.with_file_name(name);
    let mut all: Vec<Entrant> = Vec::new();
    let ours = std::env::current_exe().expect("this program's own path");
    let mut command = Command::new(ours);
    command.arg("--draw").arg(points).arg(picture("perflab"));
    all.push(("perflab".into(), Box::new(move || told(&mut command))));
    for terminal in ["png", "pngcairo"].into_iter().take(if count > MOST_FOR_CAIRO { 1 } else { 2 }) {
        let name = format!("gnuplot {terminal}");
        let mut command = gnuplot(terminal, points, &picture(&name));
        all.push((name, Box::new(move || told(&mut command))));
    }
    match std::env::var_os("PERFLAB_DATASHADER") {
        None => println!("  SKIP datashader: PERFLAB_DATASHADER does not name a Python that has it"),
        Some(python) => {
            let mut command = Command::new(python);
            command.arg(script("peer_datashader.py")).arg(points).arg(picture("datashader"));
            let mut warm = Warm(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok());
            all.push(("datashader".into(), Box::new(move || warm.draw())));
        }
    }
    all
}

fn script(name: &str) -> String {
    format!("{}/benches/dots/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn gnuplot(terminal: &str, points: &Path, picture: &Path) -> Command {
    let program = std::env::var_os("PERFLAB_GNUPLOT").unwrap_or("gnuplot".into());
    let mut command = Command::new(program);
    let (points, picture) = (points.display(), picture.display());
    command.arg("-e").arg(format!("points='{points}'; picture='{picture}'; terminal='{terminal}'"));
    command.arg(script("peer.gnuplot"));
    command
}

/// Runs a command that says at its end how many nanoseconds of CPU it took, and KiB; none where there is no such program.
fn told(command: &mut Command) -> Option<Spent> {
    let since = Instant::now();
    let output = command.output().ok()?;
    figures(&String::from_utf8_lossy(&output.stderr), Some(since.elapsed()))
}

fn figures(text: &str, wall: Option<Duration>) -> Option<Spent> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    let (cpu, peak_kib) = (words.next()??, words.next()??);
    let wall = wall.or_else(|| words.next()?.map(Duration::from_nanos))?;
    Some(Spent { cpu: Duration::from_nanos(cpu), wall, peak_kib })
}

/// A process that stays, so that what it imports and compiles is not measured.
struct Warm(Option<Child>);

impl Warm {
    fn draw(&mut self) -> Option<Spent> {
        let child = self.0.as_mut()?;
        child.stdin.as_mut()?.write_all(b"\n").ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut()?).read_line(&mut line).ok()?;
        figures(&line, None)
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
