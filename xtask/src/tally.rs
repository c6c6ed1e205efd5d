//! Counting tests from the lines that test runners print, and keeping what the failed ones said.

/// Counts of tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TestCounts {
    /// ran and held
    pub passed: u32,
    /// ran and did not
    pub failed: u32,
    /// did not run, visibly
    pub skipped: u32,
    /// skips of the test binary that is being read, to be taken off its passes
    pub unearned: u32,
}

impl TestCounts {
    /// A single test.
    pub fn single_test(good: bool) -> Self {
        TestCounts { passed: u32::from(good), failed: u32::from(!good), ..TestCounts::default() }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: TestCounts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Reads one line of output: cargo's `test result: …`, or a test's own `SKIP name: reason`.
    pub fn read_line(&mut self, line: &str) {
        if line.starts_with("SKIP ") {
            self.skipped += 1;
            self.unearned += 1;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            // libtest counts a test that returned early as passed.
            self.passed +=
                number_before(counts, " passed").saturating_sub(std::mem::take(&mut self.unearned));
            self.failed += number_before(counts, " failed");
            self.skipped += number_before(counts, " ignored");
        }
    }

    /// So many of the failed tests held when they ran again.
    pub fn forgive(&mut self, held: usize) {
        let held = u32::try_from(held).unwrap_or(u32::MAX).min(self.failed);
        self.failed -= held;
        self.passed += held;
    }

    /// The closing line, in the form that CI reads.
    pub fn print_report(&self) {
        println!("\n{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
    }
}

/// What failed tests printed, taken from cargo's output as it passes: thousands of lines of other tests follow it, and what is
/// kept of a long log is often its end.
#[derive(Debug, Default)]
pub struct FailedTests {
    /// Lines of the failed tests, each test beginning with its `---- NAME stdout ----`.
    lines: Vec<String>,
    part: OutputPart,
}

/// So many lines of a failed step are shown once more.
const STEP_LINES: usize = 30;

/// Where in libtest's output a line stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum OutputPart {
    #[default]
    Elsewhere,
    /// after the first `failures:`, where each failed test's output stands
    Failures,
    /// in a backtrace there, which is longer than all that the test says
    Backtrace,
}

impl FailedTests {
    /// Reads one line of output.
    pub fn read_line(&mut self, line: &str) {
        let begins_a_test = line.starts_with("---- ") || line == "failures:";
        if self.part == OutputPart::Backtrace && (begins_a_test || line.starts_with("note: ")) {
            self.part = OutputPart::Failures;
        }
        match (self.part, line) {
            (OutputPart::Elsewhere, "failures:") => self.part = OutputPart::Failures,
            // The second one heads the list of names, which the blocks have told.
            (OutputPart::Failures, "failures:") => self.part = OutputPart::Elsewhere,
            (OutputPart::Failures, "stack backtrace:") => self.part = OutputPart::Backtrace,
            (OutputPart::Failures, "") => {}
            (OutputPart::Failures, _) => self.lines.push(line.to_owned()),
            (OutputPart::Elsewhere | OutputPart::Backtrace, _) => {}
        }
    }

    /// A step failed that counts no tests, or that ended before it counted any: the end of what it printed.
    pub fn note_step(&mut self, name: &str, output: &[String]) {
        self.lines.push(format!("---- step \"{name}\" ----"));
        self.lines.extend_from_slice(&output[output.len().saturating_sub(STEP_LINES)..]);
    }

    /// All that was kept, once more.
    pub fn print_report(&self) {
        if !self.lines.is_empty() {
            println!("\n=== what failed, once more");
        }
        for line in &self.lines {
            println!("{line}");
        }
        if !self.lines.is_empty() {
            println!("\nfailed: {}", self.names().join(", "));
        }
    }

    /// The tests and steps that failed: one line of them survives where the middle of a long log is left out.
    pub fn names(&self) -> Vec<&str> {
        let heads = self.lines.iter().filter_map(|line| line.strip_prefix("---- ")?.strip_suffix(" ----"));
        heads.map(|head| head.strip_suffix(" stdout").unwrap_or(head)).collect()
    }
}

fn number_before(text: &str, word: &str) -> u32 {
    let number = text.split(word).next().and_then(|head| head.split(' ').next_back());
    number.filter(|_| text.contains(word)).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_cargo_and_skips_are_taken_off() {
        let mut tally = TestCounts::default();
        tally.read_line("SKIP mounts_an_image: needs root");
        tally.read_line("test result: ok. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out");
        assert_eq!((tally.passed, tally.failed, tally.skipped), (11, 1, 3));
    }

    #[test]
    fn the_output_of_failed_tests_is_kept_and_no_other() {
        let mut failed = FailedTests::default();
        let output = "test a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n---- a stdout ----\nfine\n\n\nsuccesses:\n    a\n\n\
                      failures:\n\n---- b stdout ----\nassertion failed: 1 == 2\nstack backtrace:\n   0: b\n             at ./b.rs:1\n\n\n\
                      failures:\n    b\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        // Two test binaries, one after the other.
        output.lines().chain(output.lines()).for_each(|line| failed.read_line(line));
        let block = ["---- b stdout ----", "assertion failed: 1 == 2"];
        assert_eq!(failed.lines, [block, block].concat());
        failed.note_step("links", &["docs/a.md: no such file".to_owned()]);
        assert_eq!(failed.names(), ["b", "b", "step \"links\""]);
    }
}
