//! A function of a stack, and a stack as its innermost function and its caller's node.

use serde::{Deserialize, Serialize};

use super::strip_compiler_suffixes;

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

/// A function as it stands in stacks.
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
