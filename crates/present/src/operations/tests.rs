//! No outlier is hidden: neither by the grid nor by what is drawn over it.

use fixtures::run_builder::RunBuilder;
use perflab_analyze::operations::{OutlierOptions, analyze_operations};
use perflab_model::operation::{OperationColumns, OperationTraceSummary, SpanColumn};
use perflab_model::{ClockOffset, Facts, TargetRecord};

use crate::chart::scene::{SceneMark, SceneSurface};
use crate::operations::scenes::{OperationSceneOptions, ScaleKind, operation_scene};
use crate::operations::section::SECTION;
use crate::section::{ReportData, ReportRun, SectionBlock};

/// 300,000 operations with spikes at all heights.
fn spiky_operations() -> OperationColumns {
    let n = 300_000;
    let spike = |at: i64| if at % 997 == 0 { (at * 7919) % 1_000_000 } else { 0 };
    let wall: Vec<i64> = (0..n).map(|at| 200 + (at * 31) % 157 + spike(at)).collect();
    let time = (0..n as u32).step_by(997).map(|at| (at, spike(i64::from(at)))).collect();
    OperationColumns {
        kinds: vec!["insert".into()],
        kind: vec![0; wall.len()],
        thread: vec![1; wall.len()],
        start: (0..n).collect(),
        wall,
        spans: vec![SpanColumn { name: "reap".into(), time, ..SpanColumn::default() }],
        ..OperationColumns::default()
    }
}

#[test]
fn the_highest_dot_of_each_column_is_the_true_maximum() {
    let operations = spiky_operations();
    let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
    for spread in [ScaleKind::Linear, ScaleKind::Log] {
        let scene = operation_scene(
            &operations,
            &report,
            &OperationSceneOptions {
                scale_kind: spread,
                colour_by_cause: true,
                ..OperationSceneOptions::default()
            },
        );
        let pixels = scene.marks.iter().find_map(|mark| match mark {
            SceneMark::Dots { pixels, .. } => Some(pixels),
            _ => None,
        });
        let pixels = pixels.unwrap();
        assert!(pixels.width() == 1980 && pixels.height() == 1640);
        let scale = crate::operations::scenes::TimeScale::new(
            spread,
            report.shortest as f64 * 0.8,
            report.longest as f64 * 1.05,
            1640,
        );
        let mut highest = vec![usize::MAX; pixels.width()];
        let mut count = vec![0_u32; pixels.width()];
        for (row, time) in report.operation_times() {
            let column = (row as usize * (pixels.width() - 1)) / operations.len();
            highest[column] = highest[column].min(scale.row(time));
            count[column] += 1;
        }
        for column in 0..pixels.width() {
            let drawn = (0..pixels.height()).find(|row| pixels.dots_at(column, *row) > 0);
            assert_eq!(drawn.unwrap_or(usize::MAX), highest[column], "{spread:?} {column}");
            let all: u32 = (0..pixels.height()).map(|row| pixels.dots_at(column, row)).sum();
            assert_eq!(all, count[column], "every operation is a dot");
        }
    }
}

#[test]
fn the_longest_are_marks_above_the_dots_and_pixels_of_the_image() {
    let operations = spiky_operations();
    let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
    let scene = operation_scene(
        &operations,
        &report,
        &OperationSceneOptions { colour_by_cause: true, ..OperationSceneOptions::default() },
    );
    let dots = scene.marks.iter().position(|mark| matches!(mark, SceneMark::Dots { .. })).unwrap();
    let marks: Vec<&str> = scene.marks[dots..]
        .iter()
        .filter_map(|mark| match mark {
            SceneMark::Rect { title, .. } => Some(title.as_str()),
            _ => None,
        })
        .collect();
    let mut times: Vec<(i64, u32)> = report.operation_times().map(|(row, time)| (time, row)).collect();
    times.sort_unstable();
    // The true top k, found without the analysis.
    for (time, row) in times.iter().rev().take(100) {
        let requested = format!("operation {row}: ");
        assert!(marks.iter().any(|title| title.starts_with(&requested)), "{row} of {time} ns");
    }
    let image = tiny_skia::Pixmap::decode_png(&scene.to_png().unwrap()).unwrap();
    assert_eq!((image.width(), image.height()), (2160, 1920));
    for mark in &scene.marks[dots..] {
        if let SceneMark::Rect { at, width, .. } = mark {
            let (x, y) = ((at.x + width / 2.0) * 2.0, (at.y + width / 2.0) * 2.0);
            let pixel = image.pixel(x as u32, y as u32).unwrap();
            assert!(pixel.red() < 250 || pixel.green() < 250, "nothing at {x} {y}");
        }
    }
    let svg = scene.to_svg(SceneSurface::Paper);
    assert!(
        svg.contains("<image ") && svg.contains("data:image/png;base64,iVBOR") && svg.len() < 1_000_000,
        "{}",
        svg.len()
    );
}

/// What `web/src/zoom/data.ts` reads, read here too.
fn read_packed_column(text: &str, from: usize, count: usize) -> Vec<i64> {
    let bytes = decode_base64(text);
    let mut inflated = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::DeflateDecoder::new(bytes.as_slice()), &mut inflated)
        .unwrap();
    let (mut values, mut value, mut shift) = (Vec::new(), 0_i64, 0);
    for byte in inflated {
        value |= i64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            values.push(value);
            (value, shift) = (0, 0);
        }
    }
    values[from..from + count].to_vec()
}

fn decode_base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |byte: u8| digits.iter().position(|digit| *digit == byte).unwrap_or(0) as u32;
    let four = |group: &[u8]| {
        let word = group.iter().fold(0, |word, byte| (word << 6) | digit(*byte));
        word.to_be_bytes()[1..4 - group.iter().filter(|byte| **byte == b'=').count()].to_vec()
    };
    text.as_bytes().chunks(4).flat_map(four).collect()
}

#[test]
fn the_report_holds_every_maximum_within_its_bytes() {
    let operations = spiky_operations();
    let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
    let times: Vec<i64> = report.operation_times().map(|(_, time)| time).collect();
    let mut requested: Vec<(i64, u32)> = report.operation_times().map(|(row, time)| (time, row)).collect();
    requested.sort_unstable_by(|a, b| b.cmp(a));
    for most in [crate::operations::viewer::MOST_BYTES, 60_000, 0] {
        let text = crate::operations::viewer::operation_viewer_data(&operations, &report, "t", most);
        assert!(text.len() <= most || most < 30_001, "{} for {most}", text.len());
        let data: serde_json::Value = serde_json::from_str(&text).unwrap();
        let width = data["width"].as_u64().unwrap() as usize;
        let bins = times.len().div_ceil(width);
        let all = read_packed_column(data["bins"].as_str().unwrap(), 0, bins * 4);
        let mut longest = Vec::new();
        for bin in 0..bins {
            let inside = &times[bin * width..((bin + 1) * width).min(times.len())];
            let (low, high) = (*inside.iter().min().unwrap(), *inside.iter().max().unwrap());
            assert_eq!(all[bin], inside.len() as i64);
            assert_eq!((all[bins + bin], all[bins + bin] + all[2 * bins + bin]), (low, high));
            assert_eq!(times[bin * width + all[3 * bins + bin] as usize], high, "the operation that made it");
            longest.push((high, bin * width));
        }
        // The true top k are among the outliers, whatever was left out.
        let count = data["outlier_count"].as_u64().unwrap() as usize;
        let outliers = read_packed_column(data["outliers"].as_str().unwrap(), 0, count * 3);
        let (mut row, mut shown) = (0, std::collections::BTreeSet::new());
        for at in 0..count {
            row += outliers[at];
            shown.insert((outliers[count + at], row as u32));
        }
        assert!(requested.iter().take(200).all(|one| shown.contains(one)), "{most}");
    }
    let fine: serde_json::Value = serde_json::from_str(&crate::operations::viewer::operation_viewer_data(
        &operations,
        &report,
        "t",
        crate::operations::viewer::MOST_BYTES,
    ))
    .unwrap();
    assert_eq!((fine["width"].as_u64(), fine["steps"].as_str().unwrap().is_empty()), (Some(16), false));
}

#[test]
fn what_a_trace_says_in_sentences() {
    let report = analyze_operations(&spiky_operations(), &OutlierOptions::default()).unwrap();
    insta::assert_snapshot!(crate::operations::operation_conclusions(&report).join("\n"));
}

/// The headings of blocks, those that are folded in brackets.
fn headings(blocks: &[SectionBlock]) -> Vec<String> {
    let heading = |block: &SectionBlock| match block {
        SectionBlock::Heading(text) => vec![text.clone()],
        SectionBlock::Fold { blocks, .. } => {
            let summary = |block: &SectionBlock| match block {
                SectionBlock::Fold { summary, .. } => Some(format!("({summary})")),
                _ => None,
            };
            blocks.iter().filter_map(summary).collect()
        }
        _ => Vec::new(),
    };
    blocks.iter().flat_map(heading).collect()
}

#[test]
fn each_target_has_its_own_traces_and_further_ones_are_folded() {
    let mut record = RunBuilder::new("run").with(|lab| lab.iterations = 1).build_run(|_| Some(1.0));
    let target = |number: u32| TargetRecord {
        name: format!("guest{number}"),
        kind: "vm".into(),
        kernel: String::new(),
        boot_id: String::new(),
        clock: ClockOffset::default(),
        facts: Facts::default(),
    };
    record.manifest.targets = (1..=6).map(target).collect();
    let trace = |target: u32| {
        let summary = OperationTraceSummary {
            operations: 300_000,
            target: Some(target),
            ..OperationTraceSummary::default()
        };
        (summary, spiky_operations())
    };
    let run = ReportRun {
        record,
        series: Vec::new(),
        consoles: None,
        profiles: Vec::new(),
        operations: (0..6).map(trace).collect(),
        io: Vec::new(),
    };
    let data = ReportData { runs: vec![Box::new(run)], ..ReportData::default() };
    let blocks = (SECTION.blocks)(&data).unwrap();
    assert_eq!(headings(&blocks), ["guest1", "guest2", "guest3", "guest4", "(guest5)", "(guest6)"]);
    let sentences = (SECTION.conclusions)(&data).unwrap();
    assert!(sentences.iter().all(|sentence| sentence.starts_with("guest")), "{sentences:?}");
}
