//! `NAME --key value …` of a load, as definitions write it, and why a load did not measure.
//!
//! A load takes the keys that it knows, and the rest is an error.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Bytes, Nanos};

/// Why a load did not measure.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nothing went wrong: help was asked for.
    #[error("{0}")]
    Help(String),
    /// No such load.
    #[error("there is no load `{name}`; {hint}")]
    Unknown {
        /// what was asked for
        name: String,
        /// the nearest name, or all
        hint: String,
    },
    /// An argument is not what it should be.
    #[error("--{key}: {reason}")]
    Argument {
        /// its key
        key: String,
        /// what is wrong with it
        reason: String,
    },
    /// A word that belongs to no key.
    #[error("`{word}`: what a load is told is `--key value`")]
    StrayWord {
        /// the word
        word: String,
    },
    /// The system refused.
    #[error("cannot {action}: {source}")]
    Refused {
        /// what was tried, with its object
        action: String,
        /// the system's reason
        source: std::io::Error,
    },
    /// A task of several could not do what all do.
    #[error("task {task}: {reason}")]
    Task {
        /// which, from 0 on
        task: usize,
        /// why
        reason: String,
    },
    /// A signal asked for its end.
    #[error("stopped by a signal")]
    Stopped,
    /// The result of the computation is not what arithmetic says: the machine or this code is broken.
    #[error("{what}: expected {expected}, found {found}; this machine computes wrongly")]
    WrongResult {
        /// what was computed
        what: String,
        /// by arithmetic
        expected: f64,
        /// in memory
        found: f64,
    },
}

impl Classify for LoadError {
    fn class(&self) -> ErrorClass {
        match self {
            LoadError::Help(_)
            | LoadError::Unknown { .. }
            | LoadError::Argument { .. }
            | LoadError::StrayWord { .. } => ErrorClass::Usage,
            LoadError::Refused { .. } | LoadError::Task { .. } | LoadError::WrongResult { .. } => {
                ErrorClass::Unexpected
            }
            LoadError::Stopped => ErrorClass::WorkloadFailed,
        }
    }
}

impl LoadError {
    pub(crate) fn system_error(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> LoadError {
        let action = action.into();
        move |source| LoadError::Refused { action, source }
    }
}

/// The arguments of one load, taken one by one.
#[derive(Debug)]
pub(crate) struct BuiltinLoadArgs {
    pub(crate) load: String,
    /// values without a key, before the first key
    bare: VecDeque<String>,
    values: BTreeMap<String, String>,
    used_keys: Vec<&'static str>,
    /// what a key may be, in lines of help; none unless help is requested
    help: Option<Vec<String>>,
}

/// Asks a load for its keys, in place of measuring.
const HELP: [&str; 2] = ["--help", "-h"];

impl BuiltinLoadArgs {
    pub(crate) fn parse(arguments: &[OsString]) -> Result<Self, LoadError> {
        let mut texts = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
        let load = texts.next().unwrap_or_default();
        if texts.clone().any(|text| HELP.contains(&text.as_str())) {
            let (bare, values) = (VecDeque::new(), BTreeMap::new());
            return Ok(BuiltinLoadArgs { load, bare, values, used_keys: Vec::new(), help: Some(Vec::new()) });
        }
        let (mut values, mut bare) = (BTreeMap::new(), VecDeque::new());
        while let Some(text) = texts.next() {
            if values.is_empty() && !text.starts_with("--") {
                bare.push_back(text);
                continue;
            }
            let Some(key) = text.strip_prefix("--") else { return Err(LoadError::StrayWord { word: text }) };
            let value = texts.next().ok_or_else(|| invalid_value_error(key, "its value is missing"))?;
            values.insert(key.to_owned(), value);
        }
        Ok(BuiltinLoadArgs { load, bare, values, used_keys: Vec::new(), help: None })
    }

    /// Keys of the values that come before the first key, for a load that takes such.
    pub(crate) fn bind_positionals(&mut self, keys: &[&'static str]) {
        self.add_help_line(|| {
            format!("  the first values may stand without their keys: {}", keys.join(", "))
        });
        for key in keys {
            let Some(value) = self.bare.pop_front() else { return };
            self.values.insert((*key).to_owned(), value);
        }
    }

    /// A value of any type that reads itself.
    pub(crate) fn value<T: FromStr<Err: Display> + Display>(
        &mut self,
        key: &'static str,
        default: T,
    ) -> Result<T, LoadError> {
        let shown = default.to_string();
        self.value_with_shown_default(key, default, &shown)
    }

    /// The same of a type whose default cannot be written as a value: `shown` says what it is.
    pub(crate) fn value_with_shown_default<T: FromStr<Err: Display>>(
        &mut self,
        key: &'static str,
        default: T,
        shown: &str,
    ) -> Result<T, LoadError> {
        self.add_help_line(|| match shown {
            "" => format!("  --{key} <VALUE>"),
            shown => format!("  --{key} <VALUE>  [default: {shown}]"),
        });
        match self.remove_text(key) {
            Some(text) => {
                text.parse().map_err(|error| invalid_value_error(key, &format!("`{text}`: {error}")))
            }
            None => Ok(default),
        }
    }

    /// A whole number of at least `least`.
    pub(crate) fn count(
        &mut self,
        key: &'static str,
        default: usize,
        least: usize,
    ) -> Result<usize, LoadError> {
        let count = self.value(key, default)?;
        if count < least {
            return Err(invalid_value_error(key, &format!("{count} is too few; at least {least}")));
        }
        Ok(count)
    }

    /// The same of at most `most`.
    pub(crate) fn count_within(
        &mut self,
        key: &'static str,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> Result<usize, LoadError> {
        let count = self.count(key, default, *range.start())?;
        if count > *range.end() {
            return Err(invalid_value_error(key, &format!("{count} is too many; at most {}", range.end())));
        }
        Ok(count)
    }

    /// A time: a bare number of seconds, or one with a unit.
    pub(crate) fn duration(&mut self, key: &'static str, default: Duration) -> Result<Duration, LoadError> {
        self.add_help_line(|| {
            let default = Nanos(u64::try_from(default.as_nanos()).unwrap_or(u64::MAX));
            format!("  --{key} <TIME>  [default: {default}]")
        });
        let Some(text) = self.remove_text(key) else { return Ok(default) };
        if let Ok(seconds) = text.parse() {
            return Duration::try_from_secs_f64(seconds)
                .map_err(|error| invalid_value_error(key, &format!("`{text}`: {error}")));
        }
        let time = Nanos::parse(&text).map_err(|error| invalid_value_error(key, &error.to_string()))?;
        Ok(Duration::from_nanos(time.0))
    }

    /// Bytes: a bare number, or one with a unit.
    pub(crate) fn size(&mut self, key: &'static str, default: usize) -> Result<usize, LoadError> {
        self.add_help_line(|| match default {
            0 => format!("  --{key} <BYTES>  [default: chosen by the load]"),
            default => format!("  --{key} <BYTES>  [default: {}]", Bytes(default as u64)),
        });
        let Some(text) = self.remove_text(key) else { return Ok(default) };
        if let Ok(bytes) = text.parse() {
            return Ok(bytes);
        }
        let bytes = Bytes::parse(&text).map_err(|error| invalid_value_error(key, &error.to_string()))?;
        usize::try_from(bytes.0).map_err(|error| invalid_value_error(key, &error.to_string()))
    }

    /// One of several names; the first is the default.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, LoadError> {
        let names = choices.iter().map(|(name, _)| *name);
        self.add_help_line(|| {
            let names: Vec<&str> = names.clone().collect();
            let default = names.first().copied().unwrap_or_default();
            format!("  --{key} <{}>  [default: {default}]", names.join("|"))
        });
        let text =
            self.remove_text(key).or_else(|| names.clone().next().map(str::to_owned)).unwrap_or_default();
        let found = choices.iter().find(|(name, _)| *name == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            invalid_value_error(key, &format!("`{text}`: {}", perflab_model::suggest_name(&text, names)))
        })
    }

    fn add_help_line(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.help {
            lines.push(line());
        }
    }

    /// Whether everything was taken; to be called before measuring.
    pub(crate) fn require_all_used(&self) -> Result<(), LoadError> {
        if let Some(lines) = &self.help {
            let text = format!("Usage: perflab load {} [--KEY VALUE]...\n\n{}", self.load, lines.join("\n"));
            return Err(LoadError::Help(text));
        }
        if let Some(text) = self.bare.front() {
            return Err(LoadError::StrayWord { word: text.clone() });
        }
        match self.values.keys().next() {
            Some(key) => Err(invalid_value_error(
                key,
                &format!(
                    "is not known here; {}",
                    perflab_model::suggest_name(key, self.used_keys.iter().copied())
                ),
            )),
            None => Ok(()),
        }
    }

    fn remove_text(&mut self, key: &'static str) -> Option<String> {
        self.used_keys.push(key);
        self.values.remove(key)
    }
}

pub(crate) fn invalid_value_error(key: &str, reason: &str) -> LoadError {
    LoadError::Argument { key: key.into(), reason: reason.into() }
}
