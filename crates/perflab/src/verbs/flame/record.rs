//! `perflab flame record`: an ordinary run, with call stacks sampled.

use perflab_model::Profiled;

use crate::arguments::flame::Record;
use crate::context::Context;
use crate::exit::Exit;
use crate::verbs::recording::Recorded;

/// Functions that are shown at the end.
const SHOWN: usize = 15;

/// From here on sampling is felt: each sample is an interrupt, and some microseconds to read and to name.
const FELT: u32 = 9_999;

/// Records, and says what to look at.
pub fn record(context: &Context, wanted: &Record) -> anyhow::Result<Exit> {
    if wanted.frequency > FELT {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        context.say(format!(
            "warning: {} samples a second on {cpus} CPUs: sampling takes a part of the processors that shows in what is \
             recorded, and naming the samples afterwards may take longer than recording; -F 4999 costs a tenth of it",
            wanted.frequency as usize * cpus
        ));
    }
    let recorded = Recorded {
        verb: "flame record",
        title: "Call stacks",
        command: &wanted.command,
        process: wanted.pid,
        duration: wanted.duration.as_deref(),
        quiet: "0s",
        label: wanted.label.as_deref(),
        tables: &table(wanted),
    };
    let (status, found) = recorded.carry_out(context, |study| {
        if let Some(profile) = &mut study.profile {
            profile.symbols = perflab_analyze::flame::rules::anchors();
        }
    })?;
    if let Ok(profile) = super::stored::first(&found) {
        super::show::print(context, &profile, SHOWN)?;
        profile.pieces.iter().for_each(|piece| say_cost(context, &piece.about, piece.samples.len()));
    }
    Ok(recorded.exit(context, status, &found))
}

/// What sampling cost this program; the interrupts are the kernel's, and in the workload's time.
fn say_cost(context: &Context, about: &Profiled, samples: usize) {
    let each = about.cost.0 as f64 / 1000.0 / samples.max(1) as f64;
    context.say(format!("reading samples took {} of CPU, {each:.2} us a sample", about.cost));
}

fn table(wanted: &Record) -> String {
    let scope = match (wanted.pid, wanted.system || wanted.command.is_empty()) {
        (Some(pid), _) => format!("pid = {pid}"),
        (None, true) => "scope = \"system\"".into(),
        (None, false) => "scope = \"workload\"".into(),
    };
    format!("[profile]\nfrequency = {}\n{scope}\n", wanted.frequency)
}
