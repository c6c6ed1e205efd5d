//! Made-up profiles for the browser: two sides of six iterations each, and a tree of 100,000 boxes.

use perflab_analyze::flame::{CallTreeOptions, join_profiles};
use perflab_model::profile::{Profile, ProfileSummary, StackTreeBuilder};
use perflab_model::{FrameKind, NodeId, StackFrame, StackSample};
use perflab_model::{Nanos, Unit};
use perflab_present::flame::{FlameCategories, FlameViewerData, flame_viewer_data};

/// Stacks with their samples in a thousand, before and after; `k:` marks functions of the kernel.
const STACKS: [(&str, u64, u64); 12] = [
    ("bench;main;send;k:write;k:sock_sendmsg;k:alloc_skb;k:kmem_cache_alloc;k:___slab_alloc", 20, 90),
    ("bench;main;send;k:write;k:sock_sendmsg;k:alloc_skb;k:kmem_cache_alloc", 90, 90),
    ("bench;main;send;k:write;k:sock_sendmsg;k:copy_from_iter", 160, 140),
    ("bench;main;send;k:write;k:sock_sendmsg", 80, 70),
    ("bench;main;receive;k:read;k:sock_recvmsg;k:skb_free;k:kfree", 100, 150),
    ("bench;main;receive;k:read;k:sock_recvmsg;k:skb_free;k:kmem_cache_free", 100, 90),
    ("bench;main;receive;k:read;k:sock_recvmsg;k:copy_to_iter", 200, 170),
    ("bench;main;receive;k:read;k:schedule;k:kfree", 40, 40),
    ("bench;main;walk;walk;walk;visit", 110, 100),
    ("bench;main;old_path", 60, 0),
    ("bench;main;new_path", 0, 30),
    ("swapper", 40, 30),
];

/// A report's or a page's data of two sides.
pub fn two_side_picture() -> FlameViewerData {
    let sides = [false, true].map(|after| repeated_profile(after, 6));
    draw_profiles(&sides, &["before".into(), "after".into()])
}

/// The same as profiles of the first two cases of a run.
pub fn two_side_profiles() -> Vec<(u32, Profile)> {
    vec![(0, repeated_profile(false, 6)), (1, repeated_profile(true, 6))]
}

fn draw_profiles(sides: &[Profile], names: &[String]) -> FlameViewerData {
    let how = CallTreeOptions { commands: true, ..CallTreeOptions::default() };
    let joined = join_profiles(&sides.iter().map(|side| vec![(side, how.clone())]).collect::<Vec<_>>());
    flame_viewer_data("before and after", &joined, names, &FlameCategories::by_role(&joined))
}

fn repeated_profile(after: bool, iterations: u32) -> Profile {
    let (mut profile, mut weaver, mut dice) =
        (Profile::default(), StackTreeBuilder::default(), SeededDice(1 + u64::from(after)));
    for slot in 0..iterations {
        let mut samples = Vec::new();
        for (stack, before, then) in STACKS {
            let wanted = if after { then } else { before };
            let count = wanted + dice.below(wanted / 10 + 1);
            samples
                .extend((0..count).map(|_| add_stack_sample(&mut weaver, stack, &mut dice, u64::from(slot))));
        }
        samples.sort_by_key(|sample| sample.at);
        if let Some(dying) = samples.first_mut() {
            dying.pid = Some(-1);
        }
        profile.add_batch(weaver.take_batch(slot, samples));
        profile.add_summary(profile_description(slot, 5));
    }
    profile
}

fn profile_description(slot: u32, lost: u64) -> ProfileSummary {
    let (source, event) = ("perf.data".into(), "cpu-clock".into());
    let hides = Some("what runs while interrupts are off".into());
    ProfileSummary {
        slot,
        source,
        event,
        frequency: Some(499),
        unit: Unit::new("ns"),
        hides,
        lost,
        ..ProfileSummary::default()
    }
}

fn add_stack_sample(
    weaver: &mut StackTreeBuilder,
    stack: &str,
    dice: &mut SeededDice,
    iteration: u64,
) -> StackSample {
    let mut parts = stack.split(';');
    let comm = weaver.intern_comm(parts.next().unwrap());
    let leaf = parts.fold(None, |parent, name| {
        let kernel = name.strip_prefix("k:");
        let kind = if kernel.is_some() { FrameKind::Kernel } else { FrameKind::User };
        let frame = weaver.intern_frame(StackFrame::new(kernel.unwrap_or(name), kind));
        Some(weaver.intern_node(parent, frame))
    });
    let at = Some(Nanos(1_000_000_000 * (10 * iteration + 1) + dice.below(2_600_000_000)));
    StackSample { at, cpu: Some(0), pid: Some(7), tid: Some(7), comm, leaf, count: 1, weight: 2_004_008 }
}

/// A tree of at least `boxes` boxes, of 4,000 functions, up to 60 deep.
pub fn large_picture(boxes: usize) -> FlameViewerData {
    let (mut profile, mut weaver, mut dice) =
        (Profile::default(), StackTreeBuilder::default(), SeededDice(3));
    let mut samples = Vec::new();
    let mut nodes = 0;
    while nodes < boxes {
        let leaf = random_stack(&mut weaver, &mut dice);
        nodes = nodes.max(leaf.0 as usize + 1);
        let at = Some(Nanos(samples.len() as u64 * 1_000_000));
        let comm = weaver.intern_comm("large");
        samples.push(StackSample {
            at,
            cpu: Some(0),
            pid: Some(7),
            tid: Some(7),
            comm,
            leaf: Some(leaf),
            count: 1,
            weight: 1,
        });
    }
    profile.add_batch(weaver.take_batch(0, samples));
    profile.add_summary(profile_description(0, 0));
    draw_profiles(&[profile], &["large".into()])
}

/// One stack: callees are few and mostly the same, as in programs.
fn random_stack(weaver: &mut StackTreeBuilder, dice: &mut SeededDice) -> NodeId {
    let depth = 8 + dice.below(52);
    let (mut at, mut function) = (None, 0);
    for _ in 0..depth {
        let (one, other) = (dice.below(12), dice.below(12));
        function = (function * 31 + one.min(other) + 1) % 4000;
        let kind = if function % 3 == 0 { FrameKind::User } else { FrameKind::Kernel };
        let frame = weaver.intern_frame(StackFrame::new(&format!("function_{function}"), kind));
        at = Some(weaver.intern_node(at, frame));
    }
    at.unwrap()
}

/// Numbers that are the same everywhere (Knuth's MMIX generator).
struct SeededDice(u64);

impl SeededDice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
