//! The progress bar: what is being done, how far it is, how long it still takes. On stderr, and only
//! a few lines where stderr is no terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perflab_model::event::{Phase, Standing};
use perflab_model::{Event, Manifest, Nanos, Outcome, What};

use super::{Consumer, targets};

/// Shows a run as it goes.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    terminal: bool,
    manifest: Option<Box<Manifest>>,
    failed: u32,
    label: String,
    /// Whom the others wait for, since when, and whether that was said.
    awaited: Option<(String, Nanos, bool)>,
}

/// Where there is no bar to look at: how long one may keep the others waiting before that is said.
const WORTH_A_LINE: Nanos = Nanos(10_000_000_000);

const STYLE: &str = "{spinner:.dim} {bar:32.cyan/dim} {pos}/{len}  {prefix}  {wide_msg:.dim}";

impl Progress {
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
        Progress { bar, quiet, terminal, manifest: None, failed: 0, label: String::new(), awaited: None }
    }

    fn say(&self, text: &str) {
        if self.terminal && !self.quiet {
            self.bar.println(text);
        } else if !self.quiet {
            stderr_line!("{text}");
        }
    }

    fn warn(&self, text: &str) {
        self.bar.suspend(|| stderr_line!("{text}"));
    }

    fn began(&mut self, manifest: &Manifest) {
        let (cases, slots) = (manifest.plan.cases.len(), manifest.plan.slots.len());
        self.bar.set_length(slots as u64);
        let order = &manifest.plan.order;
        let (cases, slots) = (counted(cases, "case"), counted(slots, "iteration"));
        let until = manifest.study.run.until;
        let end = until.map_or(String::new(), |until| format!(" at most (until {until})"));
        self.say(&format!("{}: {cases}, {slots}{end}, {order} order", manifest.study.title));
        self.manifest = Some(Box::new(manifest.clone()));
    }

    fn iteration(&mut self, slot: u32) {
        let Some(manifest) = &self.manifest else { return };
        let Some(wanted) = manifest.plan.slots.get(slot as usize) else { return };
        let label = manifest.plan.case(wanted.case).map(perflab_model::Case::label).unwrap_or_default();
        self.bar.set_message(label.clone());
        self.label = match wanted.warmup {
            true => format!("{label}, warm-up"),
            false => format!("{label}, iteration {}", wanted.iteration + 1),
        };
    }

    /// Where the targets are; one that keeps the others waiting for long is said once even without a bar.
    fn standing(&mut self, all: &[Standing], now: Nanos) {
        let line = targets::line(all, now);
        self.bar.set_message(if self.label.is_empty() {
            line.clone()
        } else {
            format!("{}: {line}", self.label)
        });
        let late = targets::awaited(all);
        match (&mut self.awaited, late) {
            (Some((known, since, said)), Some(late)) if *known == late => {
                if now.since(*since) > WORTH_A_LINE && !std::mem::replace(said, true) && !self.terminal {
                    self.say(&line);
                }
            }
            (awaited, late) => *awaited = late.map(|late| (late, now, false)),
        }
    }

    fn ended(&mut self, slot: u32, outcome: &Outcome, target: Option<u32>) {
        let reason = match outcome {
            Outcome::Ok => return,
            Outcome::Failed { reason } => reason.clone(),
            Outcome::TimedOut { limit } => {
                format!("stopped with all its children at its time limit of {limit}")
            }
            Outcome::Interrupted => "interrupted".into(),
        };
        self.failed += 1;
        let case = self.manifest.as_ref().and_then(|manifest| {
            let slot = manifest.plan.slots.get(slot as usize)?;
            Some(manifest.plan.case(slot.case)?.label())
        });
        let case = case.unwrap_or_default();
        self.warn(&format!("warning: {case} (iteration {slot}{}): {reason}", self.on(target)));
    }

    /// ` on guest1`
    fn on(&self, target: Option<u32>) -> String {
        let targets = self.manifest.as_ref().map(|manifest| &manifest.targets);
        let target = targets.zip(target).and_then(|(all, index)| all.get(index as usize));
        target.map(|target| format!(" on {}", target.name)).unwrap_or_default()
    }

    fn phase(&self, phase: Phase) {
        let text = match phase {
            Phase::Check => "checking",
            Phase::Install => "installing",
            Phase::Prepare => "preparing",
            Phase::Apply => "applying settings",
            Phase::Warmup => "warm-up",
            Phase::Iterate => "measuring",
            Phase::Undo => "undoing settings",
            Phase::Finish => "writing tables",
        };
        self.bar.set_prefix(text);
    }
}

impl Consumer for Progress {
    fn take(&mut self, event: &Event) -> anyhow::Result<()> {
        match &event.what {
            What::Began(manifest) => self.began(manifest),
            What::Phase(phase) => self.phase(*phase),
            What::IterationBegan { slot } => self.iteration(*slot),
            What::IterationEnded { slot, outcome, .. } => self.ended(*slot, outcome, event.target),
            What::Progress { done, remaining, .. } => {
                self.bar.set_position(u64::from(*done));
                if let Some(remaining) = remaining {
                    let seconds = Duration::from(*remaining).as_secs();
                    self.bar.set_prefix(format!("{}:{:02} left", seconds / 60, seconds % 60));
                }
            }
            What::Standing(all) => self.standing(all, event.at),
            What::Warning { message, advice } => self.warn(&format!("warning: {message}; {advice}")),
            // A gap that ends by itself is in the record; one that stays is worth a word now.
            What::Gap(gap) if gap.to.is_none() => {
                self.warn(&format!("warning: monitor {} records nothing: {}", gap.monitor, gap.reason));
            }
            What::Ended { .. } => self.bar.finish_and_clear(),
            _ => {}
        }
        Ok(())
    }
}

/// `1 case`, `2 cases`
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
