//! Owns the folding of caches into one line: kmalloc's families into size classes. It refuses buckets of other names
//! (`msg_msg-64`), which are caches of their own use.

/// The size class of a kmalloc cache of any family (`kmalloc-1k`, `kmalloc-cg-1k`, `kmalloc-rcl-1k`,
/// `kmalloc-rnd-07-1k`, `dma-kmalloc-1k`): `kmalloc-1k`. Nothing for other caches.
#[must_use]
pub fn size_class(name: &str) -> Option<String> {
    let family = name.strip_prefix("dma-").unwrap_or(name).strip_prefix("kmalloc-")?;
    let size = family.rsplit('-').next()?;
    let digits = size.trim_end_matches(['k', 'M']);
    let is_size = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_size.then(|| format!("kmalloc-{size}"))
}
