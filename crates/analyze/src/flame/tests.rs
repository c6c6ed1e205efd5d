use perflab_model::profile::{CommId, Frame, FrameKind, Piece, Profile, Profiled, StackSample, Weaver};

use super::*;

/// A profile of folded lines: `comm;outer;inner 3`, a piece for each list of lines.
fn profile(pieces: &[&[&str]]) -> Profile {
    let mut profile = Profile::default();
    let mut weaver = Weaver::default();
    for (slot, lines) in (0..).zip(pieces) {
        let samples = lines.iter().map(|line| sample(&mut weaver, line)).collect();
        profile.take(weaver.batch(slot, samples));
    }
    profile
}

fn sample(weaver: &mut Weaver, line: &str) -> StackSample {
    let (stack, count) = line.rsplit_once(' ').unwrap();
    let mut frames = stack.split(';');
    let comm = weaver.comm(frames.next().unwrap());
    let leaf = frames.fold(None, |parent, name| {
        let frame = weaver.frame(Frame::new(name, FrameKind::Kernel));
        Some(weaver.node(parent, frame))
    });
    let count: u64 = count.parse().unwrap();
    StackSample { at: None, cpu: None, pid: None, tid: None, comm, leaf, count, weight: count * 10 }
}

fn lines(tree: &Tree) -> Vec<String> {
    let line = |at: usize| {
        let mut names: Vec<_> =
            tree.ancestors(at as u32).map(|node| tree.function(node).unwrap().name.clone()).collect();
        names.reverse();
        let node = &tree.nodes[at];
        format!("{} {}/{}", names.join(";"), node.own.samples, node.total.samples)
    };
    (0..tree.nodes.len()).map(line).collect()
}

#[test]
fn every_sample_is_below_node_zero() {
    let profile = profile(&[&["a;f;g 3", "b;f 2", "a 1"], &["a;f;g.isra.0 4"]]);
    let grown = grow(&profile, &GrowOptions::default());
    assert_eq!(lines(&grown.tree), ["all 0/10", "all;f 2/9", "all;f;g 7/7", "all;[no stack] 1/1"]);
    assert_eq!(grown.tree.all(), Amount { samples: 10, weight: 100 });
    assert_eq!(grown.leaves, [vec![2, 1, 3], vec![2]]);
}

#[test]
fn commands_stand_under_their_stacks_and_slots_are_chosen() {
    let profile = profile(&[&["a;f 3", "b;f 2", "a 1"], &["a;f 4"]]);
    let options = GrowOptions { slots: Some(vec![0]), commands: true };
    let grown = grow(&profile, &options);
    let wanted = ["all 0/6", "all;a 0/4", "all;a;f 3/3", "all;b 0/2", "all;b;f 2/2", "all;a;[no stack] 1/1"];
    assert_eq!(lines(&grown.tree), wanted);
    assert_eq!(grown.leaves, [vec![2, 4, 5], vec![]]);
}

#[test]
fn a_function_that_calls_itself_is_counted_once() {
    let profile = profile(&[&["a;f;f;g 3", "a;f;f 2", "a;g;f 1"]]);
    let rows = functions(&grow(&profile, &GrowOptions::default()).tree);
    let rows: Vec<_> =
        rows.iter().map(|row| (row.function.name.as_str(), row.own.samples, row.inclusive.samples)).collect();
    assert_eq!(rows, [("f", 3, 6), ("g", 3, 4)]);
}

#[test]
fn what_became_of_every_sample_adds_up() {
    let mut profile = profile(&[&["a;f 3", "a 2"]]);
    let dead = StackSample { pid: Some(-1), ..profile.pieces[0].samples[0] };
    let about = Profiled { slot: 1, lost: 4, unreadable: 1, ..Profiled::default() };
    profile.pieces.push(Piece { about, samples: vec![StackSample { comm: CommId(0), ..dead }] });
    let parts = profile.parts();
    assert_eq!((parts.stacks, parts.stackless, parts.dead, parts.lost, parts.unreadable), (3, 2, 3, 4, 1));
    assert_eq!(parts.all(), 13);
    assert_eq!(parts.kept(), grow(&profile, &GrowOptions::default()).tree.all().samples);
}
