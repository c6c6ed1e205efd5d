//! The progress bar: what is being done, how far it is, how long it still takes.
//!
//! On stderr, and only a few lines where stderr is no terminal. A synchronised run shows what each target does, and
//! which one the others wait for.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perflab_analyze::stopping_rule::relative_precision;
use perflab_model::event::{RunPhase, TargetState, TargetStatus};
use perflab_model::quantity::{format_quantity, format_share};
use perflab_model::{Manifest, Nanos, Outcome, RunEvent, RunEventKind, Sample, remove_control_characters};
use perflab_present::count_text;

use crate::failure::Failure;
use crate::measure::event_consumers::EventConsumer;

/// Shows a run as it goes.
#[derive(Debug)]
pub struct ProgressReporter {
    bar: ProgressBar,
    quiet: bool,
    is_terminal: bool,
    manifest: Option<Box<Manifest>>,
    failed: u32,
    label: String,
    /// By case, what its first deciding metric was so far.
    estimates: HashMap<u32, RunningEstimate>,
    /// Whom the others wait for, since when, and whether that was reported.
    awaited: Option<(String, Nanos, bool)>,
}

/// Where there is no bar to look at: how long one may keep the others waiting before that is reported.
const WORTH_A_LINE: Nanos = Nanos(10_000_000_000);

const STYLE: &str = "{spinner:.dim} {bar:32.cyan/dim} {pos}/{len}  {prefix}  {wide_msg:.dim}";

impl ProgressReporter {
    /// A bar that waits for the first event.
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let shown = terminal && !quiet;
        let target =
            if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template(STYLE) {
            bar.set_style(style.progress_chars("━━─"));
        }
        ProgressReporter {
            bar,
            quiet,
            is_terminal: terminal,
            manifest: None,
            failed: 0,
            label: String::new(),
            estimates: HashMap::new(),
            awaited: None,
        }
    }

    fn print_line(&self, text: &str) {
        if self.is_terminal && !self.quiet {
            self.bar.println(text);
        } else if !self.quiet {
            stderr_line!("{text}");
        }
    }

    fn print_warning(&self, text: &str) {
        self.bar.suspend(|| stderr_line!("{text}"));
    }

    fn begin_run(&mut self, manifest: &Manifest) {
        let (cases, slots) = (manifest.plan.cases.len(), manifest.plan.slots.len());
        self.bar.set_length(slots as u64);
        let order = &manifest.plan.order;
        let (cases, slots) = (count_text(cases, "case"), count_text(slots, "iteration"));
        let until = manifest.study.run.until;
        let end = until.map_or(String::new(), |until| format!(" at most (until {until})"));
        self.print_line(&format!("{}: {cases}, {slots}{end}, {order} order", manifest.study.title));
        if let Some(takes) = &manifest.study.takes {
            self.print_line(&format!("it takes, as the study says: {}", remove_control_characters(takes)));
        }
        self.manifest = Some(Box::new(manifest.clone()));
    }

    fn begin_iteration(&mut self, slot: u32) {
        let Some(manifest) = &self.manifest else { return };
        let Some(requested) = manifest.plan.slots.get(slot as usize) else { return };
        let label = manifest.plan.case(requested.case).map(perflab_model::Case::label).unwrap_or_default();
        let known = self.estimates.get(&requested.case).and_then(RunningEstimate::describe);
        self.bar.set_message(known.map_or_else(|| label.clone(), |known| format!("{label}: {known}")));
        self.label = match requested.warmup {
            true => format!("{label}, warm-up"),
            false => format!("{label}, iteration {}", requested.iteration + 1),
        };
    }

    /// Where the targets are; one that keeps the others waiting for long is reported once even without a bar.
    fn show_target_states(&mut self, all: &[TargetStatus], now: Nanos) {
        let line = target_states_line(all, now);
        self.bar.set_message(if self.label.is_empty() {
            line.clone()
        } else {
            format!("{}: {line}", self.label)
        });
        let late = awaited_targets(all);
        match (&mut self.awaited, late) {
            (Some((known, since, is_reported)), Some(late)) if *known == late => {
                if now.since(*since) > WORTH_A_LINE
                    && !std::mem::replace(is_reported, true)
                    && !self.is_terminal
                {
                    self.print_line(&line);
                }
            }
            (awaited, late) => *awaited = late.map(|late| (late, now, false)),
        }
    }

    fn end_iteration(&mut self, slot: u32, outcome: &Outcome, target: Option<u32>) {
        let Some(reason) = outcome.failure_reason() else { return };
        self.failed += 1;
        let case = self.manifest.as_ref().and_then(|manifest| {
            let slot = manifest.plan.slots.get(slot as usize)?;
            Some(manifest.plan.case(slot.case)?.label())
        });
        let case = case.unwrap_or_default();
        self.print_warning(&format!("warning: {case} (slot {slot}{}): {reason}", self.target_suffix(target)));
    }

    /// Keeps a value of what decides, for whoever looks at the bar.
    fn note_sample(&mut self, sample: &Sample) {
        if !sample.primary || self.bar.is_hidden() {
            return;
        }
        let estimate = self.estimates.entry(sample.case).or_insert_with(|| RunningEstimate {
            metric: sample.metric.to_string(),
            unit: sample.unit.to_string(),
            values: Vec::new(),
        });
        if estimate.metric == sample.metric.as_str() {
            estimate.values.push(sample.value);
        }
    }

    /// ` on guest1`
    fn target_suffix(&self, target: Option<u32>) -> String {
        let targets = self.manifest.as_ref().map(|manifest| &manifest.targets);
        let target = targets.zip(target).and_then(|(all, index)| all.get(index as usize));
        target.map(|target| format!(" on {}", target.name)).unwrap_or_default()
    }

    fn show_phase(&self, phase: RunPhase) {
        let text = match phase {
            RunPhase::Check => "checking",
            RunPhase::Install => "installing",
            RunPhase::Prepare => "preparing",
            RunPhase::CheckHalves => "one level against itself",
            RunPhase::Apply => "applying settings",
            RunPhase::Warmup => "warm-up",
            RunPhase::Iterate => "measuring",
            RunPhase::Undo => "undoing settings",
            RunPhase::Finish => "writing tables",
        };
        self.bar.set_prefix(text);
    }
}

impl EventConsumer for ProgressReporter {
    fn consume(&mut self, event: &RunEvent) -> Result<(), Failure> {
        match &event.what {
            RunEventKind::Began(manifest) => self.begin_run(manifest),
            RunEventKind::Phase(phase) => self.show_phase(*phase),
            RunEventKind::IterationBegan { slot } => self.begin_iteration(*slot),
            RunEventKind::IterationEnded { slot, outcome, .. } => {
                self.end_iteration(*slot, outcome, event.target)
            }
            RunEventKind::Sample(sample) => self.note_sample(sample),
            RunEventKind::Progress { done, remaining, .. } => {
                self.bar.set_position(u64::from(*done));
                if let Some(remaining) = remaining {
                    let seconds = Duration::from(*remaining).as_secs();
                    self.bar.set_prefix(format!("{}:{:02} left", seconds / 60, seconds % 60));
                }
            }
            RunEventKind::Standing(all) => self.show_target_states(all, event.at),
            RunEventKind::Warning { message, advice } => {
                self.print_warning(&format!("warning: {message}; {advice}"))
            }
            // A gap that ends by itself is in the record; one that stays is worth a word now.
            RunEventKind::Gap(gap) if gap.to.is_none() => {
                self.print_warning(&format!(
                    "warning: monitor {} records nothing: {}",
                    gap.monitor, gap.reason
                ));
            }
            RunEventKind::Ended { .. } => self.bar.finish_and_clear(),
            _ => {}
        }
        Ok(())
    }
}

/// What a metric of a case was so far.
#[derive(Debug)]
struct RunningEstimate {
    metric: String,
    unit: String,
    values: Vec<f64>,
}

impl RunningEstimate {
    /// `time 12.3 ms ± 2 % (7)`: the median, half its 95 % interval where there is one, and how many values that is of.
    fn describe(&self) -> Option<String> {
        let middle = format_quantity(perflab_stats::median(&self.values).ok()?, &self.unit);
        let precision =
            relative_precision(&self.values, 0.95).map(|share| format!(" ± {}", format_share(share)));
        Some(format!("{} {middle}{} ({})", self.metric, precision.unwrap_or_default(), self.values.len()))
    }
}

/// More targets than this are counted, not listed.
const LISTED: usize = 8;

/// How many of those that are waited for are named then.
const NAMED: usize = 3;

/// `guest1 done · guest2 works 3.1 s; waiting for guest2`
pub fn target_states_line(all: &[TargetStatus], now: Nanos) -> String {
    let mut text = if all.len() > LISTED { count_target_states(all) } else { list_target_states(all, now) };
    if let Some(names) = awaited_targets(all) {
        text.push_str(&format!("; waiting for {names}"));
    }
    text
}

fn list_target_states(all: &[TargetStatus], now: Nanos) -> String {
    let one = |one: &TargetStatus| {
        let seconds = Duration::from(now.since(one.since)).as_secs_f64();
        let time = if one.state.is_awaited() { format!(" {seconds:.0} s") } else { String::new() };
        format!("{} {}{time}", one.name, target_state_word(one.state))
    };
    all.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn count_target_states(all: &[TargetStatus]) -> String {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    for one in all {
        match counts.iter_mut().find(|(known, _)| *known == target_state_word(one.state)) {
            Some((_, count)) => *count += 1,
            None => counts.push((target_state_word(one.state), 1)),
        }
    }
    let parts: Vec<String> = counts.into_iter().map(|(what, count)| format!("{count} {what}")).collect();
    format!("{} targets: {}", all.len(), parts.join(", "))
}

/// Those that keep the others waiting: some are there, and these are not.
pub fn awaited_targets(all: &[TargetStatus]) -> Option<String> {
    let late: Vec<&str> =
        all.iter().filter(|one| one.state.is_awaited()).map(|one| one.name.as_str()).collect();
    let waits =
        |one: &TargetStatus| matches!(one.state, TargetState::Ready | TargetState::Done | TargetState::Gone);
    if late.is_empty() || !all.iter().any(waits) {
        return None;
    }
    let mut names = late.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if late.len() > NAMED {
        names.push_str(&format!(" and {} more", late.len() - NAMED));
    }
    Some(names)
}

fn target_state_word(state: TargetState) -> &'static str {
    match state {
        TargetState::Starts => "starts",
        TargetState::Prepares => "prepares",
        TargetState::Sets => "sets",
        TargetState::Ready => "ready",
        TargetState::Works => "works",
        TargetState::Done => "done",
        TargetState::Leaves => "leaves",
        TargetState::Gone => "gone",
        TargetState::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states_of_targets(states: &[TargetState]) -> Vec<TargetStatus> {
        let one = |(index, state): (usize, &TargetState)| TargetStatus {
            name: format!("guest{}", index + 1),
            state: *state,
            since: Nanos(1_000_000_000),
        };
        states.iter().enumerate().map(one).collect()
    }

    #[test]
    fn the_estimate_is_the_median_with_what_is_known_of_it() {
        let estimate = |values: &[f64]| {
            RunningEstimate { metric: "time".into(), unit: "s".into(), values: values.to_vec() }.describe()
        };
        assert_eq!(estimate(&[]), None);
        let few = estimate(&[0.2, 0.1, 0.3]).unwrap();
        let many: Vec<f64> = (0..21).map(|step| 0.9 + f64::from(step) * 0.01).collect();
        insta::assert_snapshot!(format!("{few}\n{}", estimate(&many).unwrap()), @r"
time 200 ms (3)
time 1 s ± 5.00 % (21)
");
    }

    #[test]
    fn each_with_what_it_does_and_the_slowest_by_name() {
        let text =
            |states: &[TargetState]| target_states_line(&states_of_targets(states), Nanos(4_200_000_000));
        use TargetState::{Done, Lost, Starts, Works};
        assert_eq!(
            text(&[Done, Works, Lost]),
            "guest1 done · guest2 works 3 s · guest3 lost; waiting for guest2"
        );
        assert_eq!(text(&[Starts, Starts]), "guest1 starts 3 s · guest2 starts 3 s");
        let many: Vec<TargetState> = (0..12).map(|n| if n < 7 { Done } else { Works }).collect();
        assert_eq!(
            text(&many),
            "12 targets: 7 done, 5 works; waiting for guest8, guest9, guest10 and 2 more"
        );
    }
}
