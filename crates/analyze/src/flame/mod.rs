//! Flame graphs: the call tree of a profile, its functions, and what every number is a share of.
//!
//! Stacks are merged by normalised names, so that kernels can be compared. No sample is lost: node 0 of a [`CallTree`]
//! is all samples that were kept, those without a stack hang below it under [`NO_STACK`], and
//! [`SampleCounts`](perflab_model::profile::SampleCounts) says what else there was.
//!
//! | module | content |
//! |---|---|
//! | `call_tree` | [`build_call_tree`]: merged stacks with own and total amounts; [`function_rows`] |
//! | [`category_rules`] | [`CategoryRules`]: rule tables as data, checked |
//! | `categories` | [`categorise_profile`]: what every node of a profile is by a table |
//! | `category_shares` | [`CategoryShares`]: operations and categories as shares, with denominators and intervals |
//! | `profiled_run` | [`ProfiledRun`]: what of a profile counts, and what of it repeats |
//! | `category_comparison` | [`compare_categories`]: the shares of several levels or runs beside each other, and how they differ |
//! | `differential` | [`join_profiles`]: several profiles over one tree; [`profile_changes`]: what differs by more than noise |
//! | `function_differences` | [`function_differences()`]: functions of two sides, with what moved |

pub(crate) mod call_tree;
pub(crate) mod categories;
mod category_comparison;
pub mod category_rules;
pub(crate) mod category_shares;
pub(crate) mod differential;
mod function_differences;
mod profiled_run;

pub use call_tree::{
    CallTree, CallTreeNode, CallTreeOptions, FrameRole, FunctionRow, MappedCallTree, NO_STACK, ProfileAmount,
    ProfileFunction, SharedCommands, build_call_tree, function_rows,
};
pub use categories::{ProfileCategories, StackCategory, UNRECOGNISED, categorise_profile};
pub use category_comparison::{
    CategoryComparison, CategoryComparisonError, CategoryDifference, ComparedShareRow, ShareLevel,
    ShareLevelData, ShareMeasure, compare_categories,
};
pub use category_rules::{CategoryRules, CategoryRulesError, NamePattern};
pub use category_shares::{
    CategoryShareOptions, CategoryShareRow, CategoryShares, CostPerOperation, RuleCoverage, ShareEstimate,
    category_shares, profile_parts,
};
pub use differential::{
    FunctionShare, JoinedNode, JoinedProfiles, JoinedRun, JoinedSide, NoiseBasis, ProfileChanges,
    ShareDifference, join_profiles, profile_changes,
};
pub use function_differences::{FunctionDifference, FunctionDifferences, function_differences};
pub use profiled_run::{BootKey, ProfiledRun, RepetitionCount, measured_slots, slot_boots};

#[cfg(test)]
mod tests {
    use perflab_model::profile::{IterationProfile, Profile, ProfileSummary, StackTreeBuilder};
    use perflab_model::{CommId, FrameKind, StackFrame, StackSample};

    use super::*;
    use crate::flame::category_rules;

    /// A profile of folded lines: `comm;outer;inner 3`, a piece for each list of lines.
    fn make_profile(pieces: &[&[&str]]) -> Profile {
        let mut profile = Profile::default();
        let mut weaver = StackTreeBuilder::default();
        for (slot, lines) in (0..).zip(pieces) {
            let samples = lines.iter().map(|line| make_sample(&mut weaver, line)).collect();
            profile.add_batch(weaver.take_batch(slot, samples));
        }
        profile
    }

    fn make_sample(weaver: &mut StackTreeBuilder, line: &str) -> StackSample {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let mut frames = stack.split(';');
        let comm = weaver.intern_comm(frames.next().unwrap());
        let leaf = frames.fold(None, |parent, name| {
            let frame = weaver.intern_frame(StackFrame::new(name, FrameKind::Kernel));
            Some(weaver.intern_node(parent, frame))
        });
        let count: u64 = count.parse().unwrap();
        StackSample { at: None, cpu: None, pid: None, tid: None, comm, leaf, count, weight: count * 10 }
    }

    fn tree_lines(tree: &CallTree) -> Vec<String> {
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
        let profile = make_profile(&[&["a;f;g 3", "b;f 2", "a 1"], &["a;f;g.isra.0 4"]]);
        let grown = build_call_tree(&profile, &CallTreeOptions::default());
        assert_eq!(tree_lines(&grown.tree), ["all 0/10", "all;f 2/9", "all;f;g 7/7", "all;[no stack] 1/1"]);
        assert_eq!(grown.tree.total_amount(), ProfileAmount { samples: 10, weight: 100 });
        assert_eq!(grown.leaves, [vec![2, 1, 3], vec![2]]);
    }

    #[test]
    fn two_versions_of_a_program_share_the_box_of_their_command() {
        let before = make_profile(&[&["v1;main;work 30", "sh;main 2"]]);
        let after = make_profile(&[&["v2;main;work 10", "sh;main 2"]]);
        let shared = SharedCommands::from_sides(&[vec![&before], vec![&after]]);
        assert_eq!(shared.as_ref().map(|shared| shared.label.as_str()), Some("v1 | v2"));
        let options = CallTreeOptions { commands: true, shared, ..CallTreeOptions::default() };
        let joined = join_profiles(&[vec![(&before, options.clone())], vec![(&after, options)]]);
        let name = |node: &JoinedNode| joined.functions[node.function as usize].name.as_str();
        let names: Vec<&str> = joined.nodes.iter().map(name).collect();
        assert_eq!(names, ["all", "v1 | v2", "main", "work", "sh", "main"]);
        // One side that has all commands of the other has more of them, and no other version.
        let more = make_profile(&[&["v1;main 1", "sh;main 2", "ld;main 1"]]);
        assert_eq!(SharedCommands::from_sides(&[vec![&before], vec![&more]]), None);
        assert_eq!(SharedCommands::from_sides(&[vec![&before]]), None);
    }

    #[test]
    fn commands_stand_under_their_stacks_and_slots_are_chosen() {
        let profile = make_profile(&[&["a;f 3", "b;f 2", "a 1"], &["a;f 4"]]);
        let options = CallTreeOptions { slots: Some(vec![0]), commands: true, ..CallTreeOptions::default() };
        let grown = build_call_tree(&profile, &options);
        let requested =
            ["all 0/6", "all;a 0/4", "all;a;f 3/3", "all;b 0/2", "all;b;f 2/2", "all;a;[no stack] 1/1"];
        assert_eq!(tree_lines(&grown.tree), requested);
        assert_eq!(grown.leaves, [vec![2, 4, 5], vec![]]);
    }

    #[test]
    fn a_function_that_calls_itself_is_counted_once() {
        let profile = make_profile(&[&["a;f;f;g 3", "a;f;f 2", "a;g;f 1"]]);
        let rows = function_rows(&build_call_tree(&profile, &CallTreeOptions::default()).tree);
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (row.function.name.as_str(), row.own.samples, row.inclusive.samples))
            .collect();
        assert_eq!(rows, [("f", 3, 6), ("g", 3, 4)]);
    }

    #[test]
    fn what_became_of_every_sample_adds_up() {
        let mut profile = make_profile(&[&["a;f 3", "a 2"]]);
        let dead = StackSample { pid: Some(-1), ..profile.iterations[0].samples[0] };
        let about = ProfileSummary { slot: 1, lost: 4, unreadable: 1, ..ProfileSummary::default() };
        profile.iterations.push(IterationProfile {
            summary: about,
            samples: vec![StackSample { comm: CommId(0), ..dead }],
        });
        let parts = profile.sample_counts();
        assert_eq!(
            (parts.stacks, parts.stackless, parts.dead, parts.lost, parts.unreadable),
            (3, 2, 3, 4, 1)
        );
        assert_eq!(parts.total(), 13);
        assert_eq!(
            parts.in_profile(),
            build_call_tree(&profile, &CallTreeOptions::default()).tree.total_amount().samples
        );
    }

    fn slab_rules() -> CategoryRules {
        CategoryRules::load_shipped("slab").unwrap().unwrap()
    }

    /// `operation/category` of each line, by the slab table.
    fn category_names(lines: &[&str]) -> Vec<String> {
        let (profile, rules) = (make_profile(&[lines]), slab_rules());
        let found = categorise_profile(&profile, &rules);
        let describe = |leaf: perflab_model::NodeId| {
            let verdict = found.nodes[leaf.0 as usize];
            let category = &rules.categories[verdict.category as usize].name;
            verdict
                .operation
                .map_or("-".into(), |at| format!("{}/{category}", rules.operations[at as usize].name))
        };
        profile.iterations[0].samples.iter().map(|sample| describe(sample.leaf.unwrap())).collect()
    }

    #[test]
    fn shipped_tables_are_sound() {
        for (name, _) in category_rules::SHIPPED_RULES {
            assert!(
                CategoryRules::load_shipped(name).unwrap().is_ok(),
                "{:?}",
                CategoryRules::load_shipped(name).unwrap()
            );
        }
        assert!(CategoryRules::load_shipped("nothing").is_none());
        assert!(category_rules::shipped_anchors().contains(&"___slab_alloc".to_owned()));
    }

    #[test]
    fn operations_begin_outermost_and_categories_have_ranks() {
        let found = category_names(&[
            "a;sys;kmem_cache_alloc_node_noprof 1",
            "a;sys;__kmalloc_node_track_caller_noprof;___slab_alloc 1",
            "a;kmem_cache_alloc;___slab_alloc;get_partial_node;native_queued_spin_lock_slowpath 1",
            "a;kmem_cache_alloc;___slab_alloc;allocate_slab;alloc_frozen_pages_noprof;get_page_from_freelist 1",
            "a;kmem_cache_alloc;__memcg_slab_post_alloc_hook;obj_cgroup_charge_account 1",
            "a;kmem_cache_free;__slab_free;__free_slab;kfree 1",
            "a;kfree.part.0 1",
            "a;kfree;kasan_slab_free;_raw_spin_lock 1",
            "a;unix_stream_sendmsg;kmalloc_reserve 1",
            "a;cache_alloc_refill 1",
            // kmem_cache_free ends in a jump to it.
            "a;skb_release_data;__slab_free 1",
        ]);
        let requested = [
            "allocation/fast",
            "allocation/slow",
            "allocation/lock wait",
            "allocation/page allocator",
            "allocation/memory cgroup",
            "free/slow",
            "free/fast",
            "free/debug",
            "-",
            "-",
            "free/slow",
        ];
        assert_eq!(found, requested);
    }

    #[test]
    fn what_interrupts_an_allocation_is_not_the_allocators() {
        let found = category_names(&[
            "a;kmem_cache_alloc;asm_sysvec_apic_timer_interrupt;update_curr 1",
            "a;kmem_cache_alloc;asm_sysvec_apic_timer_interrupt;handle_softirqs;rcu_do_batch;kfree 1",
        ]);
        assert_eq!(found, ["-", "free/fast"]);
    }

    /// A frame that only its place tells, among anchors.
    fn profile_with_window(name: &str, start: i64, apart: i64) -> Profile {
        let mut weaver = StackTreeBuilder::default();
        let frame = weaver
            .intern_frame(StackFrame { start: Some(start), ..StackFrame::new(name, FrameKind::Kernel) });
        let leaf = Some(weaver.intern_node(None, frame));
        let (at, cpu, pid, tid) = (None, None, None, None);
        let one = StackSample { at, cpu, pid, tid, comm: CommId(0), leaf, count: 4, weight: 4 };
        let mut profile = Profile::default();
        profile.add_batch(weaver.take_batch(0, vec![one]));
        let anchor =
            |(name, start): (&str, i64)| perflab_model::profile::SymbolAnchor { name: name.into(), start };
        let anchors =
            [("kfree", 1000), ("kmem_cache_free", 1500), ("___slab_alloc", 1000 + apart)].map(anchor);
        profile.add_summary(ProfileSummary { anchors: anchors.into(), ..ProfileSummary::default() });
        profile
    }

    #[test]
    fn another_kernel_of_the_run_does_not_make_this_one_another() {
        let mut profile = profile_with_window("kfree", 1000, 2000);
        profile.frames.push(StackFrame::new("slob_alloc", FrameKind::Kernel));
        let variant = |profile: &Profile| {
            category_shares(&[ProfiledRun::new(profile)], &slab_rules(), &CategoryShareOptions::default())
                .variant
        };
        assert_eq!(variant(&profile).as_deref(), Some("SLUB"));
        profile.iterations[0].summary.anchors.clear();
        assert_eq!(variant(&profile).as_deref(), Some("SLOB"));
    }

    #[test]
    fn functions_without_a_rule_are_found_by_their_place() {
        let coverage = |profile: &Profile| {
            category_shares(&[ProfiledRun::new(profile)], &slab_rules(), &CategoryShareOptions::default())
                .coverage
        };
        let inside = coverage(&profile_with_window("brand_new", 1200, 2000));
        assert_eq!((inside.by_name, inside.by_window), (0, 4));
        assert_eq!(inside.without_rule, [("brand_new".to_owned(), 4)]);
        assert_eq!(coverage(&profile_with_window("elsewhere", 9000, 2000)).by_window, 0);
        let apart = coverage(&profile_with_window("brand_new", 1200, 1 << 20));
        assert_eq!(apart.by_window, 0);
        insta::assert_snapshot!(apart.no_window.unwrap(), @"its anchors lie 1048576 bytes apart: the linker moved functions");
        assert_eq!(
            coverage(&profile_with_window("new_slab_thing", 9000, 2000)).undecided,
            4,
            "it sounds like a rule is missing"
        );
    }

    #[test]
    fn shares_have_denominators_and_intervals_of_iterations() {
        let profile = make_profile(&[
            &["h;kmem_cache_alloc 10", "h;kmem_cache_alloc;___slab_alloc 10", "h;kfree 20", "h;rest 60"],
            &[
                "h;kmem_cache_alloc 20",
                "h;kmem_cache_alloc;___slab_alloc 10",
                "h;kfree 20",
                "h;rest 48",
                "x;rest 2",
            ],
        ]);
        let mut profile = profile;
        profile.iterations.iter_mut().for_each(|piece| piece.summary.unit = perflab_model::Unit::new("ns"));
        let counts = [("allocation".to_owned(), 5.0)].into();
        let found = category_shares(
            &[ProfiledRun::new(&profile)],
            &slab_rules(),
            &CategoryShareOptions { counts, ..CategoryShareOptions::default() },
        );
        let row = |operation: &str, category: Option<&str>| {
            found
                .rows
                .iter()
                .find(|row| row.operation == operation && row.category.as_deref() == category)
                .unwrap()
        };
        let all = row("allocation and free", None);
        assert_eq!((all.amount.samples, all.of_all.value), (90, Some(0.45)));
        let alloc = row("allocation", None);
        assert_eq!((alloc.of_all.value, alloc.of_operation.value), (Some(0.25), Some(1.0)));
        let (low, high) = alloc.of_all.interval.unwrap();
        assert!(low < 0.2 && high > 0.3, "two iterations say little: {low} {high}");
        let slow = row("allocation", Some("slow"));
        assert_eq!((slow.of_all.value, slow.of_operation.value), (Some(0.1), Some(0.4)));
        assert_eq!(slow.touching, Some(0.4));
        // 200 ns and 300 ns of weight over five allocations each.
        assert_eq!(alloc.per_operation.as_ref().unwrap().value, 50.0);
        let sum: u64 = found
            .rows
            .iter()
            .filter(|row| row.category.is_some() && row.operation != all.operation)
            .map(|row| row.amount.samples)
            .sum();
        assert_eq!(sum, all.amount.samples, "the categories are a partition");
        let one = category_shares(
            &[ProfiledRun { slots: Some(vec![0]), ..ProfiledRun::new(&profile) }],
            &slab_rules(),
            &CategoryShareOptions { comm: Some("h".into()), ..Default::default() },
        );
        assert_eq!(
            (one.all.samples, one.rows[0].of_all.interval),
            (100, None),
            "one iteration has no interval"
        );
        assert_eq!(one.variant.as_deref(), Some("SLUB"));
    }

    #[test]
    fn parts_of_the_kernel_are_told_by_the_innermost() {
        let rules = CategoryRules::load_shipped("kernel").unwrap().unwrap();
        let profile = make_profile(&[&[
            "h;do_syscall_64;sock_write_iter;unix_stream_sendmsg;__alloc_skb;kmem_cache_alloc_node 1",
            "h;do_syscall_64;unix_stream_sendmsg;sock_def_readable;try_to_wake_up;native_queued_spin_lock_slowpath 1",
            "h;do_syscall_64 1",
            "h;main 1",
        ]]);
        let found = category_shares(&[ProfiledRun::new(&profile)], &rules, &CategoryShareOptions::default());
        let names: Vec<_> = found
            .rows
            .iter()
            .filter(|row| row.amount.samples > 0 && row.category.is_some())
            .map(|row| format!("{}/{}", row.operation, row.category.as_deref().unwrap()))
            .collect();
        assert_eq!(names, ["system-call entry/own work", "scheduler/lock wait", "slab allocator/own work"]);
    }

    #[test]
    fn every_mistake_in_a_table_has_its_line() {
        let table = |more: &str| {
            format!(
                "title = \"t\"\npick = \"outermost\"\n[[operation]]\nname = \"a\"\nroots = [\"f\"]\n{more}"
            )
        };
        let rest = "[[category]]\nname = \"rest\"\npriority = 9\notherwise = true\n";
        let two = "[[category]]\nname = \"x\"\npriority = 1\nframes = [\"g*\"]\n[[category]]\nname = \"y\"\npriority = 1\nframes = [\"h\"]\n";
        let shadowed = "[[category]]\nname = \"x\"\npriority = 1\nframes = [\"g*\"]\n[[category]]\nname = \"y\"\npriority = 2\nframes = [\"got\"]\n";
        for (text, requested) in [
            (
                table(&format!("{two}{rest}")),
                "t.toml:12: `x` and `y` both have priority 1: which of them wins?",
            ),
            (
                table(&format!("{shadowed}{rest}")),
                "t.toml:13: `got` matches nothing: `g*` of `x` takes it before",
            ),
            (
                table(&format!("boundary = []\n{rest}")),
                "t.toml:6: unknown field `boundary`, expected `name` or `roots`",
            ),
            (
                table(rest).replace("\"f\"", "\"f.isra.0\""),
                "t.toml:5: `f.isra.0` matches nothing: names are compared without suffixes, as `f`",
            ),
            (
                table(""),
                "t.toml:1: no category has `otherwise = true`: what is in none of them would be lost",
            ),
        ] {
            assert_eq!(CategoryRules::parse("t.toml", &text).unwrap_err().to_string(), requested);
        }
    }

    #[test]
    fn two_profiles_stand_over_one_tree() {
        let (before, after) =
            (make_profile(&[&["a;f;g 3", "a;f 1"], &["a;f;g 4"]]), make_profile(&[&["a;f;h 2", "a 2"]]));
        let how = CallTreeOptions::default;
        let joined = join_profiles(&[vec![(&before, how())], vec![(&after, how())]]);
        let name = |node: &JoinedNode| joined.functions[node.function as usize].name.as_str();
        assert_eq!(joined.nodes.iter().map(name).collect::<Vec<_>>(), ["all", "f", "g", "h", NO_STACK]);
        let samples =
            |side: &JoinedSide<'_>| side.own_amounts(5).iter().map(|own| own.samples).collect::<Vec<_>>();
        assert_eq!(samples(&joined.sides[0]), [0, 1, 7, 0, 0]);
        assert_eq!(joined.totals_from_own(&samples(&joined.sides[1])), [4, 2, 0, 2, 2]);
        let repeated = joined.sides[0].own_by_repetition(5);
        assert_eq!(repeated.1.iter().map(|own| own[2].samples).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(
            (joined.sides[0].sample_parts().total(), joined.sides[1].sample_parts().stackless),
            (8, 2)
        );
    }

    /// A profile whose repetitions give `f` so many of 1000 samples, and `g` the others.
    fn profile_with_shares(shares: &[u64]) -> Profile {
        let lines: Vec<_> =
            shares.iter().map(|f| [format!("a;m;f {f}"), format!("a;m;g {}", 1000 - f)]).collect();
        let lines: Vec<Vec<&str>> =
            lines.iter().map(|pair| pair.iter().map(String::as_str).collect()).collect();
        make_profile(&lines.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn changes_between(before: &[u64], after: &[u64]) -> ProfileChanges {
        let (before, after) = (profile_with_shares(before), profile_with_shares(after));
        let how = CallTreeOptions::default;
        profile_changes(&join_profiles(&[vec![(&before, how())], vec![(&after, how())]]), 0, 1).unwrap()
    }

    #[test]
    fn a_difference_beyond_the_noise_of_repetitions_is_a_change() {
        let found = changes_between(&[250, 255, 245, 252], &[300, 296, 305, 301]);
        let four = RepetitionCount { level: crate::RepetitionLevel::Iteration, count: 4 };
        assert_eq!(found.basis, NoiseBasis::Repetitions(four, four));
        let f = found.nodes.iter().find(|node| node.of == 2).unwrap();
        assert!(f.is_change() && (f.difference - 0.05).abs() < 1e-9, "{f:?}");
        assert!(f.low > 0.02 && f.high < 0.08, "{f:?}");
        let function = found.functions.iter().find(|one| one.of == 2).unwrap();
        assert_eq!((function.difference, function.low), (f.difference, f.low), "f is called from one place");
        let callers: Vec<u32> = found.nodes.iter().map(|node| node.of).filter(|node| *node < 2).collect();
        assert_eq!(callers, [0_u32; 0], "all and m hold every sample on both sides: nothing varies");
    }

    #[test]
    fn repetitions_that_vary_as_much_as_they_differ_are_noise() {
        let found = changes_between(&[200, 300, 250, 280], &[300, 240, 330, 310]);
        assert!(found.nodes.iter().all(|node| !node.is_change()), "{found:?}");
    }

    #[test]
    fn repetitions_that_agree_by_chance_do_not_beat_counting() {
        // 2.5 % and 3 % of 1000 samples twice, without any spread: counting alone gives ± 0.5 %.
        let found = changes_between(&[25, 25], &[30, 30]);
        assert!(found.nodes.iter().all(|node| !node.is_change()), "{found:?}");
    }

    #[test]
    fn without_repetitions_counting_is_all_that_is_known() {
        let found = changes_between(&[250], &[300, 310]);
        assert_eq!(found.basis, NoiseBasis::Counts);
        let f = found.nodes.iter().find(|node| node.of == 2).unwrap();
        // p = 0.25 of 1000 and 0.305 of 2000: ± 1.96 √(0.25 · 0.75 / 1000 + 0.305 · 0.695 / 2000) = ± 0.03358
        assert!((f.high - f.low - 2.0 * 0.033_58).abs() < 2e-4, "{f:?}");
        assert!((f.difference - 0.055).abs() < 1e-9 && f.is_change(), "{f:?}");
    }

    #[test]
    fn boxes_with_few_samples_are_not_judged() {
        let (before, after) =
            (make_profile(&[&["a;f 500", "a;g 7"]]), make_profile(&[&["a;f 500", "a;g 8"]]));
        let how = CallTreeOptions::default;
        let joined = join_profiles(&[vec![(&before, how())], vec![(&after, how())]]);
        let found = profile_changes(&joined, 0, 1).unwrap();
        assert_eq!(found.nodes.iter().map(|node| node.of).collect::<Vec<_>>(), [1]);
        assert!(profile_changes(&joined, 0, 2).is_none());
    }

    #[test]
    fn runs_that_repeat_each_other_are_the_repetitions() {
        let (one, two) = (profile_with_shares(&[250, 250]), profile_with_shares(&[260]));
        let how = CallTreeOptions::default;
        let joined = join_profiles(&[vec![(&one, how()), (&two, how())], vec![(&one, how())]]);
        let repeated = |side: usize| {
            let (level, own) = joined.sides[side].own_by_repetition(4);
            (level.noun(), own.len())
        };
        assert_eq!((repeated(0), repeated(1)), (("runs", 2), ("iterations", 2)));
        // Where the boots of two iterations are known, these are what repeats.
        let boots = [(0, ("a".to_owned(), 0)), (1, ("a".to_owned(), 1))].into();
        let joined = join_profiles(&[vec![(&one, CallTreeOptions { boots, ..how() })]]);
        let (level, own) = joined.sides[0].own_by_repetition(4);
        assert_eq!((level.noun(), own.len()), ("boots", 2));
    }
}
