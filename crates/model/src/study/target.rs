//! `[target.NAME]`: where cases run, guests and their disks and nodes.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::named::Named;
use crate::quantity::DurationText;
use crate::scalar::Scalar;
use crate::untrusted_text::remove_control_characters;

/// One target, or several alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TargetSpec {
    /// What it is.
    pub kind: TargetKind,
    /// How many alike: two called `guest` are guest1 and guest2. slurm: how many nodes, each a target by its own name.
    #[serde(default = "default_target_count")]
    pub count: u32,
    /// ssh, libvirt: `user@host`, or a name of your own ssh configuration. libvirt: where its agent is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// ssh: a host of the inventory (`hosts.toml`), or a group of it, each of whose hosts is a target by its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// ssh, libvirt: further options of ssh's configuration, as `man ssh_config` names them: `["Port=2222", "ProxyJump=gate"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_options: Vec<String>,
    /// What templates of it may name: `{{ target.variables.disk }}`. Of a host of the inventory, those that stand here come first.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub variables: IndexMap<String, Scalar>,
    /// ssh: boot the machine into `kernel` before each start of the targets, and back into its own at the end (default: leave it as it is).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<RebootMethod>,
    /// ssh with `reboot`: the initial file system of `kernel`, where that is a path: a path on the machine (default: of a release, the one
    /// that is installed with it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initrd: Option<String>,
    /// libvirt: the domain's name; it is started, if it does not run, and shut down after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// libvirt: the connection's URI, `"qemu:///system"` (default: virsh's own default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<String>,
    /// vm: what it boots: a recipe (`perflab kernel list`), or the file of a kernel image. ssh with `reboot`: a release that is installed
    /// there, `"6.1.0-56-amd64"`, or the path of an image there (default: the kernel that runs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// vm: the folder of the kernel's modules, where it is not one of a recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<String>,
    /// vm: modules that are loaded besides those that perflab needs, with what they need: `["xfs"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<String>,
    /// vm, and ssh with `reboot`: words added to the kernel's command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<String>,
    /// vm: virtual processors (default: 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// vm: `"512MiB"` (the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// vm, container: what its root is: `host` (this one's; a guest's default), a folder that holds the root of a system, or
    /// `debootstrap:RELEASE` or `debootstrap:RELEASE,PACKAGE...`, which is made once and kept. All of them stay as they are. vm: also `bare`
    /// (perflab and `programs`, nothing else), or a disk image as `IMAGE` or `IMAGE:PARTITION`; changes are thrown away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// vm, root `bare`: programs of this host that are packed as well, with their libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// vm: host CPUs of the virtual processors, in order. Of several guests alike all share them: write them as targets
    /// of their own to give each its CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<u32>,
    /// vm: NUMA nodes; their processors and memory replace `cpus` and `memory`.
    #[serde(default, deserialize_with = "read_numa_nodes", skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NumaNodeSpec>,
    /// vm: back the memory with huge pages of this size, `"2MiB"`; they must be reserved on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<String>,
    /// vm: the processor in QEMU's words (default: the host's own under KVM, all that can be emulated under TCG).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// vm: KVM where it really runs code, else TCG (the default); or one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<AcceleratorChoice>,
    /// vm: how its agent is spoken to: a port of virtio-serial (the default) or vsock. process: vsock
    /// instead of a socket pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<AgentChannel>,
    /// vm: how long a boot may take, which is tried twice (default: by the accelerator and the host's load). ssh with `reboot`: until the
    /// machine answers again (default: 9 minutes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_within: Option<DurationText>,
    /// vm: cache mode of the root's disk image (default: `writeback`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<DiskCacheMode>,
    /// vm: further arguments for QEMU, as its manual names them: `["-device", "virtio-balloon"]`. What perflab sets itself is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qemu_options: Vec<String>,
    /// vm: disks besides the root: /dev/vda, or /dev/vdb where the root is a disk, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<GuestDiskSpec>,
    /// vm: request queues of each of its disks, 1 to 256 (default: as many as it has processors).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_queues: Option<u32>,
    /// vm: threads of QEMU that serve its disks, each disk by one of them in turn, up to 64 (default: 0: QEMU's main thread).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iothreads: Option<u32>,
    /// vm: what it reaches by a network card: the other guests of the run that say so too, this host, or both (default: nothing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<GuestNetworkChoice>,
    /// vm, network `host` or `all`: TCP ports of this host's loopback address that lead to ports of the guest: `["2222:22"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<PortForward>,
    /// slurm: the partition of the nodes (default: Slurm's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// slurm: the features that a node must have, `"epyc&nvme"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// slurm: whether the nodes are the run's alone (default: true).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<bool>,
    /// slurm: for how long the nodes are asked for, `"2h"`, in whole minutes (default: the partition's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<DurationText>,
    /// slurm: the account that is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// slurm: the reservation that the nodes are from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// slurm: how long the nodes are waited for (default: 5 minutes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<DurationText>,
    /// slurm: further options for `salloc`, as its manual names them: `["--gres=gpu:1", "--qos=night"]`. What perflab sets itself is
    /// refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Options of salloc that perflab sets itself: long and short, and what says the same in a study.
const OWN_SALLOC_OPTIONS: [(&str, &str, &str); 14] = [
    ("--nodes", "-N", "count"),
    ("--partition", "-p", "partition"),
    ("--constraint", "-C", "constraint"),
    ("--exclusive", "", "exclusive"),
    ("--time", "-t", "time"),
    ("--account", "-A", "account"),
    ("--reservation", "", "reservation"),
    ("--job-name", "-J", ""),
    ("--no-shell", "", ""),
    ("--no-kill", "-k", ""),
    ("--immediate", "-I", "wait"),
    ("--wait-all-nodes", "", ""),
    ("--quiet", "-Q", ""),
    ("--version", "-V", ""),
];

/// Why salloc cannot be given these options besides perflab's own, and what would be right; none where it can.
pub fn salloc_option_problem(options: &[String]) -> Option<(String, String)> {
    if let Some(word) =
        options.iter().find(|word| !word.starts_with('-') || word.trim_matches('-').is_empty())
    {
        let hint = "write an option and its value as one word, `--gres=gpu:1`";
        return Some((format!("`{word}` is no option of salloc"), hint.into()));
    }
    // salloc takes a long option by any beginning that only it has.
    let is_own = |option: &str, long: &str, short: &str| match option.starts_with("--") {
        true => option.split('=').next().is_some_and(|name| name.len() > 4 && long.starts_with(name)),
        false => !short.is_empty() && option.starts_with(short),
    };
    let (long, _, key) = options
        .iter()
        .find_map(|option| OWN_SALLOC_OPTIONS.iter().find(|(long, short, _)| is_own(option, long, short)))?;
    let hint = match *key {
        "" => "leave it out".to_owned(),
        key => format!("say it with `{key}`"),
    };
    Some((format!("perflab sets `{long}` itself"), hint))
}

/// Why ssh cannot be given these options besides perflab's own, and what would be right; none where it can.
pub fn ssh_option_problem(options: &[String]) -> Option<(String, String)> {
    let is_plain = |option: &str| {
        let (keyword, value) = option.split_once('=')?;
        let is_word = !keyword.is_empty() && keyword.chars().all(|c| c.is_ascii_alphabetic());
        (is_word && !value.is_empty() && !value.contains(char::is_control)).then_some(keyword.to_owned())
    };
    for option in options {
        let Some(keyword) = is_plain(option) else {
            let hint = "write KEYWORD=VALUE, as in `man ssh_config`: `Port=2222`";
            return Some((
                format!("`{}` is no option of ssh's", remove_control_characters(option)),
                hint.into(),
            ));
        };
        if keyword.eq_ignore_ascii_case("BatchMode") {
            return Some(("perflab sets `BatchMode` itself".into(), "leave it out".into()));
        }
    }
    None
}

/// Options of QEMU that perflab sets itself, with what says the same in a study.
const OWN_QEMU_OPTIONS: [(&str, &str); 22] = [
    ("-m", "memory"),
    ("-smp", "cpus"),
    ("-cpu", "cpu-model"),
    ("-accel", "accelerator"),
    ("-enable-kvm", "accelerator"),
    ("-kernel", "kernel"),
    ("-append", "append"),
    ("-numa", "nodes"),
    ("-snapshot", "disks"),
    ("-initrd", ""),
    ("-machine", ""),
    ("-M", ""),
    ("-name", ""),
    ("-qmp", ""),
    ("-serial", ""),
    ("-display", ""),
    ("-nographic", ""),
    ("-daemonize", ""),
    ("-pidfile", ""),
    ("-sandbox", ""),
    ("-S", ""),
    ("-no-reboot", ""),
];

/// Why QEMU cannot be given these arguments besides perflab's own, and what would be right; none where it can.
pub fn qemu_option_problem(options: &[String]) -> Option<(String, String)> {
    if options.first().is_some_and(|first| !first.starts_with('-')) {
        let first = &options[0];
        return Some((
            format!("`{first}` is no option"),
            "an option begins with -, and its value is a word of its own".into(),
        ));
    }
    // QEMU takes two dashes for one.
    let same = |option: &str, own: &str| {
        option.strip_prefix("--").is_some_and(|rest| rest == &own[1..]) || option == own
    };
    let found =
        options.iter().find_map(|option| OWN_QEMU_OPTIONS.iter().find(|(own, _)| same(option, own)))?;
    let hint = match found.1 {
        "" => "leave it out".to_owned(),
        key => format!("say it with `{key}`"),
    };
    Some((format!("perflab sets `{}` itself", found.0), hint))
}

/// What a guest reaches by its network cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GuestNetworkChoice {
    /// the guests of the same run that say `guests` or `all` too, over a switch of perflab's
    Guests,
    /// this host, as 10.0.2.2, and what it reaches, by QEMU's user network: nothing of it needs root
    Host,
    /// both, by a card each
    All,
}

impl GuestNetworkChoice {
    /// Whether it has a card on the switch.
    pub fn has_guests(self) -> bool {
        matches!(self, GuestNetworkChoice::Guests | GuestNetworkChoice::All)
    }

    /// Whether it has a card towards the host.
    pub fn has_host(self) -> bool {
        matches!(self, GuestNetworkChoice::Host | GuestNetworkChoice::All)
    }
}

impl Named for GuestNetworkChoice {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (GuestNetworkChoice::Guests, "guests", "the other guests of the run"),
        (GuestNetworkChoice::Host, "host", "this host, and what it reaches"),
        (GuestNetworkChoice::All, "all", "both"),
    ];
}

/// A TCP port of this host that leads to one of a guest: `2222:22`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortForward {
    /// On 127.0.0.1 of this host.
    pub host: u16,
    /// In the guest.
    pub guest: u16,
}

impl std::str::FromStr for PortForward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0);
        let ports = text.split_once(':').and_then(|(host, guest)| port(host).zip(port(guest)));
        let (host, guest) =
            ports.ok_or_else(|| format!("`{text}` is no pair of ports; write HOST:GUEST, as 2222:22"))?;
        Ok(PortForward { host, guest })
    }
}

impl TryFrom<String> for PortForward {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PortForward> for String {
    fn from(forward: PortForward) -> String {
        format!("{}:{}", forward.host, forward.guest)
    }
}

impl JsonSchema for PortForward {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PortForward".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+:[0-9]+$" })
    }
}

/// A NUMA node of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumaNodeSpec {
    /// How many of the virtual processors, in order.
    pub cpus: u32,
    /// How much memory, `"1GiB"`.
    pub memory: String,
    /// The host's node that the memory comes from (default: any).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u32>,
}

/// A number is what somebody gives who asks Slurm for nodes.
fn read_numa_nodes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NumaNodeSpec>, D::Error> {
    struct NumaNodes;

    impl<'de> Visitor<'de> for NumaNodes {
        type Value = Vec<NumaNodeSpec>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of the NUMA nodes of a guest; how many machines there are says `count`")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            std::iter::from_fn(|| list.next_element().transpose()).collect()
        }
    }

    deserializer.deserialize_seq(NumaNodes)
}

/// A disk of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestDiskSpec {
    /// The image: qcow2 by its ending, else raw.
    pub path: String,
    /// The cache mode (default: `writeback`).
    #[serde(default)]
    pub cache: DiskCacheMode,
    /// Whether what is written stays in the image (default: thrown away).
    #[serde(default)]
    pub keep: bool,
}

/// How QEMU uses the host's page cache for a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskCacheMode {
    /// through it, written when it is full or the guest flushes
    #[default]
    Writeback,
    /// past it
    None,
    /// through it, and written at once
    Writethrough,
    /// past it, and written at once
    Directsync,
    /// through it, and never flushed
    Unsafe,
}

impl std::fmt::Display for DiskCacheMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DiskCacheMode::Writeback => "writeback",
            DiskCacheMode::None => "none",
            DiskCacheMode::Writethrough => "writethrough",
            DiskCacheMode::Directsync => "directsync",
            DiskCacheMode::Unsafe => "unsafe",
        })
    }
}

/// How a machine comes to run another kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RebootMethod {
    /// the running kernel starts the next one, without firmware and boot loader; the machine needs kexec-tools
    Kexec,
}

/// How a guest's agent is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentChannel {
    /// a port of virtio-serial: always there
    VirtioSerial,
    /// a vsock device; the host needs `/dev/vhost-vsock`, and for processes `vsock_loopback`
    Vsock,
}

/// How a guest's code is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AcceleratorChoice {
    /// by the processor, or not at all
    Kvm,
    /// by QEMU's translator: slow everywhere alike
    Tcg,
}

impl TargetSpec {
    /// One target of that kind, with nothing said about it.
    pub fn new(kind: TargetKind) -> Self {
        TargetSpec {
            kind,
            count: 1,
            address: None,
            host: None,
            ssh_options: Vec::new(),
            variables: IndexMap::new(),
            reboot: None,
            initrd: None,
            domain: None,
            connect: None,
            kernel: None,
            modules: None,
            load: Vec::new(),
            append: Vec::new(),
            cpus: None,
            memory: None,
            root: None,
            programs: Vec::new(),
            pin: Vec::new(),
            nodes: Vec::new(),
            huge_pages: None,
            cpu_model: None,
            accelerator: None,
            channel: None,
            boot_within: None,
            cache: None,
            qemu_options: Vec::new(),
            disks: Vec::new(),
            disk_queues: None,
            iothreads: None,
            network: None,
            forward: Vec::new(),
            partition: None,
            constraint: None,
            exclusive: None,
            time: None,
            account: None,
            reservation: None,
            wait: None,
            options: Vec::new(),
        }
    }
}

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// a process of this host: several things at once under one kernel
    Process,
    /// the root of another system under this host's kernel, in namespaces of its own; what it writes there is thrown away
    Container,
    /// a machine that ssh reaches; the perflab binary is copied there for the run
    Ssh,
    /// a guest that perflab boots with QEMU for the run
    Vm,
    /// a domain that libvirt knows: started, reached by ssh, shut down; its XML is kept with the run
    Libvirt,
    /// the nodes of one allocation of Slurm's; the perflab binary is copied there for the run
    Slurm,
}

impl std::fmt::Display for TargetKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TargetKind::Process => "process",
            TargetKind::Container => "container",
            TargetKind::Ssh => "ssh",
            TargetKind::Vm => "vm",
            TargetKind::Libvirt => "libvirt",
            TargetKind::Slurm => "slurm",
        })
    }
}

fn default_target_count() -> u32 {
    1
}
