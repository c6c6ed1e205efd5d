//! `perflab export --to perfetto`, read by Perfetto's own messages.

use std::process::Command;

use crate::laboratory::{Sandbox, find_test_python, skip_test};

/// Reads a trace as Perfetto declares it, and says what is in it.
const READ_TRACE: &str = r#"
import collections, json, sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
trace = perfetto.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
tracks, names, annotations = {}, {}, {}
slices, open_slices, counters, flows, ends = collections.Counter(), collections.Counter(), set(), set(), set()
told, undeclared, unknown = collections.Counter(), 0, 0
worked, counted = [], []
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    names.update((name.iid, name.name) for name in packet.interned_data.event_names)
    annotations.update((name.iid, name.name) for name in packet.interned_data.debug_annotation_names)
    if not packet.HasField("track_event"):
        continue
    event = packet.track_event
    undeclared += event.track_uuid not in tracks
    unknown += packet.timestamp_clock_id != perfetto.BUILTIN_CLOCK_MONOTONIC or packet.timestamp == 0
    if event.type in (event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END):
        worked.append(packet.timestamp)
    elif event.type == event.TYPE_COUNTER:
        counted.append(packet.timestamp)
    if event.type == event.TYPE_SLICE_BEGIN:
        slices[event.categories[0]] += 1
        open_slices[event.track_uuid] += 1
        ends.update(event.terminating_flow_ids)
        told.update(annotations[one.name_iid] for one in event.debug_annotations)
        assert names[event.name_iid]
    elif event.type == event.TYPE_SLICE_END:
        open_slices[event.track_uuid] -= 1
    elif event.type == event.TYPE_INSTANT:
        flows.update(event.flow_ids)
    elif event.type == event.TYPE_COUNTER:
        track = tracks[event.track_uuid]
        monitor = tracks[track.parent_uuid]
        counters.add((monitor.name, track.name, track.counter.unit_name))
assert all(left == 0 for left in open_slices.values())
clocks = sorted(one.clock_id for packet in trace.packet for one in packet.clock_snapshot.clocks)
print(json.dumps({"slices": slices, "counters": sorted(counters), "undeclared": undeclared, "unknown": unknown,
    "causes": len(flows), "explained": len(flows & ends), "told": told, "clocks": clocks,
    "worked": [min(worked), max(worked)], "counted": [min(counted), max(counted)] if counted else None}))
"#;

/// What is in the trace of a run; none where there is no Python that could read it.
pub fn read_trace(test: &str, laboratory: &Sandbox, run: &str) -> Option<serde_json::Value> {
    laboratory.run_successfully(&["export", run, "--to", "perfetto", "-o", "run.pftrace"]);
    let Some(python) = find_test_python() else {
        skip_test(test, "target/test-venv is missing: `cargo xtask test` makes it");
        return None;
    };
    let file = laboratory.path("run.pftrace");
    let said = Command::new(python).args(["-c", READ_TRACE]).arg(file).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(serde_json::from_slice(&said.stdout).unwrap())
}

#[test]
fn operations_are_slices_and_what_made_them_slow_leads_to_them() {
    let laboratory = Sandbox::new();
    let load = ["perflab", "load", "drv_rand_ops", "20000", "intsrt", "--reap", "old:86:0"];
    laboratory.run_successfully(&[&["trace", "run", "--label", "old", "--"], &load[..]].concat());
    let slow = &laboratory.run_json(&["trace", "causes", "old"])["result"]["outlier_count"];
    let test = "operations_are_slices_and_what_made_them_slow_leads_to_them";
    let Some(read) = read_trace(test, &laboratory, "old") else { return };
    assert_eq!((&read["slices"]["operation"], &read["slices"]["iteration"]), (&20_000.into(), &1.into()));
    assert_eq!((&read["undeclared"], &read["unknown"]), (&0.into(), &0.into()), "{read}");
    assert_eq!((&read["causes"], &read["explained"]), (slow, slow), "{read}");
    assert!(slow.as_u64() > Some(0) && read["told"]["reap [ns]"].as_u64() > Some(0), "{read}");
    // CLOCK_REALTIME and CLOCK_MONOTONIC, so that Perfetto can date the trace.
    assert_eq!(read["clocks"], serde_json::json!([1, 3]));
}

#[test]
fn monitors_are_counters_with_their_units() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("short", "", "sleep 0.2; echo speed 1");
    let study = "run = { iterations = 3, warmup = 1 }\nmonitors = { vmstat = \"20ms\", stat = \"20ms\" }\n[workload.short]";
    let study = laboratory.write_study("short.toml", study);
    laboratory.run_successfully(&["run", &study, "--label", "short"]);
    let test = "monitors_are_counters_with_their_units";
    let Some(read) = read_trace(test, &laboratory, "short") else { return };
    assert_eq!((&read["slices"]["iteration"], &read["undeclared"]), (&4.into(), &0.into()), "{read}");
    assert_eq!(read["told"]["speed [ops/s]"], 3, "warm-ups measure nothing: {read}");
    let counters = read["counters"].as_array().unwrap();
    let has = |monitor: &str, column: &str, unit: &str| {
        counters.contains(&serde_json::json!([monitor, column, unit]))
    };
    assert!(has("vmstat", "nr_free_pages", "pages") && has("vmstat", "pgfault", "1/s"), "{read}");
}

#[test]
fn a_slip_in_the_name_of_the_format_is_refused() {
    let laboratory = Sandbox::new();
    let said = laboratory.run(&["export", "@latest", "--to", "perfeto"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}
