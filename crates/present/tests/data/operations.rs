//! Operations such as the study's, made by arithmetic: a body of some 300 ns whose low bits are as good as random, a page
//! fault every 340th, and from 850,000 on a reap in about every 130th, of up to a millisecond.

use perflab_model::operation::{NumberColumn, OperationColumns, SpanColumn};

fn hash_index(at: u64) -> u64 {
    let z = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

/// Nanoseconds of an operation's body: three numbers of up to 200 added are nearly as noise is.
fn body_nanos(at: u64) -> i64 {
    let noise = hash_index(at);
    (120 + noise % 200 + (noise >> 20) % 200 + (noise >> 40) % 200) as i64
}

/// Nanoseconds of a reap in this operation; one of them is a long one.
fn reap_nanos(at: u64) -> Option<i64> {
    let noise = hash_index(at ^ 0xffff_0000);
    match at {
        1_234_567 => Some(950_000),
        850_001.. if noise.is_multiple_of(131) => Some(4_000 + (noise >> 33) as i64 % 16_000),
        _ => None,
    }
}

/// So many operations of one kind.
pub fn study_operations(n: u32) -> OperationColumns {
    let fault = |at: u32| (at % 340 == 17).then_some(2_400 + i64::from(at % 7) * 100);
    let wall =
        |at: u32| body_nanos(u64::from(at)) + reap_nanos(u64::from(at)).unwrap_or(0) + fault(at).unwrap_or(0);
    OperationColumns {
        kinds: vec!["insert".into()],
        kind: vec![0; n as usize],
        thread: vec![1; n as usize],
        start: (0..i64::from(n)).map(|at| at * 700).collect(),
        wall: (0..n).map(wall).collect(),
        faults: (0..n).filter(|at| fault(*at).is_some()).map(|at| (at, 1)).collect(),
        spans: vec![
            SpanColumn {
                name: "allocate".into(),
                time: (0..n).filter_map(|at| Some((at, fault(at)?))).collect(),
                ..SpanColumn::default()
            },
            SpanColumn {
                name: "reap".into(),
                time: (0..n).filter_map(|at| Some((at, reap_nanos(u64::from(at))?))).collect(),
                ..SpanColumn::default()
            },
        ],
        numbers: vec![NumberColumn {
            name: "elements".into(),
            values: (0..n).map(|at| (at, i64::from(at))).collect(),
        }],
        ..OperationColumns::default()
    }
}
