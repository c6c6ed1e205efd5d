//! What the tests need of the machine: packages of the distribution, a Python with pyarrow and DuckDB,
//! the front end's node modules. As root they are installed; otherwise what is missing is listed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A Debian package and a program of it, by which its presence is seen.
struct Package {
    name: &'static str,
    program: &'static str,
}

const fn package(name: &'static str, program: &'static str) -> Package {
    Package { name, program }
}

/// Real benchmarks, file systems, a browser: nothing in the tests is a mock.
const PACKAGES: &[Package] = &[
    package("rt-tests", "hackbench"),
    package("fsmark", "fs_mark"),
    package("fio", "fio"),
    package("sysbench", "sysbench"),
    package("stress-ng", "stress-ng"),
    package("dbench", "dbench"),
    package("iperf3", "iperf3"),
    package("linux-perf", "perf"),
    package("redis-server", "redis-server"),
    package("redis-tools", "redis-benchmark"),
    package("sqlite3", "sqlite3"),
    package("e2fsprogs", "mkfs.ext4"),
    package("xfsprogs", "mkfs.xfs"),
    package("btrfs-progs", "mkfs.btrfs"),
    package("chromium", "chromium"),
    package("fonts-dejavu-core", "fc-list"),
    package("curl", "curl"),
    package("openssh-server", "sshd"),
    package("openssh-client", "ssh"),
    package("procps", "pgrep"),
    package("systemd", "systemd-analyze"),
    package("util-linux", "setpriv"),
    package("qemu-system-x86", "qemu-system-x86_64"),
    package("libvirt-clients", "virsh"),
    package("libvirt-daemon", "libvirtd"),
    package("libvirt-daemon-driver-qemu", "libvirtd"),
    package("binutils", "strip"),
    package("qemu-utils", "qemu-img"),
    package("xvfb", "Xvfb"),
    package("x11-apps", "xclock"),
    package("xterm", "xterm"),
    package("blktrace", "blkparse"),
    package("netcat-openbsd", "nc"),
    package("seabios", "qemu-system-x86_64"),
    package("iproute2", "ip"),
    package("xz-utils", "xz"),
    package("zstd", "zstd"),
    package("dmsetup", "dmsetup"),
    package("gcc", "gcc"),
    package("make", "make"),
    package("python3-venv", "python3"),
    package("nodejs", "node"),
    package("npm", "npm"),
    package("golang-go", "go"),
];

/// Whether we may install.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}

/// Whether a program is on the path, system directories included.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(system).any(|directory| directory.join(program).is_file())
}

/// Installs what is missing, or says so. Returns what is still missing.
pub fn provide(root: bool) -> Result<Vec<&'static str>> {
    println!("=== what the tests need");
    if root && has("apt-get") && !missing().is_empty() {
        install(&missing())?;
    }
    let lacking = missing();
    if lacking.is_empty() {
        println!("every package is here");
    } else {
        println!("missing, and their tests are skipped: {}", lacking.join(", "));
        println!("as root: apt-get install {}", lacking.join(" "));
    }
    if has("python3") {
        python()?;
    }
    Ok(lacking)
}

fn missing() -> Vec<&'static str> {
    PACKAGES.iter().filter(|package| !has(package.program)).map(|package| package.name).collect()
}

fn install(packages: &[&str]) -> Result<()> {
    println!("installing {}", packages.join(" "));
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages);
    run(apt.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
}

/// A virtual environment under target/ with the readers that are not ours.
fn python() -> Result<()> {
    let home = Path::new("target/test-venv");
    let python = home.join("bin/python");
    let ready = || {
        let check = Command::new(&python)
            .args(["-c", "import pyarrow, duckdb, pandas, polars, jsonschema, junitparser, kcidb_io, prometheus_client"])
            .stderr(Stdio::null())
            .status();
        check.is_ok_and(|status| status.success())
    };
    if ready() {
        return Ok(());
    }
    println!("making {} with pyarrow, duckdb, pandas, polars and readers of exports", home.display());
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(home)).and_then(|()| {
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "pyarrow",
            "duckdb",
            "pandas",
            "polars",
            "jsonschema",
            "junitparser",
            "kcidb-io",
            "prometheus-client",
        ];
        run(Command::new(&python).args(pip))
    });
    match made {
        Err(error) if !is_root() => {
            println!("cannot make it, and its tests are skipped: {error:#}");
            Ok(())
        }
        other => other,
    }
}

/// Runs a command to its end; a failure names it.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
