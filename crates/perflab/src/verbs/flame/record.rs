//! `perflab flame record`: an ordinary run, with call stacks sampled.

use perflab_model::ProfileSummary;

use crate::arguments::flame::FlameRecordArgs;
use crate::context::App;
use crate::exit::Exit;
use crate::verbs::recording::RecordedCommand;

/// Functions that are shown at the end.
const SHOWN: usize = 15;

/// From here on sampling is felt: each sample is an interrupt, and some microseconds to read and to name.
const FELT: u32 = 9_999;

/// Records, and says what to look at.
pub fn record_profile(context: &App, wanted: &FlameRecordArgs) -> anyhow::Result<Exit> {
    if wanted.frequency > FELT {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        context.note(format!(
            "warning: {} samples a second on {cpus} CPUs: sampling takes a part of the processors that shows in what is \
             recorded, and naming the samples afterwards may take longer than recording; -F 4999 costs a tenth of it",
            wanted.frequency as usize * cpus
        ));
    }
    let recorded = RecordedCommand {
        verb: "flame record",
        title: "Call stacks",
        command: &wanted.command,
        pid: wanted.pid,
        duration: wanted.duration.as_deref(),
        quiet_time: "0s",
        label: wanted.label.as_deref(),
        tables: &profile_study_table(wanted),
    };
    let (status, found) = recorded.record(context, |study| {
        if let Some(profile) = &mut study.profile {
            profile.symbols = perflab_analyze::flame::category_rules::shipped_anchors();
        }
    })?;
    if let Ok(profile) = super::stored::read_first_profile(&found) {
        super::show::print_functions(context, &profile, SHOWN)?;
        profile
            .iterations
            .iter()
            .for_each(|piece| note_sampling_cost(context, &piece.summary, piece.samples.len()));
    }
    Ok(recorded.exit_of(context, status, &found))
}

/// What sampling cost this program; the interrupts are the kernel's, and in the workload's time.
fn note_sampling_cost(context: &App, about: &ProfileSummary, samples: usize) {
    let each = about.cost.0 as f64 / 1000.0 / samples.max(1) as f64;
    context.note(format!("reading samples took {} of CPU, {each:.2} us a sample", about.cost));
}

fn profile_study_table(wanted: &FlameRecordArgs) -> String {
    let scope = match (wanted.pid, wanted.system || wanted.command.is_empty()) {
        (Some(pid), _) => format!("pid = {pid}"),
        (None, true) => "scope = \"system\"".into(),
        (None, false) => "scope = \"workload\"".into(),
    };
    format!("[profile]\nfrequency = {}\n{scope}\n", wanted.frequency)
}
