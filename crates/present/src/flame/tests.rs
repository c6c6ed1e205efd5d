use perflab_analyze::flame::{
    CallTreeOptions, CategoryRules, FunctionShare, function_differences, join_profiles,
};
use perflab_model::profile::{Profile, ProfileSummary, StackTreeBuilder};
use perflab_model::{CommId, FrameKind, Nanos, StackFrame, StackSample, Unit};

use super::*;

/// A profile of folded lines, `comm;outer;inner 3`, user functions in brackets; a piece for each list, a sample
/// every 30 ms.
fn profile_from_folded(pieces: &[&[&str]]) -> Profile {
    let mut profile = Profile::default();
    let mut weaver = StackTreeBuilder::default();
    for (slot, lines) in (0..).zip(pieces) {
        let samples = (0..).zip(*lines).map(|(at, line)| folded_sample(&mut weaver, line, at)).collect();
        profile.add_batch(weaver.take_batch(slot, samples));
        let (source, event) = ("perf.data".into(), "cpu-clock".into());
        let about = ProfileSummary {
            slot,
            source,
            event,
            frequency: Some(499),
            unit: Unit::new("ns"),
            ..ProfileSummary::default()
        };
        profile.add_summary(about);
    }
    profile
}

fn folded_sample(weaver: &mut StackTreeBuilder, line: &str, at: u64) -> StackSample {
    let (stack, count) = line.rsplit_once(' ').unwrap();
    let mut frames = stack.split(';');
    let comm: CommId = weaver.intern_comm(frames.next().unwrap());
    let leaf = frames.fold(None, |parent, name| {
        let user = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
        let kind = if user.is_some() { FrameKind::User } else { FrameKind::Kernel };
        let frame = weaver.intern_frame(StackFrame::new(user.unwrap_or(name), kind));
        Some(weaver.intern_node(parent, frame))
    });
    let count: u64 = count.parse().unwrap();
    let at = Some(Nanos(5_000_000_000 + at * 30_000_000));
    StackSample { at, cpu: Some(0), pid: Some(1), tid: Some(1), comm, leaf, count, weight: count }
}

const BEFORE: [&[&str]; 2] = [
    &["bench;<main>;write;kmem_cache_alloc 30", "bench;<main>;read;kfree 60", "bench;<main> 9", "swapper 1"],
    &["bench;<main>;write;kmem_cache_alloc 32", "bench;<main>;read;kfree 58", "bench;<main> 10"],
];

const AFTER: [&[&str]; 2] = [
    &["bench;<main>;write;kmem_cache_alloc 61", "bench;<main>;read;kfree 29", "bench;<main>;poll 10"],
    &["bench;<main>;write;kmem_cache_alloc 60", "bench;<main>;read;kfree 30", "bench;<main>;poll 10"],
];

/// A stack of sixty functions in one sample of a thousand is wider than the narrowest box, and yet nothing that anybody would see.
#[test]
fn a_single_deep_stack_does_not_set_the_height_of_the_picture() {
    let deep: Vec<String> = (0..60).map(|depth| format!("deep{depth}")).collect();
    let deep = format!("bench;{} 1", deep.join(";"));
    let profile = profile_from_folded(&[&[deep.as_str(), "bench;main;write 998"]]);
    let joined = join_profiles(&[vec![(&profile, CallTreeOptions::default())]]);
    let categories = FlameCategories::by_role(&joined);
    let requested = FlameGraph {
        title: "t",
        source: "s",
        joined: &joined,
        categories: &categories,
        width: 600.0,
        icicle: false,
    };
    let picture = flame_graph_svg(&requested);
    assert!(picture.contains("<title>write: 998") && !picture.contains("deep59"), "{picture}");
    assert!(picture.contains("58 boxes are not drawn"), "{picture}");
}

#[test]
fn the_picture_names_every_box_and_its_shares() {
    let profile = profile_from_folded(&BEFORE);
    let options = CallTreeOptions { commands: true, ..CallTreeOptions::default() };
    let joined = join_profiles(&[vec![(&profile, options)]]);
    let categories = FlameCategories::by_role(&joined);
    let (title, source) = ("before <&\">", "perf.data, cpu-clock at 499 Hz");
    let requested =
        FlameGraph { title, source, joined: &joined, categories: &categories, width: 600.0, icicle: false };
    insta::assert_snapshot!(flame_graph_svg(&requested));
    // Where a line has no room for the legend, it has several.
    let height = |width| {
        let picture = flame_graph_svg(&FlameGraph { width, ..requested });
        picture.split('"').nth(5).and_then(|height| height.parse::<f64>().ok()).unwrap()
    };
    assert!(height(150.0) > height(600.0), "{} {}", height(150.0), height(600.0));
    let icicle = flame_graph_svg(&FlameGraph { icicle: true, ..requested });
    assert!(icicle.find(">all<").unwrap() < icicle.find(">main<").unwrap());
    let nothing = join_profiles(&[]);
    insta::assert_snapshot!(flame_graph_svg(&FlameGraph { joined: &nothing, ..requested }), @r##"
    <svg xmlns="http://www.w3.org/2000/svg" width="600" height="120" viewBox="0 0 600 120" role="img" aria-label="Flame graph of before &lt;&amp;&quot;&gt;" font-family="Roboto, system-ui, sans-serif" font-size="12" fill="#1c1a17">
    <rect width="600" height="120" fill="#ffffff"/>
    <text x="12" y="26" font-size="17">before &lt;&amp;&quot;&gt;</text>
    <text x="12" y="46" fill-opacity="0.68">no samples</text>
    <text x="12" y="106" fill-opacity="0.68">Widths and percentages are shares of all samples that were kept.</text>
    </svg>
    "##);
}

#[test]
fn a_picture_of_two_sides_has_each_and_what_differs() {
    let (before, after) = (profile_from_folded(&BEFORE), profile_from_folded(&AFTER));
    let options = CallTreeOptions { commands: true, ..CallTreeOptions::default() };
    let joined = join_profiles(&[vec![(&before, options.clone())], vec![(&after, options)]]);
    let categories = FlameCategories::by_role(&joined);
    let names = ["before <&>", "after"];
    let requested =
        DifferentialGraph { title: "bench", names, joined: &joined, categories: &categories, width: 800.0 };
    insta::assert_snapshot!(differential_flame_svg(&requested));
    let nothing = join_profiles(&[]);
    let empty = differential_flame_svg(&DifferentialGraph { joined: &nothing, ..requested });
    assert_eq!(empty.matches("<title>").count(), 0);
}

#[test]
fn functions_that_moved_come_first() {
    let four = |pieces: [&'static [&'static str]; 2]| [pieces, pieces].concat();
    let (before, after) = (profile_from_folded(&four(BEFORE)), profile_from_folded(&four(AFTER)));
    let joined = join_profiles(&[
        vec![(&before, CallTreeOptions::default())],
        vec![(&after, CallTreeOptions::default())],
    ]);
    let found = function_differences(&joined, (0, 1), FunctionShare::Own).unwrap();
    let moved: Vec<&str> =
        found.functions.iter().filter(|row| row.differs).map(|row| row.function.name.as_str()).collect();
    let first: Vec<&str> =
        found.functions.iter().take(moved.len()).map(|row| row.function.name.as_str()).collect();
    assert_eq!(moved, first);
    assert!(moved.contains(&"kmem_cache_alloc") && moved.contains(&"kfree"), "{found:?}");
    let grid = function_differences_grid(&found, ["before", "after"], 10);
    insta::assert_snapshot!(grid.render(crate::grid::OutputFormat::Table, None, false).unwrap());
}

#[test]
fn the_viewer_is_told_both_sides_over_one_tree() {
    let (before, after) = (profile_from_folded(&BEFORE), profile_from_folded(&AFTER));
    let options = CallTreeOptions { commands: true, ..CallTreeOptions::default() };
    let joined = join_profiles(&[vec![(&before, options.clone())], vec![(&after, options)]]);
    let names = ["before".to_owned(), "after".to_owned()];
    let picture = flame_viewer_data("before and after", &joined, &names, &FlameCategories::by_role(&joined));
    insta::assert_snapshot!(serde_json::to_string_pretty(&picture).unwrap());
    let page =
        render_flame_page("perflab", &FlameViewerData { title: "a </script> b".into(), ..picture }).unwrap();
    assert!(page.contains("<title>a &lt;") && !page.contains("a </script> b"));
    assert!(page.contains("id=\"flame-data\""));
}

#[test]
fn a_rule_table_gives_colours_to_what_it_knows() {
    let profile = profile_from_folded(&[&[
        "bench;<main>;write;kmem_cache_alloc;___slab_alloc 3",
        "bench;<main>;read;kfree 2",
    ]]);
    let options = CallTreeOptions { commands: true, ..CallTreeOptions::default() };
    let joined = join_profiles(&[vec![(&profile, options)]]);
    let rules = CategoryRules::load_shipped("slab").unwrap().unwrap();
    let categories = FlameCategories::by_rules(&joined, &rules);
    let shown = joined.nodes.iter().zip(&categories.by_node).map(|(node, category)| {
        let name = &joined.functions[node.function as usize].name;
        format!("{name}: {}", categories.categories[*category as usize].name)
    });
    let requested = [
        "all: all",
        "bench: command",
        "main: user",
        "write: kernel",
        "kmem_cache_alloc: allocation: fast",
        "___slab_alloc: allocation: slow",
        "read: kernel",
        "kfree: free: fast",
    ];
    assert_eq!(shown.collect::<Vec<_>>(), requested);
}
