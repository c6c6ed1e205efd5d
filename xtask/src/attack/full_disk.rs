//! A disk that fills while perflab writes: it is reported, nothing half-done is left under a final name, what is there
//! stays readable, and room can be made.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::trial::{LIMITS, TrialBench, list_files};
use crate::needs;

/// Runs, reports and imports on a small tmpfs.
pub const ATTACK: Attack = Attack {
    name: "full-disk",
    tries: "run on a tmpfs of 200 KB to 1 MB, then list, show, compare, report, import and prune there",
    brief: 3,
    full: 20,
    carry_out: attack_full_disk,
};

const STUDY: &str = "title = \"full\"\nrun = { iterations = 40, warmup = 0 }\n[workload.context-switches]\n\
                     [monitors]\nvmstat = \"10ms\"\nmeminfo = \"10ms\"\n";

fn attack_full_disk(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    if !needs::is_root() {
        bail!("mounting is root's");
    }
    let bench = TrialBench::new(ground, "disk", &LIMITS)?;
    let study = ground.folder.join("study.toml");
    fs::write(&study, STUDY)?;
    let mut counts = AttackCounts::default();
    for number in 0..count {
        let size = 200 + 800 * number / count.max(2);
        fs::create_dir_all(bench.archive_path())?;
        let options = format!("size={size}k,mode=0755");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "perflab-attack"]).arg(bench.archive_path());
        ensure!(mount.status()?.success(), "a tmpfs cannot be mounted");
        let failure = attempt_on_full_disk(&bench, &study);
        ensure!(
            Command::new("umount").arg(bench.archive_path()).status()?.success(),
            "the tmpfs cannot be unmounted"
        );
        counts.count_attempt(failure?.map(|failure| format!("{size} KB: {failure}")));
    }
    Ok(counts)
}

fn attempt_on_full_disk(bench: &TrialBench<'_>, study: &Path) -> Result<Option<String>> {
    let recorded = Path::new("crates/import/tests/recorded/lkp-fsmark").canonicalize()?;
    let (study, recorded) = (study.display().to_string(), recorded.display().to_string());
    for words in [
        &["run", &study, "--label", "full"][..],
        &["run", &study, "--label", "full"],
        &["list"],
        &["show", "@latest"],
        &["compare", "@latest", "@latest"],
        &["report", "@latest"],
        &["import", &recorded],
        &["list"],
    ] {
        if let Some(failure) = bench.try_command(words)? {
            return Ok(Some(failure));
        }
    }
    for file in list_files(&bench.archive_path())? {
        let name = file.to_string_lossy();
        let is_report = name.ends_with(".html");
        if (is_report && !fs::read_to_string(&file)?.trim_end().ends_with("</html>"))
            || name.ends_with(".tmp")
        {
            return Ok(Some(format!("{name} is left, and half")));
        }
    }
    if let Some(failure) = bench.try_command(&["prune", "--keep", "0", "--labelled", "--apply"])? {
        return Ok(Some(failure));
    }
    let left = fs::read_dir(bench.archive_path().join("runs")).map_or(0, |runs| runs.count());
    Ok((left > 0).then(|| format!("prune left {left} runs")))
}
