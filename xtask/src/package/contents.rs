//! What is in every package, and where: a file says what it is, and a layout says where such files lie.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use flate2::{Compression, GzBuilder};

use super::bill_of_materials::render_bill;
use super::linked_libraries::LinkedLibraries;
use super::package_version::{format_source_date, read_source_date};
use super::python_package::PythonPackage;
use super::shipped_crates::ShippedCrates;
use super::third_party::render_notices;

/// What a file of a package is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// the program
    Program,
    /// a manual page, compressed
    ManualPage,
    /// what bash reads
    BashCompletion,
    /// what zsh reads
    ZshCompletion,
    /// what fish reads
    FishCompletion,
    /// a unit of systemd
    SystemdUnit,
    /// a dashboard of Grafana
    Dashboard,
    /// something to read, a licence too
    Document,
}

/// Where files of a kind lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageLayout {
    /// Debian's policy
    Debian,
    /// Fedora's and openSUSE's
    Rpm,
    /// below a folder that is chosen when it is unpacked, such as /usr/local
    Prefix,
}

/// One file of a package.
pub struct PackagedFile {
    /// what it is
    pub role: FileRole,
    /// its name in its folder
    pub name: String,
    /// what is in it
    pub bytes: Vec<u8>,
}

impl PackagedFile {
    /// Its path below the root, or below the prefix.
    pub fn path(&self, layout: PackageLayout) -> String {
        let usr = if layout == PackageLayout::Prefix { "" } else { "usr/" };
        let folder = match self.role {
            FileRole::Program => "bin",
            FileRole::ManualPage => "share/man/man1",
            FileRole::BashCompletion => "share/bash-completion/completions",
            FileRole::ZshCompletion if layout == PackageLayout::Debian => "share/zsh/vendor-completions",
            FileRole::ZshCompletion => "share/zsh/site-functions",
            FileRole::FishCompletion => "share/fish/vendor_completions.d",
            FileRole::SystemdUnit => "lib/systemd/system",
            FileRole::Dashboard => "share/perflab/grafana",
            FileRole::Document => "share/doc/perflab",
        };
        format!("{usr}{folder}/{}", self.name)
    }

    /// Its mode.
    pub fn mode(&self) -> u32 {
        if self.role == FileRole::Program { 0o755 } else { 0o644 }
    }
}

/// All files of a package, and what is said about it.
pub struct PackageContents {
    /// in the order of their paths
    pub files: Vec<PackagedFile>,
    /// of the workspace
    pub version: String,
    /// the machine that the program is for, as `uname -m` calls it
    pub machine: &'static str,
    /// what the program needs of the system
    pub libraries: LinkedLibraries,
    /// seconds since 1970 that every file bears
    pub source_date: u64,
    /// what is beside the program in a wheel
    pub python: PythonPackage,
    crates: ShippedCrates,
}

impl PackageContents {
    /// Asks the program for its pages and scripts, and the sources for the rest.
    pub fn collect(binary: &Path) -> Result<Self> {
        let binary = fs::canonicalize(binary).with_context(|| format!("there is no {}", binary.display()))?;
        let mut own = list_manual_pages(&binary)?;
        for (shell, role, name) in [
            ("bash", FileRole::BashCompletion, "perflab"),
            ("zsh", FileRole::ZshCompletion, "_perflab"),
            ("fish", FileRole::FishCompletion, "perflab.fish"),
        ] {
            let bytes = ask_program(&binary, &["completions", shell])?;
            own.push(PackagedFile { role, name: name.into(), bytes });
        }
        PackageContents::assemble(Path::new("."), strip_program(&binary)?, own, read_source_date()?)
    }

    /// A program with the files that it made itself, and those of the sources.
    pub fn assemble(
        sources: &Path,
        program: Vec<u8>,
        own: Vec<PackagedFile>,
        source_date: u64,
    ) -> Result<Self> {
        let libraries = LinkedLibraries::read(&program)?;
        let crates = ShippedCrates::read(sources)?;
        let document =
            |name: &str, bytes| PackagedFile { role: FileRole::Document, name: name.into(), bytes };
        let mut files = own;
        files.extend(list_units(sources)?);
        files.extend(list_dashboards(sources)?);
        for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            files.push(document(
                name,
                fs::read(sources.join(name)).with_context(|| format!("cannot read {name}"))?,
            ));
        }
        files.push(document("changelog.gz", compress_gzip(&fs::read(sources.join("CHANGELOG.md"))?)?));
        files.push(document(
            "THIRD-PARTY.gz",
            compress_gzip(render_notices(&crates, &libraries)?.as_bytes())?,
        ));
        files.push(PackagedFile { role: FileRole::Program, name: "perflab".into(), bytes: program });
        let version = crates.version_of("perflab")?;
        let python = PythonPackage::read(&sources.join("python"), &version)?;
        let machine = libraries.machine;
        let mut contents =
            PackageContents { files, version, machine, libraries, source_date, python, crates };
        let bill = contents.bill_of_materials()?;
        contents.files.push(document("perflab.spdx.json", bill));
        contents.files.sort_by_key(|file| file.path(PackageLayout::Prefix));
        Ok(contents)
    }

    /// The file of that name.
    pub fn find_file(&self, role: FileRole, name: &str) -> Result<&PackagedFile> {
        let found = self.files.iter().find(|file| file.role == role && file.name == name);
        found.with_context(|| format!("there is no {name} to pack"))
    }

    /// `perflab-0.1.0`
    pub fn name_and_version(&self) -> String {
        format!("perflab-{}", self.version)
    }

    /// What the program is made of, as SPDX has it.
    pub fn bill_of_materials(&self) -> Result<Vec<u8>> {
        render_bill(&self.crates, &self.version, &format_source_date(self.source_date)?)
    }

    /// Writes all files below `root`, each with its mode and the one time.
    pub fn write_tree(&self, root: &Path, layout: PackageLayout) -> Result<()> {
        for file in &self.files {
            let path = root.join(file.path(layout));
            fs::create_dir_all(path.parent().context("a file has a folder")?)?;
            fs::write(&path, &file.bytes)?;
            fs::set_permissions(&path, Permissions::from_mode(file.mode()))?;
        }
        set_times(root, SystemTime::UNIX_EPOCH + Duration::from_secs(self.source_date))
    }
}

/// Gives a folder and all that is in it one time, and folders the mode that everybody's have.
pub fn set_times(path: &Path, time: SystemTime) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            set_times(&entry?.path(), time)?;
        }
        fs::set_permissions(path, Permissions::from_mode(0o755))?;
    }
    let times = FileTimes::new().set_modified(time).set_accessed(time);
    File::open(path)?.set_times(times).with_context(|| format!("cannot set the time of {}", path.display()))
}

/// The program without what only a debugger reads.
fn strip_program(binary: &Path) -> Result<Vec<u8>> {
    let folder = ScratchFolder::make("strip")?;
    let stripped = folder.path().join("perflab");
    let done = Command::new("strip").arg("--strip-unneeded").arg("-o").arg(&stripped).arg(binary).output();
    let done = done.context("cannot run strip: install binutils")?;
    if !done.status.success() {
        bail!("strip: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(fs::read(&stripped)?)
}

fn ask_program(binary: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let said = Command::new(binary)
        .args(words)
        .output()
        .with_context(|| format!("cannot run {}", binary.display()))?;
    if !said.status.success() {
        bail!("{} {}: {}", binary.display(), words.join(" "), String::from_utf8_lossy(&said.stderr));
    }
    Ok(said.stdout)
}

fn list_manual_pages(binary: &Path) -> Result<Vec<PackagedFile>> {
    let folder = ScratchFolder::make("man")?;
    ask_program(binary, &["man", "--output", &folder.path().display().to_string()])?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder.path())? {
        let path = entry?.path();
        let name = format!("{}.gz", path.file_name().unwrap_or_default().to_string_lossy());
        pages.push(PackagedFile {
            role: FileRole::ManualPage,
            name,
            bytes: compress_gzip(&fs::read(&path)?)?,
        });
    }
    Ok(pages)
}

fn list_units(sources: &Path) -> Result<Vec<PackagedFile>> {
    let mut units = Vec::new();
    for entry in fs::read_dir(sources.join("contrib")).context("cannot read contrib")? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "service" || ending == "timer") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            units.push(PackagedFile { role: FileRole::SystemdUnit, name, bytes: fs::read(&path)? });
        }
    }
    Ok(units)
}

fn list_dashboards(sources: &Path) -> Result<Vec<PackagedFile>> {
    let mut dashboards = Vec::new();
    for entry in fs::read_dir(sources.join("contrib/grafana")).context("cannot read contrib/grafana")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        dashboards.push(PackagedFile { role: FileRole::Dashboard, name, bytes: fs::read(&path)? });
    }
    Ok(dashboards)
}

/// gzip without a name and a time.
pub fn compress_gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    out.write_all(bytes)?;
    Ok(out.finish()?)
}

/// A folder below `target` that goes when it is let go of.
pub struct ScratchFolder(std::path::PathBuf);

impl ScratchFolder {
    /// An empty one.
    pub fn make(name: &str) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let target = program.parent().and_then(Path::parent).context("no target directory")?;
        let path = target.join(format!("package-{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(ScratchFolder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
