//! "did you mean": the known name nearest to a mistyped one.

/// The closest of `known` to `name`, if it is close enough to be a slip of the finger.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (likeness(name, candidate), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.75).then_some(best.1)
}

/// From 0 to 1. In short names two letters that changed places weigh more than they should: `rnu` is a slip of `run`.
fn likeness(name: &str, candidate: &str) -> f64 {
    let one_slip = name.len().min(candidate.len()) > 2 && strsim::osa_distance(name, candidate) == 1;
    strsim::jaro_winkler(name, candidate).max(if one_slip { 0.9 } else { 0.0 })
}

/// A hint for an unknown name: the nearest one, or all of them.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<&str> = known.into_iter().collect();
            if all.is_empty() {
                "none is known here".into()
            } else {
                format!("known here: {}", all.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_mended_and_strangers_get_the_list() {
        assert_eq!(nearest("iteratons", ["iterations", "order"]), Some("iterations"));
        assert_eq!(nearest("rnu", ["run", "list"]), Some("run"));
        assert_eq!(nearest("rm", ["run", "list"]), None);
        assert_eq!(hint("zzz", ["a", "b"]), "known here: a, b");
        assert_eq!(hint("zzz", []), "none is known here");
    }
}
