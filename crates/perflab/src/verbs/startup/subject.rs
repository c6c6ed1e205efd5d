//! What is started: a command, the disk that its file lies on, and how it is seen to have; and the start that learns.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use perflab_analyze::reads_by_file;
use perflab_conduct::drop_caches;
use perflab_conduct::startup::{
    PackageRoot, ReadinessCondition, StartupError, StartupResult, disk_of_file, measure_startup,
};
use perflab_model::io_trace::{DeviceNumber, FileClass, IoRecording, PAGE};
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTraceScope, IoTracer, resolve_files};
use perflab_prefetch::{TraceStore, build_trace, trace_store};

use crate::arguments::startup::StartOnceArgs;
use crate::context::App;
use crate::exit::{ProgramNeverStartedError, UsageError};
use crate::quantities;
use crate::verbs::prefetch::lower_read_ahead;

/// What is started, and how it is seen to have.
pub struct StartupCommand {
    command: Vec<OsString>,
    /// its file, where it really lies
    pub program: PathBuf,
    /// under which name it is remembered: its script's where it is an interpreter that is given one
    pub trace: PathBuf,
    /// where its file lies; looked up before caches are dropped, for who looks it up afterwards brings its folders into memory
    pub disk: Option<DeviceNumber>,
    /// on which disk, where that is another than the machine's
    inside: Option<PackageRoot>,
    ready_when: ReadinessCondition,
    /// how long it may take
    pub limit: Nanos,
}

impl StartupCommand {
    /// A command that is started as it is.
    pub fn new(command: &[OsString], ready_when: &str, limit: &str) -> anyhow::Result<Self> {
        let ready_when: ReadinessCondition =
            ready_when.parse().map_err(|error| super::readiness_usage_error(&error))?;
        let limit = quantities::parse_time_option("--limit", limit)?;
        let program = trace_store::find_program_path(command.first().context("no command")?)?;
        let trace = trace_store::trace_name(command)?;
        ready_when.check()?;
        let disk = disk_of_file(&program);
        Ok(StartupCommand { command: command.into(), disk, program, trace, inside: None, ready_when, limit })
    }

    /// The same, on another disk where that is wanted.
    pub fn from_args(wanted: &StartOnceArgs) -> anyhow::Result<Self> {
        let subject = StartupCommand::new(&wanted.command, &wanted.ready_when, &wanted.limit)?;
        let Some(disk) = &wanted.inside else { return Ok(subject) };
        let inside = PackageRoot::prepare(disk, &wanted.package)?;
        let program = inside.copy_path(&subject.program);
        if !program.is_file() {
            let message =
                format!("{} belongs to none of {}", subject.program.display(), wanted.package.join(", "));
            return Err(UsageError::new(message, "`dpkg -S FILE` says whose it is").into());
        }
        let (command, disk) = (inside.command_in_root(&subject.command), disk_of_file(&program));
        let trace = inside.copy_path(&subject.trace);
        Ok(StartupCommand { command, program, trace, disk, inside: Some(inside), ..subject })
    }

    /// The first start of an application on a disk is no measured one, however it ends.
    pub fn make_first_start(&self) -> anyhow::Result<()> {
        let Some(inside) = &self.inside else { return Ok(()) };
        inside.run_first_startup(&self.program, || self.start(|| ()).map(drop).map_err(anyhow::Error::from))
    }

    /// Starts it; `beside` is called once it runs.
    pub fn start(&self, beside: impl FnOnce()) -> Result<StartupResult, StartupError> {
        measure_startup(&self.command, &self.ready_when, self.limit, self.disk, beside)
    }

    /// The start that learns: cold, traced, remembered; `fine` where little is to come with what is touched.
    pub fn learn_trace(&self, context: &App, store: &TraceStore, fine: bool) -> anyhow::Result<()> {
        let finely = fine.then(|| lower_read_ahead(context, &self.program)).transpose()?;
        let tracer = IoTracer::start(IoTraceScope::Children)?;
        drop_caches(&context.root, 3)?;
        let started = self.start(|| ())?;
        drop(finely);
        let mut recording = tracer.stop()?;
        if let Some(failure) = started.failure {
            stderr_text!("{}", started.output);
            bail!(ProgramNeverStartedError(failure));
        }
        resolve_files(&mut recording);
        let learnt = build_trace(&recording)?;
        context.note(format!(
            "learnt: {} of {} files, {} of metadata; {}",
            Bytes(learnt.page_count() * PAGE),
            learnt.files.len(),
            Bytes(learnt.metadata_page_count() * PAGE),
            never_cold_warning(&recording)
                .unwrap_or_else(|| "nothing that it needed had stayed in memory".into()),
        ));
        store.add_startup(&self.trace, learnt)?;
        Ok(())
    }
}

/// What a cold start needed and did not read: others keep it in memory, mapped, and no dropping of caches changes that.
pub fn never_cold_warning(recording: &IoRecording) -> Option<String> {
    let files = reads_by_file(recording).into_iter().filter(|file| file.class == FileClass::File);
    let warm = files.map(|file| {
        let (used, read) = (file.used.page_count(), file.used.intersection(&file.added).page_count());
        ((used - read) * PAGE, file.name)
    });
    let warm: Vec<(u64, String)> = warm.filter(|(bytes, _)| *bytes > 0).collect();
    let sum = warm.iter().map(|(bytes, _)| bytes).sum();
    let (most, name) = warm.iter().max()?;
    Some(format!(
        "{} more that it needed cannot be made cold, most of it ({}) of {name}",
        Bytes(sum),
        Bytes(*most)
    ))
}
