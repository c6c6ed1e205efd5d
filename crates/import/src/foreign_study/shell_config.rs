//! A shell configuration, read without running it: its variables, what it does to the machine, and the files that it writes.
//!
//! Statements are taken in order, conditions are decided where they can be, and what depends on the machine stays an expression
//! ([`ShellValue`]). A command that is not known by name is never guessed at.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, CaseClauseCommand, Command,
    CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, CompoundListItem, FunctionDefinition,
    IfClauseCommand, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline, Program,
    SeparatorOperator, SimpleCommand, SourceLocation,
};
use brush_parser::{Parser, ParserOptions};
use indexmap::IndexMap;
use regex::Regex;

use super::line_account::{LineAccount, LineFate};
use super::shell_value::{
    MachineNumber, NumberOrder, ShellCondition, ShellValue, matches_glob, shorten_foreign_text,
};

/// A variable as the file leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellVariable {
    pub(super) value: ShellValue,
    /// The lines that assign it.
    pub(super) lines: Vec<RangeInclusive<usize>>,
}

/// Something that the configuration does to the machine, in the order in which it does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MachineChange {
    pub(super) kind: ChangeKind,
    pub(super) lines: RangeInclusive<usize>,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// A value is written to a file, a sysctl among them by its path.
    Write(String, String),
    /// A command with its words.
    Command(Vec<String>),
}

/// What a configuration says.
#[derive(Debug, Default)]
pub(super) struct ShellConfig {
    /// The variables, in the order in which they first come.
    pub(super) variables: IndexMap<String, ShellVariable>,
    /// What other values are made of.
    pub(super) read: BTreeSet<String>,
    /// What is done to the machine.
    pub(super) changes: Vec<MachineChange>,
    /// What is written to other files, by their path.
    pub(super) files: HashMap<String, ShellValue>,
    /// The fates of lines that hold no variable and no change.
    pub(super) account: LineAccount,
}

/// Names that the runner gives to what it reads of the machine, as facts.
const MACHINE_NAMES: [(&str, &str); 22] = [
    ("NUM_LOGICAL_CPUS", "cpus"),
    ("NUMCPUS", "cpus"),
    ("NUM_CPUS", "cpus"),
    ("NUM_PHYSICAL_CPUS", "cores"),
    ("NUM_CORES", "cores"),
    ("NUMCORES", "cores"),
    ("NUM_SOCKETS", "sockets"),
    ("NUM_LLCS", "llcs"),
    ("NUM_NODES", "numa_nodes"),
    ("NUMNODES", "numa_nodes"),
    ("NUMA_NODES", "numa_nodes"),
    ("NUM_THREADS_PER_CORE", "threads_per_core"),
    ("MEMTOTAL_BYTES", "memory"),
    ("MEMTOTAL_PAGES", "memory // page_size"),
    ("MEMTOTAL_HUGEPAGES", "memory // huge_page"),
    ("MEMTOTAL_KB", "memory // 1024"),
    ("MEMTOTAL_MB", "memory // 1048576"),
    ("PAGESIZE", "page_size"),
    ("HUGE_PAGESIZE", "huge_page"),
    ("HPAGE_SIZE", "huge_page"),
    ("SWAPTOTAL_BYTES", "swap"),
    ("LLC_SIZE", "llc_size"),
];

/// What sets variables by words that only a shell reads.
const SETS_VARIABLES: [&str; 6] = ["eval", "let", "mapfile", "read", "readarray", "getopts"];

/// What a shell sets itself.
const OF_THE_SHELL: [&str; 12] = [
    "RANDOM",
    "SECONDS",
    "HOSTNAME",
    "PWD",
    "HOME",
    "USER",
    "UID",
    "EUID",
    "LINENO",
    "BASHPID",
    "PPID",
    "EPOCHSECONDS",
];

/// Functions of the runner and programs that only tell or tidy up.
const WITHOUT_MEANING: [(&str, &str); 27] = [
    ("break", "it leaves a loop"),
    ("continue", "it begins the next turn of a loop"),
    ("get_numa_details", "expressions know the machine"),
    ("get_cpu_details", "expressions know the machine"),
    ("getmemtotals", "expressions know the machine"),
    ("gethugepagesize", "expressions know the machine"),
    ("getpagesize", "expressions know the machine"),
    ("getwordsize", "expressions know the machine"),
    ("get_llc_details", "expressions know the machine"),
    ("get_dirtiable_fraction", "expressions know the machine"),
    ("echo", "it prints"),
    ("printf", "it prints"),
    ("die", "it gives up"),
    ("exit", "it gives up"),
    ("return", "it ends a function"),
    ("true", "it does nothing"),
    (":", "it does nothing"),
    ("rm", "perflab removes its own files"),
    ("mkdir", "perflab makes its own folders"),
    ("set", "it sets how the shell itself works"),
    ("unset", "it forgets a variable"),
    ("trap", "it sets how the shell itself works"),
    ("shopt", "it sets how the shell itself works"),
    ("ulimit", "perflab gives workloads the limits that it has itself"),
    ("sleep", "it waits"),
    ("wait", "it waits"),
    ("sync", "it flushes what is dirty"),
];

/// Bytes of a configuration: the longest that are public have 8 KB.
pub(super) const LONGEST_CONFIGURATION: u64 = 1 << 20;

/// Configurations that others are read with, one within the other.
const MOST_INCLUDES: usize = 8;

/// Turns of a loop, and statements of a file.
const MOST_STATEMENTS: usize = 20_000;

/// Brackets, or conditions and loops, within one another: the parser calls itself for each.
const MOST_NESTED: usize = 100;

/// Digits of a number that fits into 32 bits, and into 64.
const DIGITS_OF_A_FILE: usize = 9;
const DIGITS: usize = 18;

/// How long reading may take; a configuration takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The stack of the thread that parses.
const STACK: usize = 256 << 20;

/// Reads a configuration; those that it includes lie in its folder.
///
/// # Errors
/// The reason why the text is no shell script.
pub(super) fn read_shell_config(text: &str, folder: &Path) -> Result<ShellConfig, String> {
    let (text, folder) = (text.to_owned(), folder.to_owned());
    let read = move || {
        let program = parse_program(&text)?;
        let mut reader = ConfigReader::new(&text, folder);
        reader.run_program(&program, text.lines().count());
        Ok(reader.into_config())
    };
    // The parser tries each way to read what is not closed; where that has no end, the thread ends with the process.
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || drop(sender.send(read())));
    thread.map_err(|error| format!("cannot start a thread: {error}"))?;
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => {
                let seconds = PATIENCE.as_secs();
                format!("it cannot be read within {seconds} s: a quote or bracket is not closed")
            }
            RecvTimeoutError::Disconnected => "its text is beyond what the shell's parser can read".into(),
        })
    })
}

fn parse_program(text: &str) -> Result<Program, String> {
    let mut open: usize = 0;
    for character in text.chars() {
        match character {
            '(' | '{' | '[' => open += 1,
            ')' | '}' | ']' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MOST_NESTED {
            return Err(format!("more than {MOST_NESTED} brackets lie within one another"));
        }
    }
    let mut open: usize = 0;
    let code = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    for word in code.flat_map(|line| line.split([' ', '\t', ';'])) {
        match word {
            "if" | "case" | "do" => open += 1,
            "fi" | "esac" | "done" => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MOST_NESTED {
            return Err(format!("more than {MOST_NESTED} conditions and loops lie within one another"));
        }
    }
    // A line that goes on in the next is one.
    if let Some(number) = find_boundless_number(&text.replace("\\\n", "")) {
        return Err(format!("the number {number} is beyond what a shell can count"));
    }
    let mut parser = Parser::new(text.as_bytes(), &ParserOptions::default());
    parser.parse_program().map_err(|error| error.to_string())
}

/// A number that is too large for its place, a file that output goes to, an end of `{1..9}` or a `~1`: the parser takes for granted that
/// there is none.
fn find_boundless_number(text: &str) -> Option<&str> {
    let ends = text.match_indices(|letter: char| letter.is_ascii_digit()).map(|(at, _)| at + 1);
    let is_end = |end: &usize| !text.as_bytes().get(*end).is_some_and(u8::is_ascii_digit);
    ends.filter(is_end).find_map(|end| {
        let (before, behind) = text.split_at_checked(end)?;
        let start = before.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = before.get(start.len()..)?;
        let most = match start.trim_end_matches(['+', '-']) {
            _ if behind.starts_with(['<', '>']) => DIGITS_OF_A_FILE,
            start if start.ends_with(['{', '~']) || start.ends_with("..") => DIGITS,
            _ => usize::MAX,
        };
        (number.len() > most).then_some(number)
    })
}

/// Where in a file a statement is.
type Lines = RangeInclusive<usize>;

/// What the statements so far have left.
#[derive(Clone)]
pub(super) struct ShellState {
    variables: IndexMap<String, ShellVariable>,
    read: BTreeSet<String>,
    changes: Vec<MachineChange>,
    pub(super) files: HashMap<String, ShellValue>,
    functions: HashMap<String, FunctionDefinition>,
}

/// Reads statement after statement.
pub(super) struct ConfigReader {
    pub(super) state: ShellState,
    account: LineAccount,
    folder: PathBuf,
    /// Configurations that are being read, the outermost first; while one is read by another, its lines are that one's.
    included: Vec<String>,
    /// The line of the outermost file that includes or calls what is read now.
    outer_lines: Option<Lines>,
    statements: usize,
    /// What ends a loop, a function or the file, where one of these was met.
    leaving: Option<LeavingWord>,
    /// Loops that are being read, one within the other.
    loops: usize,
    /// What variables held before functions that are being called made them their own.
    locals: Vec<Vec<(String, Option<ShellVariable>)>>,
    /// Whether something of the statement is left out.
    is_left_out: bool,
    /// The lines of the command whose words are expanded: `${X:=1}` assigns there.
    command_lines: Option<Lines>,
}

/// A word that leaves what it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeavingWord {
    Break,
    Continue,
    Return,
    Exit,
}

impl ConfigReader {
    fn new(text: &str, folder: PathBuf) -> Self {
        let state = ShellState {
            variables: IndexMap::new(),
            read: BTreeSet::new(),
            changes: Vec::new(),
            files: HashMap::new(),
            functions: HashMap::new(),
        };
        let account = LineAccount::of_text(text);
        ConfigReader {
            state,
            account,
            folder,
            included: Vec::new(),
            outer_lines: None,
            statements: 0,
            leaving: None,
            loops: 0,
            locals: Vec::new(),
            is_left_out: false,
            command_lines: None,
        }
    }

    fn into_config(self) -> ShellConfig {
        let ShellState { variables, read, changes, files, .. } = self.state;
        ShellConfig { variables, read, changes, files, account: self.account }
    }

    fn settle(&mut self, lines: &Lines, fate: LineFate) {
        self.is_left_out |= matches!(fate, LineFate::NotUnderstood(_));
        if self.outer_lines.is_none() {
            self.account.set(lines.clone(), &fate);
        }
    }

    /// The lines that a value of these is told with: those of the outermost file.
    fn told_lines(&self, lines: &Lines) -> Lines {
        self.outer_lines.clone().unwrap_or_else(|| lines.clone())
    }

    /// `last` is the file's last line.
    fn run_program(&mut self, program: &Program, last: usize) {
        let items: Vec<&CompoundListItem> =
            program.complete_commands.iter().flat_map(|list| &list.0).collect();
        self.run_items(&items, last);
    }

    fn run_list(&mut self, list: &CompoundList) {
        self.run_items(&list.0.iter().collect::<Vec<_>>(), 0);
    }

    /// The parser says where a statement begins, and not of all where they end: that is before the next one, at the latest.
    fn run_items(&mut self, items: &[&CompoundListItem], last: usize) {
        for (at, item) in items.iter().enumerate() {
            self.statements += 1;
            let lines = lines_of(item.0.location(), count_document_lines(&item.0));
            let next = items.get(at + 1).map(|next| next.0.location().map_or(0, |next| next.start.line));
            let end = next.map_or(last, |next| next.saturating_sub(1));
            let lines = *lines.start()..=end.max(*lines.end());
            if self.leaving == Some(LeavingWord::Exit) {
                self.settle(&lines, LineFate::NoMeaning("it stands behind an exit".into()));
            }
            if self.leaving.is_some() || self.statements > MOST_STATEMENTS {
                continue;
            }
            let outer = std::mem::take(&mut self.is_left_out);
            match item.1 {
                SeparatorOperator::Async => self.apart(|reader| reader.run_and_or(&item.0, &lines)),
                SeparatorOperator::Sequence => self.run_and_or(&item.0, &lines),
            }
            if std::mem::replace(&mut self.is_left_out, outer) {
                self.forget_assigned(&item.0.to_string(), &lines);
            }
        }
    }

    /// Reads what has variables of its own: a subshell, what goes on in the background.
    fn apart(&mut self, read: impl FnOnce(&mut Self)) {
        let before = self.state.variables.clone();
        read(self);
        self.state.variables = before;
        self.leaving = None;
    }

    /// What a statement assigns of which something is left out is not known from there on.
    fn forget_assigned(&mut self, statement: &str, lines: &Lines) {
        let told = self.told_lines(lines);
        let names: BTreeSet<String> = assigned_names(statement).filter(|name| self.is_set(name)).collect();
        for name in names {
            self.assign(&name, ShellValue::Unknown("what is left out may have set it".into()), &told);
        }
    }

    fn run_and_or(&mut self, list: &AndOrList, lines: &Lines) {
        if list.additional.is_empty() {
            return self.run_pipeline(&list.first, lines);
        }
        // `[ CONDITION ] && command`, `command || die`.
        match (self.test_pipeline(&list.first), &list.additional[..]) {
            (Some(condition), [AndOr::And(then)]) => {
                self.branch(condition, lines, |reader| reader.run_pipeline(then, lines), |_| {})
            }
            (Some(condition), [AndOr::Or(then)]) => {
                self.branch(condition.negate(), lines, |reader| reader.run_pipeline(then, lines), |_| {});
            }
            (None, _) => self.run_pipeline(&list.first, lines),
            _ => self.settle(lines, LineFate::NotUnderstood("several conditions in a row".into())),
        }
    }

    fn run_pipeline(&mut self, pipeline: &Pipeline, lines: &Lines) {
        match &pipeline.seq[..] {
            [Command::Simple(command)] => self.run_simple(command, lines),
            [Command::Compound(command, _)] => self.run_compound(command, lines),
            [Command::Function(function)] => {
                self.settle(lines, LineFate::NoMeaning("a function: what calls it says what it does".into()));
                self.state.functions.insert(function.fname.value.clone(), function.clone());
            }
            [Command::ExtendedTest(..)] => {
                self.settle(lines, LineFate::NoMeaning("a condition that nothing depends on".into()));
            }
            _ => self.settle(lines, LineFate::NotUnderstood("a pipeline runs programs".into())),
        }
    }

    fn run_compound(&mut self, command: &CompoundCommand, lines: &Lines) {
        match command {
            CompoundCommand::BraceGroup(group) => self.run_list(&group.list),
            CompoundCommand::Subshell(shell) => {
                self.settle(lines, LineFate::NoMeaning("a subshell: what it sets ends with it".into()));
                self.apart(|reader| reader.run_list(&shell.list));
            }
            CompoundCommand::IfClause(clause) => self.run_if(clause, lines),
            CompoundCommand::CaseClause(clause) => self.run_case(clause, lines),
            CompoundCommand::ForClause(clause) => {
                self.settle(lines, LineFate::Translated("a loop".into()));
                let words = clause.values.iter().flatten();
                let values: Vec<ShellValue> = words.map(|word| self.expand(word)).collect();
                let texts: Option<Vec<String>> =
                    values.iter().map(|value| value.as_text().map(str::to_owned)).collect();
                let Some(texts) = texts else {
                    return self.settle(
                        lines,
                        LineFate::NotUnderstood("a loop over what the machine decides".into()),
                    );
                };
                for text in texts.iter().flat_map(|text| text.split_whitespace()) {
                    self.assign(&clause.variable_name, ShellValue::Text(text.into()), lines);
                    self.state.read.insert(clause.variable_name.clone());
                    self.loops += 1;
                    self.run_list(&clause.body.list);
                    self.loops -= 1;
                    match self.leaving {
                        Some(LeavingWord::Continue) => self.leaving = None,
                        Some(LeavingWord::Break) => {
                            self.leaving = None;
                            break;
                        }
                        Some(LeavingWord::Return | LeavingWord::Exit) => break,
                        None => {}
                    }
                }
            }
            _ => self
                .settle(lines, LineFate::NotUnderstood("a loop whose end only running it would tell".into())),
        }
    }

    fn run_if(&mut self, clause: &IfClauseCommand, lines: &Lines) {
        let condition = self.test_list(&clause.condition);
        let rest = clause.elses.as_deref().unwrap_or_default();
        self.branch(
            condition,
            lines,
            |reader| reader.run_list(&clause.then),
            |reader| reader.run_elses(rest, lines),
        );
    }

    fn run_elses(&mut self, elses: &[brush_parser::ast::ElseClause], lines: &Lines) {
        let Some((first, rest)) = elses.split_first() else { return };
        match &first.condition {
            None => self.run_list(&first.body),
            Some(condition) => {
                let condition = self.test_list(condition);
                let around = lines_of(first.body.location(), 0);
                let inner = *around.start()..=*lines.end();
                self.branch(
                    condition,
                    &inner,
                    |reader| reader.run_list(&first.body),
                    |reader| reader.run_elses(rest, lines),
                );
            }
        }
    }

    fn run_case(&mut self, clause: &CaseClauseCommand, lines: &Lines) {
        let value = self.expand(&clause.value);
        let Some(text) = value.as_text().map(str::to_owned) else {
            return self.settle(lines, LineFate::NotUnderstood("the machine decides between these".into()));
        };
        self.settle(lines, LineFate::NoMeaning("a choice that is always the same here".into()));
        for item in &clause.cases {
            let is_match = item.patterns.iter().any(|pattern| {
                let pattern = self.expand(pattern);
                pattern.as_text().is_some_and(|pattern| matches_glob(pattern, &text))
            });
            if is_match {
                if let Some(list) = &item.cmd {
                    self.run_list(list);
                }
                return;
            }
        }
    }

    /// Runs what a condition chooses; where the machine decides, both, and joins what they leave.
    fn branch(
        &mut self,
        condition: ShellCondition,
        lines: &Lines,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        match condition {
            ShellCondition::Known(true) => {
                self.settle(lines, LineFate::Translated("a condition that always holds here".into()));
                then(self);
            }
            ShellCondition::Known(false) => {
                self.settle(lines, LineFate::NoMeaning("a condition that never holds here".into()));
                otherwise(self);
            }
            ShellCondition::Unknown(reason) => {
                self.settle(
                    lines,
                    LineFate::NotUnderstood(format!("whether this holds is not known: {reason}")),
                );
            }
            ShellCondition::OfMachine(left, order, right) => {
                let about = format!("where {left} {order} {right}");
                self.settle(lines, LineFate::Translated(about));
                let before = self.state.clone();
                then(self);
                // Where some machines leave, the study is for the others.
                let leaves = self.leaving.take().is_some();
                let taken = std::mem::replace(&mut self.state, before);
                otherwise(self);
                if leaves {
                    return;
                }
                self.join_states(&taken, (&left, order, &right));
            }
        }
    }

    /// Joins what a branch left with what is there without it.
    fn join_states(&mut self, taken: &ShellState, condition: (&MachineNumber, NumberOrder, &MachineNumber)) {
        for (name, variable) in &taken.variables {
            let here = self.state.variables.get(name);
            if here == Some(variable) {
                continue;
            }
            let numbers = (variable.value.as_number(), here.and_then(|here| here.value.as_number()));
            let value = match numbers {
                (Some(then), Some(otherwise)) => {
                    MachineNumber::choose(condition, &then, &otherwise).map(|number| {
                        match number.as_integer() {
                            Some(known) => ShellValue::Text(known.to_string()),
                            None => ShellValue::Number(number),
                        }
                    })
                }
                _ if here.is_some_and(|here| here.value == variable.value) => Some(variable.value.clone()),
                _ => None,
            };
            let value =
                value.unwrap_or_else(|| ShellValue::Unknown("the machine decides between two texts".into()));
            let mut lines = here.map(|here| here.lines.clone()).unwrap_or_default();
            lines.extend(
                variable
                    .lines
                    .iter()
                    .filter(|lines_of_it| !lines.contains(lines_of_it))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            self.state.variables.insert(name.clone(), ShellVariable { value, lines });
        }
        self.state.read.extend(taken.read.iter().cloned());
        let known = self.state.changes.len();
        for change in taken.changes.iter().skip(known.min(taken.changes.len())) {
            let why = "only some machines do this; a study does it on all, or on none";
            self.settle(&change.lines.clone(), LineFate::NotUnderstood(why.into()));
        }
        for (name, value) in &taken.files {
            self.state.files.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    fn run_simple(&mut self, command: &SimpleCommand, lines: &Lines) {
        let told = self.told_lines(lines);
        self.command_lines = Some(told.clone());
        let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
        let items: Vec<&CommandPrefixOrSuffixItem> =
            prefix.chain(command.suffix.iter().flat_map(|suffix| &suffix.0)).collect();
        let name = command.word_or_name.as_ref().map(|word| self.expand(word).into_template());
        let is_declaration = name
            .as_deref()
            .is_none_or(|name| ["export", "declare", "local", "readonly", "typeset"].contains(&name));
        if is_declaration {
            self.settle(lines, LineFate::NoMeaning("it only says that programs see a variable".into()));
            let is_local = name.as_deref() == Some("local");
            for item in items {
                if let (true, Some(name)) = (is_local, declared_name(item)) {
                    let before = self.state.variables.get(&name).cloned();
                    if let Some(locals) = self.locals.last_mut() {
                        locals.push((name, before));
                    }
                }
                match item {
                    CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                        self.run_assignment(assignment, &told)
                    }
                    CommandPrefixOrSuffixItem::Word(word) if word.value.contains('=') => {
                        // What a quoted assignment is to the parser.
                        let text = self.expand(word).into_template();
                        if let Some((name, value)) = text.split_once('=') {
                            self.assign(name, ShellValue::Text(value.into()), &told);
                        }
                    }
                    _ => {}
                }
            }
            return;
        }
        let name = name.unwrap_or_default();
        let words: Vec<ShellValue> = items
            .iter()
            .filter_map(|item| match item {
                CommandPrefixOrSuffixItem::Word(word) => Some(self.expand(word)),
                CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(self.expand(word)),
                _ => None,
            })
            .collect();
        let redirects: Vec<&IoRedirect> = items
            .iter()
            .filter_map(|item| match item {
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => Some(redirect),
                _ => None,
            })
            .collect();
        self.run_command(&name, &words, &redirects, (lines, &told));
    }

    fn run_command(
        &mut self,
        name: &str,
        words: &[ShellValue],
        redirects: &[&IoRedirect],
        (lines, told): (&Lines, &Lines),
    ) {
        if matches!(name, "." | "source") {
            return self.include(words, lines, told);
        }
        if let Some(function) = self.state.functions.get(name).cloned() {
            self.settle(lines, LineFate::Translated("what the function does".into()));
            return self.nested(name, told, |reader| {
                reader.locals.push(Vec::new());
                reader.run_compound(&function.body.0, &(1..=1));
                for (name, before) in reader.locals.pop().into_iter().flatten().rev() {
                    match before {
                        Some(before) => drop(reader.state.variables.insert(name, before)),
                        None => drop(reader.state.variables.shift_remove(&name)),
                    }
                }
            });
        }
        if let Some((file, value)) = self.written_file(name, words, redirects) {
            return self.write_file(file, value, lines, told);
        }
        // Where there is nothing to leave, a shell goes on.
        self.leaving = match name {
            "break" if self.loops > 0 => Some(LeavingWord::Break),
            "continue" if self.loops > 0 => Some(LeavingWord::Continue),
            "return" if !self.included.is_empty() => Some(LeavingWord::Return),
            "exit" => Some(LeavingWord::Exit),
            _ => None,
        };
        if name == "unset" {
            for word in words.iter().filter_map(ShellValue::as_text) {
                self.state.variables.shift_remove(word);
            }
        }
        let known = WITHOUT_MEANING.iter().find(|(known, _)| *known == name);
        if let Some((_, reason)) = known {
            return self.settle(lines, LineFate::NoMeaning((*reason).into()));
        }
        if SETS_VARIABLES.contains(&name) {
            return self.settle(lines, LineFate::NotUnderstood(format!("only a shell carries `{name}` out")));
        }
        let texts: Option<Vec<String>> = words.iter().map(|word| word.as_text().map(str::to_owned)).collect();
        match texts {
            Some(texts) => {
                let words = std::iter::once(name.to_owned()).chain(texts).collect();
                self.state
                    .changes
                    .push(MachineChange { kind: ChangeKind::Command(words), lines: told.clone() });
            }
            None => {
                let why = format!("`{}`, whose words depend on the machine", shorten_foreign_text(name));
                self.settle(lines, LineFate::NotUnderstood(why));
            }
        }
    }

    /// Reads what stands elsewhere as if it stood here.
    fn nested(&mut self, name: &str, told: &Lines, read: impl FnOnce(&mut Self)) {
        if self.included.len() >= MOST_INCLUDES || self.included.iter().any(|known| known == name) {
            let why = format!("`{}` would be read within itself, or too deep", shorten_foreign_text(name));
            return self.settle(told, LineFate::NotUnderstood(why));
        }
        self.included.push(name.to_owned());
        let outer = (self.outer_lines.replace(told.clone()), std::mem::take(&mut self.loops));
        read(self);
        (self.outer_lines, self.loops) = outer;
        // What was read has returned.
        self.leaving = self.leaving.filter(|word| *word == LeavingWord::Exit);
        self.included.pop();
    }

    fn include(&mut self, words: &[ShellValue], lines: &Lines, told: &Lines) {
        let path = words.first().and_then(ShellValue::as_text).unwrap_or_default().to_owned();
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.starts_with("include-") || name == "common.sh" {
            return self.settle(lines, LineFate::NoMeaning("expressions know the machine".into()));
        }
        let file = self.folder.join(name);
        // A link may lead anywhere, and what it leads to would stand in the account.
        let is_beside = std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
        let bytes = (is_beside && !name.is_empty())
            .then(|| perflab_files::read_finite_file(&file, LONGEST_CONFIGURATION))
            .and_then(Result::ok);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some(program) = text.and_then(|text| parse_program(&text).ok()) else {
            let why = format!("`{}` is not there, or cannot be read", shorten_foreign_text(name));
            return self.settle(lines, LineFate::NotUnderstood(why));
        };
        self.settle(lines, LineFate::Translated(format!("what {} says", shorten_foreign_text(name))));
        let name = name.to_owned();
        self.nested(&name, told, |reader| reader.run_program(&program, 0));
    }

    /// The file that a command writes, and what.
    fn written_file(
        &mut self,
        name: &str,
        words: &[ShellValue],
        redirects: &[&IoRedirect],
    ) -> Option<(ShellValue, ShellValue)> {
        let mut file = None;
        let mut document = None;
        for redirect in redirects {
            match redirect {
                IoRedirect::File(
                    None | Some(1),
                    IoFileRedirectKind::Write | IoFileRedirectKind::Append | IoFileRedirectKind::Clobber,
                    IoFileRedirectTarget::Filename(word),
                ) => file = Some(self.expand(word)),
                IoRedirect::HereDocument(_, here) => {
                    let text = &here.doc.value;
                    document = Some(match here.requires_expansion {
                        true => self.expand_document(text),
                        false => ShellValue::Text(text.clone()),
                    });
                }
                _ => {}
            }
        }
        let file = file?;
        match (name, document) {
            ("cat", Some(document)) => Some((file, document)),
            ("echo" | "printf", None) => {
                let mut text = ShellValue::Text(String::new());
                for (at, word) in words.iter().filter(|word| word.as_text() != Some("-n")).enumerate() {
                    if at > 0 {
                        text = text.join(ShellValue::Text(" ".into()));
                    }
                    text = text.join(word.clone());
                }
                Some((file, text))
            }
            _ => None,
        }
    }

    fn write_file(&mut self, file: ShellValue, value: ShellValue, lines: &Lines, told: &Lines) {
        let path = file.into_template();
        if path.starts_with("/dev/") {
            return self.settle(lines, LineFate::NoMeaning("it prints".into()));
        }
        if path.starts_with("/proc/") || path.starts_with("/sys/") {
            match value {
                ShellValue::Unknown(reason) => {
                    self.settle(
                        lines,
                        LineFate::NotUnderstood(format!(
                            "what is written to {}: {reason}",
                            shorten_foreign_text(&path)
                        )),
                    );
                }
                value => {
                    let kind = ChangeKind::Write(path, value.into_template());
                    self.state.changes.push(MachineChange { kind, lines: told.clone() });
                }
            }
            return;
        }
        self.settle(
            lines,
            match &value {
                ShellValue::Unknown(reason) => {
                    LineFate::NotUnderstood(format!("what is written to a file: {reason}"))
                }
                _ => LineFate::Translated("a file that is part of a parameter".into()),
            },
        );
        let joined = match self.state.files.remove(&path) {
            Some(before) => before.join(ShellValue::Text("\n".into())).join(value),
            None => value,
        };
        self.state.files.insert(path, joined);
    }

    fn run_assignment(&mut self, assignment: &Assignment, told: &Lines) {
        let AssignmentName::VariableName(name) = &assignment.name else {
            return self.settle(told, LineFate::NotUnderstood("an element of an array".into()));
        };
        let value = match &assignment.value {
            AssignmentValue::Scalar(word) => self.expand(word),
            AssignmentValue::Array(words) => {
                let mut all = ShellValue::Text(String::new());
                for (at, (_, word)) in words.iter().enumerate() {
                    let value = self.expand(word);
                    let gap = if at > 0 { " " } else { "" };
                    all = all.join(ShellValue::Text(gap.into())).join(value);
                }
                all
            }
        };
        let value = match self.state.variables.get(name) {
            Some(before) if assignment.append => before.value.clone().join(value),
            _ => value,
        };
        self.assign(name, value, told);
    }

    /// What `${NAME:=value}` does where the variable is to be assigned.
    pub(super) fn assign_default(&mut self, name: &str, value: ShellValue) {
        if let Some(told) = self.command_lines.clone() {
            self.assign(name, value, &told);
        }
    }

    fn assign(&mut self, name: &str, value: ShellValue, told: &Lines) {
        let mut lines = self.state.variables.get(name).map(|known| known.lines.clone()).unwrap_or_default();
        if !lines.contains(told) {
            lines.push(told.clone());
        }
        self.state.variables.insert(name.to_owned(), ShellVariable { value, lines });
    }

    /// Whether the configuration, or what it includes, sets a variable.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.state.variables.contains_key(name)
    }

    pub(super) fn look_up(&mut self, name: &str) -> ShellValue {
        if let Some(variable) = self.state.variables.get(name) {
            let value = variable.value.clone();
            self.state.read.insert(name.to_owned());
            return value;
        }
        match MACHINE_NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, fact)) if fact.contains(' ') => ShellValue::Number(MachineNumber::quotient(fact)),
            Some((_, fact)) => ShellValue::Number(MachineNumber::fact(fact)),
            None if OF_THE_SHELL.contains(&name) => {
                ShellValue::Unknown(format!("`{name}` is the shell's, and of the moment"))
            }
            None => ShellValue::Text(String::new()),
        }
    }
}

/// The names that a statement assigns, from its text.
fn assigned_names(statement: &str) -> impl Iterator<Item = String> {
    static ASSIGNMENT: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern =
        r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:\+\+|--|[-+*/%]?=)|\bread\s+(?:-\S+\s+)*([A-Za-z_][A-Za-z0-9_]*)";
    let found = ASSIGNMENT.get_or_init(|| Regex::new(pattern).ok());
    let captures = found.iter().flat_map(|pattern| pattern.captures_iter(statement));
    let names = captures.filter_map(|found| found.get(1).or(found.get(2)));
    names.map(|name| name.as_str().to_owned()).collect::<Vec<_>>().into_iter()
}

/// The variable that a word of a declaration is about.
fn declared_name(item: &CommandPrefixOrSuffixItem) -> Option<String> {
    match item {
        CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => match &assignment.name {
            AssignmentName::VariableName(name) => Some(name.clone()),
            AssignmentName::ArrayElementName(..) => None,
        },
        CommandPrefixOrSuffixItem::Word(word) if !word.value.starts_with('-') => Some(word.value.clone()),
        _ => None,
    }
}

fn lines_of(span: Option<brush_parser::SourceSpan>, more: usize) -> Lines {
    match span {
        Some(span) => span.start.line..=span.end.line.max(span.start.line + more),
        None => 0..=0,
    }
}

/// Lines that a here-document of a statement takes, its end included.
fn count_document_lines(list: &AndOrList) -> usize {
    let count = |pipeline: &Pipeline| -> usize {
        let commands = pipeline.seq.iter().filter_map(|command| match command {
            Command::Simple(command) => command.suffix.as_ref(),
            _ => None,
        });
        let items = commands.flat_map(|suffix| &suffix.0);
        items
            .filter_map(|item| match item {
                CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::HereDocument(_, here)) => {
                    Some(here.doc.value.lines().count() + 1)
                }
                _ => None,
            })
            .sum()
    };
    count(&list.first)
}
