//! Where peers are kept and measured: `target/peers`, with the programs, a Python, and a folder for each row.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};

use crate::needs;
use crate::peers::peer_row::PeerRow;

/// Characters for which a command needs a shell.
const SHELL_CHARACTERS: [char; 7] = ['|', '&', ';', '<', '>', '$', '('];

/// The folder of it all, and the perflab that is measured.
#[derive(Debug)]
pub struct PeerWorkshop {
    home: PathBuf,
    repository: PathBuf,
}

impl PeerWorkshop {
    /// Makes the folders, and puts the program that is measured among those of the peers.
    pub fn open(home: &Path, perflab: &Path) -> Result<Self> {
        let workshop = PeerWorkshop { home: home.to_owned(), repository: std::env::current_dir()? };
        fs::create_dir_all(workshop.programs())?;
        let program = workshop.programs().join("perflab");
        let _ = fs::remove_file(&program);
        fs::copy(perflab, &program).with_context(|| format!("cannot copy {}", perflab.display()))?;
        Ok(workshop)
    }

    /// The folder itself.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where programs are put.
    pub fn programs(&self) -> PathBuf {
        self.home.join("bin")
    }

    /// The sources of perflab.
    pub fn repository(&self) -> &Path {
        &self.repository
    }

    /// What a shell prints to stdout in the folder of a row; it must succeed.
    pub fn run_script(&self, row: &PeerRow, script: &str) -> Result<String> {
        capture_stdout(self.command_of(row, "sh").args(["-e", "-c", script]))
    }

    /// Carries both commands out in turns, and gives the samples as `perflab export --to csv` has them.
    pub fn measure_row(&self, row: &PeerRow, pairs: u32) -> Result<String> {
        let folder = self.folder_of(row);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        if !row.prepare.is_empty() {
            self.run_script(row, row.prepare)?;
        }
        let archive = folder.join("measured");
        let mut bench = self.command_of(row, "perflab");
        bench.arg("--archive").arg(&archive).args(["bench", "--quiet", "--warmup", "1", "--runs"]);
        bench.arg(pairs.to_string()).args(["-n", "perflab", "-n", "peer"]);
        if !row.before_each.is_empty() {
            bench.args(["--prepare", row.before_each]);
        }
        if ![row.perflab, row.other].iter().any(|command| command.contains(SHELL_CHARACTERS)) {
            bench.arg("-N");
        }
        capture_stdout(bench.args([row.perflab, row.other]))?;
        let mut export = self.command_of(row, "perflab");
        capture_stdout(export.arg("--archive").arg(&archive).args(["export", "@latest", "--to", "csv"]))
    }

    fn folder_of(&self, row: &PeerRow) -> PathBuf {
        self.home.join("rows").join(row.name)
    }

    /// A program of the workshop or of the machine, in the folder of a row. What perflab records there goes into an archive of its own.
    fn command_of(&self, row: &PeerRow, program: &str) -> Command {
        let folder = self.folder_of(row);
        let mut command = Command::new(self.find_program(program));
        command
            .env("PATH", self.search_path())
            .env("PERFLAB_ARCHIVE", folder.join("archive"))
            .env("REPOSITORY", &self.repository)
            .env("LC_ALL", "C.UTF-8");
        if folder.is_dir() {
            command.current_dir(folder);
        }
        command
    }

    /// A program is looked for before the search path of its process counts.
    fn find_program(&self, program: &str) -> OsString {
        let own = self.programs().join(program);
        if own.is_file() { own.into() } else { program.into() }
    }

    fn search_path(&self) -> OsString {
        let mut directories = vec![self.programs(), self.home.join("venv/bin"), "/usr/lib/sysstat".into()];
        directories.extend(std::env::split_paths(&needs::search_path()));
        // A directory with a colon in its name cannot be said in PATH.
        std::env::join_paths(directories).unwrap_or_else(|_| needs::search_path())
    }
}

fn capture_stdout(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } =
        command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        let last: Vec<&str> = said.trim().lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        bail!("{} ended with {status}: {}", command.get_program().display(), last.join("; "));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}
