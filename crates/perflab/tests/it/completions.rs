//! Real shells that complete perflab's command line, and the manual pages as `man` reads them.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::laboratory::{Sandbox, skip_test};

/// An archive with one run of one factor, whose label has two words.
fn prepare_completion_sandbox() -> Sandbox {
    let laboratory = Sandbox::new();
    let study = "run = { iterations = 2, warmup = 0 }\n[workload.echo]\n[factor.pages]\nkind = \"environment\"\n\
                 key = \"NOBODY_READS_IT\"\nlevels = [\"ordinary\", \"huge\"]\n[monitors]\nmeminfo = \"5ms\"\n";
    laboratory.write_study("mine.toml", study);
    let run = ["run", "mine.toml", "--label", "two words", "--quiet", "--no-report"];
    laboratory.run_successfully(&run);
    fs::create_dir(laboratory.path("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_perflab"), laboratory.path("bin/perflab")).unwrap();
    laboratory
}

/// A line up to where TAB is pressed, and the words that it is then.
const LINES: &[(&str, &str)] = &[
    ("perflab compar", "perflab compare"),
    ("perflab show @lat", "perflab show @latest"),
    ("perflab show two", "perflab show two words"),
    ("perflab compare @latest --by pa", "perflab compare @latest --by pages"),
    ("perflab compare @latest --by=pa", "perflab compare @latest --by=pages"),
    ("perflab compare @latest --where pages=h", "perflab compare @latest --where pages=huge"),
    ("perflab compare --workload ec", "perflab compare --workload echo"),
    ("perflab compare --monitor mem", "perflab compare --monitor meminfo"),
    ("perflab compare --metric sp", "perflab compare --metric speed"),
    ("perflab run quick", "perflab run quickstart"),
    ("perflab run mine.toml --set pages=o", "perflab run mine.toml --set pages=ordinary"),
    ("perflab run min", "perflab run mine.toml"),
    ("perflab report --outp", "perflab report --output"),
    ("perflab monitor show slabi", "perflab monitor show slabinfo"),
    ("perflab setting show gover", "perflab setting show governor"),
    ("perflab workload show memory-sw", "perflab workload show memory-sweep"),
    ("perflab study expand mine.toml --set pages=h", "perflab study expand mine.toml --set pages=huge"),
    ("perflab check --format mark", "perflab check --format markdown"),
    ("perflab report -o min", "perflab report -o mine.toml"),
];

/// A shell at a terminal, whose prompt is [`PROMPT`].
struct ShellSession {
    child: Child,
    heard: std::sync::mpsc::Receiver<Vec<u8>>,
    text: String,
}

const PROMPT: &str = "ready for words> ";

/// What is waited for, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

impl ShellSession {
    fn start(laboratory: &Sandbox, command: &str) -> Self {
        let path = std::env::join_paths(
            std::iter::once(laboratory.path("bin"))
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", command, "/dev/null"])
            .current_dir(laboratory.home.path())
            .env("PATH", path.unwrap())
            .env("HOME", laboratory.home.path())
            .env("ZDOTDIR", laboratory.home.path())
            .env("TERM", "xterm")
            .env("PERFLAB_ARCHIVE", laboratory.path("archive"))
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let (sender, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = out.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        ShellSession { child, heard, text: String::new() }
    }

    fn type_keys(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the prompt has come since the last time.
    fn await_prompt(&mut self) {
        while !self.text.contains(PROMPT) {
            let heard = self.heard.recv_timeout(PATIENCE);
            let heard = heard.unwrap_or_else(|_| panic!("no prompt in {:?}", self.text));
            self.text.push_str(&String::from_utf8_lossy(&heard));
        }
        self.text.clear();
    }
}

impl Drop for ShellSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Types every line of [`LINES`] into a shell, presses TAB, and has the shell say what words the line is then.
fn complete_lines(laboratory: &Sandbox, command: &str) {
    let mut wrong = Vec::new();
    let mut shell = ShellSession::start(laboratory, command);
    for (number, (typed, wanted)) in LINES.iter().enumerate() {
        shell.await_prompt();
        let said = laboratory.path(&format!("said-{number}"));
        // Control-A goes to the line's beginning, and control-E to its end.
        shell.type_keys(&format!("{typed}\t\u{1}echo \u{5} >{}.new; mv {0}.new {0}\r", said.display()));
        let begun = Instant::now();
        while !said.exists() {
            assert!(begun.elapsed() < PATIENCE, "{command}: nothing came of `{typed}`");
            std::thread::sleep(Duration::from_millis(10));
        }
        let words = fs::read_to_string(&said).unwrap();
        fs::remove_file(&said).unwrap();
        if words.trim() != *wanted {
            wrong.push(format!("`{typed}` became `{}`", words.trim()));
        }
    }
    assert!(wrong.is_empty(), "{command}: {}", wrong.join("\n"));
}

fn has_program(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// The script of a shell, in a file that the shell reads when it starts.
fn write_start_file(laboratory: &Sandbox, shell: &str, file: &str, before: &str) {
    let script = laboratory.run_successfully(&["completions", shell]).out;
    fs::write(laboratory.path(file), format!("{before}\n{script}")).unwrap();
}

#[test]
fn bash_completes_what_perflab_knows() {
    let laboratory = prepare_completion_sandbox();
    write_start_file(&laboratory, "bash", "start.bash", &format!("PS1='{PROMPT}'"));
    complete_lines(&laboratory, "bash --rcfile start.bash -i");
}

#[test]
fn zsh_completes_what_perflab_knows() {
    if !has_program("zsh") {
        return skip_test("zsh_completes_what_perflab_knows", "zsh is missing");
    }
    let laboratory = prepare_completion_sandbox();
    let before = format!("PS1='{PROMPT}'\nbindkey -e\nautoload -Uz compinit\ncompinit -u -D");
    write_start_file(&laboratory, "zsh", ".zshrc", &before);
    complete_lines(&laboratory, "zsh -i");
}

#[test]
fn fish_completes_what_perflab_knows() {
    if !has_program("fish") {
        return skip_test("fish_completes_what_perflab_knows", "fish is missing");
    }
    let laboratory = prepare_completion_sandbox();
    let before = format!(
        "function fish_prompt; echo -n '{PROMPT}'; end\nset -g fish_greeting\nset -g fish_autosuggestion_enabled 0"
    );
    write_start_file(&laboratory, "fish", "start.fish", &before);
    complete_lines(&laboratory, "fish --no-config --init-command 'source start.fish' -i");
}

/// What a shell is told, the values alone.
fn completed(laboratory: &Sandbox, words: &[&str]) -> Vec<String> {
    let asked = [&["complete", "fish", "--"], words].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_perflab"));
    command
        .args(asked)
        .current_dir(laboratory.home.path())
        .env("PERFLAB_ARCHIVE", laboratory.path("archive"));
    let said = crate::laboratory::to_command_output(command.output().unwrap());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{words:?}");
    said.out.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// Every file below a folder, with when it was written last.
fn list_files(folder: &Path) -> Vec<(std::path::PathBuf, SystemTime, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, about) = (entry.path(), entry.metadata().unwrap());
        if about.is_dir() {
            found.extend(list_files(&path));
        }
        found.push((path, about.modified().unwrap(), about.len()));
    }
    found.sort();
    found
}

#[test]
fn completion_writes_nothing_and_bears_any_archive() {
    let laboratory = prepare_completion_sandbox();
    let runs = || completed(&laboratory, &["perflab", "compare", ""]);
    let whole = runs();
    assert!(
        whole.starts_with(&["two words".to_owned(), "@latest".to_owned()]) && whole.len() == 3,
        "{whole:?}"
    );
    // Small letters stand for an id, too.
    let small = whole[2].to_lowercase();
    assert_eq!(completed(&laboratory, &["perflab", "show", &small[..6]]), [small]);
    // Options are there for who types a dash.
    assert!(completed(&laboratory, &["perflab", "compare", "-"]).contains(&"--by".to_owned()));
    let before = list_files(laboratory.home.path());
    let _ = runs();
    assert_eq!(list_files(laboratory.home.path()), before);
    // Without its index, the run says its label itself, and the index is not made again.
    fs::remove_file(laboratory.path("archive/index.sqlite")).unwrap();
    let before = list_files(laboratory.home.path());
    assert_eq!(runs(), whole);
    fs::write(laboratory.path("archive/index.sqlite"), "no database").unwrap();
    assert_eq!(runs(), whole);
    fs::remove_file(laboratory.path("archive/index.sqlite")).unwrap();
    let names = |files: &[(std::path::PathBuf, SystemTime, u64)]| {
        files.iter().map(|(path, ..)| path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&list_files(laboratory.home.path())), names(&before));
    fs::write(laboratory.only_run().join("run.json"), "{").unwrap();
    assert_eq!(runs(), whole[1..]);
    assert!(completed(&laboratory, &["perflab", "compare", "@latest", "--by", ""]).is_empty());
    fs::remove_dir_all(laboratory.path("archive")).unwrap();
    assert!(runs().iter().all(|option| option.starts_with('-')));
    fs::write(laboratory.path("archive"), "a file").unwrap();
    assert!(runs().iter().all(|option| option.starts_with('-')));
    for odd in [
        &["perflab", "--archive"][..],
        &[],
        &["perflab", "--", "-"],
        &["perflab", "compare", "--baseline", "-"],
    ] {
        completed(&laboratory, odd);
    }
}

#[test]
fn every_verb_has_a_manual_page_that_man_reads() {
    let laboratory = Sandbox::new();
    laboratory.run_successfully(&["man", "--output", "pages"]);
    let reference = crate::documents::read_page("docs/reference/commands.md");
    let verbs = reference.lines().filter_map(|line| line.strip_prefix("## perflab"));
    let mut wanted: Vec<String> = verbs.map(|verb| format!("perflab{}.1", verb.replace(' ', "-"))).collect();
    wanted.sort();
    let mut found: Vec<String> = fs::read_dir(laboratory.path("pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, wanted);
    let one = laboratory.run_successfully(&["man", "slab", "show"]).out;
    assert_eq!(one, fs::read_to_string(laboratory.path("pages/perflab-slab-show.1")).unwrap());
    assert_eq!(laboratory.run(&["man", "slab", "shwo"]).code, Some(2));
    if !has_program("man") {
        return skip_test("every_verb_has_a_manual_page_that_man_reads", "man is missing");
    }
    for page in &found {
        let mut man = Command::new("man");
        man.args(["--warnings", "--local-file"]).arg(laboratory.path("pages").join(page));
        let read = man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").output().unwrap();
        assert!(
            read.status.success() && read.stderr.is_empty(),
            "{page}: {}",
            String::from_utf8_lossy(&read.stderr)
        );
        assert!(String::from_utf8_lossy(&read.stdout).contains("SYNOPSIS"), "{page}");
    }
}
