//! Owns numbers for names that come again every tick in the same order. It refuses to tell equal names apart.

use std::collections::HashMap;

/// Names, numbered in the order of first sight.
#[derive(Default)]
pub(super) struct NameInterner {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The number that followed each number when it was last seen.
    next: Vec<usize>,
    last: usize,
}

impl NameInterner {
    /// The number of a name: a guess from what followed the name before, hashed only where that is wrong.
    pub(super) fn intern(&mut self, name: &str) -> usize {
        let guess = self.next.get(self.last).copied();
        let fits = guess.filter(|guess| self.names.get(*guess).is_some_and(|known| known == name));
        let number = fits.unwrap_or_else(|| self.find_or_add(name));
        if let Some(next) = self.next.get_mut(self.last) {
            *next = number;
        }
        self.last = number;
        number
    }

    fn find_or_add(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len();
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        self.next.push(0);
        number
    }

    /// All names, by number.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_first_sight_in_any_order() {
        let mut interner = NameInterner::default();
        let numbers: Vec<usize> =
            ["a", "b", "a", "c", "b", "b", "a", "d"].iter().map(|name| interner.intern(name)).collect();
        assert_eq!(numbers, [0, 1, 0, 2, 1, 1, 0, 3]);
        assert_eq!(interner.into_names(), ["a", "b", "c", "d"]);
    }
}
