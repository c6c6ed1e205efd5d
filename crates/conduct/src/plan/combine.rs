//! Every combination of one choice from each list.

/// The cartesian product, the last list turning fastest. No list at all gives one empty combination.
pub(super) fn combinations<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |begun, list| {
        let extend = |start: &Vec<T>| {
            let start = start.clone();
            list.iter()
                .map(move |item| start.iter().cloned().chain([item.clone()]).collect())
                .collect::<Vec<_>>()
        };
        begun.iter().flat_map(extend).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::combinations;

    #[test]
    fn the_last_list_turns_fastest() {
        let all = combinations(&[vec!['a', 'b'], vec!['1', '2']]);
        let all: Vec<String> = all.into_iter().map(String::from_iter).collect();
        assert_eq!(all, ["a1", "a2", "b1", "b2"]);
        assert_eq!(combinations::<u8>(&[]), [Vec::<u8>::new()]);
    }
}
