//! What MMTests' monitors "with latency" put before each line: when it came, since the first, since the one before.

use perflab_model::Nanos;

/// `1700000000.1234   0.0000     0.0000 -- text`
pub(crate) fn split_time_stamp(text: &str) -> (Option<Nanos>, &str) {
    let Some((stamp, rest)) =
        text.split_once(" -- ").or_else(|| text.strip_suffix(" --").map(|stamp| (stamp, "")))
    else {
        return (None, text);
    };
    let mut words = stamp.split_ascii_whitespace();
    let times = [words.next(), words.next(), words.next()].map(|word| word?.parse::<f64>().ok());
    match (times, words.next()) {
        ([Some(epoch), Some(_), Some(_)], None) if (0.0..9e9).contains(&epoch) => {
            (Some(Nanos((epoch * 1e9) as u64)), rest)
        }
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stamp_is_one() {
        let (time, text) = split_time_stamp(" 1700000000.5000   0.0000     0.0000 --  r  b");
        assert_eq!((time, text), (Some(Nanos(1_700_000_000_500_000_000)), " r  b"));
        assert_eq!(split_time_stamp("a -- b"), (None, "a -- b"));
        assert_eq!(split_time_stamp("sda 1 -- b"), (None, "sda 1 -- b"));
    }
}
