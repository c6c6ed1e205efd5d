pub(crate) mod chart;
pub(crate) mod report;
pub(crate) mod table;
