//! "did you mean": the known name nearest to a mistyped one.

/// The closest of `known` to `name`, if it is close enough to be a slip of the finger.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (name_similarity(name, candidate), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.75).then_some(best.1)
}

/// From 0 to 1. In short names two letters that changed places weigh more than they should: `rnu` is a slip of `run`.
fn name_similarity(name: &str, candidate: &str) -> f64 {
    let one_slip = name.len().min(candidate.len()) > 2 && strsim::osa_distance(name, candidate) == 1;
    strsim::jaro_winkler(name, candidate).max(if one_slip { 0.9 } else { 0.0 })
}

/// Names that are listed whole; of more, a program's symbols say, only the nearest help.
const LISTED: usize = 40;
const NEAREST: usize = 10;
/// Signs of a name that are shown where it is one of very many.
const SHOWN: usize = 200;

/// A hint for an unknown name: the nearest one, or all of them; of very many the ten nearest, and how many more there are.
pub fn suggest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = nearest_name(name, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let mut all: Vec<&str> = known.into_iter().collect();
    match all.len() {
        0 => "none is known here".into(),
        1..=LISTED => format!("known here: {}", all.join(", ")),
        many => {
            all.sort_by_cached_key(|candidate| {
                std::cmp::Reverse((name_similarity(name, candidate) * 1e6) as u64)
            });
            let cut = |name: &&str| match name.char_indices().nth(SHOWN) {
                Some((at, _)) => format!("{}…", name.get(..at).unwrap_or(name)),
                None => (*name).to_owned(),
            };
            let nearest: Vec<String> = all.iter().take(NEAREST).map(cut).collect();
            format!("the nearest: {}, and {} more", nearest.join(", "), many - NEAREST)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_mended_and_strangers_get_the_list() {
        assert_eq!(nearest_name("iteratons", ["iterations", "order"]), Some("iterations"));
        assert_eq!(nearest_name("rnu", ["run", "list"]), Some("run"));
        assert_eq!(nearest_name("rm", ["run", "list"]), None);
        assert_eq!(suggest_name("zzz", ["a", "b"]), "known here: a, b");
        assert_eq!(suggest_name("zzz", []), "none is known here");
    }

    #[test]
    fn of_very_many_names_the_nearest_are_told_and_how_many_more() {
        let mut all: Vec<String> = (0..5000).map(|n| format!("function_{n:04}")).collect();
        all.push("zzy_and_more".into());
        all.push("z".repeat(100_000));
        let told = suggest_name("zzzy", all.iter().map(String::as_str));
        assert!(
            told.len() < 1000 && told.ends_with(", and 4992 more") && told.contains("zzy_and_more"),
            "{told}"
        );
    }
}
