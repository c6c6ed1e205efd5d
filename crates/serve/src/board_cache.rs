//! What was found of studies, until a run of one changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::study_rows::StudyRows;

/// Studies that are kept.
const MOST_STUDIES: usize = 400;

/// The rows of a study, or why there are none.
pub(crate) type FoundStudyRows = Arc<Result<StudyRows, String>>;

/// What was found of a study's runs, and what they were.
type KeptBoard = (u64, FoundStudyRows);

/// Boards of studies by their titles.
#[derive(Debug, Default)]
pub(crate) struct BoardCache(Mutex<HashMap<String, KeptBoard>>);

impl BoardCache {
    pub(crate) fn find(&self, study: &str, version: u64) -> Option<FoundStudyRows> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(study).filter(|(known, _)| *known == version).map(|(_, rows)| Arc::clone(rows))
    }

    pub(crate) fn keep(&self, study: &str, version: u64, rows: &FoundStudyRows) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Begun anew, an archive of very many titles takes no more memory than a few pages.
        if kept.len() >= MOST_STUDIES {
            kept.clear();
        }
        kept.insert(study.to_owned(), (version, Arc::clone(rows)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_found_as_long_as_its_runs_are_the_same_and_there_are_few() {
        let cache = BoardCache::default();
        let rows: FoundStudyRows = Arc::new(Ok(StudyRows::default()));
        cache.keep("a", 1, &rows);
        assert!(cache.find("a", 1).is_some() && cache.find("a", 2).is_none() && cache.find("b", 1).is_none());
        for number in 0..=MOST_STUDIES {
            cache.keep(&number.to_string(), 1, &rows);
        }
        assert!(cache.find("a", 1).is_none() && cache.find(&MOST_STUDIES.to_string(), 1).is_some());
    }
}
