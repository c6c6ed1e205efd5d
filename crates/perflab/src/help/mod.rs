//! What tells people how perflab is used: what to type first, the reference page, manual pages, completion in shells.

pub mod completed_values;
pub mod completions;
pub mod first_hour;
pub mod global_options;
pub mod manual;
pub mod reference;
