//! `perflab monitor|check|undo`: the laboratory itself.

use std::path::PathBuf;

use perflab_conduct::emulated::sweep;
use perflab_conduct::executions::{EndedExecutions, end_abandoned};
use perflab_conduct::settings::{Recovered, recover};
use perflab_conduct::startup::remove_abandoned_groups;
use perflab_model::{Facts, Value};
use perflab_observe::own_directories;
use perflab_present::table::{Cell, Column, Format, Grid};
use serde_json::json;

use crate::arguments;
use crate::context::Context;
use crate::exit::Exit;
use crate::signals;

/// `perflab monitor list`
pub fn monitors(context: &Context) -> anyhow::Result<Exit> {
    let mut grid = Grid::new(["monitor", "source", "records", "needs"].map(Column::left));
    for kind in perflab_observe::monitors() {
        grid.add([kind.name, kind.source, kind.about, kind.needs].map(Cell::from));
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

/// What killed runs left behind, put back: what their journals tell, then disks of which no journal tells any more.
pub fn leftovers(context: &Context) -> Vec<Recovered> {
    let boot = perflab_observe::boot_id(&context.root);
    let places = own_directories::states();
    let told = places.iter().flat_map(|place| recover(place, &boot));
    told.chain(sweep()).collect()
}

/// What killed imports left in the archive, removed.
pub fn remove_half_made(context: &Context) -> Vec<PathBuf> {
    context.archive().map(|archive| archive.remove_half_made()).unwrap_or_default()
}

/// `perflab undo`
pub fn undo(context: &Context, wanted: &arguments::Undo) -> anyhow::Result<Exit> {
    // A signal while things are put back changes nothing of it.
    let stop = std::sync::Arc::default();
    signals::note(&stop)?;
    if wanted.after_signal.is_some() {
        signals::hear_again()?;
    }
    let (places, boot) = (own_directories::states(), perflab_observe::boot_id(&context.root));
    let looked = places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
    let EndedExecutions { ended, left_alone } = end_abandoned(&places, &boot, wanted.after_signal.is_some());
    if ended > 0 {
        context.say(format!("ended {ended} processes of killed runs, which were still running"));
    }
    if !left_alone.is_empty() {
        let pids: Vec<String> = left_alone.iter().map(i32::to_string).collect();
        context.say(format!(
            "left alone: {}, with the mark of a perflab that is gone, of whose runs nothing in {} tells",
            pids.join(", "),
            looked.join(", ")
        ));
    }
    let mut half_made = remove_half_made(context);
    if wanted.after_signal.is_some() {
        half_made.extend(context.archive().map(|archive| archive.remove_own_half_made()).unwrap_or_default());
    }
    half_made.iter().for_each(|path| context.say(format!("removed {}, left half-made", path.display())));
    let guests = perflab_conduct::machine::running::remove_abandoned().unwrap_or_default();
    guests
        .iter()
        .for_each(|path| context.say(format!("removed {}, of a guest that was killed", path.display())));
    let groups = remove_abandoned_groups();
    groups.iter().for_each(|path| context.say(format!("removed {}, left by a killed start", path.display())));
    let found = leftovers(context);
    let none = if found.is_empty() { "no run left a setting behind; " } else { "" };
    context.say(format!("{none}looked for journals in {}", looked.join(", ")));
    if context.format == Format::Json {
        let of = |run: &Recovered| json!({ "run": run.run, "undone": run.undone, "failed": run.failed });
        let runs: Vec<_> = found.iter().map(of).collect();
        let removed: Vec<_> =
            half_made.iter().chain(&guests).chain(&groups).map(|path| path.display().to_string()).collect();
        context.document(&json!({
            "ended": ended, "left_alone": left_alone, "removed": removed, "runs": runs, "folders": looked
        }))?;
    }
    let mut failed = false;
    for run in found {
        run.undone.iter().for_each(|setting| context.say(format!("{}: put back {setting}", run.run)));
        run.failed.iter().for_each(|setting| stderr_line!("warning: {}: not put back: {setting}", run.run));
        failed |= !run.failed.is_empty();
    }
    if let Some(signal) = wanted.after_signal {
        signals::die_of(signal);
    }
    Ok(if failed { Exit::LeftChanged } else { Exit::Fine })
}

/// `perflab check`
pub fn check(context: &Context, wanted: &arguments::Check) -> anyhow::Result<Exit> {
    let facts = perflab_observe::facts(&context.root, None)?;
    if wanted.facts {
        context.print(&facts_grid(&facts))?;
        return Ok(Exit::Fine);
    }
    let mut grid = Grid::new(["what", "found", "better", "why"].map(Column::left));
    for finding in FINDINGS.iter().filter_map(|rule| rule.apply(&facts)) {
        grid.add(finding);
    }
    context.print(&grid)?;
    context.say("`perflab check --facts` prints everything that a run records of this machine");
    Ok(Exit::Fine)
}

/// Facts as a table: key, value, source.
pub fn facts_grid(facts: &Facts) -> Grid {
    let mut grid = Grid::new(["fact", "value", "source"].map(Column::left));
    for (key, fact) in &facts.0 {
        grid.add([key.as_str().into(), fact_cell(&fact.value), fact.source.as_str().into()]);
    }
    grid
}

/// A fact's value: numbers with a point in as many digits as people read.
fn fact_cell(value: &Value) -> Cell {
    match value {
        Value::Float(number) => Cell::shown(Cell::quantity(*number, "").text(), value.to_string()),
        other => Cell::from(other.to_string()),
    }
}

/// Something that disturbs measurements, and how to see it in the facts.
struct Rule {
    fact: &'static str,
    bad: fn(&Value) -> bool,
    better: &'static str,
    why: &'static str,
}

impl Rule {
    fn apply(&self, facts: &Facts) -> Option<[Cell; 4]> {
        let value = facts.get(self.fact)?;
        (self.bad)(value).then(|| [self.fact.into(), fact_cell(value), self.better.into(), self.why.into()])
    }
}

const FINDINGS: &[Rule] = &[
    Rule {
        fact: "cpu.governor",
        bad: |value| value.to_string() != "performance",
        better: "performance",
        why: "the clock follows the load, so the first iterations are slower",
    },
    Rule {
        fact: "load.1",
        bad: |value| value.number().is_some_and(|load| load > 0.5),
        better: "below 0.5",
        why: "something else is running",
    },
    Rule {
        fact: "clocksource.current",
        bad: |value| !matches!(value.to_string().as_str(), "tsc" | "kvm-clock" | "arch_sys_counter"),
        better: "tsc",
        why: "reading the clock is a slow system call",
    },
    Rule {
        fact: "load.steal_percent",
        bad: |value| value.number().is_some_and(|steal| steal > 0.1),
        better: "below 0.1",
        why: "the hypervisor gives this machine's time to others",
    },
    Rule {
        fact: "kernel.config.KASAN",
        bad: |value| value.to_string() == "y",
        better: "n",
        why: "a debug kernel: its costs are not those of a real one",
    },
    Rule {
        fact: "hypervisor.present",
        bad: |value| *value == Value::Bool(true),
        better: "bare metal",
        why: "neighbours and steal time are part of what is measured",
    },
    Rule {
        fact: "kernel.tainted",
        bad: |value| value.number().is_some_and(|taint| taint != 0.0),
        better: "0",
        why: "foreign modules or warnings: the kernel is not the one you think of",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_facts_have_the_digits_that_people_read() {
        let text = |value: Value| fact_cell(&value).text().to_owned();
        assert_eq!(text(Value::Float(0.10478584825978167)), "0.1048");
        assert_eq!(text(Value::Int(123_456_789)), "123456789");
    }
}
