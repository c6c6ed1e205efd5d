//! Time stamps of somebody else: begins and ends paired thread by thread, and what does not fit is flagged.

use optrace::{ProbeMark, ProbeTrace, StampCost, Vocabulary};
use proptest::prelude::*;

use crate::read_trace;

fn write_and_read_marks(
    costs: (&[StampCost], &[StampCost]),
    marks: &[(i32, u64, ProbeMark)],
) -> (optrace::TraceFileSummary, Vec<optrace::Operation>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let words = Vocabulary::new(&["insert", "find"], &["reap", "allocate"], &[]).unwrap();
    let mut stamps = ProbeTrace::create(&path, &words, 7, costs).unwrap();
    marks.iter().for_each(|(thread, ns, mark)| stamps.record_mark(*thread, *ns, *mark));
    stamps.add_lost(3);
    stamps.finish().unwrap();
    read_trace(&path)
}

#[test]
fn nested_spans_have_their_own_time_and_threads_do_not_mix() {
    use ProbeMark::{Begin, End, Enter, Fault, Leave, Preempted, Resumed};
    let marks = [
        (1, 1000, Begin(0)),
        (2, 1010, Begin(1)),
        (1, 1100, Enter(0)),
        (1, 1150, Enter(1)),
        (1, 1160, Fault),
        (2, 1190, End(1)),
        (1, 1250, Leave(1)),
        (1, 1300, Leave(0)),
        (1, 1310, Preempted),
        (1, 1360, Resumed),
        (1, 1400, End(0)),
    ];
    let (told, operations) = write_and_read_marks((&[], &[]), &marks);
    assert_eq!((told.operations, told.threads, told.events_lost, told.cut), (2, 2, 3, None));
    let first = &operations[0];
    assert_eq!(
        (first.thread, first.kind, first.start, first.wall, first.preempted, first.faults),
        (1, 0, 1000, 400, 50, 1)
    );
    assert_eq!(first.spans.iter().map(|span| (span.kind, span.ns)).collect::<Vec<_>>(), [(0, 100), (1, 100)]);
    assert_eq!((operations[1].thread, operations[1].kind, operations[1].wall), (2, 1, 180));
    assert!(operations.iter().all(|one| !one.unbalanced));
}

#[test]
fn what_taking_the_stamps_costs_is_taken_off() {
    use ProbeMark::{Begin, End, Enter, Leave};
    let cost = |between, pair| StampCost { between, pair };
    let (operations, spans) = ([cost(20.0, 60.0), cost(90.0, 95.5)], [cost(20.0, 60.0), cost(45.0, 100.0)]);
    let marks = [
        (1, 0, Begin(0)),
        (1, 100, Enter(0)),
        (1, 150, Leave(0)),
        (1, 300, End(0)),
        (1, 1000, Begin(1)),
        (1, 1100, Enter(1)),
        (1, 1150, Leave(1)),
        (1, 1300, End(1)),
    ];
    let (told, found) = write_and_read_marks((&operations, &spans), &marks);
    assert_eq!((found[0].wall, found[0].spans[0].ns), (300 - 20 - 60, 30));
    // Each kind its own: the second is dearer, and so are its spans.
    assert_eq!((found[1].wall, found[1].spans[0].ns), (300 - 90 - 100, 5));
    assert_eq!((told.operation_costs, told.span_costs), (operations.to_vec(), spans.to_vec()));
}

/// A program whose own times are known, and probes whose costs are: both before and behind the time that each tells.
struct SimulatedProgram {
    now: u64,
    marks: Vec<(i32, u64, ProbeMark)>,
}

impl SimulatedProgram {
    fn add_probe(&mut self, mark: ProbeMark, (before, behind): (u64, u64)) {
        self.now += before;
        self.marks.push((1, self.now, mark));
        self.now += behind;
    }

    /// A function that is watched, around something else.
    fn call_function(&mut self, (begin, end): (ProbeMark, ProbeMark), body: impl FnOnce(&mut Self)) {
        self.add_probe(begin, (300, 1100));
        body(self);
        self.add_probe(end, (700, 9000));
    }

    fn advance(&mut self, ns: u64) {
        self.now += ns;
    }
}

/// Functions that are watched call one another: what the inner ones' probes cost lies in the time of the outer ones.
#[test]
fn what_stamps_inside_cost_is_taken_off_what_is_around_them() {
    use ProbeMark::{Begin, End, Enter, Leave};
    let each = StampCost { between: 1800.0, pair: 11_100.0 };
    let (insert, find) = ((Begin(0), End(0)), (Begin(1), End(1)));
    let (reap, allocate) = ((Enter(0), Leave(0)), (Enter(1), Leave(1)));
    let mut program = SimulatedProgram { now: 0, marks: Vec::new() };
    program.call_function(insert, |program| {
        program.advance(1000);
        for _ in 0..20 {
            // An operation inside.
            program.call_function(find, |program| program.advance(50));
        }
        program.call_function(reap, |program| {
            program.advance(400);
            for _ in 0..3 {
                program.call_function(allocate, |program| program.advance(70));
            }
            program.call_function(find, |program| {
                program.advance(5);
                program.call_function(allocate, |program| program.advance(70));
            });
        });
        program.advance(10);
    });
    // The next one has nothing in it.
    program.call_function(insert, |program| program.advance(33));
    let (told, found) = write_and_read_marks((&[each, each], &[each, each]), &program.marks);
    let spans =
        |at: usize| found[at].spans.iter().map(|span| (span.kind, span.ns, span.count)).collect::<Vec<_>>();
    assert_eq!(found[0].wall, 1000 + 20 * 50 + 400 + 4 * 70 + 5 + 10);
    assert_eq!(spans(0), [(0, 405, 1), (1, 280, 4)]);
    assert_eq!((found[1].wall, found[1].inside, spans(1)), (33, 0, vec![]));
    assert_eq!((found[0].inside, &told.inside[..]), (21 * 11_100, &[(2, 21 * 11_100)][..]));
    assert!(found.iter().all(|one| one.numbers.is_empty()));
}

#[test]
fn while_nobody_looks_what_was_open_stays_open_and_its_end_ends_nothing() {
    use ProbeMark::{Begin, End, Enter};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let words = Vocabulary::new(&["insert"], &["reap"], &[]).unwrap();
    let mut stamps = ProbeTrace::create(&path, &words, 7, (&[], &[])).unwrap();
    for (ns, mark) in [(0, Begin(0)), (10, End(0)), (20, Begin(0)), (25, Enter(0))] {
        stamps.record_mark(1, ns, mark);
    }
    stamps.pause();
    for (ns, mark) in [(90, End(0)), (100, Begin(0)), (110, End(0)), (120, Begin(0))] {
        stamps.record_mark(1, ns, mark);
    }
    stamps.record_exec();
    stamps.record_mark(1, 130, End(0));
    let (operations, spans) = stamps.entry_counts();
    let [insert, reap] = [operations[0], spans[0]];
    assert_eq!((insert.entered, insert.ended, insert.open, insert.abandoned), (4, 2, 1, 1));
    assert_eq!(insert.unbegun, 2);
    assert_eq!((reap.entered, reap.open), (1, 1));
    stamps.finish().unwrap();
    assert_eq!(read_trace(&path).1.iter().map(|one| one.wall).collect::<Vec<_>>(), [10, 10]);
}

#[test]
fn ends_that_do_not_fit_are_flagged_and_recursion_is_one_operation() {
    use ProbeMark::{Begin, End, Enter, Leave};
    let marks = [
        (1, 0, End(0)),
        (1, 5, Enter(0)),
        (1, 10, Begin(0)),
        (1, 20, Begin(0)),
        (1, 30, End(0)),
        (1, 40, End(0)),
        (1, 50, Begin(0)),
        (1, 60, Leave(1)),
        (1, 70, End(0)),
        (1, 80, Begin(1)),
        (1, 85, Enter(0)),
        (1, 90, Enter(1)),
        (1, 95, Leave(0)),
        (1, 99, End(1)),
        (1, 200, Begin(0)),
    ];
    let (told, operations) = write_and_read_marks((&[], &[]), &marks);
    assert_eq!(
        operations.iter().map(|one| (one.wall, one.unbalanced)).collect::<Vec<_>>(),
        [(30, true), (20, true), (19, true)]
    );
    assert_eq!(told.unbalanced, 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// Any stream at all: what comes out is sound, and every whole begin and end is one operation.
    #[test]
    fn any_stream_is_paired(steps in proptest::collection::vec((1_i32..4, 0_u8..8, 0_u64..50), 0..3000)) {
        let mut now = 0;
        let (mut open, mut whole) = ([0_u32; 4], 0);
        let mark = |(thread, what, step): &(i32, u8, u64)| {
            now += step;
            let depth = &mut open[*thread as usize];
            let mark = match what {
                0 => { *depth += 1; ProbeMark::Begin(0) }
                1 => { if *depth == 1 { whole += 1; } *depth = depth.saturating_sub(1); ProbeMark::End(0) }
                2 | 3 => ProbeMark::Enter(what - 2),
                4 | 5 => ProbeMark::Leave(what - 4),
                6 => ProbeMark::Preempted,
                _ => ProbeMark::Resumed,
            };
            (*thread, now, mark)
        };
        let marks: Vec<_> = steps.iter().map(mark).collect();
        let (told, operations) = write_and_read_marks((&[], &[]), &marks);
        prop_assert_eq!((operations.len(), told.backwards, told.cut), (whole, 0, None));
        for one in &operations {
            prop_assert!(one.spans.iter().map(|span| span.ns).sum::<u64>() <= one.wall);
        }
    }
}
