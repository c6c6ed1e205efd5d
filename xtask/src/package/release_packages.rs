//! All packages of a release, and what `cargo xtask package` takes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::checksums::write_sums;
use super::contents::PackageContents;
use super::{debian_package, python_wheel, rpm_package, tarball};
use crate::steps;

/// Where packages go unless something else is said.
const OUTPUT: &str = "target/packages";

/// What `cargo xtask package` was told.
pub struct PackageOrder {
    /// a program that is built already
    binary: Option<PathBuf>,
    output: PathBuf,
}

impl PackageOrder {
    /// Reads the arguments.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut order = PackageOrder { binary: None, output: OUTPUT.into() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} takes a path"))?;
            match word.as_str() {
                "--binary" => order.binary = Some(value.into()),
                "--output" => order.output = value.into(),
                other => bail!("there are --binary PATH and --output DIR, and no {other}"),
            }
        }
        Ok(order)
    }
}

/// Builds all packages of the program that is named, else of a static one that is built for it; gives their paths.
pub fn build_packages(order: &PackageOrder) -> Result<Vec<PathBuf>> {
    let binary = match &order.binary {
        Some(binary) => binary.clone(),
        None => steps::build_static_binary()?,
    };
    let contents = PackageContents::collect(&binary)?;
    fs::create_dir_all(&order.output)?;
    let made = write_packages(&contents, &order.output)?;
    for path in &made {
        println!("{:>10}  {}", fs::metadata(path)?.len(), path.display());
    }
    Ok(made)
}

/// The packages of these contents in a folder, with the sums of all of them.
fn write_packages(contents: &PackageContents, output: &Path) -> Result<Vec<PathBuf>> {
    let mut made = vec![
        tarball::write_tarball(contents, output)?,
        debian_package::write_package(contents, output)?,
        rpm_package::write_package(contents, output)?,
        python_wheel::write_wheel(contents, output)?,
    ];
    let bill = output.join(format!("{}.spdx.json", contents.name_and_version()));
    fs::write(&bill, contents.bill_of_materials()?)?;
    made.push(bill);
    made.push(write_sums(output, &made)?);
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::contents::{FileRole, PackagedFile};

    fn read_all(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<(String, Vec<u8>)> =
            entries.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect();
        files.sort();
        files.iter_mut().for_each(|(name, _)| *name = name.rsplit('/').next().unwrap().to_owned());
        files
    }

    /// This test program stands for perflab, which `cargo xtask long packages` packs and installs.
    #[test]
    fn packages_of_one_program_have_the_same_bytes_and_are_what_dpkg_and_rpm_read() {
        let lacking = ["dpkg-deb", "rpmbuild", "strip"]
            .into_iter()
            .find(|one| !crate::needs::is_program_installed(one));
        let has_wheel = crate::needs::find_python_with("wheel").is_some();
        if let Some(lacking) = lacking.or((!has_wheel).then_some("Python's wheel")) {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{lacking} is missing");
            eprintln!("SKIP packages_of_one_program: {lacking} is missing");
            return;
        }
        let program = fs::read("/bin/true").unwrap();
        let page = PackagedFile { role: FileRole::ManualPage, name: "perflab.1.gz".into(), bytes: vec![1] };
        let contents =
            PackageContents::assemble(Path::new(".."), program, vec![page], 1_700_000_000).unwrap();
        let home = tempfile::tempdir().unwrap();
        let made = ["a", "b"].map(|name| {
            let folder = home.path().join(name);
            fs::create_dir(&folder).unwrap();
            write_packages(&contents, &folder).unwrap();
            read_all(&folder)
        });
        assert_eq!(made[0].len(), 6);
        for (first, second) in made[0].iter().zip(&made[1]) {
            assert!(first == second, "{}", first.0);
        }
        let list = |program: &str, option: &str, ending: &str| {
            let (name, _) = made[0].iter().find(|(name, _)| name.ends_with(ending)).unwrap();
            let said = std::process::Command::new(program)
                .arg(option)
                .arg(home.path().join("a").join(name))
                .output();
            String::from_utf8(said.unwrap().stdout).unwrap()
        };
        for listed in
            [list("dpkg-deb", "--contents", ".deb"), list("rpm", "-qpl", ".rpm"), list("tar", "-tzf", ".gz")]
        {
            for path in [
                "bin/perflab",
                "man1/perflab.1.gz",
                "doc/perflab/THIRD-PARTY.gz",
                "perflab-prefetch.service",
                "perflab-queue.service",
                "perflab-queue.timer",
                "perflab-queue-watch@.service",
                "perflab-queue-watch@.timer",
            ] {
                assert!(listed.contains(path), "{path}: {listed}");
            }
        }
        let (wheel, _) = made[0].iter().find(|(name, _)| name.ends_with(".whl")).unwrap();
        assert!(wheel.starts_with("perflab-") && wheel.contains("-py3-none-manylinux_2_"), "{wheel}");
        let python = crate::needs::find_python_with("wheel").unwrap();
        let mut zip = std::process::Command::new(python);
        zip.args(["-m", "zipfile", "--list"]).arg(home.path().join("a").join(wheel));
        let listed = String::from_utf8(zip.output().unwrap().stdout).unwrap();
        for path in [
            "perflab/__init__.py",
            "perflab/py.typed",
            ".data/scripts/perflab",
            ".dist-info/licenses/THIRD-PARTY ",
            ".dist-info/RECORD",
        ] {
            assert!(listed.contains(path), "{path}: {listed}");
        }
        let sums = std::process::Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(home.path().join("a"))
            .output();
        assert!(sums.unwrap().status.success());
    }
}
