//! Frame, stack node, stack sample, and function names without what compilers and kernel versions add to them.

use serde::{Deserialize, Serialize};

use crate::quantity::Nanos;

/// Where a function ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameKind {
    /// in the kernel
    Kernel,
    /// in a process
    User,
    /// the source does not say, as folded text does not
    Unknown,
}

impl FrameKind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            FrameKind::Kernel => "kernel",
            FrameKind::User => "user",
            FrameKind::Unknown => "unknown",
        }
    }

    /// The reverse of [`FrameKind::name`]; what is not known is unknown.
    pub fn from_name(name: &str) -> FrameKind {
        match name {
            "kernel" => FrameKind::Kernel,
            "user" => FrameKind::User,
            _ => FrameKind::Unknown,
        }
    }
}

/// A function as it appears in stacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// Its name without what compilers and kernel versions add: see [`strip_compiler_suffixes`].
    pub name: String,
    /// Its name as the symbol table has it, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The file that it is in: `[kernel.kallsyms]`, a module, a program, a library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Where it ran.
    pub kind: FrameKind,
    /// Whether the compiler put its code into its caller's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
    /// Kernel functions: where it begins, in bytes from the symbol `_stext`. Never an address: those are secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<i64>,
}

impl StackFrame {
    /// A frame by its raw name.
    pub fn new(raw: &str, kind: FrameKind) -> StackFrame {
        let name = strip_compiler_suffixes(raw);
        let raw = (name != raw).then(|| raw.to_owned());
        StackFrame { name: name.into(), raw, module: None, kind, inlined: false, start: None }
    }

    /// The name as the symbol table has it.
    pub fn raw_name(&self) -> &str {
        self.raw.as_deref().unwrap_or(&self.name)
    }
}

/// Number of a frame within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FrameId(pub u32);

/// Number of a node within its run. A caller's number is lower than its callees'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// A stack: a frame and the stack that called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "(Option<NodeId>, FrameId)", into = "(Option<NodeId>, FrameId)")]
pub struct StackNode {
    /// The caller; `None` for an outermost frame.
    pub parent: Option<NodeId>,
    /// The function.
    pub frame: FrameId,
}

impl From<(Option<NodeId>, FrameId)> for StackNode {
    fn from((parent, frame): (Option<NodeId>, FrameId)) -> Self {
        StackNode { parent, frame }
    }
}

impl From<StackNode> for (Option<NodeId>, FrameId) {
    fn from(node: StackNode) -> Self {
        (node.parent, node.frame)
    }
}

/// The kernel's `_noprof` twins since 6.10, where allocations can be tagged.
const UNTAGGED: &str = "_noprof";

/// Beginnings of the suffixes that compilers give to clones and parts of a function.
const CLONES: [&str; 9] =
    [".isra.", ".constprop.", ".part.", ".cold", ".llvm.", ".lto_priv.", ".localalias", ".ipa.", ".pfx."];

/// `name` as it is written in the source: `__slab_alloc.isra.0+0x3f` is `__slab_alloc`,
/// `kmem_cache_alloc_noprof` is `kmem_cache_alloc`.
///
/// Functions that were renamed between kernels keep their names: what they have in common is a role, which
/// the rule tables give them.
pub fn strip_compiler_suffixes(name: &str) -> &str {
    let name = find_offset_suffix(name).map_or(name, |at| name.get(..at).unwrap_or(name));
    let name = find_clone_suffix(name).and_then(|at| name.get(..at)).unwrap_or(name);
    name.strip_suffix(UNTAGGED).filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Where the first suffix of a clone begins. Dots are looked for first: a kernel has 200,000 names, most without one.
fn find_clone_suffix(name: &str) -> Option<usize> {
    let is_clone = |at: &usize| {
        *at > 0 && name.get(*at..).is_some_and(|rest| CLONES.iter().any(|suffix| rest.starts_with(suffix)))
    };
    name.match_indices('.').map(|(at, _)| at).find(is_clone)
}

/// Where `+0x3f` or `+0x3f/0x80` begins, if the name ends so.
fn find_offset_suffix(name: &str) -> Option<usize> {
    let at = name.rfind('+')?;
    let digits = name.get(at..)?.strip_prefix("+0x")?;
    let is_offset =
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || b"/x".contains(&byte));
    (at > 0 && is_offset).then_some(at)
}

/// Number of a command name within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommId(pub u32);

/// A sample, or several alike where the source gives only their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredStackSample", into = "StoredStackSample")]
pub struct StackSample {
    /// When, on the clock of the run; `None` where the source has no times.
    pub at: Option<Nanos>,
    /// On which CPU.
    pub cpu: Option<u32>,
    /// The process; -1 for a task that was just dying.
    pub pid: Option<i32>,
    /// The thread.
    pub tid: Option<i32>,
    /// What the thread called itself; empty where unknown.
    pub comm: CommId,
    /// The stack; `None` for a sample without one.
    pub leaf: Option<NodeId>,
    /// How many samples this represents: 1, but in folded text.
    pub count: u64,
    /// What they weigh together, in the unit of the profile: its period (ns of CPU time, cycles).
    pub weight: u64,
}

impl StackSample {
    /// Whether its task was dying: the kernel could no longer say which it was.
    pub fn is_of_dying_task(&self) -> bool {
        self.pid == Some(-1)
    }
}

/// As it is stored in a journal: a list, as there are many.
type StoredStackSample =
    (Option<Nanos>, Option<u32>, Option<i32>, Option<i32>, CommId, Option<NodeId>, u64, u64);

impl From<StoredStackSample> for StackSample {
    fn from((at, cpu, pid, tid, comm, leaf, count, weight): StoredStackSample) -> Self {
        StackSample { at, cpu, pid, tid, comm, leaf, count, weight }
    }
}

impl From<StackSample> for StoredStackSample {
    fn from(one: StackSample) -> Self {
        (one.at, one.cpu, one.pid, one.tid, one.comm, one.leaf, one.count, one.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::strip_compiler_suffixes;

    #[test]
    fn compilers_and_versions_leave_the_name_alone() {
        let names = [
            ("__slab_alloc.isra.0", "__slab_alloc"),
            ("___slab_alloc.constprop.0.isra.0", "___slab_alloc"),
            ("kfree.part.0.cold", "kfree"),
            ("copy_page.llvm.1234567", "copy_page"),
            ("__kmalloc_node_track_caller_noprof", "__kmalloc_node_track_caller"),
            ("kmem_cache_alloc_noprof+0x1a/0x200", "kmem_cache_alloc"),
            ("schedule+0x2c", "schedule"),
            ("_noprof", "_noprof"),
            (".cold", ".cold"),
            ("operator+0x", "operator+0x"),
            ("std::vector<int>::operator+", "std::vector<int>::operator+"),
            ("", ""),
        ];
        for (raw, name) in names {
            assert_eq!(strip_compiler_suffixes(raw), name, "{raw}");
        }
    }
}
