use super::*;
use crate::trace::TraceSource;

const MIB: u64 = 256;

/// A file in pieces of (first page, pages, turn, MiB on the disk).
pub(crate) fn traced_file(inode: u64, pieces: &[(u64, u64, u32, u64)]) -> TracedFile {
    let marks: Vec<TracedExtent> = pieces
        .iter()
        .map(|(page, _, turn, place)| TracedExtent { page: *page, turn: *turn, place: Some(place << 20) })
        .collect();
    let pages: PageSet = pieces.iter().map(|(first, count, ..)| (*first, *count)).collect();
    TracedFile {
        system: 0,
        inode,
        generation: None,
        size: pieces.iter().map(|(first, count, ..)| (first + count) * PAGE).max().unwrap_or(0),
        changed: 0,
        path: format!("/lib/{inode}"),
        pages,
        turn: marks[0].turn,
        place: marks[0].place,
        marks: marks[1..].to_vec(),
    }
}

fn example_trace_of(files: Vec<TracedFile>) -> StartupTrace {
    StartupTrace { when: 0, source: TraceSource::Traced, systems: Vec::new(), files }
}

/// Inode and pages of each step.
fn step_pages(start: &StartupTrace, order: ReadOrder, memory: u64) -> Vec<(u64, Vec<(u64, u64)>)> {
    let plan = plan_replay(start, order, memory);
    plan.steps.iter().map(|step| (step.file.inode, step.pages.iter().collect())).collect()
}

/// A library whose end is needed first, one beside its beginning, and one far away that is needed between.
fn library_trace() -> StartupTrace {
    example_trace_of(vec![
        traced_file(1, &[(0, 20, 5, 100), (20 * MIB, 10, 0, 120)]),
        traced_file(2, &[(0, 30, 4, 101)]),
        traced_file(3, &[(0, 7, 2, 900)]),
        traced_file(4, &[(0, 4, 9, 110)]),
    ])
}

#[test]
fn what_is_needed_first_comes_first_with_what_lies_beside_it() {
    let start = library_trace();
    let need = [
        (1, vec![(20 * MIB, 10)]),
        (3, vec![(0, 7)]),
        (2, vec![(0, 30)]),
        (1, vec![(0, 20)]),
        (4, vec![(0, 4)]),
    ];
    // 20 pages end 944 KiB before the other file begins: two stretches.
    assert_eq!(step_pages(&start, ReadOrder::Need, u64::MAX), need);
    let mut near = start;
    near.files[1].place = Some((100 << 20) + 30 * PAGE);
    let together = step_pages(&near, ReadOrder::Need, u64::MAX);
    assert_eq!(together[2..4], [(1, vec![(0, 20)]), (2, vec![(0, 30)])], "in one sweep from turn 4 on");
}

#[test]
fn other_orders_are_what_they_are_called() {
    let start = library_trace();
    let inodes =
        |order| step_pages(&start, order, u64::MAX).into_iter().map(|(inode, _)| inode).collect::<Vec<_>>();
    assert_eq!(inodes(ReadOrder::Block), [1, 2, 4, 1, 3]);
    assert_eq!(inodes(ReadOrder::Inode), [1, 2, 3, 4]);
    assert_eq!(inodes(ReadOrder::Access), [1, 3, 2, 1, 4]);
}

#[test]
fn what_does_not_fit_is_what_is_needed_last() {
    let start = library_trace();
    let plan = plan_replay(&start, ReadOrder::Block, (10 + 7 + 30) * PAGE);
    assert_eq!((plan.page_count(), plan.left_out), (47, 2), "the beginning of one file, and another");
    assert!(plan.steps.iter().all(|step| step.file.inode != 4));
}

#[test]
fn a_stretch_is_no_longer_than_a_tenth_of_a_second() {
    let long: Vec<_> = (0..20).map(|at| (at * MIB, MIB, 40 - at as u32, 300 + at)).collect();
    let steps = step_pages(&example_trace_of(vec![traced_file(1, &long)]), ReadOrder::Need, u64::MAX);
    let whole = [(1, vec![(16 * MIB, 4 * MIB)]), (1, vec![(8 * MIB, 8 * MIB)]), (1, vec![(0, 8 * MIB)])];
    assert_eq!(steps, whole);
}

#[test]
fn gaps_are_read_where_the_disk_has_them_between() {
    let mut known = traced_file(1, &[(0, 4, 0, 1), (8, 4, 1, 2), (20, 4, 2, 3)]);
    let all = |known: &TracedFile| bridge_gaps(known, MAX_BRIDGED_PAGES).iter().collect::<Vec<_>>();
    assert_eq!(all(&known), [(0, 4), (8, 4), (20, 4)], "each lies elsewhere");
    let place = |page: u64| Some((1 << 20) + page * PAGE);
    known.marks[0].place = place(8);
    known.marks[1].place = place(12);
    assert_eq!(
        all(&known),
        [(0, 12), (20, 4)],
        "what follows on the disk is packed, what lies between is not"
    );
    known.marks[1].place = place(20);
    assert_eq!(all(&known), [(0, 24)]);
    assert_eq!(bridge_gaps(&known, MAX_PACKED_GAP_PAGES), known.pages);
    known.place = None;
    known.marks.iter_mut().for_each(|mark| mark.place = None);
    assert_eq!(all(&known), [(0, 24)], "where nothing is known of places");
}

#[test]
fn no_order_loses_a_page_or_reads_one_twice() {
    // A walk through starts of all shapes.
    let mut state = 7_u64;
    let mut some = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..200 {
        let files = (1..=1 + some(6)).map(|inode| {
            let mut page = 0;
            let pieces: Vec<_> = (0..=some(5))
                .map(|_| {
                    let (first, count) = (page + some(40), 1 + some(50));
                    page = first + count;
                    (first, count, some(100) as u32 * 10 + inode as u32, some(30))
                })
                .collect();
            traced_file(inode, &pieces)
        });
        let start = example_trace_of(files.collect());
        for order in [ReadOrder::Need, ReadOrder::Block, ReadOrder::Inode, ReadOrder::Access] {
            let plan = plan_replay(&start, order, u64::MAX);
            for file in &start.files {
                let own = plan.steps.iter().filter(|step| step.file.inode == file.inode);
                let sum: u64 = own.clone().map(|step| step.pages.page_count()).sum();
                let all: PageSet = own.flat_map(|step| step.pages.iter()).collect();
                assert_eq!(
                    (&all, sum),
                    (&bridge_gaps(file, MAX_BRIDGED_PAGES), all.page_count()),
                    "{order:?}"
                );
            }
        }
    }
}
