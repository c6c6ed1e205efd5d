//! `--fail-if` and `--fail-on-differs`: what makes a comparison fail.

use clap::Args;
use perflab_analyze::{Comparison, Gate};

use crate::app::App;
use crate::failure::UsageError;

/// What makes a comparison fail.
#[derive(Debug, Clone, Default, Args)]
pub struct GateArgs {
    /// Exit with code 5 if this is found: `worse`, `worse:2%` (by more than 2 %), `better`, `unclear`, `missing`, `kernel-log:any`
    /// (trouble in the kernel's log that the baseline has not; or one kind of it, such as `kernel-log:warning`)
    #[arg(long, value_name = "VERDICT[:CHANGE]")]
    pub fail_if: Option<Gate>,
    /// Count `differs`, which two single runs get, as better or worse, whichever way it goes; alone, as with --fail-if worse
    #[arg(long)]
    pub fail_on_differs: bool,
}

impl GateArgs {
    /// Whether anything makes the comparison fail.
    pub fn is_given(&self) -> bool {
        self.fail_if.is_some() || self.fail_on_differs
    }

    /// What is not acceptable.
    pub fn gate(&self) -> Option<Gate> {
        if !self.fail_on_differs {
            return self.fail_if.clone();
        }
        Some(self.fail_if.clone().unwrap_or_else(Gate::worse).counting_differing())
    }

    /// Refuses conditions about the kernel's log where it is not read.
    pub fn refuse_kernel_log(&self, what: &str) -> Result<(), UsageError> {
        match self.fail_if.as_ref().is_some_and(Gate::reads_kernel_log) {
            false => Ok(()),
            true => Err(UsageError::new(
                format!("{what} reads no kernel log"),
                "write the condition after `perflab compare A B --fail-if`",
            )),
        }
    }

    /// Says what would have failed, if two single runs could make a comparison fail.
    pub fn note_uncounted(&self, context: &App, comparison: &Comparison) {
        let Some(gate) = self.fail_if.as_ref().filter(|_| !self.fail_on_differs) else { return };
        let counted = comparison.violations(gate).len();
        let all = comparison.violations(&gate.clone().counting_differing()).len();
        if all > counted {
            context.note(format!(
                "--fail-if {gate}: {} more between two single runs, not counted (--fail-on-differs counts what differs)",
                all - counted
            ));
        }
    }
}
