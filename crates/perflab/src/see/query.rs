//! `perflab query`: a question in SQL over the runs of the archive, answered by DuckDB.
//!
//! DuckDB is a program of its own, or a package of Python: the tables are Parquet, and no database has to be built into perflab.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Args;
use indexmap::IndexMap;
use perflab_archive::sql_views::SqlViews;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
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
    let views = SqlViews::new(archive.path(), &runs, question.as_deref())?;
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

/// A row of an answer.
type AnswerRow = IndexMap<String, Value>;

/// The answer as a table: numbers are flush with the right.
fn answer_grid(rows: &[AnswerRow]) -> Grid {
    let names: Vec<&String> = rows.first().into_iter().flat_map(IndexMap::keys).collect();
    let is_number = |name: &str| {
        rows.iter().filter_map(|row| row.get(name)).all(|value| value.is_number() || value.is_null())
    };
    let column =
        |name: &&String| if is_number(name) { GridColumn::right(name) } else { GridColumn::left(name) };
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => GridCell::missing(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => GridCell::with_text(other.to_string(), other.clone()),
    };
    let cells = |row: &AnswerRow| names.iter().map(|name| cell(row.get(*name))).collect();
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
import json, sys
import duckdb
views, question = sys.argv[1:]
try:
    connection = duckdb.connect()
    connection.execute(open(views).read())
    answer = connection.execute(question)
    names = [column[0] for column in answer.description or []]
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
        let arguments: &[&str] = if is_python { &["-c", "import duckdb"] } else { &["-version"] };
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
        Ok(serde_json::from_slice(&stdout).map_err(|cause| EngineError::Unreadable { cause })?)
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
