use std::fs;

use perflab_model::study::TomlSource;
use sha2::{Digest, Sha256};

use super::*;

fn definition_with_install(install: &str) -> WorkloadDefinition {
    let text = format!(
        "title = \"a\"\nmeasures = \"b\"\nhomepage = \"https://example.org\"\nlicence = \"d\"\nargv = [\"no-such-tool\"]\n\
         {install}\n[[metric]]\nname = \"m\"\nunit = \"s\"\ndirection = \"lower\"\ntime = \"wall\"\n"
    );
    WorkloadDefinition::read(&TomlSource::new("tool.toml", text)).unwrap_or_else(|error| panic!("{error}"))
}

/// A source archive whose build copies a script, and its checksum.
fn build_source_archive(directory: &Path) -> SourceArchive {
    let top = directory.join("tool-1.0");
    fs::create_dir_all(&top).unwrap();
    fs::write(top.join("tool.in"), "#!/bin/sh\necho tool 1.0\n").unwrap();
    let file = directory.join("tool.tar");
    let made = Command::new("tar").arg("-C").arg(directory).arg("-cf").arg(&file).arg("tool-1.0").status();
    assert!(made.unwrap().success());
    let sha256 = Sha256::digest(fs::read(&file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    let build = ["cp tool.in tool", "chmod 755 tool"];
    SourceArchive {
        url: format!("file://{}", file.display()),
        sha256,
        build: build.map(|line| line.split(' ').map(str::to_owned).collect()).to_vec(),
        installs: "tool".into(),
    }
}

#[test]
fn a_source_archive_is_checked_built_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("installed");
    let steps = InstallSteps::Source { archive: build_source_archive(directory.path()), into: into.clone() };
    let mut said = Vec::new();
    run_install(&steps, &mut |line| said.push(line.to_owned())).unwrap();
    run_install(&steps, &mut |_| {}).unwrap();
    assert_eq!(said, install_commands(&steps));
    let output = Command::new(into.join("bin/tool")).output().unwrap();
    assert_eq!(output.stdout, b"tool 1.0\n");
}

#[test]
fn another_archive_is_refused_before_anything_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("installed");
    let wrong = SourceArchive { sha256: "0".repeat(64), ..build_source_archive(directory.path()) };
    let error =
        run_install(&InstallSteps::Source { archive: wrong, into: into.clone() }, &mut |_| {}).unwrap_err();
    assert!(matches!(error, InstallError::Checksum { .. }), "{error}");
    assert_eq!(fs::read_dir(into.join("source")).unwrap().count(), 0);
}

#[test]
fn a_build_that_fails_says_what_it_said() {
    let directory = tempfile::tempdir().unwrap();
    let build = vec![vec!["cat".to_owned(), "nothing".to_owned()]];
    let archive = SourceArchive { build, ..build_source_archive(directory.path()) };
    let steps = InstallSteps::Source { archive, into: directory.path().join("installed") };
    let said = run_install(&steps, &mut |_| {}).unwrap_err().to_string();
    assert!(said.starts_with("`cat nothing` failed: exit status: 1: cat: nothing: No such file"), "{said}");
}

#[test]
fn packages_are_asked_for_in_the_managers_own_words() {
    let packages = ["fio".to_owned()];
    assert_eq!(
        PackageManager::Apt.install_command(&packages).join(" "),
        "apt-get install --yes --no-install-recommends fio"
    );
    assert_eq!(
        PackageManager::Pacman.install_command(&packages).join(" "),
        "pacman --sync --needed --noconfirm fio"
    );
}

#[test]
fn what_is_not_installed_says_how() {
    let steps = plan_install(&definition_with_install(""));
    assert_eq!(steps.unwrap(), InstallSteps::Nothing);
    let everywhere = "[install]\napt = [\"p\"]\ndnf = [\"p\"]\nzypper = [\"p\"]\npacman = [\"p\"]";
    let said = definition_with_install(everywhere).check_requirements().unwrap_err().to_string();
    assert!(said.starts_with("workload `tool`: no-such-tool not installed; "), "{said}");
    if PackageManager::detect().is_some() {
        assert!(said.contains("run `perflab workload install tool`, or `"), "{said}");
    }
}
