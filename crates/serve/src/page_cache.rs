//! Finished pages, within bounds: those that were asked for last stay.

use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;

/// Bytes of all pages that are kept.
const MOST_BYTES: usize = 48 << 20;

/// A page, and what of the archive it was made from.
type CachedPage = (String, Bytes);

/// Pages by what they were made from, the one that was asked for last at the end.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    pages: Mutex<Vec<CachedPage>>,
}

impl PageCache {
    pub(crate) fn find(&self, key: &str) -> Option<Bytes> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pages.iter().position(|(known, _)| known == key)?;
        let page = pages.remove(at);
        let bytes = page.1.clone();
        pages.push(page);
        Some(bytes)
    }

    /// Keeps a page, and lets go of others. One that would take half of the room is not kept.
    pub(crate) fn keep(&self, key: String, page: &Bytes) {
        if page.len() > MOST_BYTES / 2 {
            return;
        }
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|(known, _)| *known != key);
        pages.push((key, page.clone()));
        while pages.iter().map(|(_, page)| page.len()).sum::<usize>() > MOST_BYTES {
            pages.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_last_stays_within_the_bound() {
        let cache = PageCache::default();
        let page = Bytes::from(vec![0; MOST_BYTES / 3]);
        for key in ["a", "b", "c"] {
            cache.keep(key.into(), &page);
        }
        assert!(cache.find("a").is_some());
        cache.keep("d".into(), &page);
        let kept = ["a", "b", "c", "d"].map(|key| cache.find(key).is_some());
        assert_eq!(kept, [true, false, true, true]);
        cache.keep("huge".into(), &Bytes::from(vec![0; MOST_BYTES / 2 + 1]));
        assert!(cache.find("huge").is_none() && cache.find("d").is_some());
    }
}
