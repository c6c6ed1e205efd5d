//! The one list of what tools print again and again: what is found in a log as readings.

use crate::reading_parser::ReadingParser;
use crate::tool::iostat::IostatParser;
use crate::tool::mpstat::MpstatParser;
use crate::tool::perf_stat::PerfStatParser;
use crate::tool::slabinfo_tool::SlabinfoToolParser;
use crate::tool::vmstat_tool::VmstatToolParser;

/// A tool's output.
#[derive(Debug, Clone, Copy)]
pub struct ToolLog {
    /// Its series.
    pub name: &'static str,
    /// Its parser, before the first line.
    pub parser: fn() -> Box<dyn ReadingParser>,
}

/// All of them.
pub static TOOL_LOGS: &[ToolLog] = &[
    ToolLog { name: "vmstat-tool", parser: || Box::new(VmstatToolParser::default()) },
    ToolLog { name: "iostat", parser: || Box::new(IostatParser::default()) },
    ToolLog { name: "mpstat", parser: || Box::new(MpstatParser::default()) },
    ToolLog { name: "perf-time-stat", parser: || Box::new(PerfStatParser::default()) },
    ToolLog { name: "slabinfo-tool", parser: || Box::new(SlabinfoToolParser) },
];

/// The output whose series has this name.
pub fn find_tool_log(name: &str) -> Option<&'static ToolLog> {
    TOOL_LOGS.iter().find(|log| log.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_series() {
        assert!(TOOL_LOGS.iter().all(|log| (log.parser)().series() == log.name));
    }
}
