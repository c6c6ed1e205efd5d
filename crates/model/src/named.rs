//! Choices by name: each value of a closed set with the word that people type and what it means, once for the command line,
//! its help and its messages.

/// A closed set of values that people choose from by name.
pub trait Named: Copy + PartialEq + 'static {
    /// Every value with its name and what it means, in the order in which they are listed.
    const NAMES: &'static [(Self, &'static str, &'static str)];

    /// The name that people type.
    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(value, ..)| *value == self).map_or("", |(_, name, _)| name)
    }

    /// The value of a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known, _)| *known == name).map(|(value, ..)| *value)
    }
}
