//! `[target.NAME]`: where cases run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One target, or several alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TargetUse {
    /// What it is.
    pub kind: TargetKind,
    /// How many alike: two called `guest` are guest1 and guest2.
    #[serde(default = "one")]
    pub count: u32,
    /// ssh: `user@host`, or a name of your own ssh configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// vm: what it boots: a recipe (`perflab kernel list`), or the file of a kernel image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// vm: the folder of the kernel's modules, where it is not one of a recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<String>,
    /// vm: words added to the kernel's command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<String>,
    /// vm: virtual processors; 1 where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// vm: `"512MiB"`, as where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// vm: what its root is: `host` (this one's, read-only, under an overlay; as where it is left out), or `bare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<GuestRoot>,
    /// vm: host CPUs of the virtual processors, in order; of several guests alike, all share them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<u32>,
}

/// What a guest's root file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GuestRoot {
    /// this host's, read-only, under an overlay in the guest's memory: every program is there
    Host,
    /// perflab and nothing else: for built-in workloads
    Bare,
}

impl TargetUse {
    /// One target of that kind, with nothing said about it.
    pub fn new(kind: TargetKind) -> Self {
        TargetUse {
            kind,
            count: 1,
            address: None,
            kernel: None,
            modules: None,
            append: Vec::new(),
            cpus: None,
            memory: None,
            root: None,
            pin: Vec::new(),
        }
    }
}

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// a process of this host: several things at once under one kernel
    Process,
    /// a machine that ssh reaches; the perflab binary is copied there for the run
    Ssh,
    /// a guest that perflab boots with QEMU for the run
    Vm,
}

impl std::fmt::Display for TargetKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TargetKind::Process => "process",
            TargetKind::Ssh => "ssh",
            TargetKind::Vm => "vm",
        })
    }
}

fn one() -> u32 {
    1
}
