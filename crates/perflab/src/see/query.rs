//! `perflab query`: a question in SQL over the runs of the archive, answered by DuckDB.
//!
//! DuckDB is a program of its own, or a package of Python: the tables are Parquet, and no database has to be built into perflab.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Args;
use indexmap::IndexMap;
use perflab_archive::sql_views::SqlViews;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::selection::{ChosenRuns, RunChoice};
use crate::verb::Verb;

/// `perflab query`
pub fn query_runs(context: &App, args: &QueryArgs) -> Result<Exit, Failure> {
    let question = args.question()?;
    let archive = context.archive()?;
    let ChosenRuns { runs, unknown_label } = args.choice.list_runs(&archive)?;
    if let Some(error) = unknown_label {
        return Err(error.into());
    }
    if let Some(question) = &question {
        refuse_shell_commands(question)?;
    }
    let views = SqlViews::new(archive.path(), &runs, question.as_deref())?;
    warn_of_left_out(&views.left_out);
    let Some(question) = question else {
        context.print_value("statements", &views.statements)?;
        return Ok(Exit::Fine);
    };
    let engine = SqlEngine::find(args.engine.as_deref())?;
    let rows = engine.answer(&views.statements, &question)?;
    // Of no rows nobody knows the columns; in JSON, they are an empty list.
    if !rows.is_empty() || context.format == OutputFormat::Json {
        context.print_grid(&answer_grid(&rows))?;
    }
    if rows.is_empty() {
        context.note("the answer has no rows");
    }
    Ok(Exit::Fine)
}

/// Warnings of this kind at most.
const MOST_LEFT_OUT: usize = 5;

/// Says of which runs something has no part in the answer.
fn warn_of_left_out(left_out: &[(String, String)]) {
    for (run, reason) in left_out.iter().take(MOST_LEFT_OUT) {
        stderr_line!("warning: left out: run {run}: {}", escape_controls_in_line(reason));
    }
    let more = left_out.len().saturating_sub(MOST_LEFT_OUT);
    if more > 0 {
        stderr_line!("warning: left out: {more} further runs or tables");
    }
}

/// Lines that begin with a dot are no SQL: the program would obey them, and run what they name.
fn refuse_shell_commands(question: &str) -> Result<(), UsageError> {
    let Some(line) = question.lines().find(|line| line.starts_with('.')) else { return Ok(()) };
    let word = line.split_whitespace().next().unwrap_or(line);
    Err(UsageError::new(
        format!("`{word}` is a command of DuckDB's shell, and no SQL"),
        "ask in SQL; `perflab query --views` prints the tables for a session of DuckDB of your own",
    ))
}

/// A row of an answer: its columns by name, in order. Of several that share a name, the second is `a_1`, the third `a_2`.
#[derive(Debug, Clone, PartialEq)]
struct AnswerRow(IndexMap<String, Value>);

impl<'de> Deserialize<'de> for AnswerRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AnswerRowVisitor)
    }
}

struct AnswerRowVisitor;

impl<'de> Visitor<'de> for AnswerRowVisitor {
    type Value = AnswerRow;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a row of an answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnswerRow, A::Error> {
        let mut row = IndexMap::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            let free = (0_u32..).map(|number| match number {
                0 => name.clone(),
                number => format!("{name}_{number}"),
            });
            if let Some(name) = free.into_iter().find(|name| !row.contains_key(name)) {
                row.insert(name, value);
            }
        }
        Ok(AnswerRow(row))
    }
}

/// The program writes numbers that JSON has not as bare words: they become texts.
fn quote_special_numbers(answer: &str) -> Cow<'_, str> {
    const WORDS: [(&str, &str); 7] = [
        ("-Infinity", "-Infinity"),
        ("-inf", "-Infinity"),
        ("-nan", "NaN"),
        ("Infinity", "Infinity"),
        ("NaN", "NaN"),
        ("inf", "Infinity"),
        ("nan", "NaN"),
    ];
    let is_written = |(word, _): &(&str, &str)| answer.contains(word);
    if !WORDS.iter().any(is_written) {
        return Cow::Borrowed(answer);
    }
    let mut quoted = String::with_capacity(answer.len() + 16);
    let mut rest = answer;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let end = string_length(rest);
            quoted.push_str(rest.get(..end).unwrap_or(rest));
            rest = rest.get(end..).unwrap_or_default();
        } else if let Some((word, name)) = WORDS.iter().find(|(word, _)| rest.starts_with(word)) {
            quoted.push_str(&format!("\"{name}\""));
            rest = rest.get(word.len()..).unwrap_or_default();
        } else {
            quoted.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    Cow::Owned(quoted)
}

/// Bytes of the string of JSON with which a text begins, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The answer as a table: numbers are flush with the right.
fn answer_grid(rows: &[AnswerRow]) -> Grid {
    let names: Vec<&String> = rows.first().into_iter().flat_map(|row| row.0.keys()).collect();
    let is_number = |name: &str| {
        rows.iter().filter_map(|row| row.0.get(name)).all(|value| value.is_number() || value.is_null())
    };
    let column =
        |name: &&String| if is_number(name) { GridColumn::right(name) } else { GridColumn::left(name) };
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => GridCell::missing(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => GridCell::with_text(other.to_string(), other.clone()),
    };
    let cells = |row: &AnswerRow| names.iter().map(|name| cell(row.0.get(*name))).collect();
    Grid::with_rows(names.iter().map(column), rows.iter().map(cells).collect())
}

/// What answers a question.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SqlEngine {
    /// the program `duckdb`
    DuckDb(PathBuf),
    /// an interpreter of Python that has the package `duckdb`
    Python(PathBuf),
}

/// What the program says of the file that `-init` names.
const INIT_LINE: &str = "-- Loading resources from ";

/// Prints the rows of an answer as a list of objects.
const PYTHON_SCRIPT: &str = r#"
import itertools, json, sys
import duckdb
views, question = sys.argv[1:]
try:
    connection = duckdb.connect()
    connection.execute(open(views).read())
    answer = connection.execute(question)
    names = []
    for column in answer.description or []:
        free = (column[0] if number == 0 else f"{column[0]}_{number}" for number in itertools.count())
        names.append(next(name for name in free if name not in names))
    rows = [dict(zip(names, row)) for row in answer.fetchall()]
except duckdb.Error as error:
    sys.exit(str(error))
exact = lambda value: float(value) if hasattr(value, "as_integer_ratio") else str(value)
json.dump(rows, sys.stdout, default=exact)
"#;

impl SqlEngine {
    /// The one that was asked for, or the first that is here: `duckdb`, then `python3` with the package.
    fn find(asked: Option<&Path>) -> Result<Self, Failure> {
        let candidates = match asked {
            Some(program) => vec![program.to_owned()],
            None => ["duckdb", "python3"].map(PathBuf::from).to_vec(),
        };
        let found = candidates.into_iter().find_map(SqlEngine::of_program);
        Ok(found.ok_or_else(|| EngineError::Missing { asked: asked.map(Path::to_owned) })?)
    }

    /// What a program is, by its answer.
    fn of_program(program: PathBuf) -> Option<Self> {
        let is_python = program.file_name()?.to_str()?.starts_with("python");
        let arguments: &[&str] =
            if is_python { &["-c", "import duckdb"] } else { &["-init", "/dev/null", "-version"] };
        let answered = Command::new(&program).args(arguments).output().ok()?;
        let make = if is_python { SqlEngine::Python } else { SqlEngine::DuckDb };
        // DuckDB's is `v1.5.6 (Variegata) ...`; other programs print something else, or succeed at whatever they are asked.
        let is_engine = answered.status.success() && (is_python || answered.stdout.starts_with(b"v"));
        is_engine.then(|| make(program))
    }

    /// The rows that answer `question` where `views` are there.
    fn answer(&self, views: &str, question: &str) -> Result<Vec<AnswerRow>, Failure> {
        let mut file = tempfile::NamedTempFile::new().context("make a file for the views")?;
        file.write_all(views.as_bytes()).context("write the views")?;
        let Output { status, stdout, stderr } = self
            .command(file.path(), question)
            .output()
            .map_err(|cause| EngineError::Start { program: self.program().to_owned(), cause })?;
        let said = String::from_utf8_lossy(&stderr);
        if !status.success() {
            let lines = said.lines().filter(|line| !line.contains(INIT_LINE));
            let said = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
            return Err(EngineError::Refused { said }.into());
        }
        if stdout.iter().all(u8::is_ascii_whitespace) {
            return Ok(Vec::new());
        }
        let answer = String::from_utf8_lossy(&stdout);
        let answer = quote_special_numbers(&answer);
        let mut answers = serde_json::Deserializer::from_str(&answer).into_iter::<Vec<AnswerRow>>();
        let rows = answers.next().transpose().map_err(|cause| EngineError::Unreadable { cause })?;
        if answers.next().is_some() {
            let hint = "ask one question at a time";
            return Err(UsageError::new("several statements gave answers", hint).into());
        }
        Ok(rows.unwrap_or_default())
    }

    fn program(&self) -> &Path {
        match self {
            SqlEngine::DuckDb(program) | SqlEngine::Python(program) => program,
        }
    }

    fn command(&self, views: &Path, question: &str) -> Command {
        let mut command = Command::new(self.program());
        match self {
            // What is read first stands in a file, so that lines of an error are those of the question. The user's own settings of the
            // program would change how it answers.
            SqlEngine::DuckDb(_) => {
                let read = format!(".read \"{}\"", views.display());
                command.env("NO_COLOR", "1").args(["-init", "/dev/null", "-json", "-bail", "-cmd"]);
                command.args([read.as_str(), "-c", question])
            }
            SqlEngine::Python(_) => command.args(["-c", PYTHON_SCRIPT]).arg(views).arg(question),
        };
        command
    }
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is nothing that could answer.
    #[error("{}; install DuckDB (https://duckdb.org/docs/installation, or `pip install duckdb`), or name one with \
             --engine PATH", missing_engine(asked.as_deref()))]
    Missing {
        /// what the user named
        asked: Option<PathBuf>,
    },
    /// It does not start.
    #[error("{program}: {cause}", program = program.display())]
    Start {
        /// the program
        program: PathBuf,
        /// why
        cause: std::io::Error,
    },
    /// It does not understand the question, or cannot read a table.
    #[error("DuckDB does not answer: {said}")]
    Refused {
        /// what it printed
        said: String,
    },
    /// Its answer is no list of rows.
    #[error("DuckDB's answer cannot be read: {cause}")]
    Unreadable {
        /// why
        cause: serde_json::Error,
    },
}

fn missing_engine(asked: Option<&Path>) -> String {
    match asked {
        Some(asked) => format!("{} is neither DuckDB nor a Python that has its package", asked.display()),
        None => "neither `duckdb` nor a `python3` with its package is here".to_owned(),
    }
}

impl Classify for EngineError {
    fn class(&self) -> ErrorClass {
        match self {
            EngineError::Missing { .. } | EngineError::Start { .. } => ErrorClass::Environment,
            EngineError::Refused { .. } => ErrorClass::Usage,
            EngineError::Unreadable { .. } => ErrorClass::Unexpected,
        }
    }
}

/// Ask the archive a question in SQL (DuckDB answers)
#[derive(Debug, Args)]
#[command(after_help = "\
Tables: runs, samples, iterations, facts, series.MONITOR, edges.MONITOR, events.TRACER,
stacks.samples, stacks.tree, stacks.frames. Each begins with a column `run`, the run's id.
The book has questions to start from (docs/query.md).")]
pub struct QueryArgs {
    /// The question; - reads it from standard input
    #[arg(value_name = "SQL", required_unless_present = "views")]
    pub sql: Option<OsString>,
    #[command(flatten)]
    choice: RunChoice,
    /// The program that answers: duckdb, or a python3 with the package duckdb
    #[arg(long, value_name = "PATH", env = "PERFLAB_SQL_ENGINE", hide_env_values = true)]
    pub engine: Option<PathBuf>,
    /// Print the statements that make the tables, for a session of DuckDB of your own
    #[arg(long, conflicts_with = "sql")]
    pub views: bool,
}

impl QueryArgs {
    /// The question; none where only the views are asked for.
    fn question(&self) -> Result<Option<String>, Failure> {
        let Some(sql) = self.sql.as_ref().filter(|_| !self.views) else { return Ok(None) };
        let mut text = sql.to_string_lossy().into_owned();
        if text == "-" {
            text.clear();
            std::io::stdin().read_to_string(&mut text).context("read the question from standard input")?;
        }
        match text.trim().is_empty() {
            false => Ok(Some(text)),
            true => {
                let hint = "try `perflab query 'SELECT * FROM runs'`";
                Err(UsageError::new("the question is empty", hint).into())
            }
        }
    }
}

impl Verb for QueryArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        query_runs(app, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_share_a_name_are_all_there() {
        let rows: Vec<AnswerRow> = serde_json::from_str(r#"[{"a": 1, "a": 2, "a_1": 3, "a": 4}]"#).unwrap();
        let names: Vec<&str> = rows[0].0.keys().map(String::as_str).collect();
        assert_eq!(names, ["a", "a_1", "a_1_1", "a_2"]);
        assert_eq!(rows[0].0["a_2"], 4);
    }

    #[test]
    fn numbers_that_json_has_not_become_texts() {
        let answer = r#"[{"nan": nan, "b": -inf, "c": [inf], "d": "inf \" nan", "e": 1}]"#;
        let quoted = quote_special_numbers(answer);
        assert_eq!(
            quoted,
            r#"[{"nan": "NaN", "b": "-Infinity", "c": ["Infinity"], "d": "inf \" nan", "e": 1}]"#
        );
        assert_eq!(quote_special_numbers("[{}]"), "[{}]");
    }

    #[test]
    fn commands_of_the_shell_are_no_questions() {
        assert!(refuse_shell_commands(".shell touch x").is_err());
        assert!(refuse_shell_commands("SELECT 1\n.mode csv").is_err());
        assert!(refuse_shell_commands("SELECT .5").is_ok());
    }
}
