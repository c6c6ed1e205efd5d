//! What cursors survive, and what they say when they do not.

use slablist::{SlabList, SlabSet, StaleCursor};

use crate::scale_for_miri;

#[test]
fn a_set_cursor_survives_everything_but_its_own_removal() {
    let n = scale_for_miri(20_000) as u64;
    let mut set: SlabSet<u64> = (0..n).map(|key| key * 2).collect();
    let cursor = set.cursor(&(n / 2 * 2)).unwrap();
    for key in 0..n {
        set.insert(key * 2 + 1);
    }
    assert_eq!(cursor.position(&set), Ok(n as usize / 2 * 2));
    set.remove_range(..n / 2 * 2, |_| {});
    assert_eq!(cursor.position(&set), Ok(0));
    assert_eq!(cursor.previous(&set), Ok(None));
    assert_eq!(cursor.next(&set).unwrap().unwrap().key(), n / 2 * 2 + 1);
    set.reap();
    assert_eq!(cursor.position(&set), Ok(0));
    set.remove(&cursor.key());
    assert_eq!(cursor.position(&set), Err(StaleCursor::Removed));
    assert_eq!(cursor.next(&set), Err(StaleCursor::Removed));
    set.insert(cursor.key());
    assert_eq!(cursor.position(&set), Ok(0));
}

#[test]
fn a_set_cursor_walks_both_ways() {
    let set: SlabSet<u32> = (0..500).collect();
    let mut at = set.cursor_at(0);
    let mut seen = Vec::new();
    while let Some(cursor) = at {
        seen.push(cursor.key());
        at = cursor.next(&set).unwrap();
    }
    assert!(seen.into_iter().eq(0..500));
    let last = set.cursor_at(499).unwrap();
    assert_eq!(last.previous(&set).unwrap().map(|cursor| cursor.key()), Some(498));
    assert_eq!(set.cursor_at(500), None);
}

#[test]
fn a_list_cursor_says_when_its_list_changed() {
    let mut list: SlabList<u32> = (0..500).collect();
    let cursor = list.cursor(10).unwrap();
    assert_eq!(list.replace(10, 77), Ok(10));
    assert_eq!(cursor.get(&list), Ok(77));
    assert_eq!(cursor.next(&list).unwrap().unwrap().get(&list), Ok(11));
    assert_eq!(cursor.previous(&list).unwrap().unwrap().position(), 9);
    for change in [
        |list: &mut SlabList<u32>| list.push_back(1),
        |list: &mut SlabList<u32>| _ = list.remove(400),
        SlabList::reverse,
        SlabList::sort,
        |list: &mut SlabList<u32>| _ = list.reap(),
        |list: &mut SlabList<u32>| _ = list.remove_range(3..5, |_| {}),
        |list: &mut SlabList<u32>| list.clear(|_| {}),
    ] {
        let cursor = list.cursor(10).unwrap();
        change(&mut list);
        assert_eq!(cursor.get(&list), Err(StaleCursor::Changed));
        assert_eq!(cursor.next(&list), Err(StaleCursor::Changed));
    }
}

#[test]
fn a_cursor_knows_its_list() {
    let (list, set): (SlabList<u32>, SlabSet<u32>) = ((0..9).collect(), (0..9).collect());
    assert_eq!(list.cursor(1).unwrap().get(&list.clone()), Err(StaleCursor::OtherList));
    assert_eq!(set.cursor(&1).unwrap().position(&set.clone()), Err(StaleCursor::OtherList));
}
