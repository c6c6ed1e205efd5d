//! Family `load`: how busy the machine is: load, stolen time, uptime. These vary by themselves, and
//! `Facts::differences` leaves them out by their keys.

use perflab_model::Scalar;

use super::notes::FactCollector;

const LOADAVG: &str = "/proc/loadavg";
const STAT: &str = "/proc/stat";
const UPTIME: &str = "/proc/uptime";

pub(super) fn collect_load_facts(notes: &mut FactCollector<'_>) {
    let text = notes.read(LOADAVG).unwrap_or_default();
    for (key, word) in ["load.1", "load.5", "load.15"].into_iter().zip(text.split_ascii_whitespace()) {
        notes.add_optional(key, parse_float_value(word), LOADAVG);
    }
    let stolen = notes.read(STAT).and_then(|text| parse_steal_percent(&text));
    notes.add_optional("load.steal_percent", stolen.map(Scalar::Float), STAT);
    let seconds =
        notes.read(UPTIME).and_then(|text| text.split_ascii_whitespace().next()?.parse::<f64>().ok());
    notes.add_optional("uptime", seconds.map(|seconds| Scalar::Int((seconds * 1e9) as i64)), UPTIME);
}

fn parse_float_value(word: &str) -> Option<Scalar> {
    word.parse().ok().filter(|number: &f64| number.is_finite()).map(Scalar::Float)
}

/// Per cent of all CPU time since boot that the hypervisor gave to others: the eighth number of `cpu`, of the first
/// eight, as those after it are parts of `user` and `nice`.
fn parse_steal_percent(text: &str) -> Option<f64> {
    let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().take(8);
    let times: Vec<f64> = numbers.map_while(|word| word.parse().ok()).collect();
    let all: f64 = times.iter().sum();
    times.get(7).filter(|_| all > 0.0).map(|steal| 100.0 * steal / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_the_first_eight() {
        assert_eq!(parse_steal_percent("cpu  10 0 10 60 0 0 0 20 9 9\n"), Some(20.0));
        assert_eq!(parse_steal_percent("cpu  1 2"), None);
        assert_eq!(parse_steal_percent(""), None);
    }
}
