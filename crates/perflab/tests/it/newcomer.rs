//! The pages that a newcomer reads first, followed to the letter: every line that they show is typed, in order, by a user who has
//! nothing but the page. No file, run or setting comes from here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::documents::read_page;
use crate::laboratory::{CommandOutput, find_test_python, is_root, skip_test, to_command_output};

/// What stands between ```` ``` ```` lines: its kind, as written after the first of them, and its text.
type PageBlock = (String, String);

fn split_page_blocks(page: &str) -> Vec<PageBlock> {
    let mut blocks: Vec<PageBlock> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(kind) if !inside => {
                inside = true;
                blocks.push((kind.to_owned(), String::new()));
            }
            Some(_) => inside = false,
            None if inside => {
                let (_, text) = blocks.last_mut().unwrap();
                *text += &format!("{line}\n");
            }
            None => (),
        }
    }
    assert!(!inside, "a block without an end");
    blocks
}

/// A user who has just come: nobody in particular, with an empty home, in an empty directory, and nothing in the environment.
struct NewcomerShell {
    folder: tempfile::TempDir,
}

/// What cargo does once it has built what the tests have built already; it knows no line but those that pages show.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
    "run --release -- "*) shift 3; exec "$(dirname "$0")/built" "$@" ;;
    "install --path crates/perflab --locked")
        mkdir -p "$HOME/.cargo/bin" && ln -sf "$(dirname "$0")/built" "$HOME/.cargo/bin/perflab" ;;
    "xtask test") ;;
    *) echo "the pages' cargo knows no \"$*\"" >&2; exit 101 ;;
esac
"#;

impl NewcomerShell {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let newcomer = NewcomerShell { folder };
        let open = |path: &Path| fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        open(newcomer.folder.path());
        for name in ["home", "here"] {
            fs::create_dir(newcomer.path(name)).unwrap();
            open(&newcomer.path(name));
        }
        fs::create_dir(newcomer.path("toolchain")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_perflab"), newcomer.path("toolchain/built")).unwrap();
        fs::write(newcomer.path("toolchain/cargo"), CARGO).unwrap();
        for path in ["toolchain", "toolchain/built", "toolchain/cargo"] {
            fs::set_permissions(newcomer.path(path), PermissionsExt::from_mode(0o755)).unwrap();
        }
        newcomer
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Types the lines, the first that fails being the last.
    fn type_lines(&self, lines: &str) -> CommandOutput {
        let mut shell = match is_root() {
            true => {
                let mut other = Command::new("setpriv");
                other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh"]);
                other
            }
            false => Command::new("sh"),
        };
        let home = self.path("home");
        let path = format!(
            "{}/.cargo/bin:{}:/usr/local/bin:/usr/bin:/bin",
            home.display(),
            self.path("toolchain").display()
        );
        shell.args(["-euc", lines]).env_clear().env("HOME", &home).env("PATH", path);
        to_command_output(shell.current_dir(self.path("here")).output().unwrap())
    }

    /// Types all that the page shows, and gives what it said.
    fn follow_page(&self, page: &str) -> CommandOutput {
        let typed: String = split_page_blocks(page).iter().map(typed_lines).collect();
        assert!(typed.contains("perflab "), "nothing to type");
        let said = self.type_lines(&typed);
        assert_eq!(said.code, Some(0), "{typed}\n{}\n{}", said.out, said.err);
        said
    }
}

/// The lines of a block that are typed into a shell.
fn typed_lines((kind, text): &PageBlock) -> String {
    match kind.as_str() {
        "sh" => text.clone(),
        "console" => {
            text.lines().filter_map(|line| line.strip_prefix("$ ")).map(|line| format!("{line}\n")).collect()
        }
        _ => String::new(),
    }
}

#[test]
fn the_readme_is_followed_by_a_user_who_has_nothing_else() {
    let newcomer = NewcomerShell::new();
    newcomer.follow_page(&read_page("README.md"));
    let archive = newcomer.path("here/perflab-archive");
    assert_eq!(fs::read_dir(archive.join("runs")).unwrap().count(), 4);
    assert_eq!(fs::read_dir(newcomer.path("home/.cargo")).unwrap().count(), 1);
}

/// The symbol of a row's verdict; none where the row has none.
fn find_verdict_symbol(line: &str) -> Option<&str> {
    line.split_whitespace().find(|word| ["✓", "✗", "=", "?", "≠", "≈"].contains(word))
}

#[test]
fn the_tutorial_is_followed_by_a_user_who_has_nothing_else() {
    let newcomer = NewcomerShell::new();
    let tutorial = read_page("docs/tutorial.md");
    let said = newcomer.follow_page(&tutorial);
    // The symbols that the page explains are those that the terminal shows, whatever was measured; the words that may follow
    // them stand in docs/verdicts.md, which has a test of its own.
    let mut verdicts = 0;
    for line in said.out.lines().filter(|line| line.starts_with("  access [ns]")) {
        let Some(symbol) = find_verdict_symbol(line) else { continue };
        assert!(tutorial.contains(&format!("`{symbol} ")), "{symbol} is not in the page: {line}");
        verdicts += 1;
    }
    assert!(verdicts >= 4, "{}", said.out);
    assert!(newcomer.path("here/report.html").is_file());
}

/// Other people's readers find, with the page's own lines, what perflab finds: the median of each case, the units of the columns.
#[test]
fn other_readers_follow_the_page_of_the_format() {
    let Some(python) = find_test_python() else {
        return skip_test("format", "no target/test-venv (cargo xtask test makes it)");
    };
    let newcomer = NewcomerShell::new();
    newcomer.type_lines("cargo install --path crates/perflab --locked");
    let page = read_page("docs/format.md");
    newcomer.follow_page(&page);
    let ours = newcomer.type_lines("perflab compare @latest --by pages --format json").out;
    let ours: serde_json::Value = serde_json::from_str(&ours).unwrap();
    let rows = ours["rows"].as_array().unwrap();
    let medians = rows.iter().flat_map(|row| [&row["baseline"]["median"], &row["candidate"]["median"]]);
    let mut medians: Vec<f64> = medians.map(|median| median.as_f64().unwrap()).collect();
    medians.sort_by(f64::total_cmp);
    let blocks = split_page_blocks(&page);
    let (_, begin) = blocks.iter().find(|(kind, _)| kind == "python").unwrap();
    let mut rates = Vec::new();
    for reader in ["duckdb", "pyarrow", "pandas", "polars"] {
        let kind = format!("python {reader}");
        let (_, snippet) = blocks.iter().find(|block| block.0 == kind).unwrap();
        let tell = "import json\nprint(json.dumps([[row[-1] for row in medians], float(rate), globals().get('units')]))";
        let mut command = Command::new(&python);
        command.args(["-c", &format!("{begin}\n{snippet}\n{tell}")]).current_dir(newcomer.path("here"));
        let said = to_command_output(command.output().unwrap());
        assert_eq!(said.code, Some(0), "{reader}: {}", said.err);
        let (mut found, rate, units): (Vec<f64>, f64, Option<String>) =
            serde_json::from_str(&said.out).unwrap();
        found.sort_by(f64::total_cmp);
        assert_eq!(found, medians, "{reader}");
        rates.push(rate);
        if let Some(units) = units {
            let columns: serde_json::Value = serde_json::from_str(&units).unwrap();
            let column = |name: &str| {
                columns.as_array().unwrap().iter().find(|column| column["name"] == name).unwrap()
            };
            assert_eq!(
                (&column("time_ns")["unit"], &column("pgfault")["kind"]),
                (&"ns".into(), &"counter".into())
            );
        }
    }
    assert!(rates[0] > 0.0 && rates.iter().all(|rate| (rate / rates[0] - 1.0).abs() < 1e-9), "{rates:?}");
}
