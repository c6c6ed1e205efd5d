//! A server while it runs: started, waited for until it is ready, ended.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use perflab_model::Scalar;
use perflab_model::expression::ExpressionScope;
use regex::Regex;

use crate::argv_element::ArgvElement;
use crate::background_execution::{BackgroundEnd, BackgroundExecution};
use crate::definition::WorkloadDefinition;
use crate::error::WorkloadError;
use crate::execution::{ExecutionEnd, execute_invocation};
use crate::invocation::{HostPaths, Invocation};
use crate::server::ReadinessRule;

/// Between two looks at whether it is ready.
const ROUND: Duration = Duration::from_millis(5);

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(1);

/// How a server is found to be ready, with its templates filled.
#[derive(Debug, Clone)]
pub(crate) enum ReadinessProbe {
    Port(u16),
    Line(Regex),
    File(String),
    Command(Invocation),
}

/// A server, ready to be started.
#[derive(Debug, Clone)]
pub struct ServerInvocation {
    pub(crate) invocation: Invocation,
    pub(crate) probe: ReadinessProbe,
    pub(crate) within: Duration,
    pub(crate) stop_within: Duration,
}

/// A server that is ready. Dropped, it is killed.
#[derive(Debug)]
pub struct RunningServer {
    execution: BackgroundExecution,
    stop_within: Duration,
}

impl ServerInvocation {
    /// The command that starts it.
    #[must_use]
    pub fn into_invocation(self) -> Invocation {
        self.invocation
    }

    /// Starts it, and waits until it is ready or `stop` is set.
    ///
    /// # Errors
    /// Its port is taken already, it cannot be started, ends, or is not ready in time.
    pub fn start(
        &self,
        extra_env: &[(String, String)],
        stop: &AtomicBool,
    ) -> Result<RunningServer, WorkloadError> {
        if let ReadinessProbe::Port(port) = self.probe
            && is_listening(port)
        {
            return Err(WorkloadError::PortTaken { port });
        }
        let begun = Instant::now();
        let awaited = match &self.probe {
            ReadinessProbe::Line(pattern) => Some(pattern),
            _ => None,
        };
        let execution = BackgroundExecution::start(&self.invocation, extra_env, awaited)?;
        let failed = |what| WorkloadError::NoServer { program: execution.program().to_owned(), what };
        loop {
            let is_ready = self.is_ready(&execution, extra_env, stop)?;
            // One that is ready and gone is no server; a port may be answered by another.
            if let Some(end) = execution.describe_end() {
                return Err(failed(end));
            }
            if is_ready {
                return Ok(RunningServer { execution, stop_within: self.stop_within });
            }
            if stop.load(Ordering::Relaxed) {
                return Err(failed(ExecutionEnd::Interrupted.describe(begun.elapsed().into())));
            }
            if begun.elapsed() > self.within {
                let within = perflab_model::Nanos::from(self.within);
                return Err(failed(execution.append_last_lines(&format!("was not ready within {within}"))));
            }
            thread::sleep(ROUND);
        }
    }

    fn is_ready(
        &self,
        execution: &BackgroundExecution,
        extra_env: &[(String, String)],
        stop: &AtomicBool,
    ) -> Result<bool, WorkloadError> {
        Ok(match &self.probe {
            ReadinessProbe::Port(port) => is_listening(*port),
            ReadinessProbe::Line(_) => execution.has_printed_awaited_line(),
            ReadinessProbe::File(path) => Path::new(path).exists(),
            ReadinessProbe::Command(invocation) => {
                let limit = self.within.into();
                execute_invocation(invocation, extra_env, limit, stop)?.failure().is_none()
            }
        })
    }
}

impl RunningServer {
    /// Ends it with all that it started.
    pub fn stop(self) -> BackgroundEnd {
        let RunningServer { execution, stop_within } = self;
        execution.stop(stop_within)
    }
}

/// Fills the templates of a rule.
pub(crate) fn build_probe(
    rule: &ReadinessRule,
    scope: &ExpressionScope,
    build_command: impl FnOnce(&[ArgvElement]) -> Result<Invocation, WorkloadError>,
    template_error: impl Fn(&str, perflab_model::expression::ExpressionError) -> WorkloadError,
) -> Result<ReadinessProbe, WorkloadError> {
    let failed = |expression: &str, reason: String| perflab_model::expression::ExpressionError::Failed {
        expression: expression.to_owned(),
        reason,
    };
    Ok(match rule {
        ReadinessRule::Port(text) => {
            let key = "server.ready.port";
            let rendered = scope.render(text).map_err(|error| template_error(key, error))?;
            let port = rendered.trim().parse().ok().filter(|port: &u16| *port != 0);
            let error = || template_error(key, failed(text, format!("`{rendered}` is no port")));
            ReadinessProbe::Port(port.ok_or_else(error)?)
        }
        ReadinessRule::File(text) => {
            let key = "server.ready.file";
            ReadinessProbe::File(scope.render(text).map_err(|error| template_error(key, error))?)
        }
        ReadinessRule::Line(pattern) => {
            let key = "server.ready.line";
            let pattern = Regex::new(pattern)
                .map_err(|error| template_error(key, failed(pattern, error.to_string())))?;
            ReadinessProbe::Line(pattern)
        }
        ReadinessRule::Command(argv) => ReadinessProbe::Command(build_command(argv)?),
    })
}

/// A TCP port of 127.0.0.1 on which nobody listens now; none where the kernel has none to give.
#[must_use]
pub fn find_free_port() -> Option<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    Some(listener.local_addr().ok()?.port())
}

/// Whether a connection to the port is accepted.
fn is_listening(port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), CONNECT).is_ok()
}

impl WorkloadDefinition {
    /// The server of an iteration, if the workload has one.
    ///
    /// # Errors
    /// Those of [`WorkloadDefinition::build_invocation`].
    pub fn build_server_invocation(
        &self,
        parameters: &IndexMap<String, Scalar>,
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<Option<ServerInvocation>, WorkloadError> {
        let Some(server) = &self.server else { return Ok(None) };
        let scope = self.build_scope(parameters, scope, host)?;
        let build = |key: &str, argv: &[ArgvElement]| self.build_command(key, argv, &scope, host);
        let probe = build_probe(
            &server.ready,
            &scope,
            |argv| build("server.ready.command", argv),
            |key, source| self.template_error(key.to_owned(), source),
        )?;
        Ok(Some(ServerInvocation {
            invocation: build("server.argv", &server.argv)?,
            probe,
            within: server.within,
            stop_within: server.stop_within,
        }))
    }
}
