//! A key of `[target.NAME]` as something that varies: `kind = "target"`, `key = "kernel"`.

use serde_json::Value;

use crate::error_class::{Classify, ErrorClass};
use crate::placement::parse_number_list;
use crate::problem::{suggest_name, without_rust_types};
use crate::scalar::Scalar;
use crate::study::target::{TargetSpec, qemu_option_problem};

/// How a key takes the value of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyValue {
    /// it is the key's value
    Single,
    /// its words come after those of the target's own list
    Words,
    /// CPUs: `0-1,4`
    Cpus,
}

/// The keys that a factor may vary.
const KEYS: [(&str, KeyValue); 25] = [
    ("kernel", KeyValue::Single),
    ("modules", KeyValue::Single),
    ("initrd", KeyValue::Single),
    ("append", KeyValue::Words),
    ("load", KeyValue::Words),
    ("programs", KeyValue::Words),
    ("qemu-options", KeyValue::Words),
    ("memory", KeyValue::Single),
    ("cpus", KeyValue::Single),
    ("cpu-model", KeyValue::Single),
    ("huge-pages", KeyValue::Single),
    ("pin", KeyValue::Cpus),
    ("root", KeyValue::Single),
    ("cache", KeyValue::Single),
    ("disk-queues", KeyValue::Single),
    ("iothreads", KeyValue::Single),
    ("network", KeyValue::Single),
    ("accelerator", KeyValue::Single),
    ("channel", KeyValue::Single),
    ("boot-within", KeyValue::Single),
    ("address", KeyValue::Single),
    ("host", KeyValue::Single),
    ("ssh-options", KeyValue::Words),
    ("domain", KeyValue::Single),
    ("connect", KeyValue::Single),
];

/// Which targets a factor is about, and which key of theirs: `memory`, or `guest.memory` for those of `[target.guest]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetKey<'a> {
    /// The name under `[target]`; none for all.
    pub target: Option<&'a str>,
    /// The key.
    pub key: &'a str,
}

/// Why a target cannot have a value, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {hint}")]
pub struct TargetKeyError {
    /// what is wrong
    pub message: String,
    /// what to do
    pub hint: String,
}

impl Classify for TargetKeyError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

impl<'a> TargetKey<'a> {
    /// Whether a level replaces the target's value; those of other keys add words to it.
    pub(crate) fn takes_one_value(self) -> bool {
        KEYS.iter().any(|(key, value)| *key == self.key && *value != KeyValue::Words)
    }

    /// As a factor's `key` names it.
    pub fn new(text: &'a str) -> Self {
        match text.split_once('.') {
            Some((target, key)) => TargetKey { target: Some(target), key },
            None => TargetKey { target: None, key: text },
        }
    }

    /// Whether its values are hosts of an inventory.
    pub fn names_host(self) -> bool {
        self.key == "host"
    }

    /// Whether it is about the targets of `[target.NAME]`.
    pub fn concerns(&self, name: &str) -> bool {
        self.target.is_none_or(|target| target == name)
    }

    /// The target with the key as a level says.
    ///
    /// # Errors
    /// There is no such key, or it cannot have that value.
    pub fn apply(&self, spec: &TargetSpec, value: &Scalar) -> Result<TargetSpec, TargetKeyError> {
        let refuse = |message: String, hint: &str| TargetKeyError { message, hint: hint.into() };
        let Some((_, takes)) = KEYS.iter().find(|(name, _)| *name == self.key) else {
            let hint = suggest_name(self.key, KEYS.iter().map(|(name, _)| *name));
            return Err(TargetKeyError {
                message: format!("a target has no key `{}` that varies", self.key),
                hint,
            });
        };
        let mut document = serde_json::to_value(spec).unwrap_or_default();
        let Some(table) = document.as_object_mut() else { return Ok(spec.clone()) };
        let value = match takes {
            KeyValue::Single => match value {
                Scalar::Int(number) => Value::from(*number),
                Scalar::Float(number) => Value::from(*number),
                Scalar::Bool(flag) => Value::from(*flag),
                Scalar::Text(text) => Value::from(text.as_str()),
            },
            KeyValue::Words => {
                let own = table.get(self.key).and_then(Value::as_array).cloned().unwrap_or_default();
                let text = value.to_string();
                own.into_iter().chain(text.split_whitespace().map(Value::from)).collect()
            }
            KeyValue::Cpus => {
                let cpus = parse_number_list(&value.to_string());
                cpus.map_err(|message| {
                    refuse(message, "write 0-1,4, in the order of the virtual processors")
                })?
                .into()
            }
        };
        if self.key == "qemu-options" {
            let words: Vec<String> = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect();
            if let Some((message, hint)) = qemu_option_problem(&words) {
                return Err(TargetKeyError { message, hint });
            }
        }
        table.insert(self.key.to_owned(), value);
        serde_json::from_value(document).map_err(|error| {
            let reason = without_rust_types(&error.to_string());
            refuse(format!("`{}` cannot be that: {reason}", self.key), "see `[target]` in docs/guests.md")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::target::TargetKind;

    fn guest() -> TargetSpec {
        TargetSpec { append: vec!["quiet".into()], ..TargetSpec::new(TargetKind::Vm) }
    }

    fn apply(key: &str, value: impl Into<Scalar>) -> Result<TargetSpec, TargetKeyError> {
        TargetKey::new(key).apply(&guest(), &value.into())
    }

    #[test]
    fn a_level_is_the_value_of_a_key_or_is_added_to_its_list() {
        assert_eq!(apply("kernel", "debian").unwrap().kernel.as_deref(), Some("debian"));
        assert_eq!(apply("guest.cpus", 4_i64).unwrap().cpus, Some(4));
        assert_eq!(
            apply("append", "slub_debug=P nokaslr").unwrap().append,
            ["quiet", "slub_debug=P", "nokaslr"]
        );
        assert_eq!(apply("append", "").unwrap().append, ["quiet"]);
        assert_eq!(
            apply("qemu-options", "-device virtio-balloon").unwrap().qemu_options,
            ["-device", "virtio-balloon"]
        );
        assert!(
            apply("qemu-options", "--smp 2").is_err() && apply("qemu-options", "virtio-balloon").is_err()
        );
        assert_eq!(apply("pin", "0-1,3").unwrap().pin, [0, 1, 3]);
        assert!(apply("boot-within", "90s").unwrap().boot_within.is_some());
        assert!(TargetKey::new("a.kernel").concerns("a") && !TargetKey::new("a.kernel").concerns("b"));
    }

    #[test]
    fn every_key_is_one_of_a_target() {
        let schema = schemars::schema_for!(TargetSpec);
        let known = schema.get("properties").and_then(Value::as_object).unwrap();
        assert!(KEYS.iter().all(|(key, _)| known.contains_key(*key)));
    }

    #[test]
    fn what_a_key_cannot_be_is_told() {
        let said = |key: &str, value: &str| apply(key, value).unwrap_err().to_string();
        insta::assert_snapshot!(
            [said("kernle", "x"), said("cpus", "many"), said("accelerator", "xen"), said("pin", "3-1")].join("\n"),
            @r#"
a target has no key `kernle` that varies; did you mean `kernel`?
`cpus` cannot be that: invalid type: string "many", expected a whole number, 0 or more; see `[target]` in docs/guests.md
`accelerator` cannot be that: unknown variant `xen`, expected `kvm` or `tcg`; see `[target]` in docs/guests.md
`3-1` is no list of numbers such as 0-3,8; write 0-1,4, in the order of the virtual processors
"#
        );
    }
}
