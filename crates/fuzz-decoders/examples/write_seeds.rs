//! Writes the first inputs of every corpus, made of recorded fixtures: `cargo run -p fuzz-decoders --example write_seeds FOLDER`
//! makes `FOLDER/DECODER/NAME`. Inputs of decoders of several kinds of files begin with the byte that says which.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use fuzz_decoders::{DOCUMENT_IMPORTERS, LKP_FILES, MMTESTS_FILES, kernel_texts, log_parsers};
use perflab_archive::{Archive, import_portable_run};
use perflab_conduct::barrier::BarrierPoint;
use perflab_conduct::protocol::{AgentHello, AgentOrder, AgentReport, encode_frame, greeting_line};
use perflab_guest::init_protocol::{ControlFrame, GuestMessage, HostMessage};
use perflab_model::{Nanos, Overhead, RunEvent, RunEventKind, RunStatus, TableCell};
use perflab_prefetch::ProgramTraces;

/// Where the workspace lies.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "fuzz/corpus".into()));
    let seeds = Seeds { folder };
    seeds.write_messages()?;
    seeds.write_profiles()?;
    seeds.write_stored()?;
    seeds.write_imports()?;
    seeds.write_studies()?;
    seeds.write_kernel_files()
}

struct Seeds {
    folder: PathBuf,
}

impl Seeds {
    fn write(&self, decoder: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let folder = self.folder.join(decoder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    }

    /// Every file of a folder of the repository, unpacked.
    fn write_all(&self, decoder: &str, prefix: &[u8], from: &str, ending: &str) -> std::io::Result<()> {
        for entry in fs::read_dir(Path::new(ROOT).join(from))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_file() && name.ends_with(ending) {
                self.write(decoder, &name, &[prefix, &read_unpacked(&path)?].concat())?;
            }
        }
        Ok(())
    }

    fn write_messages(&self) -> std::io::Result<()> {
        let hello = AgentHello {
            program: "perflab 0.1.0".into(),
            kernel: "6.18.0".into(),
            boot_id: "a".into(),
            cpus: 2,
        };
        let rows = vec![vec![TableCell::Text("dentry".into()), TableCell::Int(7), TableCell::Missing]];
        let events = [
            RunEventKind::Rows { monitor: "slabinfo".into(), rows, took: Nanos(0) },
            RunEventKind::Warning { message: "m".into(), advice: "a".into() },
            RunEventKind::Output { slot: Some(1), name: "stdout".into(), text: "speed 1\n".into() },
            RunEventKind::Ended { status: RunStatus::Finished, overhead: Overhead::default() },
        ];
        let events: Vec<RunEvent> = events.into_iter().map(|what| RunEvent::new(Nanos(1), what)).collect();
        let reports = [
            AgentReport::Hello(hello),
            AgentReport::Pong { id: 1, at: Nanos(2) },
            AgentReport::Reached(BarrierPoint::First),
            AgentReport::Woke { at: Nanos(3) },
            AgentReport::Refused(vec!["no".into()]),
        ];
        let reports = reports.into_iter().chain(events.iter().cloned().map(AgentReport::Event));
        let frames: Vec<u8> = reports.filter_map(|report| encode_frame(&report).ok()).flatten().collect();
        self.write("agent_frames", "reports", &[&[7], &greeting_line()[..], &frames].concat())?;
        let orders = [AgentOrder::Ping { id: 1 }, AgentOrder::Cancel, AgentOrder::Undo, AgentOrder::Leave];
        let frames: Vec<u8> = orders.iter().filter_map(|order| encode_frame(order).ok()).flatten().collect();
        self.write("agent_frames", "orders", &[&[255], &frames[..]].concat())?;

        let (mut guest, mut host) = (Vec::new(), Vec::new());
        let said = [
            GuestMessage::Ready,
            GuestMessage::Output(b"out".to_vec()),
            GuestMessage::Errors(b"err".to_vec()),
            GuestMessage::Failed("no root".into()),
            GuestMessage::Killed(9),
            GuestMessage::Exited(1),
        ];
        said.iter().try_for_each(|message| message.write(&mut guest))?;
        [HostMessage::Input(b"in".to_vec()), HostMessage::EndOfInput]
            .iter()
            .try_for_each(|message| message.write(&mut host))?;
        self.write("control_frames", "guest", &guest)?;
        self.write("control_frames", "host", &host)?;

        let lines: Vec<String> =
            events.iter().filter_map(|event| serde_json::to_string(event).ok()).collect();
        self.write("journal", "events", (lines.join("\n") + "\n").as_bytes())
    }

    /// What perf and pprof write cannot be made from fixtures: `fuzz/corpus` holds what was recorded once.
    fn write_profiles(&self) -> std::io::Result<()> {
        self.write(
            "folded",
            "stacks",
            b"sh;main;do_syscall_64_[k];kfree.part.0_[k] 3\nsh;main;inner_[i] 1\nlone 4\n",
        )?;
        let script = "sh  100/101 [001]  5.000001:     250000 cpu-clock:\n\tffffffff81000210 kfree+0x10 ([kernel.kallsyms])\n\
                      \t    55d0c8a1b2c3 main+0x13 (/usr/bin/sh)\n\nsh  100/101 [001]  5.000002:     1 page-faults: \n\n";
        self.write("perf_script", "two", script.as_bytes())?;
        let table =
            "ffffffff81000000 T _stext\nffffffff81000200 T kfree\nffffffffc0000000 t ext4_write\t[ext4]\n";
        self.write("kallsyms", "three", table.as_bytes())
    }

    /// The small tables of runs that earlier versions recorded.
    fn write_tables(&self) -> std::io::Result<()> {
        let folder = std::env::temp_dir().join(format!("perflab-seeds-{}", std::process::id()));
        let archive = Archive::open(&folder).map_err(std::io::Error::other)?;
        for name in ["monitored", "io"] {
            let packed = Path::new(ROOT).join(format!("crates/perflab/tests/data/earlier/{name}.perflab"));
            let run = import_portable_run(&archive, &packed).map_err(std::io::Error::other)?;
            for table in
                ["samples", "iterations", "series/loadavg", "stacks/tree", "events/io", "events/optrace"]
            {
                let path = run.path().join(format!("{table}.parquet"));
                if path.metadata().is_ok_and(|about| about.len() <= 64 << 10) {
                    self.write(
                        "parquet_file",
                        &format!("{name}-{}", table.replace('/', "-")),
                        &fs::read(path)?,
                    )?;
                }
            }
        }
        fs::remove_dir_all(folder)
    }

    fn write_stored(&self) -> std::io::Result<()> {
        self.write_tables()?;
        let dictionary = b"\x03\0\0\0one\x03\0\0\0two\0\0\0\0";
        let indices = [2, 0x20, 1, 5, 0b1001_0010, 0b0010_0100, 0, 0];
        let head = [3, 2, dictionary.len() as u8, 0];
        self.write("parquet_texts", "three", &[&head, &dictionary[..], &indices].concat())?;
        let known = include_str!("startup_trace.json");
        serde_json::from_str::<ProgramTraces>(known)?;
        self.write("startup_trace", "two-starts", known.as_bytes())?;
        for width in ["txt", "32", "64"] {
            self.write_all(
                "page_dump",
                b"",
                "crates/import/tests/recorded/blktrace-2007",
                &format!("trace.{width}"),
            )?;
        }
        Ok(())
    }

    fn write_imports(&self) -> std::io::Result<()> {
        let recorded = "crates/import/tests/recorded";
        self.write_all("blktrace", b"", &format!("{recorded}/blktrace"), ".0")?;
        self.write_all("blkparse", b"", &format!("{recorded}/blktrace"), ".blkparse")?;
        let old = Path::new(ROOT).join(recorded).join("blktrace-2007");
        let (trace, map) =
            (fs::read(old.join("partition.blktrace.1"))?, fs::read(old.join("partition.map"))?);
        self.write("blktrace", "with-map", &[&trace, &b"\nmap\n"[..], &map].concat())?;
        // Whatever a document is, each importer is tried on it in turn by the fuzzer; the right one is tried at once.
        let kinds = ["stats", "fio", "perf-stat", "hyperfine", "gbench", "pyperf", "go.", "composite", "sar"];
        for (number, kind) in (0_u8..).zip(kinds) {
            debug_assert!(usize::from(number) < DOCUMENT_IMPORTERS.len());
            for entry in fs::read_dir(Path::new(ROOT).join(recorded).join("tools"))? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_file() && name.starts_with(kind) {
                    self.write("documents", &name, &[&[number], &fs::read(&path)?[..]].concat())?;
                }
            }
        }
        for (number, name) in (0_u8..).zip(LKP_FILES) {
            self.write_member("lkp", number, &format!("{recorded}/lkp-fsmark"), name)?;
            if ["slabinfo", "slabinfo_tool", "meminfo"].contains(name) {
                let path = Path::new(ROOT).join(recorded).join("lkp-fsmark").join(format!("{name}.gz"));
                self.write("kernel_dump", name, &read_unpacked(&path)?)?;
            }
        }
        for (number, name) in (0_u8..).zip(MMTESTS_FILES) {
            self.write_member("mmtests", number, &format!("{recorded}/mmtests/2020/iter-0"), name)?;
        }
        Ok(())
    }

    /// A file, packed or not, behind its number.
    fn write_member(&self, decoder: &str, number: u8, folder: &str, name: &str) -> std::io::Result<()> {
        let path = Path::new(ROOT).join(folder).join(name);
        let packed = PathBuf::from(format!("{}.gz", path.display()));
        let Some(path) = [path, packed].into_iter().find(|path| path.is_file()) else { return Ok(()) };
        self.write(decoder, &name.replace('/', "-"), &[&[number], &read_unpacked(&path)?[..]].concat())
    }

    fn write_studies(&self) -> std::io::Result<()> {
        self.write_all("study", b"", "studies", ".toml")?;
        self.write_all("workload", b"", "workloads", ".toml")?;
        for name in ["config-mine", "job-mine.yaml"] {
            let path = Path::new(ROOT).join("crates/perflab/tests/data").join(name);
            self.write("foreign_study", name, &fs::read(path)?)?;
        }
        self.write("metric_rules", "text", b"a 1.5\nb 2e3\0err 3")?;
        self.write("metric_rules", "json", br#"noise {"jobs":[{"read":{"iops":12.5}}]} 7"#)?;
        self.write("metric_rules", "csv", b"test,rps,p99\nSET,100.5,1\nrate=5\nrate 6\n")
    }

    fn write_kernel_files(&self) -> std::io::Result<()> {
        let fixtures = "crates/observe/tests/fixtures";
        for (number, file) in (0_u8..).zip(kernel_texts()) {
            // Of several texts that are made alike, the second.
            let parts = file.parts();
            let Some((_, file)) = parts.get(1).or(parts.first()) else { continue };
            let file = file.trim_start_matches('/');
            for tree in ["vm-6.18", "ubuntu-5.0", "written", "written-6.15"] {
                let path = Path::new(ROOT).join(fixtures).join(tree).join(file);
                if let Ok(text) = fs::read(&path) {
                    let name = format!("{tree}-{}", file.replace('/', "-"));
                    let twice = [&[number], &text[..], &[0], &text].concat();
                    self.write("kernel_files", &name, &twice)?;
                    self.write("text_logs", &name, &[&[number], &text[..], &text].concat())?;
                }
            }
        }
        let recorded = Path::new(ROOT).join("crates/import/tests/recorded");
        for (number, parser) in (0_u8..).zip(log_parsers()) {
            let log = match parser.series() {
                "slabinfo-tool" => "lkp-fsmark/slabinfo_tool.gz".to_owned(),
                "vmstat-tool" => "mmtests/current/iter-0/vmstat-sysbenchcpu.gz".to_owned(),
                "vmstat" => "mmtests/current/iter-0/proc-vmstat-sysbenchcpu.gz".to_owned(),
                series => format!("mmtests/current/iter-0/{series}-sysbenchcpu.gz"),
            };
            let path = recorded.join(log);
            if path.is_file() {
                let text = read_unpacked(&path)?;
                let stamps = text.get(..text.len().min(16 << 10)).unwrap_or_default();
                self.write("text_logs", parser.series(), &[&[number], stamps].concat())?;
            }
        }
        let mounts = "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n28 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                      30 28 0:5 /a\\040b /mnt/a\\011b rw master:1 propagate_from:2 - tmpfs none rw\n";
        self.write("mounts", "three", mounts.as_bytes())
    }
}

/// A file's bytes, unpacked where gzip packed them.
fn read_unpacked(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked)?;
        bytes = unpacked;
    }
    Ok(bytes)
}
