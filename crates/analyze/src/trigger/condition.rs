//! A condition of a flight recorder: a column beyond a bound, a line of the kernel's log, the end of the command, a signal.

use std::fmt;
use std::str::FromStr;

use perflab_formats::kernel::kernel_log::{KernelTrouble, split_printed_line};
use perflab_model::named::Named;
use perflab_model::{Outcome, suggest_name};
use regex::Regex;

use crate::trigger::column_bound::{ColumnBound, TriggerError};

/// One condition, as written and what it means.
#[derive(Debug, Clone)]
pub struct TriggerCondition {
    text: String,
    /// What it is about.
    pub kind: ConditionKind,
}

/// What a condition is about.
#[derive(Debug, Clone)]
pub enum ConditionKind {
    /// a column of a monitor
    Column(ColumnBound),
    /// a line of the kernel's log
    KernelLog(KernelLogCondition),
    /// the end of the watched command
    Exit(ExitCondition),
    /// SIGUSR1
    Signal,
}

/// Which lines of the kernel's log meet a condition.
#[derive(Debug, Clone)]
pub enum KernelLogCondition {
    /// those that say that something is wrong, of one kind or any
    Trouble(Option<KernelTrouble>),
    /// those in which this is found
    Pattern(Regex),
}

/// Which ends of the command meet a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCondition {
    /// any
    Any,
    /// all but success, and being stopped with the recorder
    Failed,
}

/// How conditions about the kernel's log begin, as those of `--fail-if` do.
const KERNEL_LOG: &str = "kernel-log:";

/// Words that are conditions, and those that conditions begin with.
const WORDS: [&str; 7] =
    ["signal", "exit", "exit:any", "exit:failed", "kernel-log:any", "kernel-log:KIND", "kernel-log:/REGEX/"];

impl FromStr for TriggerCondition {
    type Err = TriggerError;

    /// Reads `signal`, `exit`, `exit:failed`, `kernel-log:KIND`, `kernel-log:/REGEX/`, or a column with its bound.
    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let text = text.trim();
        let refuse = |reason| TriggerError { text: text.into(), reason };
        let kind = match text {
            "signal" => ConditionKind::Signal,
            "exit" | "exit:any" => ConditionKind::Exit(ExitCondition::Any),
            "exit:failed" => ConditionKind::Exit(ExitCondition::Failed),
            _ if text.contains(['<', '>']) && !text.starts_with(KERNEL_LOG) => {
                ConditionKind::Column(ColumnBound::parse(text)?)
            }
            _ => match text.strip_prefix(KERNEL_LOG) {
                Some(lines) => ConditionKind::KernelLog(KernelLogCondition::parse(lines).map_err(refuse)?),
                None => {
                    let near = suggest_name(text, WORDS);
                    let near = if near.contains('?') { format!("{near} ") } else { String::new() };
                    let reason = format!(
                        "{near}write a column with its bound, such as `vmstat.pgscan_direct > 1000/s`, or one of {}",
                        WORDS.join(", ")
                    );
                    return Err(refuse(reason));
                }
            },
        };
        Ok(TriggerCondition { text: text.into(), kind })
    }
}

/// As it was written.
impl fmt::Display for TriggerCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl KernelLogCondition {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(pattern) = text.strip_prefix('/') {
            let pattern = pattern.strip_suffix('/').filter(|pattern| !pattern.is_empty());
            let pattern = pattern.ok_or("write kernel-log:/REGEX/, between two slashes")?;
            let regex = Regex::new(pattern).map_err(|error| {
                let lines: Vec<String> =
                    error.to_string().lines().map(|line| line.trim().to_owned()).collect();
                format!("`{pattern}` is no regular expression: {}", lines.last().cloned().unwrap_or_default())
            })?;
            return Ok(KernelLogCondition::Pattern(regex));
        }
        if text == "any" {
            return Ok(KernelLogCondition::Trouble(None));
        }
        let kinds: Vec<&str> = KernelTrouble::NAMES.iter().map(|(_, name, _)| *name).collect();
        KernelTrouble::from_name(text).map(|kind| KernelLogCondition::Trouble(Some(kind))).ok_or_else(|| {
            let near = suggest_name(text, kinds.iter().copied());
            format!("`{text}` is no kind of line (a text is looked for with kernel-log:/REGEX/); {near}")
        })
    }

    /// The first of some lines, as they are stored, that meets it; without its level and time.
    #[must_use]
    pub fn find_line<'a>(&self, printed: &'a str) -> Option<&'a str> {
        let text = |line: &'a str| split_printed_line(line).map(|(_, text)| text);
        printed.lines().filter_map(text).find(|line| match self {
            KernelLogCondition::Trouble(wanted) => {
                KernelTrouble::find(line).is_some_and(|found| wanted.is_none_or(|wanted| wanted == found))
            }
            KernelLogCondition::Pattern(regex) => regex.is_match(line),
        })
    }
}

impl ExitCondition {
    /// How a command ended, in words, where that meets it.
    #[must_use]
    pub fn describe_end(self, outcome: &Outcome) -> Option<String> {
        match outcome {
            Outcome::Ok => (self == ExitCondition::Any).then(|| "it ended well".into()),
            // The recorder's own end is no news.
            Outcome::Interrupted => None,
            failed => Some(failed.failure_reason().unwrap_or_else(|| "it failed".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        text.parse::<TriggerCondition>().unwrap_err().to_string()
    }

    #[test]
    fn conditions_are_read_by_their_words() {
        let kind = |text: &str| text.parse::<TriggerCondition>().unwrap().kind;
        assert!(matches!(kind("signal"), ConditionKind::Signal));
        assert!(matches!(kind(" exit "), ConditionKind::Exit(ExitCondition::Any)));
        assert!(matches!(kind("exit:failed"), ConditionKind::Exit(ExitCondition::Failed)));
        assert!(matches!(
            kind("kernel-log:any"),
            ConditionKind::KernelLog(KernelLogCondition::Trouble(None))
        ));
        assert!(matches!(
            kind("kernel-log:hung-task"),
            ConditionKind::KernelLog(KernelLogCondition::Trouble(Some(KernelTrouble::HungTask)))
        ));
        assert!(matches!(
            kind("kernel-log:/a > b/"),
            ConditionKind::KernelLog(KernelLogCondition::Pattern(_))
        ));
        assert!(matches!(kind("meminfo.MemAvailable < 200MiB"), ConditionKind::Column(_)));
        assert_eq!("  exit:any ".parse::<TriggerCondition>().unwrap().to_string(), "exit:any");
    }

    #[test]
    fn what_is_no_condition_is_refused_with_what_to_write() {
        insta::assert_snapshot!(reason("singal"), @"`singal` is no condition: did you mean `signal`? write a column with its bound, such as `vmstat.pgscan_direct > 1000/s`, or one of signal, exit, exit:any, exit:failed, kernel-log:any, kernel-log:KIND, kernel-log:/REGEX/");
        insta::assert_snapshot!(reason("kernel-log:panik"), @"`kernel-log:panik` is no condition: `panik` is no kind of line (a text is looked for with kernel-log:/REGEX/); did you mean `panic`?");
        insta::assert_snapshot!(reason("kernel-log:/(/"), @"`kernel-log:/(/` is no condition: `(` is no regular expression: error: unclosed group");
        insta::assert_snapshot!(reason("kernel-log:/"), @"`kernel-log:/` is no condition: write kernel-log:/REGEX/, between two slashes");
        insta::assert_snapshot!(reason("vmstat.pgscan_direct"), @"`vmstat.pgscan_direct` is no condition: write a column with its bound, such as `vmstat.pgscan_direct > 1000/s`, or one of signal, exit, exit:any, exit:failed, kernel-log:any, kernel-log:KIND, kernel-log:/REGEX/");
    }

    #[test]
    fn lines_are_found_without_their_level_and_time() {
        let printed =
            "<6>[    5.140900] usb 1-1: new device\n<4>[    6.000000] WARNING: CPU: 0 PID: 1\nno line\n";
        let found = |text: &str| {
            let condition: TriggerCondition = text.parse().unwrap();
            let ConditionKind::KernelLog(lines) = condition.kind else { return None };
            lines.find_line(printed).map(String::from)
        };
        assert_eq!(found("kernel-log:any").as_deref(), Some("WARNING: CPU: 0 PID: 1"));
        assert_eq!(found("kernel-log:warning").as_deref(), Some("WARNING: CPU: 0 PID: 1"));
        assert_eq!(found("kernel-log:panic"), None);
        assert_eq!(found("kernel-log:/^usb .*device$/").as_deref(), Some("usb 1-1: new device"));
        assert_eq!(found("kernel-log:/5[.]14/"), None, "the time is no part of the line");
    }

    #[test]
    fn a_command_that_was_stopped_has_not_failed() {
        let failed = Outcome::Failed { reason: "exit code 3".into() };
        assert_eq!(ExitCondition::Failed.describe_end(&failed).as_deref(), Some("exit code 3"));
        assert_eq!(ExitCondition::Failed.describe_end(&Outcome::Ok), None);
        assert!(ExitCondition::Any.describe_end(&Outcome::Ok).is_some());
        assert_eq!(ExitCondition::Any.describe_end(&Outcome::Interrupted), None);
    }
}
