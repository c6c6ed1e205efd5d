//! Names of functions without what compilers and kernel versions add to them.

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
