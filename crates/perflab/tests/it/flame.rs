//! Profiles: imported ones everywhere, recorded ones where perf events may be opened.

use std::fs;
use std::process::Command;

use crate::laboratory::{Sandbox, is_root, skip_test};

const FOLDED: &str = "\
hackbench;main;write_[k];kmem_cache_alloc_node_noprof_[k] 30
hackbench;main;write_[k] 50
hackbench;main;read_[k];kfree.part.0_[k] 15
swapper 5
";

#[test]
fn folded_text_is_shown_with_every_sample_accounted_for() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("a.folded"), FOLDED).unwrap();
    let said =
        laboratory.run_successfully(&["flame", "import", "a.folded", "--label", "a", "--format", "csv"]);
    insta::assert_snapshot!("folded_text_is_shown_with_every_sample_accounted_for_1", said.stable_out());
    assert!(said.out.trim_end().ends_with("all,100,1.0"), "{}", said.out);
    insta::assert_snapshot!(laboratory.run_successfully(&["flame", "show", "a"]).out);
    let file = laboratory.path("a.perflab").display().to_string();
    laboratory.run_successfully(&["export", "a", &file]);
    assert_eq!(
        laboratory.run_successfully(&["flame", "show", &file]).out,
        laboratory.run_successfully(&["flame", "show", "a"]).out,
        "a portable file carries stacks"
    );
}

#[test]
fn the_sound_part_of_a_bad_file_is_kept_and_its_share_said() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("bad.folded"), format!("{FOLDED}rubbish\n")).unwrap();
    let said = laboratory.run_successfully(&["flame", "import", "bad.folded", "--format", "csv"]);
    insta::assert_snapshot!("the_sound_part_of_a_bad_file_is_kept_and_its_share_said_1", said.stable_err());
    insta::assert_snapshot!(said.stable_out(), @"
    samples,count,share of all
    with a stack,95,0.9405940594059405
    without a stack,5,0.04950495049504951
    of dying tasks,0,0.0
    lost for want of room,0,0.0
    unreadable,1,0.009900990099009901
    all,101,1.0
    ");
    let refused = |name: &str, text: &str| {
        fs::write(laboratory.path(name), text).unwrap();
        let said = laboratory.run(&["flame", "import", name]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        said.stable_err()
    };
    insta::assert_snapshot!(refused("empty", ""), @"error: empty: it is empty: there is no profile in it");
    insta::assert_snapshot!(refused("rubbish", "what is this\n"), @"error: rubbish: there is no sample in it (taken for folded); 1: `this` is no count of samples");
    assert_eq!(
        laboratory.run_successfully(&["list", "--format", "csv"]).out.lines().count(),
        2,
        "only the sound one is a run"
    );
}

#[test]
fn a_run_without_stacks_says_how_to_get_some() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    let said = laboratory.run(&["flame", "show", "a"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!("a_run_without_stacks_says_how_to_get_some_1", said.stable_err());
}

/// A recording by perf, in the folder of a laboratory; `None` where perf is not there or not allowed.
fn record_with_perf(laboratory: &Sandbox, more: &[&str]) -> Option<Vec<u8>> {
    let path = laboratory.path("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-F", "499", "-g", "-o"]).arg(&path).args(more);
    let done = perf.args([
        "--",
        "sh",
        "-c",
        "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; cat /proc/kallsyms > /dev/null",
    ]);
    let done = done.output().ok().filter(|output| output.status.success());
    done.and_then(|_| fs::read(path).ok())
}

#[test]
fn perf_data_is_taken_whole_compressed_and_cut() {
    let laboratory = Sandbox::new();
    let Some(whole) = record_with_perf(&laboratory, &[]) else {
        return skip_test("perf_data_is_taken", "perf cannot record here (apt install linux-perf, root)");
    };
    let said = laboratory.run_successfully(&["flame", "import", "perf.data", "--format", "csv"]);
    let count = |out: &str, part: &str| -> u64 {
        let line = out.lines().find(|line| line.starts_with(part)).unwrap();
        line.split(',').nth(1).unwrap().parse().unwrap()
    };
    let all = count(&said.out, "all");
    assert!(all > 10 && count(&said.out, "with a stack") > 0, "{}", said.out);
    let shown = laboratory.run_json(&["flame", "show", "@latest", "--top", "1000"]);
    let is_of_kernel = |row: &serde_json::Value| {
        row["where"] == "kernel" && (row["function"] == "s_show" || row["function"] == "seq_read_iter")
    };
    assert!(shown.as_array().unwrap().iter().any(is_of_kernel), "{shown}");
    let script =
        Command::new("perf").args(["script", "-i"]).arg(laboratory.path("perf.data")).output().unwrap();
    fs::write(laboratory.path("script.txt"), &script.stdout).unwrap();
    let text = laboratory.run_successfully(&["flame", "import", "script.txt", "--format", "csv"]);
    assert_eq!(count(&text.out, "all"), all, "the text has as many samples as the file");
    fs::write(laboratory.path("cut.data"), &whole[..whole.len() / 2]).unwrap();
    let cut = laboratory.run_successfully(&["flame", "import", "cut.data", "--format", "csv"]);
    insta::assert_snapshot!(cut.err_wording_of("cut off"), @"warning: the file is cut off at byte N: N bytes of records are missing; N % of its records' bytes are there; what is there is shown; record again, or copy the file again, for the rest");
    assert!((1..all).contains(&count(&cut.out, "all")), "{}", cut.out);
    fs::write(laboratory.path("head.data"), &whole[..60]).unwrap();
    let head = laboratory.run(&["flame", "import", "head.data"]);
    assert_eq!(head.code, Some(2));
    insta::assert_snapshot!("perf_data_is_taken_whole_compressed_and_cut_2", head.stable_err());
    if record_with_perf(&laboratory, &["-z"]).is_some() {
        let packed = laboratory.run_successfully(&["flame", "import", "perf.data", "--format", "csv"]);
        assert!(count(&packed.out, "all") > 10, "{}", packed.out);
    }
}

#[test]
fn a_group_is_read_with_its_counters_and_one_event_can_be_chosen() {
    let laboratory = Sandbox::new();
    let count = |out: &str| -> u64 {
        let all = out.lines().find(|line| line.starts_with("all,")).unwrap();
        all.split(',').nth(1).unwrap().parse().unwrap()
    };
    let perf = |more: &[&str]| {
        let path = laboratory.path("perf.data");
        let work = ["--", "sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"];
        let done =
            Command::new("perf").args(["record", "-q", "-g", "-o"]).arg(&path).args(more).args(work).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !perf(&["-e", "{cpu-clock,page-faults}:S"]) {
        return skip_test("a_group_is_read", "perf cannot record here (apt install linux-perf, root)");
    }
    let stats =
        Command::new("perf").args(["report", "--stats", "-i"]).arg(laboratory.path("perf.data")).output();
    let stats = String::from_utf8(stats.unwrap().stdout).unwrap();
    let line = stats.lines().find(|line| line.contains("SAMPLE events:")).unwrap();
    let samples: u64 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
    let group = laboratory.run_successfully(&["flame", "import", "perf.data", "--format", "csv"]);
    assert_eq!(count(&group.out), samples, "{stats}{}", group.err);
    let unreadable = group.out.lines().find(|line| line.starts_with("unreadable,"));
    assert_eq!(unreadable.and_then(|line| line.split(',').nth(1)), Some("0"), "{}", group.out);
    // A member is counted at the leader's samples: as many as perf makes of it, each with what came since the one before.
    insta::assert_snapshot!(
        "a_group_is_read_with_its_counters_and_one_event_can_be_chosen_1",
        group.stable_err()
    );
    let of_member = stats.lines().skip_while(|line| !line.starts_with("page-faults stats")).nth(1).unwrap();
    let of_member: u64 = of_member.split_whitespace().nth(2).unwrap().parse().unwrap();
    let member = laboratory.run_successfully(&[
        "flame",
        "import",
        "perf.data",
        "--event",
        "page-faults",
        "--format",
        "csv",
    ]);
    assert_eq!(count(&member.out), of_member, "{stats}{}", member.err);

    assert!(perf(&["-e", "cpu-clock,page-faults"]));
    let both = laboratory.run_successfully(&["flame", "import", "perf.data", "--format", "csv"]);
    insta::assert_snapshot!(
        "a_group_is_read_with_its_counters_and_one_event_can_be_chosen_2",
        both.stable_err()
    );
    let one = |event: &str| {
        laboratory.run_successfully(&["flame", "import", "perf.data", "--event", event, "--format", "csv"])
    };
    let (clock, faults) = (one("cpu-clock"), one("page-faults"));
    assert_eq!(count(&clock.out) + count(&faults.out), count(&both.out));
    insta::assert_snapshot!(clock.err_wording_of("--event"), @"warning: N samples of its other events are left out; its events are cpu-clock, page-faults: --event NAME chooses another");
    insta::assert_snapshot!(faults.err_wording_of("--event"), @"warning: N samples of its other events are left out; its events are cpu-clock, page-faults: --event NAME chooses another");
    let none = laboratory.run(&["flame", "import", "perf.data", "--event", "cycles"]);
    assert_eq!(none.code, Some(2));
    insta::assert_snapshot!(
        "a_group_is_read_with_its_counters_and_one_event_can_be_chosen_3",
        none.stable_err()
    );
    fs::write(laboratory.path("a.folded"), FOLDED).unwrap();
    let folded = laboratory.run(&["flame", "import", "a.folded", "--event", "cycles"]);
    assert_eq!(folded.code, Some(2));
}

#[test]
fn sizes_that_a_damaged_file_claims_are_not_believed() {
    let laboratory = Sandbox::new();
    let Some(whole) = record_with_perf(&laboratory, &[]) else {
        return skip_test("sizes_that_a_damaged", "perf cannot record here (apt install linux-perf, root)");
    };
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    // The head's numbers, and those of each part of the description behind the records.
    let parts = (number(40) + number(48)) as usize;
    let head = (16..72).step_by(8).flat_map(|at| [(at, u64::MAX), (at, 1 << 40)]);
    let places = head.chain((parts..parts + 48).step_by(8).map(|at| (at, 1 << 40)));
    for (at, value) in places {
        let mut damaged = whole.clone();
        damaged[at..at + 8].copy_from_slice(&value.to_le_bytes());
        fs::write(laboratory.path("damaged.data"), &damaged).unwrap();
        let perflab = laboratory.command(&["flame", "import", "damaged.data"]);
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh"]).arg(perflab.get_program());
        limited.args(perflab.get_args()).current_dir(perflab.get_current_dir().unwrap());
        limited.envs(perflab.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let said = crate::laboratory::to_command_output(limited.output().unwrap());
        assert!(matches!(said.code, Some(0 | 2)), "byte {at}, {value}: {:?} {}", said.code, said.err);
    }
}

#[test]
fn another_machines_profile_needs_its_symbols() {
    let laboratory = Sandbox::new();
    let Some(mut bytes) = record_with_perf(&laboratory, &[]) else {
        return skip_test(
            "another_machines_profile",
            "perf cannot record here (apt install linux-perf, root)",
        );
    };
    // The file's own words about its machine, at their places: another release, and no build ids that match.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let release = release.trim().as_bytes();
    let at = bytes.windows(release.len()).rposition(|window| window == release).unwrap();
    bytes[at] = b'9';
    let id = read_kernel_build_id();
    while let Some(at) = bytes.windows(id.len()).position(|window| window == id.as_slice()) {
        bytes[at] ^= 0xff;
    }
    fs::write(laboratory.path("other.data"), &bytes).unwrap();
    let said = laboratory.run_successfully(&["flame", "import", "other.data"]);
    let kernel_functions = || {
        let folded = laboratory.run_successfully(&["flame", "export", "@latest", "--to", "folded"]).out;
        ["seq_read_iter", "s_show"].iter().filter(|name| folded.contains(*name)).count()
    };
    let warning = said.err_wording_of("kallsyms of");
    insta::assert_snapshot!(warning.rsplit("): ").next().unwrap(), @"kernel functions have no names; copy /proc/kallsyms of that machine (as root) and give it as --kallsyms FILE; programs' names are left out too, as their files may be other ones here: give a copy of them as --symfs DIR");
    assert_eq!(kernel_functions(), 0, "no names of another kernel's");
    laboratory.run_successfully(&["flame", "import", "other.data", "--kallsyms", "/proc/kallsyms"]);
    assert!(kernel_functions() > 0, "its names are given");
    let missing = laboratory.run(&["flame", "import", "other.data", "--kallsyms", "nowhere"]);
    insta::assert_snapshot!("another_machines_profile_needs_its_symbols_2", missing.stable_err());
}

/// The description of the note with the name GNU in /sys/kernel/notes, which is what perf stores.
fn read_kernel_build_id() -> Vec<u8> {
    let notes = fs::read("/sys/kernel/notes").unwrap();
    let at = notes.windows(4).position(|window| window == b"GNU\0").unwrap();
    notes[at + 4..at + 24].to_vec()
}

#[test]
fn a_command_is_recorded_with_its_time_in_the_kernel() {
    if !is_root() {
        return skip_test("a_command_is_recorded", "needs root");
    }
    let laboratory = Sandbox::new();
    let said =
        laboratory.run(&["flame", "record", "-F", "999", "--", "sh", "-c", "cat /proc/kallsyms > /dev/null"]);
    if said.code == Some(3) || said.err.contains("/proc/kallsyms: ") {
        return skip_test("a_command_is_recorded", said.err.trim());
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!(said.err_wording_of("perf_event_open"), @"from perf_event_open, event cpu-clock at N Hz");
    assert!(
        said.err.lines().any(|line| line.starts_with("reading samples ")),
        "its cost is reported: {}",
        said.err
    );
    let functions = laboratory.run_json(&["flame", "show", "@latest"]);
    assert!(functions.as_array().unwrap().iter().any(|row| row["where"] == "kernel"), "{functions}");
    let shares = laboratory.run_successfully(&["flame", "shares", "@latest", "--rules", "kernel"]);
    let rows =
        laboratory.run_json(&["flame", "shares", "@latest", "--rules", "kernel"])["result"]["rows"].take();
    let is_entry =
        |row: &serde_json::Value| row["operation"] == "system-call entry" && row["category"].is_null();
    assert!(rows.as_array().unwrap().iter().any(is_entry), "{rows}");
    insta::assert_snapshot!(shares.err_wording_of("one iteration"), @"one iteration: no interval can be given; repeat for one");
}

#[test]
fn shares_of_repeated_runs_stand_beside_each_other_with_what_differs() {
    let laboratory = Sandbox::new();
    for (label, allocating) in [("a", [200, 204, 202]), ("b", [300, 302, 298])] {
        for count in allocating {
            let rest = 900 - count;
            let text = format!(
                "h;main;kmem_cache_alloc_[k] {count}\nh;main;schedule_[k] {rest}\nh;main;kfree_[k] 100\n"
            );
            fs::write(laboratory.path("one.folded"), text).unwrap();
            laboratory.run_successfully(&["flame", "import", "one.folded", "--label", label]);
        }
    }
    let found = laboratory.run_json(&["flame", "shares", "a", "b"]);
    let found = &found["comparison"];
    let repeated = &found["levels"][1]["shares"]["repetitions"];
    assert_eq!(*repeated, serde_json::json!({ "level": "run", "count": 3 }));
    let rows = found["rows"].as_array().unwrap();
    let is_whole = |row: &&serde_json::Value| row["operation"] == "allocation" && row["category"].is_null();
    let row = rows.iter().find(is_whole).unwrap();
    assert_eq!((&row["measure"], &row["levels"][0]["value"]), (&"of-all".into(), &0.202.into()));
    let difference = &row["differences"][0];
    assert_eq!(difference["differs"], true, "{difference}");
    let [low, value, high] = [&difference["interval"][0], &difference["value"], &difference["interval"][1]]
        .map(|number| number.as_f64().unwrap());
    assert!((value - 0.098).abs() < 1e-9 && 0.09 < low && low < value && value < high && high < 0.106);
    let free = rows.iter().find(|row| row["operation"] == "free" && row["category"].is_null()).unwrap();
    assert_eq!(free["differences"][0]["differs"], false, "{free}");
    let said = laboratory.run_successfully(&["flame", "shares", "a", "b"]);
    insta::assert_snapshot!("shares_of_repeated_runs_stand_beside_each_other_1", said.stable_out());
    insta::assert_snapshot!("shares_of_repeated_runs_stand_beside_each_other_2", said.stable_err());
    let refused = laboratory.run(&["flame", "shares", "a", "--by", "kernel"]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!(refused.stable_err(), @"error: `kernel` is no factor with several levels here; no factor has several levels here: name two runs without --by");
}

#[test]
fn functions_that_moved_are_listed_and_drawn() {
    let laboratory = Sandbox::new();
    for (label, allocating) in [("a", [200, 204, 202, 199]), ("b", [300, 302, 298, 301])] {
        for count in allocating {
            let rest = 900 - count;
            let text = format!(
                "h;main;kmem_cache_alloc_[k] {count}\nh;main;schedule_[k] {rest}\nh;main;kfree_[k] 100\n"
            );
            fs::write(laboratory.path("one.folded"), text).unwrap();
            laboratory.run_successfully(&["flame", "import", "one.folded", "--label", label]);
        }
    }
    let found = laboratory.run_json(&["flame", "diff", "a", "b"]);
    let result = &found["differences"][0]["result"];
    assert_eq!(result["before"], serde_json::json!({ "level": "run", "count": 4 }));
    let moved: Vec<&str> = result["functions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["differs"] == true)
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(moved.len(), 2, "{moved:?}");
    assert!(moved.contains(&"kmem_cache_alloc") && moved.contains(&"schedule"), "{moved:?}");
    let said = laboratory.run_successfully(&["flame", "diff", "a", "b", "--self"]);
    insta::assert_snapshot!("functions_that_moved_are_listed_and_drawn_1", said.stable_out());
    insta::assert_snapshot!("functions_that_moved_are_listed_and_drawn_2", said.stable_err());
    let file = laboratory.run_successfully(&["flame", "diff", "a", "b", "--self", "-o", "-"]);
    assert_eq!(file.out, said.out, "- is the table");
    laboratory.run_successfully(&["flame", "diff", "a", "b", "-o", "ab.svg"]);
    let picture = fs::read_to_string(laboratory.path("ab.svg")).unwrap();
    assert!(picture.contains("<title>kmem_cache_alloc: "), "{picture}");
    for (refused, code) in [
        (&["flame", "html", "a", "b"][..], 2),
        (&["flame", "diff", "a"], 2),
        (&["flame", "diff", "a", "b", "-o", "ab.png"], 2),
        (&["flame", "diff", "a", "b", "--versus", "x"], 2),
    ] {
        assert_eq!(laboratory.run(refused).code, Some(code), "{refused:?}");
    }
}

/// A run of hackbench over sockets and pipes, profiled; `None` where that cannot be.
fn record_hackbench_levels(laboratory: &Sandbox) -> Option<()> {
    let study = "title = \"levels\"\n[run]\niterations = 3\n[workload.hackbench]\n\
        parameters = { groups = 1, loops = 100, tasks = \"processes\" }\n[factor.how]\nkind = \"parameter\"\n\
        key = \"channel\"\nlevels = [\"socket\", \"pipe\"]\n[profile]\nfrequency = 999\nscope = \"workload\"\n";
    fs::write(laboratory.path("levels.toml"), study).unwrap();
    let said = laboratory.run(&["run", "levels.toml", "--label", "levels"]);
    (said.code != Some(3)).then(|| assert_eq!(said.code, Some(0), "{}", said.err))
}

#[test]
fn shares_of_the_levels_of_a_factor_are_compared_within_a_run() {
    let laboratory = Sandbox::new();
    if !is_root() || record_hackbench_levels(&laboratory).is_none() {
        return skip_test("shares_of_the_levels", "needs root, hackbench and perf events");
    }
    let found = laboratory.run_json(&["flame", "shares", "levels", "--by", "how"]);
    let found = &found["comparison"];
    let levels: Vec<&str> =
        found["levels"].as_array().unwrap().iter().map(|level| level["name"].as_str().unwrap()).collect();
    assert_eq!((&found["by"], &levels[..]), (&"how".into(), &["socket", "pipe"][..]));
    let repeated = &found["levels"][0]["shares"]["repetitions"];
    assert_eq!(*repeated, serde_json::json!({ "level": "iteration", "count": 3 }));
    let whole = &found["rows"][0];
    let [socket, pipe] = [0, 1].map(|at| whole["levels"][at]["value"].as_f64().unwrap());
    assert!(socket > 3.0 * pipe, "messages over sockets are allocated: {socket} {pipe}");
    let by_only_factor = laboratory.run_json(&["flame", "diff", "levels"]);
    assert_eq!(by_only_factor, laboratory.run_json(&["flame", "diff", "levels", "--by", "how"]));
    let moved = laboratory.run_json(&["flame", "diff", "levels", "--by", "how", "--baseline", "pipe"]);
    let difference = &moved["differences"][0];
    assert_eq!((&difference["baseline"], &difference["candidate"]), (&"pipe".into(), &"socket".into()));
    let functions = difference["result"]["functions"].as_array().unwrap();
    let write = functions.iter().find(|row| row["name"] == "unix_stream_sendmsg").unwrap();
    assert!(write["difference"].as_f64().unwrap() > 0.05, "{write}");
}

#[test]
fn mistakes_in_a_table_of_rules_have_their_lines() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("a.folded"), FOLDED).unwrap();
    laboratory.run_successfully(&["flame", "import", "a.folded"]);
    let table = "title = \"t\"\npick = \"outermost\"\n[[operation]]\nname = \"a\"\nroots = [\"kfree.isra.0\"]\n\
                 [[category]]\nname = \"x\"\npriority = 1\notherwise = true\n";
    fs::write(laboratory.path("mine.toml"), table).unwrap();
    let said = laboratory.run(&["flame", "shares", "--rules", "mine.toml"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!("mistakes_in_a_table_of_rules_have_their_lines_1", said.stable_err());
    fs::write(laboratory.path("mine.toml"), table.replace("kfree.isra.0", "kfree\", \"absent")).unwrap();
    let good = laboratory.run_successfully(&["flame", "shares", "--rules", "mine.toml", "--format", "csv"]);
    insta::assert_snapshot!(good.stable_out(), @"
    operation,category,samples,of all,of the operation,touching it,per operation
    a,all,15,0.15,1.0,,
    a,x,15,0.15,1.0,,
    ");
    insta::assert_snapshot!("mistakes_in_a_table_of_rules_have_their_lines_2", good.stable_err());
    let none = laboratory.run(&["flame", "shares", "--rules", "nothing"]);
    insta::assert_snapshot!("mistakes_in_a_table_of_rules_have_their_lines_3", none.stable_err());
}

#[test]
fn a_run_is_drawn_and_exported_and_comes_back() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("a.folded"), FOLDED).unwrap();
    laboratory.run_successfully(&["flame", "import", "a.folded", "--label", "a"]);
    let picture = laboratory.run_successfully(&["flame", "svg", "a"]).out;
    assert!(picture.starts_with("<svg "), "{picture}");
    let title = picture.split("<title>").find(|title| title.starts_with("kfree:")).unwrap();
    insta::assert_snapshot!(title.split("</title>").next().unwrap(), @"kfree: 15 samples, 15.00 %, self 15.00 %");
    let folded = laboratory.run_successfully(&["flame", "export", "a", "--to", "folded"]).out;
    let mut wanted: Vec<&str> = FOLDED.lines().collect();
    wanted.sort_unstable();
    assert_eq!(folded.lines().collect::<Vec<_>>(), wanted);
    for format in ["speedscope", "firefox", "pprof"] {
        laboratory.run_successfully(&["flame", "export", "a", "--to", format, "-o", format]);
        assert!(fs::metadata(laboratory.path(format)).unwrap().len() > 100);
    }
}

#[test]
fn two_runs_become_one_page_and_the_report_has_the_same_viewer() {
    let laboratory = Sandbox::new();
    for label in ["a", "b", "b"] {
        fs::write(laboratory.path("one.folded"), FOLDED).unwrap();
        laboratory.run_successfully(&["flame", "import", "one.folded", "--label", label]);
    }
    laboratory.run_successfully(&["flame", "diff", "a", "b", "-o", "ab.html"]);
    let page = fs::read_to_string(laboratory.path("ab.html")).unwrap();
    let title = page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    insta::assert_snapshot!(title.unwrap(), @"a and b · perflab");
    let data = page.split("id=\"flame-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["sides"][1]["parts"][0], serde_json::json!(["with a stack", 190]), "b was run twice");
    insta::assert_snapshot!(data["changes"][0]["basis"].as_str().unwrap(), @"numbers of samples only, as there are no repetitions on both sides: repeated runs vary more, so some colour here is noise");
    laboratory.run_successfully(&["report", "a", "-o", "report.html"]);
    let report = fs::read_to_string(laboratory.path("report.html")).unwrap();
    assert!(report.contains("<section id=\"flame\"") && report.contains("id=\"flame-data\""));
    assert!(page.len() < 100_000, "{} bytes", page.len());
}

#[test]
fn counts_beyond_every_number_are_shown_and_exported() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("u.folded"), "a;b 18446744073709551615\na;c 1\nb;d 18446744073709551615\n")
        .unwrap();
    for label in ["one", "other"] {
        laboratory.run_successfully(&["flame", "import", "u.folded", "--label", label]);
    }
    laboratory.run_successfully(&["flame", "show"]);
    laboratory.run_successfully(&["flame", "shares"]);
    laboratory.run_successfully(&["flame", "svg", "-o", "u.svg"]);
    laboratory.run_successfully(&["flame", "diff", "one", "other", "-o", "u.html"]);
    laboratory.run_successfully(&["flame", "diff", "one", "other", "-o", "u.svg"]);
    laboratory.run_successfully(&["flame", "diff", "one", "other"]);
    laboratory.run_successfully(&["report", "one", "-o", "report.html"]);
    for format in ["folded", "speedscope", "firefox", "pprof"] {
        laboratory.run_successfully(&[
            "flame",
            "export",
            "one",
            "--to",
            format,
            "-o",
            &format!("u.{format}"),
        ]);
        assert!(fs::metadata(laboratory.path(&format!("u.{format}"))).unwrap().len() > 10, "{format}");
    }
}

#[test]
fn a_stack_without_end_is_cut_and_that_is_said() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("deep.folded"), format!("c{} 7\n", ";again".repeat(20_000))).unwrap();
    let imported = laboratory.run_successfully(&["flame", "import", "deep.folded"]);
    insta::assert_snapshot!("a_stack_without_end_is_cut_and_that_is_said_1", imported.stable_err());
    laboratory.run_successfully(&["flame", "show"]);
    let folded = laboratory.run_successfully(&["flame", "export", "@latest", "--to", "folded"]).out;
    assert_eq!((folded.matches(";again").count(), folded.ends_with(" 7\n")), (4096, true));
}

#[test]
fn a_recorded_command_reads_what_it_is_given_and_keeps_its_language() {
    let laboratory = Sandbox::new();
    if !is_root() {
        return skip_test(
            "a_recorded_command_reads_what_it_is_given_and_keeps_its_language",
            "perf events need root",
        );
    }
    let script = "read line; echo \"$line in $LC_ALL\"";
    let mut command = laboratory.command(&["flame", "record", "--", "sh", "-c", script]);
    command.env("LC_ALL", "de_DE.UTF-8").stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"a word\n").unwrap();
    let recorded = crate::laboratory::to_command_output(child.wait_with_output().unwrap());
    assert_eq!(recorded.code, Some(0), "{}", recorded.err);
    let output = laboratory.run_successfully(&["show", "@latest", "--output", "0"]).out;
    assert!(output.contains("a word in de_DE.UTF-8"), "{output}");
}
