//! `hosts.toml`: machines that ssh reaches, by names and in groups.

use std::collections::BTreeSet;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::problem::{Problem, Problems, suggest_name};
use crate::quantity::{DurationText, Nanos};
use crate::scalar::Scalar;
use crate::study::ssh_option_problem;
use crate::toml_source::TomlSource;

/// How long a host may take to answer, where the file says nothing.
const ANSWER_LIMIT: Nanos = Nanos(10_000_000_000);

/// ssh counts in seconds.
const SHORTEST_LIMIT: Nanos = Nanos(1_000_000_000);

/// What a host says that is reached without another between, whatever `[defaults]` say.
const NO_JUMP: &str = "none";

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct InventoryDocument {
    #[serde(default)]
    defaults: HostEntry,
    #[serde(default)]
    host: IndexMap<String, HostEntry>,
    #[serde(default)]
    groups: IndexMap<String, Vec<String>>,
}

/// `[host.NAME]`, and `[defaults]` of all.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HostEntry {
    address: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    jump: Option<String>,
    identity: Option<String>,
    answer_within: Option<DurationText>,
    #[serde(default)]
    ssh_options: Vec<String>,
    #[serde(default)]
    variables: IndexMap<String, Scalar>,
}

/// A machine that ssh reaches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InventoryHost {
    /// What studies call it.
    pub name: String,
    /// A name or number that the network or ssh's own configuration knows.
    pub address: String,
    /// Who logs in; else whom ssh takes.
    pub user: Option<String>,
    /// Where its sshd listens; else where ssh looks.
    pub port: Option<u16>,
    /// The host of the inventory through which it is reached.
    pub jump: Option<String>,
    /// The file of the key.
    pub identity: Option<String>,
    /// How long it may take to answer.
    pub answer_within: Nanos,
    /// Further options of ssh's configuration, `KEYWORD=VALUE`.
    pub ssh_options: Vec<String>,
    /// What templates of its target may name.
    pub variables: IndexMap<String, Scalar>,
}

/// The hosts and groups of one `hosts.toml`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostInventory {
    /// The file; none where there is none.
    pub file: Option<String>,
    /// Where it was looked for.
    pub looked_in: Vec<String>,
    /// By name, in the file's order.
    pub hosts: IndexMap<String, InventoryHost>,
    /// Every group with its hosts, those of its groups among them, each once.
    pub groups: IndexMap<String, Vec<String>>,
}

impl HostInventory {
    /// What it is called.
    pub const FILE: &str = "hosts.toml";

    /// There is none in these places.
    pub fn missing(looked_in: Vec<String>) -> Self {
        HostInventory { looked_in, ..HostInventory::default() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it, each with its key.
    pub fn parse(source: &TomlSource) -> Result<Self, Problems> {
        let document: InventoryDocument = source.parse()?;
        let mut found = Vec::new();
        if document.defaults.address.is_some() {
            let problem = Problem::new("defaults.address", "cannot be that of all hosts");
            found.push(problem.with_hint("write it in `[host.NAME]`"));
        }
        check_entry("defaults", &document.defaults, &mut found);
        for (name, entry) in &document.host {
            let key = format!("host.{name}");
            check_name(&key, name, &mut found);
            check_entry(&key, entry, &mut found);
        }
        let mut inventory = HostInventory {
            file: Some(source.file.clone()),
            looked_in: vec![source.file.clone()],
            hosts: join_defaults(&document, &source.file),
            groups: document.groups.clone(),
        };
        inventory.check_jumps(&document, &mut found);
        inventory.check_groups(&mut found);
        if !found.is_empty() {
            return Err(source.place_problems(found));
        }
        let names = inventory.groups.keys().cloned();
        let flat = names.map(|name| (name.clone(), inventory.flatten_group(&name))).collect();
        inventory.groups = flat;
        Ok(inventory)
    }

    /// The host of this name, or the hosts of the group.
    pub fn members(&self, name: &str) -> Option<Vec<&InventoryHost>> {
        if let Some(host) = self.hosts.get(name) {
            return Some(vec![host]);
        }
        Some(self.groups.get(name)?.iter().filter_map(|host| self.hosts.get(host)).collect())
    }

    /// The hosts through which one is reached, the one that is nearest to it first.
    pub fn jumps(&self, host: &InventoryHost) -> Vec<&InventoryHost> {
        let next = |host: &&InventoryHost| self.hosts.get(host.jump.as_deref()?);
        let first = host.jump.as_deref().and_then(|name| self.hosts.get(name));
        std::iter::successors(first, next).take(self.hosts.len()).collect()
    }

    /// The groups that a host is in.
    pub fn groups_of(&self, host: &str) -> Vec<&str> {
        let holds = |(_, hosts): &(&String, &Vec<String>)| hosts.iter().any(|name| name == host);
        self.groups.iter().filter(holds).map(|(group, _)| group.as_str()).collect()
    }

    /// Why there is no host and no group of this name, and what to do.
    pub fn unknown_name(&self, name: &str) -> (String, String) {
        match &self.file {
            Some(file) => {
                let known = self.hosts.keys().chain(self.groups.keys()).map(String::as_str);
                (format!("{file} has no host and no group `{name}`"), suggest_name(name, known))
            }
            None => {
                let message = format!("`{name}` is a host of an inventory, and there is none: neither");
                let message = format!("{message} {}", self.looked_in.join(" nor "));
                (message, format!("write `[host.{name}]` with its `address` into one of them"))
            }
        }
    }

    /// Jumps through hosts that there are not, or in a circle.
    fn check_jumps(&self, document: &InventoryDocument, found: &mut Vec<Problem>) {
        for (name, host) in &self.hosts {
            let Some(jump) = &host.jump else { continue };
            let is_own = document.host.get(name).is_some_and(|entry| entry.jump.is_some());
            let key = if is_own { format!("host.{name}.jump") } else { "defaults.jump".to_owned() };
            if !self.hosts.contains_key(jump) {
                let hint = suggest_name(jump, self.hosts.keys().map(String::as_str));
                let problem = Problem::new(key, format!("there is no host `{jump}` here")).with_hint(hint);
                if !found.contains(&problem) {
                    found.push(problem);
                }
                continue;
            }
            let way: Vec<&str> = self.jumps(host).into_iter().map(|host| host.name.as_str()).collect();
            if way.contains(&name.as_str()) {
                let between = way.into_iter().take_while(|jump| jump != name);
                let way: Vec<&str> =
                    [name.as_str()].into_iter().chain(between).chain([name.as_str()]).collect();
                let message = format!("`{name}` is reached through itself: {}", way.join(" -> "));
                let hint = format!("write `jump = \"{NO_JUMP}\"` at the one that is reached directly");
                found.push(Problem::new(key, message).with_hint(hint));
            }
        }
    }

    /// Groups with names of hosts, without hosts, of what there is not, in a circle, or with something twice.
    fn check_groups(&self, found: &mut Vec<Problem>) {
        for (group, members) in &self.groups {
            let key = format!("groups.{group}");
            check_name(&key, group, found);
            if self.hosts.contains_key(group) {
                let problem = Problem::new(&key, "is the name of a host, too");
                found.push(problem.with_hint("call one of them otherwise"));
            }
            if members.is_empty() {
                let problem = Problem::new(&key, "has no hosts");
                found.push(problem.with_hint("name hosts or groups, or leave it out"));
            }
            let mut unique = BTreeSet::new();
            for (index, member) in members.iter().enumerate() {
                let key = format!("{key}[{index}]");
                if !self.hosts.contains_key(member) && !self.groups.contains_key(member) {
                    let known = self.hosts.keys().chain(self.groups.keys());
                    let hint = suggest_name(member, known.map(String::as_str));
                    let message = format!("there is no host and no group `{member}` here");
                    found.push(Problem::new(key, message).with_hint(hint));
                } else if !unique.insert(member) {
                    let problem = Problem::new(key, format!("`{member}` is there twice"));
                    found.push(problem.with_hint("leave one out"));
                }
            }
            if let Some(circle) = self.find_circle(group) {
                let message = format!("the group holds itself: {}", circle.join(" -> "));
                found.push(Problem::new(key, message).with_hint("name hosts in one of them instead"));
            }
        }
    }

    /// The way from a group back to itself.
    fn find_circle(&self, group: &str) -> Option<Vec<String>> {
        let mut ways = vec![vec![group.to_owned()]];
        let mut known = BTreeSet::new();
        while let Some(way) = ways.pop() {
            let members = way.last().and_then(|last| self.groups.get(last));
            for member in members.into_iter().flatten() {
                let mut longer = way.clone();
                longer.push(member.clone());
                if member == group {
                    return Some(longer);
                }
                if known.insert(member) {
                    ways.push(longer);
                }
            }
        }
        None
    }

    /// The hosts of a group and of its groups, which hold themselves nowhere.
    fn flatten_group(&self, group: &str) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for member in self.groups.get(group).into_iter().flatten() {
            let more = if self.groups.contains_key(member) {
                self.flatten_group(member)
            } else {
                vec![member.clone()]
            };
            for host in more {
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
        }
        hosts
    }
}

/// Each host with what `[defaults]` say where it says nothing itself.
fn join_defaults(document: &InventoryDocument, file: &str) -> IndexMap<String, InventoryHost> {
    let defaults = &document.defaults;
    let join = |(name, entry): (&String, &HostEntry)| {
        // Through whom all others are reached is reached directly.
        let default_jump = defaults.jump.as_ref().filter(|jump| *jump != name);
        let jump = entry.jump.as_ref().or(default_jump).filter(|jump| *jump != NO_JUMP);
        let limit = entry.answer_within.or(defaults.answer_within);
        let variables = defaults.variables.iter().chain(&entry.variables);
        let host = InventoryHost {
            name: name.clone(),
            address: entry.address.clone().unwrap_or_else(|| name.clone()),
            user: entry.user.clone().or_else(|| defaults.user.clone()),
            port: entry.port.or(defaults.port),
            jump: jump.cloned(),
            identity: entry
                .identity
                .as_ref()
                .or(defaults.identity.as_ref())
                .map(|path| locate_key(path, file)),
            answer_within: limit.map_or(ANSWER_LIMIT, |limit| limit.0),
            // ssh takes what it is told first.
            ssh_options: [entry.ssh_options.clone(), defaults.ssh_options.clone()].concat(),
            variables: variables.map(|(key, value)| (key.clone(), value.clone())).collect(),
        };
        (name.clone(), host)
    };
    document.host.iter().map(join).collect()
}

/// The file of a key; ssh itself knows `~` and `%d`, anything else lies beside the inventory where it does not begin with `/`.
fn locate_key(path: &str, file: &str) -> String {
    if path.starts_with(['/', '~', '%']) {
        return path.to_owned();
    }
    Path::new(file).with_file_name(path).display().to_string()
}

fn check_name(key: &str, name: &str, found: &mut Vec<Problem>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_taken = ["host", "none"].contains(&name);
    if is_taken || name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
        let hint = "letters, digits, `-` and `_`; `host` is the machine that perflab runs on";
        found.push(Problem::new(key, "cannot be the name of a host or group").with_hint(hint));
    }
}

/// Keywords of ssh's that have a key here.
const OWN_KEYWORDS: [(&str, &str); 6] = [
    ("HostName", "address"),
    ("User", "user"),
    ("Port", "port"),
    ("ProxyJump", "jump"),
    ("IdentityFile", "identity"),
    ("ConnectTimeout", "answer-within"),
];

fn check_entry(at: &str, entry: &HostEntry, found: &mut Vec<Problem>) {
    let texts = [
        ("address", &entry.address),
        ("user", &entry.user),
        ("jump", &entry.jump),
        ("identity", &entry.identity),
    ];
    for (key, text) in texts {
        // A word that begins like this would be an option to ssh.
        let is_odd = |text: &String| {
            text.is_empty() || text.starts_with('-') || text.chars().any(|c| c.is_control() || c == '"')
        };
        if text.as_ref().is_some_and(is_odd) {
            let problem = Problem::new(format!("{at}.{key}"), format!("is no {key}"));
            found.push(problem.with_hint("write it as ssh takes it, or leave it out"));
        }
    }
    if entry.port == Some(0) {
        let problem = Problem::new(format!("{at}.port"), "is no port");
        found.push(problem.with_hint("from 1 to 65535; 22 where nothing is said"));
    }
    if entry.answer_within.is_some_and(|limit| limit.0 < SHORTEST_LIMIT) {
        let problem = Problem::new(format!("{at}.answer-within"), "must be at least 1s");
        found.push(problem.with_hint("ssh counts in seconds"));
    }
    if let Some((message, hint)) = ssh_option_problem(&entry.ssh_options) {
        found.push(Problem::new(format!("{at}.ssh-options"), message).with_hint(hint));
    }
    let keyword = |option: &str| option.split_once('=').map_or("", |(keyword, _)| keyword).to_owned();
    for option in &entry.ssh_options {
        let keyword = keyword(option);
        let own = OWN_KEYWORDS.iter().find(|(own, _)| own.eq_ignore_ascii_case(&keyword));
        if let Some((own, key)) = own {
            let problem = Problem::new(format!("{at}.ssh-options"), format!("`{own}` has a key of its own"));
            found.push(problem.with_hint(format!("say it with `{key}`")));
        }
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for name in entry.variables.keys().filter(|name| name.is_empty() || !name.chars().all(plain)) {
        let problem = Problem::new(format!("{at}.variables.{name}"), "cannot be a variable's name");
        found.push(problem.with_hint("letters, digits and `_`: templates read `-` as minus"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<HostInventory, String> {
        HostInventory::parse(&TomlSource::new("hosts.toml", text)).map_err(|problems| problems.to_string())
    }

    const LAB: &str = r#"
[defaults]
user = "perf"
jump = "gate"
ssh-options = ["Compression=yes"]
variables = { rack = 1, disk = "/dev/sda" }

[host.gate]
address = "gate.example.org"

[host.e1]
address = "10.0.0.1"
variables = { disk = "/dev/nvme0n1" }

[host.e2]
port = 2222
user = "root"
jump = "none"
ssh-options = ["Compression=no"]

[host.far]
jump = "e1"

[groups]
epyc = ["e1", "e2"]
lab = ["epyc", "far", "e1"]
"#;

    #[test]
    fn hosts_have_defaults_ways_and_groups() {
        let lab = parse(LAB).unwrap();
        let host = |name: &str| &lab.hosts[name];
        assert_eq!(host("gate").jump, None);
        assert_eq!((host("e1").user.as_deref(), host("e2").user.as_deref()), (Some("perf"), Some("root")));
        assert_eq!(host("e2").address, "e2");
        assert_eq!((host("e2").port, host("e2").jump.as_deref()), (Some(2222), None));
        assert_eq!(host("e2").ssh_options, ["Compression=no", "Compression=yes"]);
        assert_eq!(host("e1").variables["disk"], Scalar::Text("/dev/nvme0n1".into()));
        assert_eq!(host("e1").variables["rack"], Scalar::Int(1));
        let way: Vec<&str> = lab.jumps(host("far")).iter().map(|host| host.name.as_str()).collect();
        assert_eq!(way, ["e1", "gate"]);
        let names = |name: &str| -> Vec<&str> {
            lab.members(name).unwrap().iter().map(|host| host.name.as_str()).collect()
        };
        assert_eq!((names("lab"), names("far")), (vec!["e1", "e2", "far"], vec!["far"]));
        assert_eq!(lab.groups_of("e2"), ["epyc", "lab"]);
        assert!(lab.members("nobody").is_none());
    }

    #[test]
    fn what_is_wrong_is_told_at_once_in_its_place() {
        let text = r#"
[defaults]
address = "all"
[host.a]
jump = "b"
[host.b]
jump = "a"
[host.c]
jump = "gaet"
port = 0
user = "-x"
ssh-options = ["Port=1", "BatchMode=no", "what"]
answer-within = "10ms"
variables = { "a-b" = 1 }
[host."x.y"]
[groups]
c = ["a"]
empty = []
one = ["two", "a", "a", "d"]
two = ["one"]
"#;
        insta::assert_snapshot!(parse(text).unwrap_err(), @r#"
hosts.toml:3:1: `defaults.address`: cannot be that of all hosts; write it in `[host.NAME]`
hosts.toml:11:1: `host.c.user`: is no user; write it as ssh takes it, or leave it out
hosts.toml:10:1: `host.c.port`: is no port; from 1 to 65535; 22 where nothing is said
hosts.toml:13:1: `host.c.answer-within`: must be at least 1s; ssh counts in seconds
hosts.toml:12:1: `host.c.ssh-options`: perflab sets `BatchMode` itself; leave it out
hosts.toml:12:1: `host.c.ssh-options`: `Port` has a key of its own; say it with `port`
hosts.toml:14:15: `host.c.variables.a-b`: cannot be a variable's name; letters, digits and `_`: templates read `-` as minus
hosts.toml:4:2: `host.x.y`: cannot be the name of a host or group; letters, digits, `-` and `_`; `host` is the machine that perflab runs on
hosts.toml:5:1: `host.a.jump`: `a` is reached through itself: a -> b -> a; write `jump = "none"` at the one that is reached directly
hosts.toml:7:1: `host.b.jump`: `b` is reached through itself: b -> a -> b; write `jump = "none"` at the one that is reached directly
hosts.toml:9:1: `host.c.jump`: there is no host `gaet` here; known here: a, b, c, x.y
hosts.toml:17:1: `groups.c`: is the name of a host, too; call one of them otherwise
hosts.toml:18:1: `groups.empty`: has no hosts; name hosts or groups, or leave it out
hosts.toml:19:20: `groups.one[2]`: `a` is there twice; leave one out
hosts.toml:19:25: `groups.one[3]`: there is no host and no group `d` here; known here: a, b, c, x.y, c, empty, one, two
hosts.toml:19:1: `groups.one`: the group holds itself: one -> two -> one; name hosts in one of them instead
hosts.toml:20:1: `groups.two`: the group holds itself: two -> one -> two; name hosts in one of them instead
"#);
        insta::assert_snapshot!(parse("[host.a]\nadress = \"x\"\n").unwrap_err(), @"hosts.toml:2:1: `host.a.adress`: the key `adress` is not known here; did you mean `address`?");
        insta::assert_snapshot!(parse("[host.a]\n[host.a]\n").unwrap_err(), @"hosts.toml:2:7: duplicate key");
    }
}
