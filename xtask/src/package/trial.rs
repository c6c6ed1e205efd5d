//! `cargo xtask long packages`: every package is built twice, installed into a clean root of its own (a wheel into a clean virtual
//! environment), used there and removed again; what held is counted into `docs/reliability.md` (as root).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::contents::ScratchFolder;
use super::release_packages::{PackageOrder, build_packages};
use crate::{needs, reliability};

/// The distribution whose roots Debian packages are tried in.
const SUITE: &str = "bookworm";

/// What was tried of a package.
struct PackageTrial {
    /// what the row is called
    name: &'static str,
    /// what it was installed into
    place: &'static str,
    bytes: u64,
    /// what was checked, and whether it held
    checks: Vec<(&'static str, bool)>,
    seconds: u64,
}

impl PackageTrial {
    fn cells(&self) -> Vec<String> {
        let held = self.checks.iter().filter(|(_, held)| *held).count();
        vec![
            self.place.to_owned(),
            format!("{:.1}", self.bytes as f64 / 1e6),
            self.checks.len().to_string(),
            held.to_string(),
            self.seconds.to_string(),
        ]
    }
}

/// Builds, installs, uses and removes all packages; `false` where something did not hold.
pub fn try_packages(arguments: &[String]) -> Result<bool> {
    if !needs::is_root() {
        bail!("roots are made and entered as root: sudo cargo xtask long packages");
    }
    let order = PackageOrder::parse(arguments)?;
    let commit = reliability::tested_commit()?;
    let first = build_packages(&order)?;
    let kept: Vec<Vec<u8>> = first.iter().map(fs::read).collect::<Result<_, _>>()?;
    let again = build_packages(&order)?;
    let equal = |path: &PathBuf| -> Result<bool> {
        let place =
            again.iter().position(|other| other == path).context("the second build made other files")?;
        Ok(fs::read(path)? == *kept.get(place).context("fewer files")?)
    };
    let mut all_held = true;
    let attempts: [(&str, &str, PackageAttempt); 4] = [
        (".tar.gz", "archive", try_archive),
        (".deb", "Debian package", try_debian_package),
        (".rpm", "RPM package", try_rpm_package),
        (".whl", "Python wheel", try_wheel),
    ];
    for (ending, name, attempt) in attempts {
        let path = first.iter().find(|path| path.display().to_string().ends_with(ending));
        let path = path.with_context(|| format!("no {ending} was built"))?;
        let begun = Instant::now();
        let mut root = TrialRoot { folder: ScratchFolder::make("root")?, checks: Vec::new(), place: "" };
        root.check("two builds have equal bytes", equal(path)?);
        attempt(path, &mut root).with_context(|| format!("trying {}", path.display()))?;
        let trial = PackageTrial {
            name,
            place: root.place,
            bytes: fs::metadata(path)?.len(),
            checks: std::mem::take(&mut root.checks),
            seconds: begun.elapsed().as_secs(),
        };
        all_held &= trial.checks.iter().all(|(_, held)| *held);
        reliability::PACKAGES.record_row(trial.name, &trial.cells(), &commit)?;
    }
    Ok(all_held)
}

/// Installs a package, uses it and removes it.
type PackageAttempt = fn(&Path, &mut TrialRoot) -> Result<()>;

/// A root of its own, and what was seen in it.
struct TrialRoot {
    folder: ScratchFolder,
    checks: Vec<(&'static str, bool)>,
    place: &'static str,
}

impl TrialRoot {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn check(&mut self, what: &'static str, held: bool) {
        println!("{} {what}", if held { "held  " } else { "FAILED" });
        self.checks.push((what, held));
    }

    /// What a command says inside, where it ends well.
    fn run_inside(&self, words: &[&str]) -> Result<Option<String>> {
        let mut chroot = Command::new("chroot");
        chroot.arg(self.path()).args(words).env_clear().envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("PERFLAB_ARCHIVE", "/archive"),
        ]);
        let said = chroot.stdin(Stdio::null()).output().context("cannot run chroot")?;
        if !said.status.success() {
            println!(
                "{words:?}: {}{}",
                String::from_utf8_lossy(&said.stdout),
                String::from_utf8_lossy(&said.stderr)
            );
        }
        Ok(said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned()))
    }

    fn run_outside(&self, command: &mut Command) -> Result<bool> {
        let said =
            command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
        if !said.status.success() {
            println!(
                "{command:?}: {}{}",
                String::from_utf8_lossy(&said.stdout),
                String::from_utf8_lossy(&said.stderr)
            );
        }
        Ok(said.status.success())
    }

    /// The program at `path` inside: it starts, and measures with nothing but itself.
    fn use_program(&mut self, path: &str) -> Result<()> {
        let version = self.run_inside(&[path, "--version"])?;
        self.check("it starts", version.is_some_and(|text| text.starts_with("perflab ")));
        let proc = self.path().join("proc");
        fs::create_dir_all(&proc)?;
        fs::create_dir_all(self.path().join("tmp"))?;
        fs::create_dir_all(self.path().join("root"))?;
        let mounted = self.run_outside(Command::new("mount").args(["-t", "proc", "proc"]).arg(&proc))?;
        self.check("/proc is mounted there", mounted);
        let measured =
            self.run_inside(&[path, "run", "quickstart", "--iterations", "2", "--quiet", "--no-report"]);
        let measured = measured.and_then(|_| self.run_inside(&[path, "list", "--format", "json"]));
        let unmounted = self.run_outside(Command::new("umount").arg(&proc))?;
        if !unmounted {
            bail!("{} is still mounted: umount it", proc.display());
        }
        self.check(
            "it measures, with nothing beside it",
            measured?.is_some_and(|text| text.contains("\"finished\"")),
        );
        Ok(())
    }
}

fn try_archive(package: &Path, root: &mut TrialRoot) -> Result<()> {
    root.place = "empty";
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--strip-components=1", "--file"])
        .arg(package)
        .arg("--directory")
        .arg(root.path());
    let unpacked = root.run_outside(&mut tar)?;
    root.check("it is unpacked", unpacked);
    root.use_program("/bin/perflab")
}

fn try_debian_package(package: &Path, root: &mut TrialRoot) -> Result<()> {
    root.place = SUITE;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=bash-completion,man-db", SUITE]).arg(root.path());
    if !root.run_outside(&mut debootstrap)? {
        bail!("debootstrap made no root");
    }
    let inside = root.path().join("perflab.deb");
    fs::copy(package, &inside)?;
    let installed = root.run_inside(&["dpkg", "--install", "/perflab.deb"])?;
    root.check("dpkg installs it", installed.is_some());
    let unchanged = root.run_inside(&["dpkg", "--verify", "perflab"])?;
    root.check("dpkg finds every file as it was packed", unchanged.is_some_and(|text| text.is_empty()));
    let page = root.run_inside(&["man", "--where", "perflab-compare"])?;
    root.check("man finds the page of a verb", page.is_some());
    let script = "source /usr/share/bash-completion/bash_completion; _comp_load perflab 2>/dev/null || _completion_loader perflab; \
                  complete -p perflab";
    let completion = root.run_inside(&["bash", "-c", script])?;
    root.check("bash loads the completion", completion.is_some_and(|text| text.contains("_perflab")));
    root.use_program("/usr/bin/perflab")?;
    let removed = root.run_inside(&["dpkg", "--purge", "perflab"])?;
    root.check("dpkg removes it", removed.is_some());
    let left = root.run_inside(&["find", "/usr", "/etc", "-name", "*perflab*"])?;
    root.check("nothing is left", left.is_some_and(|text| text.is_empty()));
    Ok(())
}

fn try_rpm_package(package: &Path, root: &mut TrialRoot) -> Result<()> {
    root.place = "empty";
    let rpm = |root: &TrialRoot, words: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(fs::canonicalize(root.path())?).args(words);
        Ok::<Command, std::io::Error>(rpm)
    };
    let package = fs::canonicalize(package)?;
    let package = package.to_str().context("a path that is no text")?;
    // rpm keeps its own account of what is installed there.
    let made = root.run_outside(&mut rpm(root, &["--initdb"])?)?;
    root.check("the root has an account of its packages", made);
    let installed = root.run_outside(&mut rpm(root, &["--install", package])?)?;
    root.check("rpm installs it, and it needs nothing", installed);
    let unchanged = root.run_outside(&mut rpm(root, &["--verify", "perflab"])?)?;
    root.check("rpm finds every file as it was packed", unchanged);
    root.use_program("/usr/bin/perflab")?;
    let removed = root.run_outside(&mut rpm(root, &["--erase", "perflab"])?)?;
    root.check("rpm removes it", removed);
    let left =
        root.path().join("usr/bin/perflab").exists() || root.path().join("usr/share/doc/perflab").exists();
    root.check("nothing is left", !left);
    Ok(())
}

/// Every file of the package is as its record says.
const RECORD_SCRIPT: &str = "
import base64, hashlib, importlib.metadata, sys
found = importlib.metadata.distribution('perflab')
for file in found.files:
    if file.hash is not None:
        digest = hashlib.new(file.hash.mode, file.locate().read_bytes()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b'=').decode() != file.hash.value:
            sys.exit(f'{file} is not as it was packed')
";

/// Measures by the program, and reads by the package what it measured.
const USE_SCRIPT: &str = "
import subprocess, sys
import perflab
program = perflab.find_program()
assert str(program).startswith(sys.prefix), program
subprocess.run([program, 'run', 'quickstart', '--iterations', '2', '--quiet', '--no-report'], check=True)
run = perflab.open().latest
assert run.status == 'finished' and run.samples().num_rows > 0
words = {row.word for row in perflab.compare(run, by='pages').rows}
assert words and not words & {'missing', 'withheld'}, words
assert '<table>' in perflab.compare(run, by='pages')._repr_html_()
";

/// As a user who types `pip install FILE`; what it needs comes from the registry.
fn try_wheel(package: &Path, root: &mut TrialRoot) -> Result<()> {
    root.place = "venv";
    let environment = fs::canonicalize(root.path())?.join("venv");
    let made = root.run_outside(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    if !made {
        bail!("python3 made no virtual environment: as root, apt-get install python3-venv");
    }
    let python = |words: &[&str]| {
        let mut python = Command::new(environment.join("bin/python"));
        python.args(words).current_dir(root.path()).env_remove("PYTHONPATH").env_remove("PERFLAB_PROGRAM");
        python.env("PERFLAB_ARCHIVE", root.path().join("archive"));
        python.env("PERFLAB_STATE", root.path().join("state"));
        python
    };
    let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"];
    let mut install = python(&[&pip[..], &["install"]].concat());
    install.arg(fs::canonicalize(package)?);
    let steps = [
        ("pip installs it", install),
        ("pip finds what it needs", python(&["-m", "pip", "check"])),
        ("every file is as it was packed", python(&["-c", RECORD_SCRIPT])),
        ("it measures, and Python reads and compares that", python(&["-c", USE_SCRIPT])),
        ("pip removes it", python(&[&pip[..], &["uninstall", "--yes", "perflab"]].concat())),
    ];
    for (what, mut step) in steps {
        let held = root.run_outside(&mut step)?;
        root.check(what, held);
    }
    let mut find = Command::new("find");
    let left = find.arg(&environment).args(["-iname", "*perflab*"]).output().context("cannot run find")?;
    root.check("nothing is left", left.status.success() && left.stdout.is_empty());
    Ok(())
}
