//! Installs peers: what is there already is not fetched again.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::needs;
use crate::peers::peer_source::PeerSource;
use crate::peers::peer_workshop::PeerWorkshop;

/// Installs the peer into the workshop, Debian's packages into the system.
pub fn install_peer(source: PeerSource, workshop: &PeerWorkshop) -> Result<()> {
    let own = workshop.programs();
    match source {
        PeerSource::Debian { package, program } => install_debian_package(package, program),
        PeerSource::Python { package, module } => install_python_package(workshop, package, module),
        PeerSource::Crates { program, .. }
        | PeerSource::Go { program, .. }
        | PeerSource::Folder { program, .. }
        | PeerSource::Cxx { program, .. }
            if own.join(program).is_file() =>
        {
            Ok(())
        }
        PeerSource::Crates { package, .. } => needs::run_command(
            Command::new("cargo")
                .args(["install", "--locked", "--quiet", "--root"])
                .arg(workshop.home())
                .arg(package),
        ),
        PeerSource::Go { path, .. } => needs::run_command(
            Command::new("go").args(["install", &format!("{path}@latest")]).env("GOBIN", &own),
        ),
        PeerSource::Folder { path, program } => {
            let target = workshop.home().join("build");
            let manifest = workshop.repository().join(path).join("Cargo.toml");
            let mut build = Command::new("cargo");
            build.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
            needs::run_command(build.env("CARGO_TARGET_DIR", &target))?;
            fs::copy(target.join("release").join(program), own.join(program))?;
            Ok(())
        }
        PeerSource::Cxx { file, links, program } => {
            let mut build = Command::new("g++");
            build.args(["-O2", "-std=c++17", "-o"]).arg(own.join(program));
            needs::run_command(build.arg(workshop.repository().join(file)).args(links))
        }
    }
}

fn install_debian_package(package: &str, program: &str) -> Result<()> {
    if needs::is_program_installed(program) || Path::new(program).exists() {
        return Ok(());
    }
    if !needs::is_root() {
        bail!("{program} is not there; as root: apt-get install {package}");
    }
    needs::install_packages(&[package])
}

fn install_python_package(workshop: &PeerWorkshop, package: &str, module: &str) -> Result<()> {
    let home = workshop.home().join("venv");
    let python = home.join("bin/python3");
    if !python.is_file() {
        needs::run_command(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    }
    let mut import = Command::new(&python);
    let imported = import.args(["-c", &format!("import {module}")]).stderr(std::process::Stdio::null());
    if imported.status().with_context(|| format!("cannot run {}", python.display()))?.success() {
        return Ok(());
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    needs::run_command(Command::new(&python).args(pip))
}
