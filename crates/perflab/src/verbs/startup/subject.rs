//! What is started: a command, the disk that its file lies on, and how it is seen to have; and the start that learns.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use perflab_analyze::io::by_file;
use perflab_conduct::settings::drop_caches;
use perflab_conduct::startup::{Inside, ReadinessCondition, StartError, Started, disk_of, start};
use perflab_model::io::{Device, FileClass, IoRecording, PAGE};
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTracer, Whose, identify};
use perflab_prefetch::{Store, learn, store};

use crate::arguments::startup::StartOnce;
use crate::context::Context;
use crate::exit::{NeverStarted, Usage};
use crate::quantities;
use crate::verbs::prefetch::finely;

/// What is started, and how it is seen to have.
pub struct Subject {
    command: Vec<OsString>,
    /// its file, where it really lies
    pub program: PathBuf,
    /// under which name it is remembered: its script's where it is an interpreter that is given one
    pub trace: PathBuf,
    /// where its file lies; looked up before caches are dropped, for who looks it up afterwards brings its folders into memory
    pub disk: Option<Device>,
    /// on which disk, where that is another than the machine's
    inside: Option<Inside>,
    ready_when: ReadinessCondition,
    /// how long it may take
    pub limit: Nanos,
}

impl Subject {
    /// A command that is started as it is.
    pub fn new(command: &[OsString], ready_when: &str, limit: &str) -> anyhow::Result<Self> {
        let ready_when: ReadinessCondition = ready_when.parse().map_err(|error| super::usage(&error))?;
        let limit = quantities::time("--limit", limit)?;
        let program = store::program(command.first().context("no command")?)?;
        let trace = store::name_trace(command)?;
        ready_when.check()?;
        let disk = disk_of(&program);
        Ok(Subject { command: command.into(), disk, program, trace, inside: None, ready_when, limit })
    }

    /// The same, on another disk where that is wanted.
    pub fn of(wanted: &StartOnce) -> anyhow::Result<Self> {
        let subject = Subject::new(&wanted.command, &wanted.ready_when, &wanted.limit)?;
        let Some(disk) = &wanted.inside else { return Ok(subject) };
        let inside = Inside::prepare(disk, &wanted.package)?;
        let program = inside.copy_of(&subject.program);
        if !program.is_file() {
            let message =
                format!("{} belongs to none of {}", subject.program.display(), wanted.package.join(", "));
            return Err(Usage::new(message, "`dpkg -S FILE` says whose it is").into());
        }
        let (command, disk) = (inside.command(&subject.command), disk_of(&program));
        let trace = inside.copy_of(&subject.trace);
        Ok(Subject { command, program, trace, disk, inside: Some(inside), ..subject })
    }

    /// The first start of an application on a disk is no measured one, however it ends.
    pub fn settle(&self) -> anyhow::Result<()> {
        let Some(inside) = &self.inside else { return Ok(()) };
        inside.first(&self.program, || self.start(|| ()).map(drop).map_err(anyhow::Error::from))
    }

    /// Starts it; `beside` is called once it runs.
    pub fn start(&self, beside: impl FnOnce()) -> Result<Started, StartError> {
        start(&self.command, &self.ready_when, self.limit, self.disk, beside)
    }

    /// The start that learns: cold, traced, remembered; `fine` where little is to come with what is touched.
    pub fn teach(&self, context: &Context, store: &Store, fine: bool) -> anyhow::Result<()> {
        let finely = fine.then(|| finely(context, &self.program)).transpose()?;
        let tracer = IoTracer::start(Whose::Children)?;
        drop_caches(&context.root, 3)?;
        let started = self.start(|| ())?;
        drop(finely);
        let mut recording = tracer.stop()?;
        if let Some(failure) = started.failure {
            stderr_text!("{}", started.output);
            bail!(NeverStarted(failure));
        }
        identify(&mut recording);
        let learnt = learn(&recording)?;
        context.say(format!(
            "learnt: {} of {} files, {} of metadata; {}",
            Bytes(learnt.pages() * PAGE),
            learnt.files.len(),
            Bytes(learnt.metadata() * PAGE),
            never_cold(&recording).unwrap_or_else(|| "nothing that it needed had stayed in memory".into()),
        ));
        store.add(&self.trace, learnt)?;
        Ok(())
    }
}

/// What a cold start needed and did not read: others keep it in memory, mapped, and no dropping of caches changes that.
pub fn never_cold(recording: &IoRecording) -> Option<String> {
    let files = by_file(recording).into_iter().filter(|file| file.class == FileClass::File);
    let warm = files.map(|file| {
        let (used, read) = (file.used.pages(), file.used.intersection(&file.added).pages());
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
