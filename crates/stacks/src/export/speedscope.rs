//! speedscope's JSON: <https://www.speedscope.app/file-format-schema.json>. One profile a command, its samples in
//! order of time where they have one, so that speedscope's time order means something.

use indexmap::IndexMap;
use perflab_model::profile::StackSample;
use serde_json::{Value, json};

use super::Chosen;

/// The file. Weights are nanoseconds where the profile has them, else numbers of samples.
#[must_use]
pub fn speedscope(chosen: Chosen<'_>) -> String {
    let mut commands: IndexMap<&str, Vec<&StackSample>> = IndexMap::new();
    for sample in chosen.samples() {
        commands.entry(chosen.comm(sample)).or_default().push(sample);
    }
    let all: Vec<Value> = commands.iter().map(|(name, samples)| profile(chosen, name, samples)).collect();
    let frames: Vec<Value> = chosen.profile.frames.iter().map(frame).collect();
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

fn frame(frame: &perflab_model::profile::Frame) -> Value {
    let mut value = json!({ "name": frame.name });
    if let (Some(module), Some(object)) = (&frame.module, value.as_object_mut()) {
        object.insert("file".into(), module.as_str().into());
    }
    value
}

fn profile(chosen: Chosen<'_>, name: &str, samples: &[&StackSample]) -> Value {
    let nanoseconds = chosen.about().unit.0 == "ns";
    let stack = |sample: &&StackSample| {
        chosen.frames(sample.leaf).into_iter().map(|frame| frame.0).collect::<Vec<u32>>()
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
