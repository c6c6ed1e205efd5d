//! Tunables as sysctl(8) names and prints them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The name of a file below /proc/sys: `net/ipv4/conf/eth0.100/rp_filter` is `net.ipv4.conf.eth0/100.rp_filter`.
pub fn sysctl_name(path: &str) -> String {
    let swap = |letter| match letter {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    path.chars().map(swap).collect()
}

/// Adds a tunable to a list as `sysctl -a` prints it: `vm.swappiness = 60`, a line for each line of the value.
pub fn append_sysctl_lines(name: &str, value: &str, list: &mut String) {
    let mut lines = value.lines().peekable();
    if lines.peek().is_none() {
        // Writing to a String does not fail.
        let _ = writeln!(list, "{name} = ");
    }
    for line in lines {
        let _ = writeln!(list, "{name} = {line}");
    }
}

/// The tunables of such a list by name, their values on one line with single blanks.
pub fn parse_sysctl_list(list: &str) -> BTreeMap<&str, String> {
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for (name, value) in
        list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" ="))
    {
        let known = found.entry(name.trim()).or_default();
        for word in value.split_whitespace() {
            if !known.is_empty() {
                known.push(' ');
            }
            known.push_str(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_read_back() {
        let mut list = String::from("# left out: kernel.hostname\n");
        append_sysctl_lines(&sysctl_name("vm/swappiness"), "60", &mut list);
        append_sysctl_lines(&sysctl_name("net/ipv4/conf/eth0.100/tag"), "", &mut list);
        append_sysctl_lines("dev.cdrom.info", "CD-ROM\n\ndrive:\tsr0 = 1", &mut list);
        let found = parse_sysctl_list(&list);
        let all: Vec<(&str, &str)> = found.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let expected = [
            ("dev.cdrom.info", "CD-ROM drive: sr0 = 1"),
            ("net.ipv4.conf.eth0/100.tag", ""),
            ("vm.swappiness", "60"),
        ];
        assert_eq!(all, expected);
    }
}
