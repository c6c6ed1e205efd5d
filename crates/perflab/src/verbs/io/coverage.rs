//! `perflab io coverage`

use perflab_analyze::io::{self, PublishedCoverage, Status};
use perflab_model::Bytes;
use perflab_model::io::IoRecording;
use perflab_present::chart::Scene;
use perflab_present::io::{Names, blocks_grid, classes, coverage_grid, places, published_grid};

use super::evidence::{Evidence, read_evidence};
use crate::arguments::io::{Coverage, CoverageMethod, Drawn};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::slab::output;

/// Holds a recording against a prefetch trace.
pub fn coverage(context: &Context, wanted: &Coverage) -> anyhow::Result<Exit> {
    let recording = super::counted(context, super::recording(context, &wanted.which)?);
    if wanted.method == CoverageMethod::Published && (wanted.blocks || wanted.plot.is_some()) {
        let what = "the figures of 2007 are sums: they have neither --blocks nor --plot";
        return Err(Usage::new(what, "leave --method published out").into());
    }
    let evidence = read_evidence(context, &wanted.trace)?;
    let published = match wanted.method {
        CoverageMethod::Blocks => None,
        CoverageMethod::Published => Some(published(&recording, &evidence)?),
    };
    let found = io::coverage(&recording, &evidence.known(context, &recording));
    if let Some(published) = published {
        context.print(&published_grid(&published, &found))?;
        say_of_files(context, &published, &found);
        published
            .reasons
            .iter()
            .for_each(|reason| context.say(format!("why it differs from ours: {reason}")));
        return Ok(Exit::Fine);
    }
    context.print(&if wanted.blocks { blocks_grid(&found) } else { coverage_grid(&found) })?;
    output::plot(context, wanted.plot.as_ref(), || drawn(&found, wanted))?;
    say(context, &found, recording.told.lost);
    say_uses(context, &found);
    Ok(Exit::Fine)
}

/// The figures of 2007 for the same files.
fn published(recording: &IoRecording, evidence: &Evidence) -> anyhow::Result<PublishedCoverage> {
    let Evidence::Dump(ranges) = evidence else {
        let hint = "name a dump of /proc/prefetch with --trace, or leave --method out";
        return Err(Usage::new("the comparison of 2007 is of dumps of its own prefetch module", hint).into());
    };
    let hint = "import the trace with its map: `perflab io import TRACE --map MAP`";
    io::published_coverage(recording, ranges).map_err(|error| Usage::new(error.to_string(), hint).into())
}

/// How much was found of what belongs to files, which is what a list of their pages could have had.
fn say_of_files(context: &Context, published: &PublishedCoverage, found: &io::Coverage) {
    let bytes =
        |statuses: &[Status]| -> u64 { statuses.iter().filter_map(|status| found.bytes.get(status)).sum() };
    let ours = bytes(&[Status::Found, Status::Missing, Status::NotInTrace, Status::ReadAround]);
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64 * 100.0;
    context.say(format!(
        "of what belongs to files, {:.1} % of the requests are found as 2007 counted, {:.1} % of the bytes by block",
        share(published.found, published.found + published.missing),
        share(bytes(&[Status::Found]), ours)
    ));
}

/// What cannot be told apart where uses of pages were not recorded.
fn say_uses(context: &Context, found: &io::Coverage) {
    if found.bytes.get(&Status::NotInTrace).is_some_and(|bytes| *bytes > 0) {
        context.say(
            "not in trace: which pages were needed was not recorded, so what was missing and what was only read around stand \
             together",
        );
    }
}

fn drawn(found: &io::Coverage, wanted: &Coverage) -> Scene {
    let title = format!("Reads held against {}", wanted.trace.display());
    match wanted.drawn {
        Drawn::Places => places(found, &title, Names::Trace),
        Drawn::Classes => classes(found, &title, Names::Trace),
    }
}

/// The check of the analysis on itself.
fn say(context: &Context, found: &io::Coverage, lost: u64) {
    let sum: u64 = found.bytes.values().sum();
    let answers = &found.answers;
    context.say(match answers.contradiction(sum) {
        0 => format!(
            "the classes sum to the {} that disks delivered, but for {} asked for before and {} under way at the end",
            Bytes(answers.delivered),
            Bytes(answers.early),
            Bytes(answers.under_way)
        ),
        apart => format!(
            "warning: the classes sum to {}, and disks delivered {}: {} are not accounted for ({lost} events were lost)",
            Bytes(sum),
            Bytes(answers.delivered),
            Bytes(apart)
        ),
    });
}
