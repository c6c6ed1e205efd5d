//! The table of attacks, and how they are carried out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::attack::attempts::{Attack, AttackEnvironment};
use crate::attack::{
    archive, attach, execs, full_disk, guests, imports, profiles, settings, signals, studies,
};
use crate::reliability;

/// All attacks, in the order in which they are carried out.
const ALL: &[Attack] = &[
    settings::ATTACK,
    signals::ATTACK,
    studies::ATTACK,
    profiles::ATTACK,
    guests::ATTACK,
    execs::ATTACK,
    imports::ATTACK,
    archive::ATTACK,
    full_disk::ATTACK,
    attach::ATTACK,
];

/// Carries out all attacks, or some; `false` where something did not hold.
///
/// `arguments` are what follows `long attack`: `--brief`, `--only NAME` (several times for several).
pub fn run_attacks(arguments: &[String]) -> Result<bool> {
    let (brief, only) = parse_attack_arguments(arguments)?;
    if let Some(name) = only.iter().find(|name| !ALL.iter().any(|attack| attack.name == name.as_str())) {
        let names: Vec<&str> = ALL.iter().map(|attack| attack.name).collect();
        bail!("there is no attack `{name}`; there are: {}", names.join(", "));
    }
    let commit = reliability::tested_commit()?;
    let programs = create_temporary_folder("programs")?;
    let all_held = build_attacked_programs(&programs).and_then(|()| {
        let mut all_held = true;
        for attack in
            ALL.iter().filter(|attack| only.is_empty() || only.iter().any(|name| name == attack.name))
        {
            let count = if brief { attack.brief } else { attack.full };
            all_held &= run_attack(attack, &programs, count, &commit)?;
        }
        Ok(all_held)
    });
    std::fs::remove_dir_all(&programs).with_context(|| format!("cannot remove {}", programs.display()))?;
    all_held
}

fn parse_attack_arguments(arguments: &[String]) -> Result<(bool, Vec<String>)> {
    let (mut brief, mut only) = (false, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--brief" => brief = true,
            "--only" => only.push(arguments.next().context("--only needs the name of an attack")?.clone()),
            other => bail!("`{other}` is not known; there are --brief and --only NAME"),
        }
    }
    Ok((brief, only))
}

fn run_attack(attack: &Attack, programs: &Path, count: u32, commit: &str) -> Result<bool> {
    let folder = create_temporary_folder(attack.name)?;
    let (perflab, xtask) = (programs.join("perflab"), programs.join("xtask"));
    let ground = AttackEnvironment { perflab, xtask, folder: folder.clone() };
    let begun = Instant::now();
    println!("=== {}: {}, {count} times", attack.name, attack.tries);
    let counts = (attack.carry_out)(&ground, count);
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    let counts = counts.with_context(|| format!("attack {}", attack.name))?;
    println!(
        "{}: {} tried, {} held, {} failed, in {} s",
        attack.name,
        counts.tried,
        counts.held,
        counts.failed_attempts(),
        begun.elapsed().as_secs()
    );
    counts.failures.iter().for_each(|failure| println!("  {failure}"));
    let cells = [
        attack.tries.to_owned(),
        counts.tried.to_string(),
        counts.held.to_string(),
        counts.failed_attempts().to_string(),
    ];
    reliability::ATTACKS.record_row(attack.name, &cells, commit)?;
    Ok(counts.failed_attempts() == 0)
}

/// A new folder of this process's own.
fn create_temporary_folder(name: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("perflab-attack-{name}-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// Copies the perflab that cargo builds here, and this program, into a folder.
fn build_attacked_programs(folder: &Path) -> Result<()> {
    let built = Command::new("cargo").args(["build", "--quiet", "--package", "perflab"]).status()?;
    if !built.success() {
        bail!("perflab cannot be built");
    }
    for (from, name) in [("target/debug/perflab", "perflab"), ("/proc/self/exe", "xtask")] {
        std::fs::copy(from, folder.join(name)).with_context(|| format!("cannot copy {from}"))?;
    }
    Ok(())
}
