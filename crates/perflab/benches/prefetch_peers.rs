//! What reading ahead gains beside others who do it, from the same trace and on the same emulated disk: a start with nothing
//! read ahead, with perflab's ways, with ureadahead's replay of a pack and with preload's readahead of a state file, in
//! turns. As root, with Debian's packages of the application, and
//!
//!     UREADAHEAD=/path/to/ureadahead PRELOAD=/usr/sbin/preload \
//!         cargo bench --workspace --bench prefetch_peers [-- --application python --rounds 3]
//!
//! `--application` is python, chromium or libreoffice; `--model` (hdd-7200) a disk that a study may name; `--caches` (3) what is
//! in memory at the start, as `perflab startup` has it.
//!
//! (Debian: `preload`; ureadahead has to be built.) A peer that is not named is left out, which is said. What the trace knows is
//! written in the peers' own formats: all of it for ureadahead, with the inode groups of its files; for preload, whose Markov
//! chain is told that the application follows for certain what runs now, which spares it the days of learning and all
//! doubt. Time counts from before anything is read ahead until the application is there, the time of perflab and of the
//! peers beforehand included; preload, a daemon, is waited for until its log says that it has read.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use perflab_disk::DiskDataSheet;
use perflab_disk::scratch_disk;
use perflab_model::study::{DiskKind, DiskModel, ScratchDisk};
use perflab_model::{PlannedDisk, Scalar};
use perflab_prefetch::{ProgramTraces, TraceStore};
use perflab_settings::{AppliedSettings, UndoJournal};

#[path = "prefetch_peers/preload.rs"]
mod preload;
#[path = "prefetch_peers/ureadahead.rs"]
mod ureadahead;

mod told;

/// One application of the study `application-startup`.
struct PeerApplication {
    packages: &'static str,
    until: &'static str,
    screen: bool,
    command: &'static [&'static str],
}

fn read_application(name: &str) -> anyhow::Result<PeerApplication> {
    Ok(match name {
        "python" => PeerApplication {
            packages: "python3-scipy,python3-pandas",
            until: "exit",
            screen: false,
            command: &["/usr/bin/python3", "-c", "import scipy.stats, scipy.optimize, scipy.signal, pandas"],
        },
        "chromium" => PeerApplication {
            packages: "chromium",
            until: "window",
            screen: true,
            command: &[
                "/usr/lib/chromium/chromium",
                "--no-sandbox",
                "--no-first-run",
                "--user-data-dir=/tmp/perflab-peers",
                "about:blank",
            ],
        },
        "libreoffice" => PeerApplication {
            packages: "libreoffice-writer",
            until: "window:libreoffice",
            screen: true,
            command: &["/usr/lib/libreoffice/program/soffice.bin", "--writer", "--norestore", "--nologo"],
        },
        other => bail!("--application {other}: one of python, chromium, libreoffice"),
    })
}

fn main() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP prefetch_peers: it needs root");
        return Ok(());
    }
    let name = find_argument("--application").unwrap_or_else(|| "python".into());
    let rounds: usize =
        find_argument("--rounds").map_or(Ok(3), |rounds| rounds.parse()).context("--rounds")?;
    let home = tempfile::tempdir()?;
    let mut bench = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), "PEERS", "boot"));
    let model = find_argument("--model").map_or(Ok(DiskModel::Hdd7200), |model| model.parse());
    let model = model.map_err(anyhow::Error::msg).context("--model")?;
    let application = read_application(&name)?;
    let place = make_emulated_disk(model, bench.journal())?;
    let laboratory = PeerComparison {
        application,
        caches: find_argument("--caches").unwrap_or_else(|| "3".into()),
        rotates: DiskDataSheet::of_model(model).is_rotating(),
        kept: place.join("kept"),
        home: home.path(),
    };
    println!("{name} on an emulated {}, --caches {}:", model.name(), laboratory.caches);
    // A start that fails does not leave the disk mounted: its journal goes with `home`.
    let compared = laboratory.compare_peers(&name, rounds);
    let failed = bench.undo_all().failed;
    compared?;
    ensure!(failed.is_empty(), "{failed:?}");
    Ok(())
}

fn find_argument(name: &str) -> Option<String> {
    let all: Vec<String> = std::env::args().collect();
    let at = all.iter().position(|one| one == name)?;
    all.get(at + 1).cloned()
}

fn make_emulated_disk(model: DiskModel, journal: &mut UndoJournal) -> anyhow::Result<PathBuf> {
    let wanted = ScratchDisk {
        kind: DiskKind::Image,
        path: None,
        size: Some(Scalar::Text("4GiB".into())),
        filesystem: None,
        mkfs: Vec::new(),
        mount: Some("noatime".into()),
        model: Some(model),
    };
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let planned = PlannedDisk { levels: Default::default(), disk: wanted, folder: Some("/dev/shm".into()) };
    Ok(scratch_disk::prepare_scratch_disk(&planned, "peers", perflab, journal)?)
}

/// What the kernel had to deliver in one start.
struct DeliveredBytes {
    wall: f64,
    before: f64,
    read: f64,
    faults: f64,
}

struct PeerComparison<'a> {
    application: PeerApplication,
    caches: String,
    rotates: bool,
    kept: PathBuf,
    home: &'a Path,
}

impl PeerComparison<'_> {
    fn compare_peers(&self, name: &str, rounds: usize) -> anyhow::Result<()> {
        std::fs::create_dir(&self.kept)?;
        self.start_cold("staged", None)?;
        let known = self.known_pages()?;
        let readers = [
            ("ureadahead", ureadahead::ureadahead_command(self.home, &self.kept, self.rotates, &known)?),
            ("preload", preload::preload_command(self.home, &known)?),
        ];
        let own = ["none", "sync", "async", "staged"].map(|way| (way, None));
        let peers = readers.into_iter().filter_map(|(peer, reader)| Some((peer, Some(reader?))));
        let ways: Vec<(&str, Option<String>)> = own.into_iter().chain(peers).collect();
        let mut starts: Vec<Vec<DeliveredBytes>> = ways.iter().map(|_| Vec::new()).collect();
        // The first round warms what only a first start fills, and is not counted.
        for round in 0..=rounds {
            for ((way, reader), starts) in ways.iter().zip(&mut starts) {
                let start =
                    self.start_cold(if reader.is_some() { "reader" } else { way }, reader.as_deref())?;
                eprintln!("{name} {way} {round}: {:.2} s, {:.2} s of it before", start.wall, start.before);
                if round > 0 {
                    starts.push(start);
                }
            }
        }
        for ((way, _), starts) in ways.iter().zip(&starts) {
            let median = |of: fn(&DeliveredBytes) -> f64| told::median_value(starts.iter().map(of).collect());
            println!(
                "{way:<11} median {:5.2} s, least {:5.2}; before {:5.2} s; read {:6.1} MiB; {:5.0} major faults",
                median(|start| start.wall),
                starts.iter().map(|start| start.wall).fold(f64::INFINITY, f64::min),
                median(|start| start.before),
                median(|start| start.read) / f64::from(1 << 20),
                median(|start| start.faults),
            );
        }
        Ok(())
    }

    /// One cold start, by the verb that the study uses, too.
    fn start_cold(&self, way: &str, reader: Option<&str>) -> anyhow::Result<DeliveredBytes> {
        let mut command = Command::new(if self.application.screen { "xvfb-run" } else { "env" });
        if self.application.screen {
            command.args(["--auto-servernum", "--server-args=-screen 0 1280x1024x24"]);
        }
        command.args(["unshare", "--mount", "--propagation", "slave"]).arg(env!("CARGO_BIN_EXE_perflab"));
        command.args([
            "start-once",
            "--caches",
            &self.caches,
            "--prefetch",
            way,
            "--limit",
            "300s",
            "--learn",
        ]);
        command.arg("--store").arg(self.kept.join("traces")).arg("--inside").arg(&self.kept);
        command.args(["--package", self.application.packages, "--ready-when", self.application.until]);
        command.args(reader.iter().flat_map(|reader| ["--reader", reader]));
        command.arg("--").args(self.application.command).env("HOME", &self.kept);
        let said = command.output()?;
        let err = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "{way}: {err}");
        let document: serde_json::Value = serde_json::from_slice(&said.stdout)?;
        let number = |name: &str| document[name].as_f64().unwrap_or(f64::NAN);
        Ok(DeliveredBytes {
            wall: number("wall"),
            before: number("prefetch"),
            read: number("read"),
            faults: number("major-faults"),
        })
    }

    /// The one trace of the disk's store.
    fn known_pages(&self) -> anyhow::Result<ProgramTraces> {
        let store = TraceStore::locate(Some(&self.kept.join("traces")));
        let all = store.trace_paths();
        let [one] = all.as_slice() else { bail!("one trace was expected: {all:?}") };
        Ok(perflab_prefetch::trace_store::read_trace_file(one)?)
    }
}
