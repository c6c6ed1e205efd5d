//! Hostile studies: what is too large is refused, and of what runs nothing survives; perflab's memory is bounded.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::processes::{find_survivors, kill_survivors, perflab_command, wait_for_process};

/// Studies that are too large, and workloads that do not want to end.
pub const ATTACK: Attack = Attack {
    name: "studies",
    tries: "studies too large or too deep; workloads that fork, flee, ignore TERM, stop themselves, kill perflab, print 300 MB",
    brief: 25,
    full: 225,
    carry_out: attack_with_studies,
};

/// What perflab may take at most, in bytes: of a build without optimisation.
const MOST_MEMORY: u64 = 700 << 20;
/// KiB of addresses that a refused study may use.
const MOST_ADDRESSES: &str = "2000000";
/// A word of the command line of all that flees.
const FLEES: &str = "31337.5";

/// What is tried.
enum HostileStudy {
    /// A study that is to be refused (exit code 2) by `study check`, `study expand` and `run` alike.
    Refused(fn() -> String),
    /// A workload's script; which exit codes of `run` are right.
    Runs(&'static str, &'static [i32]),
}

use HostileStudy::{Refused, Runs};

const ALL: &[(&str, HostileStudy)] = &[
    ("4,000,000,000 iterations", Refused(|| "run = { iterations = 4000000000 }\n[workload.hostile]".into())),
    ("1000 x 1000", Refused(|| format!("[workload.hostile]\n{}", factor_tables(2)))),
    ("1000^4", Refused(|| format!("[workload.hostile]\n{}", factor_tables(4)))),
    ("1000^20", Refused(|| format!("[workload.hostile]\n{}", factor_tables(20)))),
    ("4,000,000,000 boots", Refused(|| "run = { boots = 4000000000 }\n[workload.hostile]".into())),
    (
        "4,000,000,000 targets",
        Refused(|| "[workload.hostile]\n[target.t]\nkind = \"process\"\ncount = 4000000000".into()),
    ),
    ("50,000 terms", Refused(|| study_with_value(&["1"; 50_000].join("+")))),
    ("50,000 signs", Refused(|| study_with_value(&format!("{}1", "-".repeat(50_000))))),
    (
        "50,000 brackets",
        Refused(|| study_with_value(&format!("{}1{}", "(".repeat(50_000), ")".repeat(50_000)))),
    ),
    ("a width of 10^9", Refused(|| study_with_value("'%1000000000d'|format(1)"))),
    ("a text 10^8 times", Refused(|| study_with_value("'x' * 100000000"))),
    ("a value 10^8 times", Refused(|| study_with_values(&["'x'", "v0 * 100000000"]))),
    ("a list 10^8 times", Refused(|| study_with_value("((0,) * 100000000)|length"))),
    (
        "values that grow fourfold",
        Refused(|| {
            let grown = (0..16).map(|number| format!("v{number} ~ v{number} ~ v{number} ~ v{number}"));
            let all: Vec<String> = std::iter::once("'0123456789abcdef'".into()).chain(grown).collect();
            study_with_values(&all.iter().map(String::as_str).collect::<Vec<_>>())
        }),
    ),
    (
        "TOML 20,000 deep",
        Refused(|| format!("values = {{ a = {}1{} }}", "[".repeat(20_000), "]".repeat(20_000))),
    ),
    ("300 sessions", Runs("for i in $(seq 300); do setsid sleep 31337.5 & done; echo speed 1", &[0])),
    ("a session of its own", Runs("setsid sleep 31337.5 & echo speed 1", &[0])),
    ("a double fork", Runs("(setsid sh -c 'sleep 31337.5 & exit' &); echo speed 1", &[0])),
    ("an empty environment", Runs("env -i sleep 31337.5 & echo speed 1", &[0])),
    ("TERM ignored", Runs("trap '' TERM INT HUP; echo speed 1; while :; do sleep 31337.5; done", &[4])),
    ("it stops itself", Runs("echo speed 1; kill -STOP $$; sleep 31337.5", &[4])),
    ("300 MB on stdout", Runs("echo speed 1; head -c 300M /dev/zero", &[0, 4])),
    ("300 MB on stderr", Runs("echo speed 1; head -c 300M /dev/urandom >&2", &[0, 4])),
    ("it prints for ever", Runs("while :; do echo speed 1; done", &[4])),
    ("it kills perflab", Runs("setsid sleep 31337.5 & kill -9 $PPID; sleep 31337.5", &[137])),
];

fn factor_tables(count: usize) -> String {
    let numbers = (1..=1000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let one = |number: usize| format!("[factor.f{number}]\nkind = \"environment\"\nlevels = [{numbers}]\n");
    (0..count).map(one).collect()
}

fn study_with_value(expression: &str) -> String {
    format!(
        "values = {{ a = \"{expression}\" }}\n[workload.hostile]\nenvironment = {{ A = \"{{{{ a }}}}\" }}"
    )
}

/// Named values, `v0` first; the last is used.
fn study_with_values(expressions: &[&str]) -> String {
    let all = expressions.iter().enumerate().map(|(number, text)| format!("v{number} = \"{text}\"\n"));
    let last = expressions.len() - 1;
    format!(
        "[values]\n{}[workload.hostile]\nenvironment = {{ A = \"{{{{ v{last} }}}}\" }}",
        all.collect::<String>()
    )
}

fn attack_with_studies(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    let mut counts = AttackCounts::default();
    for (_, (name, hostile)) in (0..count).zip(ALL.iter().cycle()) {
        let failure = match hostile {
            Refused(text) => attempt_refused_study(ground, &text()),
            Runs(script, codes) => attempt_hostile_script(ground, script, codes),
        };
        counts.count_attempt(failure.with_context(|| *name)?.map(|failure| format!("{name}: {failure}")));
    }
    Ok(counts)
}

fn write_study_files(ground: &AttackEnvironment, script: &str, study: &str) -> Result<()> {
    let folder = ground.folder.join("workloads");
    fs::create_dir_all(&folder)?;
    let workload = format!(
        "title = \"hostile\"\nmeasures = \"an attack\"\nhomepage = \"https://localhost\"\nlicence = \"MIT\"\n\
         argv = [\"sh\", \"-c\", '''{script}''']\n[[metric]]\nname = \"speed\"\nunit = \"ops/s\"\n\
         direction = \"higher\"\nprimary = true\nregex = 'speed (?<value>[0-9.]+)'\n"
    );
    fs::write(folder.join("hostile.toml"), workload)?;
    fs::write(ground.folder.join("study.toml"), format!("title = \"attack\"\n{study}\n"))?;
    Ok(())
}

fn attempt_refused_study(ground: &AttackEnvironment, study: &str) -> Result<Option<String>> {
    write_study_files(ground, "echo speed 1", study)?;
    for words in [&["study", "check"][..], &["study", "expand"], &["run", "--no-report"]] {
        let own = perflab_command(ground, &[&["--workloads", "workloads"], words, &["study.toml"]].concat());
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -v {MOST_ADDRESSES}; exec \"$@\""), "sh"]);
        limited.arg(own.get_program()).args(own.get_args()).current_dir(&ground.folder);
        limited.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let ended = wait_for_process(&mut limited.spawn()?)?;
        if ended.code != Some(2) {
            return Ok(Some(format!("{} ended with {:?}", words.join(" "), ended.code)));
        }
    }
    Ok(None)
}

fn attempt_hostile_script(ground: &AttackEnvironment, script: &str, codes: &[i32]) -> Result<Option<String>> {
    let rules = "run = { iterations = 1, warmup = 0, time-limit = \"2s\" }\n[workload.hostile]";
    write_study_files(ground, script, rules)?;
    let mut run = perflab_command(ground, &["--workloads", "workloads", "run", "study.toml", "--no-report"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
    let ended = wait_for_process(&mut run)?;
    let left = find_survivors(ground, FLEES);
    kill_survivors(ground, FLEES);
    if !left.is_empty() {
        return Ok(Some(format!("{} processes live on: {}", left.len(), left.concat())));
    }
    if ended.peak > MOST_MEMORY {
        return Ok(Some(format!("it took {} MB", ended.peak >> 20)));
    }
    let is_right = ended.code.is_some_and(|code| codes.contains(&code));
    Ok((!is_right).then(|| format!("it ended with {:?}", ended.code)))
}
