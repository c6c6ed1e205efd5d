//! Run ids: ULIDs, which sort by the time of their making, and the shortest prefixes that tell them apart.

use std::sync::Mutex;

use jiff::Timestamp;
use ulid::{Generator, Ulid};

/// The shortest prefix that is ever shown, the time of the run's making to the millisecond: what is shown once is shown
/// everywhere, and goes on naming the run while others are made.
pub(crate) const SHORTEST: usize = 10;

static GENERATOR: Mutex<Generator> = Mutex::new(Generator::new());

/// A fresh run id: a ULID, later than every other that this process made.
pub fn new_run_id() -> String {
    let mut generator = GENERATOR.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let id = match generator.generate() {
        Ok(id) => id,
        Err(overflow) => overflow.commit_overflow_random(),
    };
    id.to_string()
}

/// Whether `text` is a run id in full.
pub fn is_run_id(text: &str) -> bool {
    Ulid::from_string(text).is_ok_and(|id| id.to_string() == text)
}

/// When a run id was made, from the id itself.
pub fn run_id_time(id: &str) -> Option<Timestamp> {
    let milliseconds = Ulid::from_string(id).ok()?.timestamp_ms();
    Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()
}

/// The shortest prefix of each id that no other id of the list shares, at least as long as its time.
///
/// `ids` must be sorted; the result stands in the same order.
pub fn shortest_prefixes(ids: &[String]) -> Vec<String> {
    let shared = |other: Option<&String>, id: &str| other.map_or(0, |other| common_prefix_length(other, id));
    let shorten = |(at, id): (usize, &String)| {
        let before = at.checked_sub(1).and_then(|before| ids.get(before));
        let longest = shared(before, id).max(shared(ids.get(at + 1), id));
        let most = (longest + 1).max(SHORTEST);
        let end = id.char_indices().nth(most).map_or(id.len(), |(end, _)| end);
        id.get(..end).unwrap_or(id).to_owned()
    };
    ids.iter().enumerate().map(shorten).collect()
}

fn common_prefix_length(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_their_making() {
        let ids: Vec<String> = (0..100).map(|_| new_run_id()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| is_run_id(id)));
        assert!(run_id_time(&ids[0]).is_some());
        assert!(!is_run_id("../../../../etc/passwd") && !is_run_id("01ka"));
    }

    #[test]
    fn prefixes_are_as_short_as_they_can_be_and_unique() {
        let ids = ["01AAAAAAAAAAAA", "01AAAAAAAAABCA", "01ZZZZZZZZZZZZ"].map(String::from);
        assert_eq!(shortest_prefixes(&ids), ["01AAAAAAAAAA", "01AAAAAAAAAB", "01ZZZZZZZZ"]);
        assert_eq!(shortest_prefixes(&ids[..1]), ["01AAAAAAAA"]);
    }
}
