//! An archive from somebody else: its files damaged, or no files, and what reads and prunes it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use damage::{MutationRandom, mutate_bytes};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::trial::{LIMITS, TrialBench, copy_folder, list_files, repeat_trials};

/// Hostile archives and portable files.
pub const ATTACK: Attack = Attack {
    name: "archive",
    tries: "list, show, compare, export, report and prune of archives and portable files whose files are mutated, pipes, \
            links out of the archive or other files",
    brief: 150,
    full: 700,
    carry_out: attack_archives,
};

const RECORDED: &str = "crates/import/tests/recorded";
/// What stands outside of the archive, and must stay as it is.
const OUTSIDE: &str = "nobody's but mine";

fn attack_archives(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    let good = TrialBench::new(ground, "good", &LIMITS)?;
    let folded = good.folder.join("stacks.folded");
    fs::write(&folded, "a;b;c 10\na;b 5\nd 1\n")?;
    let recorded = Path::new(RECORDED).canonicalize()?;
    for file in ["tools/hyperfine.json", "tools/sar.json", "blktrace/cat.blktrace.0"] {
        let path = recorded.join(file).display().to_string();
        ensure!(
            good.try_command(&["import", "--label", "old", "--again", &path])?.is_none(),
            "{file} cannot be imported"
        );
    }
    ensure!(
        good.try_command(&["flame", "import", &folded.display().to_string()])?.is_none(),
        "stacks cannot be imported"
    );
    ensure!(good.try_command(&["export", "@latest", "whole.perflab"])?.is_none(), "nothing can be exported");
    repeat_trials(ground, &LIMITS, count, |bench, number, chance| match number % 5 {
        0 => attempt_portable_file(bench, &fs::read(good.folder.join("whole.perflab"))?, chance),
        _ => attempt_damaged_run(bench, &good.archive_path(), chance),
    })
}

/// Something is wrong with one file of one run.
fn attempt_damaged_run(
    bench: &TrialBench<'_>,
    good: &Path,
    chance: &mut MutationRandom,
) -> Result<Option<String>> {
    let (archive, outside) = (bench.archive_path(), bench.folder.join("outside"));
    if archive.exists() {
        fs::remove_dir_all(&archive)?;
    }
    copy_folder(good, &archive)?;
    fs::create_dir_all(&outside)?;
    fs::write(outside.join("file"), OUTSIDE)?;
    let all = list_files(&archive.join("runs"))?;
    let file = all.get(chance.next_below(all.len())).context("an empty archive")?;
    let other = all.get(chance.next_below(all.len())).context("an empty archive")?;
    let (bytes, run) =
        (fs::read(file)?, file.strip_prefix(&archive)?.iter().nth(1).unwrap_or_default().to_owned());
    let kind = chance.next_below(8);
    match kind {
        0..=3 => fs::write(file, mutate_bytes(&bytes, chance))?,
        4 => fs::write(file, fs::read(other)?)?,
        5 => {
            fs::remove_file(file)?;
            ensure!(Command::new("mkfifo").arg(file).status()?.success(), "mkfifo failed");
        }
        6 => {
            fs::remove_file(file)?;
            let to = [outside.join("file"), "/proc/kmsg".into(), "/dev/zero".into(), file.clone()];
            symlink(&to[chance.next_below(to.len())], file)?;
        }
        _ => {
            let link = ["lock", "finishing", "raw", "SHA256SUMS.tmp"][chance.next_below(4)];
            let link = archive.join("runs").join(&run).join(link);
            if link.symlink_metadata().is_err() {
                symlink(&outside, link)?;
            }
        }
    }
    let id = run.to_string_lossy().into_owned();
    for words in [
        &["list"][..],
        &["show", &id],
        &["compare", &id, &id],
        &["compare", &id, "--by", "command"],
        &["io", "show", &id],
        &["flame", "show", &id],
        &["report", &id, "-o", "r.html"],
        &["export", &id, "--to", "csv"],
        &["export", &id, "out.perflab"],
        &["prune", "--keep", "0", "--labelled", "--apply"],
    ] {
        if let Some(failure) = bench.try_command(words)? {
            return Ok(Some(format!("{} (kind {kind}): {failure}", file.display())));
        }
    }
    let _ = fs::remove_file(bench.folder.join("out.perflab"));
    let is_whole = fs::read(outside.join("file"))? == OUTSIDE.as_bytes() && list_files(&outside)?.len() == 1;
    Ok((!is_whole)
        .then(|| format!("{} (kind {kind}): what lies outside of the archive changed", file.display())))
}

/// A mutated portable file.
fn attempt_portable_file(
    bench: &TrialBench<'_>,
    whole: &[u8],
    chance: &mut MutationRandom,
) -> Result<Option<String>> {
    fs::write(bench.folder.join("mutant.perflab"), mutate_bytes(whole, chance))?;
    for words in [&["show", "mutant.perflab"][..], &["import", "mutant.perflab"], &["list"]] {
        if let Some(failure) = bench.try_command(words)? {
            return Ok(Some(format!("a portable file: {failure}")));
        }
    }
    Ok(None)
}
