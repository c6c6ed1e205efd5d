//! What a workload prints, kept within bounds: the beginning and the end, and a count of the rest.

use std::collections::VecDeque;

/// Bytes kept of the beginning, and again of the end.
const HALF: usize = 8 << 20;

/// One output stream of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl CapturedOutput {
    /// Bytes that were printed and not kept.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// All that was kept; bytes that are not UTF-8 are replaced, and a gap is marked by a line.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.dropped > 0 {
            text.push_str(&format!("\n[perflab: {} bytes not kept]\n", self.dropped));
        }
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        text.push_str(&String::from_utf8_lossy(&tail));
        text
    }

    /// Up to `count` of the last lines with something in them, each cut to 200 characters.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let mut last: Vec<String> = lines.take(count).map(|line| line.chars().take(200).collect()).collect();
        last.reverse();
        last
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = HALF.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut captured = CapturedOutput::default();
        captured.add(b"first\n");
        for _ in 0..20 {
            captured.add(&vec![b'x'; 1 << 20]);
        }
        captured.add(b"\nlast\n");
        assert_eq!(captured.dropped_bytes(), (20 << 20) + 12 - 2 * HALF as u64);
        assert!(captured.text().starts_with("first\n"));
        assert_eq!(captured.last_lines(1), ["last"]);
        assert!(captured.text().contains("bytes not kept"));
    }
}
