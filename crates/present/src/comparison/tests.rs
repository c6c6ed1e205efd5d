/// The made-up runs of the comparison's own tests.
use fixtures::run_builder::{RunBuilder, SplitMixNoise, explanatory_metric, primary_metric};
use std::collections::BTreeSet;

use perflab_analyze::{
    AnalysisOptions, ChangeInterval, Comparison, ComparisonSide, RowFlag, SmallChange, Verdict, VerdictBasis,
    VerdictRow, compare_levels, compare_sides, recap_comparison,
};
use perflab_model::fact_table;
use perflab_model::{Direction, RunRecord};

use crate::comparison::answer::answer_lines;
use crate::comparison::grids::render_gains;
use crate::comparison::mail::{StudyComparison, StudyComparisons, studies_mail};
use crate::comparison::row_text::{repetitions_text, verdict_words};
use crate::comparison::table::render_comparison;
use crate::grid::{Grid, GridCell, GridColumn, OutputFormat};
use crate::method_text::percent_of_level;

/// One run with every verdict: bandwidth better, time worse, latency the same, jitter unclear, faults changed.
fn comparison_with_every_verdict() -> Comparison {
    let mut noise = SplitMixNoise(2);
    let lab = RunBuilder::new("01JDMIXED").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"]), ("threads", vec!["1", "2"])];
        lab.iterations = 12;
        lab.metrics = vec![
            explanatory_metric("faults", "1", Direction::Neither),
            primary_metric("bandwidth", "MB/s", Direction::Higher),
            primary_metric("time", "s", Direction::Lower),
            primary_metric("latency", "us", Direction::Lower),
            primary_metric("jitter", "ns", Direction::Lower),
        ];
    });
    let run = lab.build_run(|spot| {
        let huge = spot.level("pages") == "huge";
        let (centre, ratio, spread) = match spot.metric {
            "faults" => (1_234_567.0, 0.01, 0.02),
            "bandwidth" => (10_240.0, 1.25, 0.01),
            "time" => (0.0123, 1.08, 0.01),
            "latency" => (85.0, 1.0, 0.005),
            _ => (900.0, 1.02, 0.3),
        };
        let value = noise.lognormal_around(if huge { centre * ratio } else { centre }, spread);
        let lost = spot.iteration == 5 && spot.level("threads") == "2" && huge;
        (!lost).then_some(value)
    });
    compare_levels(&named_side("run", run), "pages", &AnalysisOptions::default()).unwrap()
}

fn named_side(name: &str, run: RunRecord) -> ComparisonSide {
    ComparisonSide { name: name.into(), runs: vec![run] }
}

/// Three runs: another boot, other facts, a metric that one of them lacks, differences around zero.
fn compare_three_runs() -> Comparison {
    let run = |id: &str, centre: f64| {
        let mut noise = SplitMixNoise(centre.to_bits());
        let lab = RunBuilder::new(id).with(|lab| {
            lab.metrics = vec![
                primary_metric("time", "s", Direction::Lower),
                primary_metric("balance", "bytes", Direction::Neither),
            ];
            if id != "01JDC" {
                lab.metrics.push(explanatory_metric("wakeups", "1", Direction::Lower));
            }
        });
        let mut run = lab.build_run(|spot| {
            let value = noise.lognormal_around(centre, 0.02);
            Some(if spot.metric == "balance" { (value - 10.0) * 1000.0 } else { value })
        });
        run.manifest.anchor.realtime.0 += centre as u64 * 60_000_000_000;
        run.manifest.facts.add(fact_table::KERNEL_RELEASE, format!("6.{centre}").as_str(), "uname");
        run
    };
    let mut other_boot = run("01JDC", 13.0);
    other_boot.manifest.boot_id = "boot-2".into();
    let baseline = named_side("before my patch", run("01JDA", 10.0));
    let candidates = [
        named_side("after my patch", run("01JDB", 11.0)),
        named_side("another-machine-with-a-long-name", other_boot),
    ];
    compare_sides(&baseline, &candidates, &AnalysisOptions::default()).unwrap()
}

fn render_to_text(comparison: &Comparison, format: OutputFormat, width: Option<usize>) -> String {
    render_comparison(comparison, format, width, false).unwrap()
}

#[test]
fn a_wide_terminal_draws_the_intervals() {
    insta::assert_snapshot!(render_to_text(&comparison_with_every_verdict(), OutputFormat::Table, Some(160)));
}

#[test]
fn a_comparison_by_factor_reads_well() {
    insta::assert_snapshot!(render_to_text(&comparison_with_every_verdict(), OutputFormat::Table, Some(120)));
}

#[test]
fn a_comparison_of_three_runs_reads_well() {
    insta::assert_snapshot!(render_to_text(&compare_three_runs(), OutputFormat::Table, Some(140)));
}

#[test]
fn a_narrow_terminal_gets_cards() {
    let text = render_to_text(&comparison_with_every_verdict(), OutputFormat::Table, Some(44));
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 44), "{text}");
}

#[test]
fn eighty_columns_get_everything() {
    insta::assert_snapshot!(render_to_text(&comparison_with_every_verdict(), OutputFormat::Table, Some(80)));
}

/// Every width shows q, repetitions and what would decide of every row.
#[test]
fn no_width_leaves_anything_out() {
    for comparison in [comparison_with_every_verdict(), compare_three_runs()] {
        let count = |text: &str, what: &str| text.matches(what).count();
        let needs = comparison.rows.iter().filter(|row| row.needed.is_some()).count();
        for width in [40, 60, 79, 80, 81, 90, 100, 140] {
            let text = render_to_text(&comparison, OutputFormat::Table, Some(width));
            assert_eq!(count(&text, "needs ~"), needs, "{width}:\n{text}");
            let has_repetitions = |row: &VerdictRow| text.contains(&repetitions_text(row));
            assert!(comparison.rows.iter().all(has_repetitions), "{text}");
        }
    }
}

#[test]
fn a_number_is_not_torn_from_its_sign() {
    for width in 20..60 {
        let lines = crate::terminal_text::wrap_text(
            "the 95 % interval lies inside ± 3 % of it, at 90 % or so",
            width,
            "",
            "  ",
        );
        let torn = |line: &String| line.trim_start().starts_with('%') || line.ends_with('±');
        assert!(!lines.iter().any(torn), "{lines:?}");
    }
}

#[test]
fn heads_of_long_names_keep_where_they_differ() {
    let head = |names: [&str; 2]| {
        let names = names.map(String::from);
        [0, 1].map(|at| crate::comparison::row_text::shorten_name(&names[at], &names))
    };
    assert_eq!(head(["a", "b"]), ["a", "b"]);
    assert_eq!(
        head(["head -c 3M /dev/zero | gzip -1", "head -c 3M /dev/zero | gzip -9"]),
        ["…/dev/zero | gzip -1", "…/dev/zero | gzip -9"]
    );
    assert_eq!(
        head([
            "head -c 3M /dev/zero | gzip -1 | wc -c | cat",
            "head -c 3M /dev/zero | gzip -9 | wc -c | cat",
        ]),
        ["…ip -1 | wc -c | cat", "…ip -9 | wc -c | cat"]
    );
    let [first, second] = head(["another-machine-with-a-long-name", "a-machine-with-a-long-name-too"]);
    assert_eq!([first.as_str(), second.as_str()], ["another-machine-wit…", "a-machine-with-a-lo…"]);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for comparison in [comparison_with_every_verdict(), compare_three_runs()] {
        for width in [40, 60, 80, 100, 140] {
            let text = render_to_text(&comparison, OutputFormat::Table, Some(width));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?} > {width}:\n{text}");
        }
    }
}

/// A grid of numbers, names and texts, wider than most terminals.
fn wide_grid() -> Grid {
    let columns = ["slab", "if full, now", "efficiency"].map(GridColumn::right);
    let mut grid =
        Grid::new([GridColumn::left("cache")].into_iter().chain(columns).chain([GridColumn::left("reason")]));
    for (cache, reason) in
        [("debugfs_inode_node_cache", "it grew"), ("dentry", ""), ("a", "no reason that is known")]
    {
        let cells = [cache, "388.6 MiB", "134.6 MiB", "91.43 %", reason];
        grid.add_row(cells.map(GridCell::from));
    }
    grid
}

/// The room is used for titles and texts first; then each row stands below its name.
#[test]
fn no_number_and_no_name_of_a_grid_is_broken() {
    let whole = wide_grid().render(OutputFormat::Table, None, false).unwrap();
    for width in [20, 40, 60, 80, 200] {
        let text = wide_grid().render(OutputFormat::Table, Some(width), false).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width.max(24)), "{widest:?} > {width}:\n{text}");
        for (part, times) in [
            ("388.6 MiB", 3),
            ("134.6 MiB", 3),
            ("91.43 %", 3),
            ("debugfs_inode_node_cache", 1),
            ("dentry", 1),
        ] {
            assert_eq!(text.matches(part).count(), times, "{part} at {width}:\n{text}");
        }
        assert!(
            width < whole.lines().map(|line| line.chars().count()).max().unwrap() || text == whole,
            "{text}"
        );
    }
    insta::assert_snapshot!("grid_80", wide_grid().render(OutputFormat::Table, Some(80), false).unwrap());
    insta::assert_snapshot!("grid_60", wide_grid().render(OutputFormat::Table, Some(60), false).unwrap());
}

#[test]
fn markdown_and_csv_hold_the_same_rows() {
    insta::assert_snapshot!(
        "markdown",
        render_to_text(&comparison_with_every_verdict(), OutputFormat::Markdown, None)
    );
    insta::assert_snapshot!("csv", render_to_text(&comparison_with_every_verdict(), OutputFormat::Csv, None));
}

#[test]
fn json_has_every_number() {
    let comparison = comparison_with_every_verdict();
    let json: serde_json::Value =
        serde_json::from_str(&render_to_text(&comparison, OutputFormat::Json, None)).unwrap();
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(comparison.rows.len()));
    assert_eq!(json["rows"][1]["candidate"]["values"][11]["at"], 1_700_000_047_000_000_000_u64);
    assert_eq!(
        json["rows"][0]["change"]["interval"]["coverage"].as_f64().map(|level| level >= 0.95),
        Some(true)
    );
}

#[test]
fn colour_never_stands_alone() {
    let plain = render_to_text(&comparison_with_every_verdict(), OutputFormat::Table, Some(120));
    let coloured =
        render_comparison(&comparison_with_every_verdict(), OutputFormat::Table, Some(120), true).unwrap();
    assert!(coloured.contains("\u{1b}[1;32m✓ better\u{1b}[0m") && coloured.contains("\u{1b}[1;31m✗ worse"));
    let mut stripped = String::new();
    let mut is_code = false;
    for c in coloured.chars() {
        match c {
            '\u{1b}' => is_code = true,
            'm' if is_code => is_code = false,
            _ if is_code => {}
            c => stripped.push(c),
        }
    }
    assert_eq!(stripped, plain);
}

#[test]
fn hundreds_of_counters_are_folded() {
    const NAMES: [&str; 14] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];
    let mut noise = SplitMixNoise(4);
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"])];
        lab.metrics = NAMES.iter().map(|name| explanatory_metric(name, "1", Direction::Neither)).collect();
    });
    let run = lab.build_run(|spot| {
        let far = spot.metric == "n" && spot.level("pages") == "huge";
        Some(noise.lognormal_around(if far { 900.0 } else { 100.0 }, 0.05))
    });
    let found = compare_levels(&named_side("r", run), "pages", &AnalysisOptions::default()).unwrap();
    let table = render_to_text(&found, OutputFormat::Table, None);
    let first = table.lines().find(|line| line.starts_with("  ") && !line.contains("metric")).unwrap();
    assert!(first.starts_with("  n "), "{table}");
    let left_out = table.lines().find(|line| line.contains("explanatory rows with less"));
    insta::assert_snapshot!(left_out.unwrap(), @"4 explanatory rows with less to say are left out: --metric explanatory shows all");
    assert_eq!(render_to_text(&found, OutputFormat::Csv, None).lines().count(), 15);
}

/// A list as `perflab list` prints it.
fn run_list_grid() -> Grid {
    let mut grid = Grid::new([GridColumn::left("run"), GridColumn::left("title"), GridColumn::right("size")]);
    grid.add_row([
        GridCell::from("01JD"),
        GridCell::from("one | two, \"three\""),
        GridCell::with_text("1.2 GiB", 1_288_490_188_u64),
    ]);
    grid.add_row([GridCell::from("01JE"), GridCell::from(None::<String>)]);
    grid
}

#[test]
fn a_grid_has_four_formats() {
    let all = [OutputFormat::Table, OutputFormat::Json, OutputFormat::Csv, OutputFormat::Markdown];
    let text: Vec<String> =
        all.iter().map(|format| run_list_grid().render(*format, Some(80), false).unwrap()).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn a_grid_wraps_in_a_narrow_terminal() {
    let text = run_list_grid().render(OutputFormat::Table, Some(24), false).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 24), "{text}");
}

/// Every word that a row can have, parts of the distribution as PART.
fn all_verdict_words() -> BTreeSet<String> {
    let mut base = comparison_with_every_verdict().rows.remove(0);
    (base.flags, base.middle, base.basis, base.tail) = (Vec::new(), None, VerdictBasis::Values, None);
    let part = base.parts.first().copied().unwrap();
    let mut words = BTreeSet::new();
    let mut add = |row: &VerdictRow| {
        let text = verdict_words(row).replace('\u{a0}', " ");
        let is_part = |word: &&str| ["tail", "mean", "p95", "p99", "p5", "p1"].contains(word);
        let parts: Vec<&str> =
            text.split(' ').map(|word| if is_part(&word) { "PART" } else { word }).collect();
        words.insert(parts.join(" "));
    };
    for verdict in Verdict::ALL {
        add(&VerdictRow { verdict, ..base.clone() });
    }
    for flag in [RowFlag::Changed, RowFlag::OneSided] {
        add(&VerdictRow { verdict: Verdict::Unclear, flags: vec![flag], ..base.clone() });
    }
    add(&VerdictRow { withheld: Some("another command".into()), ..base.clone() });
    for verdict in [Verdict::Same, Verdict::SameHere] {
        for small in [SmallChange::There, SmallChange::PerhapsThere] {
            add(&VerdictRow { verdict, small_change: Some(small), ..base.clone() });
        }
    }
    // What decides lies within the margin, and what stands beside it does not.
    let mut change = base.change.unwrap();
    let interval = |low: f64, high: f64, level: f64| Some(ChangeInterval { low, high, level });
    (change.interval, change.narrow) = (interval(-0.033, 0.001, 0.95), interval(-0.029, -0.002, 0.9));
    for verdict in [Verdict::Same, Verdict::SameHere] {
        add(&VerdictRow { verdict, change: Some(change), ..base.clone() });
    }
    for verdict in [Verdict::Worse, Verdict::Better] {
        add(&VerdictRow { verdict, basis: VerdictBasis::Failures, ..base.clone() });
    }
    add(&VerdictRow { verdict: Verdict::Unclear, basis: VerdictBasis::MissingValues, ..base.clone() });
    let states = [
        (Verdict::Same, Verdict::Worse),
        (Verdict::Same, Verdict::Better),
        (Verdict::Same, Verdict::Unclear),
        (Verdict::SameHere, Verdict::Differs),
        (Verdict::SameHere, Verdict::Unclear),
        (Verdict::Better, Verdict::Unclear),
    ];
    for (middle, verdict) in states {
        for (direction, size) in
            [(Direction::Lower, 0.1), (Direction::Lower, -0.1), (Direction::Neither, 0.1)]
        {
            // What gets better beside a better middle, or worse and is called better, is no state of a row.
            let is_good = (direction != Direction::Neither).then_some(size < 0.0);
            let fits = match (middle, verdict) {
                (_, Verdict::Worse) | (Verdict::Better, _) => is_good == Some(false),
                (_, Verdict::Better) => is_good == Some(true),
                _ => true,
            };
            if !fits {
                continue;
            }
            let is_changed = verdict == Verdict::Unclear && is_good.is_none();
            let mut moved = part;
            moved.change.value = size;
            add(&VerdictRow {
                verdict,
                direction,
                middle: Some(middle),
                basis: VerdictBasis::Mean,
                flags: if is_changed { vec![RowFlag::Changed] } else { Vec::new() },
                parts: vec![moved],
                ..base.clone()
            });
        }
    }
    words
}

/// The page that says what a verdict means lists every word that a table can show.
#[test]
fn every_word_of_a_verdict_is_in_the_documentation() {
    let page = include_str!("../../../../docs/verdicts.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let listed: BTreeSet<String> =
        rows.flat_map(|(words, _)| words.split("; ").map(str::to_owned).collect::<Vec<_>>()).collect();
    let missing: Vec<String> =
        all_verdict_words().into_iter().filter(|word| !listed.contains(word)).collect();
    assert!(missing.is_empty(), "not in docs/verdicts.md: {missing:#?}");
    let of_effects = ["none", "interacts", "verdict"].map(str::to_owned);
    let unknown: Vec<&String> = listed
        .iter()
        .filter(|word| !all_verdict_words().contains(*word) && !of_effects.contains(word))
        .collect();
    assert!(unknown.is_empty(), "no row says: {unknown:#?}");
}

/// Two single imports: ranges in round brackets, the same in gains, and advice that does not ask for a study.
#[test]
fn imports_are_told_to_import_more() {
    let run = |id: &str, centre: f64, spread: f64, noise: &mut SplitMixNoise| {
        let lab = RunBuilder::new(id).with(|lab| {
            lab.iterations = 5;
            lab.metrics = vec![
                primary_metric("time", "s", Direction::Lower),
                primary_metric("wild", "s", Direction::Lower),
            ];
        });
        let mut run = lab.build_run(|spot| {
            Some(noise.lognormal_around(centre, if spot.metric == "wild" { spread * 60.0 } else { spread }))
        });
        run.manifest.boot_id = String::new();
        run.manifest.facts.add(fact_table::IMPORT_KIND, "hyperfine", "import");
        run
    };
    let mut noise = SplitMixNoise(21);
    let baseline = named_side("before", run("01JDA", 10.0, 0.01, &mut noise));
    let candidate = named_side("after", run("01JDB", 12.0, 0.01, &mut noise));
    let found = compare_sides(&baseline, &[candidate], &AnalysisOptions::default()).unwrap();
    insta::assert_snapshot!(render_to_text(&found, OutputFormat::Table, Some(110)));
    let gains = recap_comparison(&found);
    insta::assert_snapshot!(
        "gains_of_imports",
        render_gains(&gains, OutputFormat::Table, Some(110)).unwrap()
    );
}

#[test]
fn an_answer_about_one_row_is_a_sentence() {
    let mut noise = SplitMixNoise(9);
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"])];
        lab.iterations = 6;
    });
    let run = lab.build_run(|_| Some(noise.lognormal_around(100.0, 0.2)));
    let found = compare_levels(&named_side("r", run), "pages", &AnalysisOptions::default()).unwrap();
    assert_eq!(found.rows[0].verdict, Verdict::Unclear);
    insta::assert_snapshot!(answer_lines(&[found]).join("\n"));
}

/// Two iterations a side decide nothing, however far apart they are: that is no sign that nothing changed.
#[test]
fn two_iterations_a_side_are_not_no_change() {
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"])];
        lab.iterations = 2;
    });
    let mut noise = SplitMixNoise(9);
    let run = lab.build_run(|point| {
        let centre = if point.level("pages") == "huge" { 20.0 } else { 100.0 };
        Some(noise.lognormal_around(centre, 0.01))
    });
    let found = compare_levels(&named_side("r", run), "pages", &AnalysisOptions::default()).unwrap();
    assert_eq!(found.rows[0].verdict, Verdict::Unclear);
    insta::assert_snapshot!(answer_lines(&[found]).join("\n"));
}

/// Of two runs with six values each, two were compared.
#[test]
fn too_few_are_counted_as_what_was_compared() {
    let side = |name: &str, value: f64| {
        let run = |boot: u8| RunBuilder::new(&format!("{name}{boot}")).build_run(|_| Some(value));
        ComparisonSide { name: name.into(), runs: vec![run(1), run(2)] }
    };
    let found = compare_sides(&side("a", 10.0), &[side("b", 11.0)], &AnalysisOptions::default()).unwrap();
    insta::assert_snapshot!(answer_lines(&[found]).join("\n"), @"nothing decided: 2 runs a side are too few (about 4 runs a side would decide); time +10.0 %");
}

#[test]
fn a_level_is_written_with_all_its_digits() {
    let percent = [0.9, 0.95, 0.995, 0.999_999].map(|level| percent_of_level(level).to_string());
    assert_eq!(percent, ["90", "95", "99.5", "99.9999"]);
}

#[test]
fn a_row_is_one_line_of_a_commit_message() {
    insta::assert_snapshot!(render_to_text(&comparison_with_every_verdict(), OutputFormat::Short, None), @"
    sweep threads=1 bandwidth: 10.24 -> 12.75 GB/s, +24.59 % [+23.79, +25.49], better
    sweep threads=1 time: 12.26 -> 13.2 ms, +7.8 % [+6.7, +9.0], worse
    sweep threads=1 latency: 84.9 -> 85.24 µs, +0.33 % [-0.08, +0.58], same
    sweep threads=1 jitter: 825.2 -> 908.2 ns, +10 % [-8, +30], unclear
    sweep threads=2 bandwidth: 10.17 -> 12.84 GB/s, +26.1 % [+24.9, +27.0], better
    sweep threads=2 time: 12.31 -> 13.29 ms, +8.20 % [+7.74, +8.95], worse
    sweep threads=2 latency: 84.87 -> 85.21 µs, +0.34 % [-0.24, +0.63], unclear (failures)
    sweep threads=2 jitter: 813.1 -> 952 ns, +23 % [-3, +50], unclear
    ");
    let mail = render_to_text(&comparison_with_every_verdict(), OutputFormat::Mail, None);
    assert!(mail.lines().all(|line| line.chars().count() <= 72), "{mail}");
    insta::assert_snapshot!(mail, @"
    huge against small: 2 worse, 2 better, 3 unclear, 1 same in 1 study

    test:
      2 of 8 worse: time +8.20 % [+7.74, +8.95] (sweep threads=2), time
      +7.8 % [+6.7, +9.0] (sweep threads=1); 2 better: bandwidth +26.1 %
      [+24.9, +27.0] (sweep threads=2), bandwidth +24.59 % [+23.79, +25.49]
      (sweep threads=1); 1 same within 3 %, 3 unclear (about 130 iterations
      a side would decide)
      sweep threads=1
        better              bandwidth  10.24 -> 12.75 GB/s
                                       +24.59 % [+23.79, +25.49]
        worse               time       12.26 -> 13.2 ms
                                       +7.8 % [+6.7, +9.0]
        unclear             jitter     825.2 -> 908.2 ns
                                       +10 % [-8, +30]
      sweep threads=2
        better              bandwidth  10.17 -> 12.84 GB/s
                                       +26.1 % [+24.9, +27.0]
        worse               time       12.31 -> 13.29 ms
                                       +8.20 % [+7.74, +8.95]
        unclear (failures)  latency    84.87 -> 85.21 µs
                                       +0.34 % [-0.24, +0.63]
        unclear             jitter     813.1 -> 952 ns
                                       +23 % [-3, +50]
      warning: iterations failed

    Compared by perflab 0.1.0. The runs:
      01JDMIXED
    To measure again:
      perflab reproduce 01JDMIXED
    ");
    let several = render_to_text(&compare_three_runs(), OutputFormat::Short, None);
    assert_eq!(several.lines().count(), compare_three_runs().deciding_rows().len());
}

/// A row that is worse fails, one that is not decided is skipped, and whatever a name holds stays text.
#[test]
fn verdicts_are_tests_for_continuous_integration() {
    let mut found = comparison_with_every_verdict();
    for row in found.rows.iter_mut().filter(|row| row.subject == "sweep threads=2") {
        row.subject = "50% <b>: a, # b\n\u{1b}[1m".into();
    }
    let formats =
        [("github", OutputFormat::Github), ("junit", OutputFormat::Junit), ("ktap", OutputFormat::Ktap)];
    for (name, format) in formats {
        insta::assert_snapshot!(format!("ci_{name}"), render_to_text(&found, format, None));
    }
}

#[test]
fn studies_of_two_labels_are_a_mail() {
    let study = |study: &str, outcome| StudyComparison { study: study.into(), outcome };
    let found = StudyComparisons {
        baseline: "v6.18".into(),
        candidate: "v6.19".into(),
        studies: vec![
            study("memory", Ok(comparison_with_every_verdict())),
            study("three", Ok(compare_three_runs())),
            study("files", Err("`v6.18` and `v6.19` have no case in common".into())),
        ],
        one_sided: vec![("fs-dbench".into(), "v6.18".into())],
    };
    insta::assert_snapshot!(studies_mail(&found), @"
    v6.19 against v6.18: 2 worse, 2 better, 3 differs, 4 unclear, 1 same in
      2 studies

    memory:
      2 of 8 worse: time +8.20 % [+7.74, +8.95] (sweep threads=2), time
      +7.8 % [+6.7, +9.0] (sweep threads=1); 2 better: bandwidth +26.1 %
      [+24.9, +27.0] (sweep threads=2), bandwidth +24.59 % [+23.79, +25.49]
      (sweep threads=1); 1 same within 3 %, 3 unclear (about 130 iterations
      a side would decide)
      sweep threads=1
        better              bandwidth  10.24 -> 12.75 GB/s
                                       +24.59 % [+23.79, +25.49]
        worse               time       12.26 -> 13.2 ms
                                       +7.8 % [+6.7, +9.0]
        unclear             jitter     825.2 -> 908.2 ns
                                       +10 % [-8, +30]
      sweep threads=2
        better              bandwidth  10.17 -> 12.84 GB/s
                                       +26.1 % [+24.9, +27.0]
        worse               time       12.31 -> 13.29 ms
                                       +8.20 % [+7.74, +8.95]
        unclear (failures)  latency    84.87 -> 85.21 µs
                                       +0.34 % [-0.24, +0.63]
        unclear             jitter     813.1 -> 952 ns
                                       +23 % [-3, +50]
      warning: iterations failed

    three:
      3 of 4 differ between these two runs: balance +3.01 KiB (+2.68 to
      +3.41) (another-machine-with-a-long-name), time +29.9 % (+21.9 to
      +38.6) (another-machine-with-a-long-name), time +10.7 % (+6.9 to
      +13.5) (after my patch); 1 unclear
      sweep
        differs  time     10.06 -> 11.1 s        +10.7 % (+6.9 to +13.5)
        differs  time     10.06 -> 13.02 s       +29.9 % (+21.9 to +38.6)
        unclear  balance  -0.04784 -> 1.071 KiB  +1.1 KiB (-0.5 to +3.0)
        differs  balance  -0.04784 -> 2.963 KiB  +3.01 KiB (+2.68 to +3.41)
      warning: the environment differs (2)
      warning: measured on one side only, so not compared
      warning: one side was measured after the other
      warning: one boot a side, and not the same

    files:
      not compared: `v6.18` and `v6.19` have no case in common

    Not on both sides: fs-dbench (only v6.18)

    What differs between the machines:
      kernel.release 6.10 -> 6.11
      kernel.release 6.10 -> 6.13
    ");
    let empty = studies_mail(&StudyComparisons::default());
    assert_eq!(empty.lines().count(), 1);
}
