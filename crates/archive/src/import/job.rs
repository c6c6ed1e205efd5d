//! lkp's job: `job.yaml`, of which only scalars of the first two levels are read (the whole text is kept
//! with the run), and the result path in `job`, which names the parts of the experiment.

use std::collections::BTreeMap;

/// The longest value that is kept.
const LONGEST: usize = 512;

/// Scalars by dotted key, `fsmark.filesize`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LkpJob(pub(crate) BTreeMap<String, String>);

impl LkpJob {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut job, mut table) = (BTreeMap::new(), "");
        for line in text.lines() {
            let Some((key, value)) = parse_job_scalar(line) else { continue };
            let nested = line.starts_with(' ');
            table = if nested { table } else { key };
            if !value.is_empty() && value.len() <= LONGEST && (!nested || !table.is_empty()) {
                job.insert(if nested { format!("{table}.{key}") } else { key.into() }, value.into());
            }
        }
        LkpJob(job)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

/// `key: value`, with its quotes taken off.
fn parse_job_scalar(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let value = value.trim().trim_matches(['"', '\'']);
    (!key.is_empty() && key.chars().all(plain)).then_some((key, value))
}

/// The parts of `…/result/TESTCASE/PARAMETERS/MACHINE/ROOTFS/KCONFIG/COMPILER/COMMIT/RUN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LkpResultPath {
    pub(crate) testcase: String,
    pub(crate) parameters: String,
    pub(crate) machine: String,
    pub(crate) commit: String,
    pub(crate) run: String,
}

impl LkpResultPath {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (_, parts) = text.trim().split_once("/result/")?;
        let parts: Vec<&str> = parts.trim_end_matches('/').split('/').collect();
        let [testcase, parameters, machine, _, _, _, commit, run] = parts[..] else { return None };
        let [testcase, parameters, machine, commit, run] =
            [testcase, parameters, machine, commit, run].map(String::from);
        Some(LkpResultPath { testcase, parameters, machine, commit, run })
    }
}
