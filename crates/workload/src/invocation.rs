//! What will be executed: argv, environment and directory with all templates filled in.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use indexmap::IndexMap;
use perflab_model::expression::{ExpressionError, ExpressionScope};
use perflab_model::{Scalar, SyscallDelay};

use crate::argv_element::ArgvElement;
use crate::definition::UntimedPhase;
use crate::descendants::MARK;
use crate::system_calls::join_before_exec;
use crate::{WorkloadDefinition, WorkloadError, install};

/// Paths on the host that only the caller knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPaths {
    /// The perflab binary, for built-in loads.
    pub perflab: PathBuf,
    /// A directory of the case's own, empty; must exist where the workload needs it.
    pub scratch: Option<PathBuf>,
    /// A directory beside it that all cases share, and that lasts as long as the disk: for what is made once.
    pub kept: Option<PathBuf>,
    /// The case's number in the plan, for what is made once for each case; none where there is no plan.
    pub case: Option<u32>,
    /// A TCP port of 127.0.0.1 that was free a moment ago, the same for all commands of an iteration.
    pub free_port: Option<u16>,
}

/// One command, ready to run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Invocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables set besides those that are inherited.
    pub environment: Vec<(String, String)>,
    /// Where it runs: the scratch directory where there is one, else where perflab runs.
    pub directory: Option<PathBuf>,
    /// Whether it reads perflab's standard input, unless that is a terminal: from there, only a terminal's foreground may read. Else
    /// its standard input is empty.
    pub inherits_stdin: bool,
    /// Control groups that it joins before it is executed: their `cgroup.procs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<PathBuf>,
    /// System calls that are delayed, of it and of all that it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<SyscallDelay>,
}

impl Invocation {
    /// The program that it runs.
    ///
    /// # Errors
    /// It names none.
    pub(crate) fn program(&self) -> Result<&str, WorkloadError> {
        self.argv.first().map(String::as_str).ok_or(WorkloadError::Empty)
    }

    /// It as a command in a process group of its own, with pipes for what it prints and nothing to read. `extra_env` comes last
    /// and wins; `mark` is what its descendants are known by.
    ///
    /// # Errors
    /// It names no program.
    pub(crate) fn command(
        &self,
        extra_env: &[(String, String)],
        mark: &str,
    ) -> Result<Command, WorkloadError> {
        let mut command = Command::new(self.program()?);
        command.args(self.argv.iter().skip(1)).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let variables = self.environment.iter().chain(extra_env);
        command.envs(variables.map(|(name, value)| (name, value))).env(MARK, mark);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let open = |path: &PathBuf| {
            let opened = File::options().write(true).open(path);
            opened.map_err(|cause| WorkloadError::ControlGroup { path: path.clone(), cause })
        };
        let groups = self.groups.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        if !groups.is_empty() {
            join_before_exec(&mut command, groups);
        }
        Ok(command)
    }

    /// As one would have typed it, with perflab's own language and standard input.
    pub fn as_typed(mut self) -> Self {
        self.environment.retain(|variable| *variable != c_locale_variable());
        self.inherits_stdin = true;
        self
    }
}

/// Numbers are parsed from what a workload prints, so it must print them as C does.
fn c_locale_variable() -> (String, String) {
    ("LC_ALL".into(), "C".into())
}

impl WorkloadDefinition {
    /// Fills every template. `parameters` come from [`WorkloadDefinition::resolve_parameters`] under the same `scope`.
    ///
    /// Errors name the key of the definition, or say that a scratch directory is needed.
    pub fn build_invocation(
        &self,
        parameters: &IndexMap<String, Scalar>,
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<Invocation, WorkloadError> {
        if self.needs.scratch && host.scratch.is_none() {
            return Err(WorkloadError::NeedsScratch { workload: self.name.clone() });
        }
        let scope = self.build_scope(parameters, scope, host)?;
        let mut invocation = self.build_command("argv", &self.argv, &scope, host)?;
        if self.shell {
            let argv = &mut invocation.argv;
            // `$0` of the script is the workload's name.
            argv.insert(argv.len().min(1), self.name.clone());
            argv.splice(0..0, ["/bin/sh".to_owned(), "-c".to_owned()]);
        }
        Ok(invocation)
    }

    /// The untimed command of a phase with its templates filled. Without a scratch directory of an iteration (setup, cleanup),
    /// it runs where perflab does.
    ///
    /// # Errors
    /// Those of [`WorkloadDefinition::build_invocation`].
    pub fn build_phase_invocation(
        &self,
        phase: UntimedPhase,
        parameters: &IndexMap<String, Scalar>,
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<Invocation, WorkloadError> {
        let scope = self.build_scope(parameters, scope, host)?;
        self.build_command(phase.key(), self.phases.argv(phase), &scope, host)
    }

    /// The command under `key` with its templates filled from `scope`.
    pub(crate) fn build_command(
        &self,
        key: &str,
        argv: &[ArgvElement],
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<Invocation, WorkloadError> {
        Ok(Invocation {
            argv: self.render_elements(key, argv, scope)?,
            environment: self.render_environment(scope)?,
            directory: host.scratch.clone().filter(|_| self.needs.scratch),
            inherits_stdin: false,
            groups: Vec::new(),
            delays: Vec::new(),
        })
    }

    /// The arguments of a command under `key`.
    fn render_elements(
        &self,
        key: &str,
        elements: &[ArgvElement],
        scope: &ExpressionScope,
    ) -> Result<Vec<String>, WorkloadError> {
        let mut argv = Vec::new();
        for (index, argument) in elements.iter().enumerate() {
            let rendered = argument.render(scope);
            argv.extend(rendered.map_err(|source| self.template_error(format!("{key}[{index}]"), source))?);
        }
        Ok(argv)
    }

    fn render_environment(&self, scope: &ExpressionScope) -> Result<Vec<(String, String)>, WorkloadError> {
        let mut all: Vec<(String, String)> =
            (!self.keeps_locale).then(c_locale_variable).into_iter().collect();
        all.extend(install::program_search_path(self).map(|path| ("PATH".into(), path)));
        for (name, text) in &self.environment {
            let rendered = scope.render(text);
            let value =
                rendered.map_err(|source| self.template_error(format!("environment.{name}"), source))?;
            all.push((name.clone(), value));
        }
        Ok(all)
    }

    /// What its templates may use.
    pub(crate) fn build_scope(
        &self,
        parameters: &IndexMap<String, Scalar>,
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<ExpressionScope, WorkloadError> {
        let mut scope = build_plain_scope(parameters, scope, host);
        if let Some(content) = self.data_content(&scope, host)? {
            scope.set("data", Scalar::Text(content.display().to_string()));
        }
        Ok(scope)
    }

    pub(crate) fn template_error(&self, key: String, cause: ExpressionError) -> WorkloadError {
        WorkloadError::Template { workload: self.name.clone(), key, cause }
    }
}

/// A shell script as an invocation, for tests.
#[cfg(test)]
pub(crate) fn invoke_script(script: &str) -> Invocation {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    Invocation {
        argv,
        environment: Vec::new(),
        directory: None,
        inherits_stdin: false,
        groups: Vec::new(),
        delays: Vec::new(),
    }
}

/// Everything but the data that were made for it.
fn build_plain_scope(
    parameters: &IndexMap<String, Scalar>,
    scope: &ExpressionScope,
    host: &HostPaths,
) -> ExpressionScope {
    let mut scope = scope.clone();
    for (name, value) in parameters {
        scope.set(name, value.clone());
    }
    scope.set("perflab", Scalar::Text(host.perflab.display().to_string()));
    for (name, place) in [("scratch", &host.scratch), ("kept", &host.kept)] {
        if let Some(place) = place {
            scope.set(name, Scalar::Text(place.display().to_string()));
        }
    }
    if let Some(port) = host.free_port {
        scope.set("free_port", Scalar::Int(port.into()));
    }
    scope
}
