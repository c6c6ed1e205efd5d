//! `perflab plot`: pictures of runs, the same for the same data, and what is refused.

use std::fs;

use crate::laboratory::Sandbox;

/// The kinds that draw metrics.
const KINDS: &[&str] = &["strip", "ecdf", "histogram", "interval"];

#[test]
fn a_picture_is_the_same_byte_for_byte_and_goes_where_it_is_asked_for() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("fast", 100);
    laboratory.run_echo("slow", 50);
    for kind in KINDS {
        for name in ["p.svg", "p.png"] {
            let draw = || {
                laboratory.run_successfully(&["plot", kind, "fast", "slow", "-o", name]);
                fs::read(laboratory.path(name)).unwrap()
            };
            let first = draw();
            assert_eq!(first, draw(), "{kind}");
            assert!(first.starts_with(if name == "p.svg" { b"<svg" } else { b"\x89PNG" }), "{kind}");
        }
        let said = laboratory.run_successfully(&["plot", kind, "fast", "slow", "-o", "-"]);
        assert_eq!(said.out, fs::read_to_string(laboratory.path("p.svg")).unwrap(), "{kind}");
    }
}

/// Errors name what there is.
#[test]
fn what_cannot_be_drawn_is_refused_with_what_there_is() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("fast", 100);
    laboratory.run_echo("slow", 50);
    let errors = [
        "plot strip fast --metric nothing -o p.svg",
        "plot strip fast --where size=1 -o p.svg",
        "plot strip fast --by size -o p.svg",
        "plot strip fast -o p.gif",
        "plot interval fast -o p.svg",
        "plot interval fast slow --baseline none -o p.svg",
        "plot ecdf fast --y-range 0:2 -o p.svg",
    ]
    .map(|words| {
        let said = laboratory.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, Some(2), "{words}: {}", said.err);
        format!("{words}\n{}", said.err)
    });
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn curves_timelines_and_heat_maps_are_the_same_byte_for_byte() {
    let laboratory = Sandbox::new();
    laboratory.run_sized("sized");
    let pictures = [
        "plot scaling sized --over size --fit usl -o p.svg",
        "plot timeline sized --column meminfo.MemFree -o p.svg",
        "plot timeline sized sized --column meminfo.MemFree --by size -o p.svg",
        "plot heatmap sized --column stat.user -o p.svg",
        "plot heatmap sized --over size,kind -o p.svg",
    ];
    for words in pictures {
        let draw = || {
            laboratory.run_successfully(&words.split(' ').collect::<Vec<_>>());
            fs::read(laboratory.path("p.svg")).unwrap()
        };
        assert_eq!(draw(), draw(), "{words}");
    }
    let errors = [
        "plot scaling sized --over kind -o p.svg",
        "plot scaling sized --over nothing -o p.svg",
        "plot timeline sized --column meminfo.nothing -o p.svg",
        "plot timeline sized --column nothing -o p.svg",
        "plot timeline sized --column nothing.here -o p.svg",
        "plot timeline sized sized --column stat.user -o p.svg",
        "plot heatmap sized --over size -o p.svg",
        "plot heatmap sized --over size,nothing -o p.svg",
        "plot heatmap sized -o p.svg",
    ];
    let errors = errors.map(|words| {
        let said = laboratory.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, Some(2), "{words}: {}", said.err);
        // What there is instead is named, which is another thing elsewhere.
        let wording = said.stable_err();
        let first = wording.lines().next().unwrap();
        let known = [": it has ", ": choose one of ", ": the nearest: "]
            .iter()
            .find_map(|lead| first.split_once(lead));
        known.map_or(first, |(error, names)| if names.is_empty() { first } else { error }).to_owned()
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: `kind` is `a`, which is no number
    error: no case has a factor or parameter `nothing`: they have kind
    error: meminfo has no column `nothing`
    error: invalid value 'nothing' for '--column <MONITOR.COLUMN>': `nothing` is no column: write MONITOR.COLUMN, such as vmstat.nr_dirty (`perflab monitor list`)
    error: run RUN has no series `nothing`: known here: meminfo, stat
    error: user has several rows
    error: --over takes two parameters; name two, such as `threads,size`
    error: no case has a factor or parameter `nothing`: they have kind, size
    error: the following required arguments were not provided:
    ");
}
