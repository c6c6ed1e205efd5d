//! speedscope's JSON: <https://www.speedscope.app/file-format-schema.json>.
//!
//! One profile per command, its samples in order of time where they have one, so that speedscope's time order means
//! something.

use indexmap::IndexMap;
use perflab_model::StackSample;
use serde_json::{Value, json};

use crate::profile_selection::ProfileSelection;

/// The file. Weights are nanoseconds where the profile has them, else numbers of samples.
#[must_use]
pub fn write_speedscope(chosen: ProfileSelection<'_>) -> String {
    let mut commands: IndexMap<&str, Vec<&StackSample>> = IndexMap::new();
    for sample in chosen.selected_samples() {
        commands.entry(chosen.comm_of(sample)).or_default().push(sample);
    }
    let all: Vec<Value> =
        commands.iter().map(|(name, samples)| speedscope_profile(chosen, name, samples)).collect();
    let frames: Vec<Value> = chosen.profile.frames.iter().map(speedscope_frame).collect();
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": chosen.name,
        "exporter": concat!("perflab@", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": all,
    })
    .to_string()
}

fn speedscope_frame(frame: &perflab_model::StackFrame) -> Value {
    let mut value = json!({ "name": frame.name });
    if let (Some(module), Some(object)) = (&frame.module, value.as_object_mut()) {
        object.insert("file".into(), module.as_str().into());
    }
    value
}

fn speedscope_profile(chosen: ProfileSelection<'_>, name: &str, samples: &[&StackSample]) -> Value {
    let nanoseconds = chosen.first_profiled().unit.0 == "ns";
    let stack = |sample: &&StackSample| {
        chosen.frames_outermost_first(sample.leaf).into_iter().map(|frame| frame.0).collect::<Vec<u32>>()
    };
    let weight = |sample: &&StackSample| if nanoseconds { sample.weight } else { sample.count };
    let weights: Vec<u64> = samples.iter().map(weight).collect();
    json!({
        "type": "sampled",
        "name": name,
        "unit": if nanoseconds { "nanoseconds" } else { "none" },
        "startValue": 0,
        "endValue": weights.iter().copied().fold(0, u64::saturating_add),
        "samples": samples.iter().map(stack).collect::<Vec<_>>(),
        "weights": weights,
    })
}
