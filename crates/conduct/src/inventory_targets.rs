//! Hosts of an inventory as targets: whom a study names, how ssh reaches each, and what templates know of it.

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::study::{FactorLevel, TargetKind, TargetSpec, find_study_problems};
use perflab_model::{HostInventory, InventoryHost, PlannedTarget, Problem, Study};

use crate::launcher::ssh::{SshDestination, proxy_command};

/// Puts the hosts of each group in its place among the levels of factors, each once, and finds hosts that there are not.
pub(crate) fn settle_hosts(study: &mut Study, inventory: &HostInventory) -> Vec<Problem> {
    if !study.has_hosts() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let has_host_factor = study.host_factors().next().is_some();
    for (name, target) in &study.target {
        let Some(host) = &target.host else { continue };
        let key = format!("target.{name}.host");
        match inventory.members(host) {
            None => found.push(unknown_host_problem(key, host, inventory)),
            Some(_) if has_host_factor && inventory.groups.contains_key(host) => {
                let problem = Problem::new(key, "a factor names the host, and this is a group of several");
                found.push(problem.with_hint("leave `host` out, or the factor"));
            }
            Some(_) => {}
        }
    }
    for (name, factor) in study.factor.iter_mut().filter(|(_, factor)| factor.varies_hosts()) {
        let mut levels: Vec<FactorLevel> = Vec::new();
        for (index, level) in factor.levels.iter().enumerate() {
            let host = level.value.to_string();
            let Some(members) = inventory.members(&host) else {
                found.push(unknown_host_problem(format!("factor.{name}.levels[{index}]"), &host, inventory));
                continue;
            };
            let of_group = inventory.groups.contains_key(&host);
            let member = |host: &InventoryHost| FactorLevel::named(&host.name, host.name.as_str().into());
            let own = if of_group { members.into_iter().map(member).collect() } else { vec![level.clone()] };
            for level in own {
                if !levels.iter().any(|one| one.name == level.name) {
                    levels.push(level);
                }
            }
        }
        factor.levels = levels.into();
    }
    if found.is_empty() {
        found = find_study_problems(study);
        found.extend(twice_named_problem(study, inventory).or_else(|| shared_host_problem(study, inventory)));
    }
    found
}

/// The hosts that `--set` names by a group; none where it is no group's name.
pub(crate) fn group_levels<'a>(inventory: &'a HostInventory, name: &str) -> Option<Vec<&'a str>> {
    Some(inventory.groups.get(name)?.iter().map(String::as_str).collect())
}

fn unknown_host_problem(key: String, host: &str, inventory: &HostInventory) -> Problem {
    let (message, hint) = inventory.unknown_name(host);
    Problem::new(key, message).with_hint(hint)
}

/// Two targets of one name.
fn twice_named_problem(study: &Study, inventory: &HostInventory) -> Option<Problem> {
    let mut known = BTreeSet::new();
    for (name, spec) in &study.target {
        for target in plan_target(name, spec, inventory) {
            if known.contains(&target.name) {
                let key = if spec.host.is_some() {
                    format!("target.{name}.host")
                } else {
                    format!("target.{name}")
                };
                let problem = Problem::new(key, format!("two targets are called `{}`", target.name));
                return Some(
                    problem.with_hint("the hosts of a group are targets by their own names: name each once"),
                );
            }
            known.insert(target.name);
        }
    }
    None
}

/// Two targets on one host.
fn shared_host_problem(study: &Study, inventory: &HostInventory) -> Option<Problem> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for (name, spec) in &study.target {
        for host in plan_target(name, spec, inventory).into_iter().filter_map(|target| target.spec.host) {
            if let Some(other) = known.get(&host) {
                let message = format!("`{host}` is the host of target `{other}` already");
                return Some(Problem::new(format!("target.{name}.host"), message).with_hint("name it once"));
            }
            known.insert(host, name);
        }
    }
    None
}

/// The targets of `[target.NAME]`: of several alike and of a group, each.
pub(crate) fn plan_target(name: &str, spec: &TargetSpec, inventory: &HostInventory) -> Vec<PlannedTarget> {
    let one = TargetSpec { count: 1, ..spec.clone() };
    if let Some(host) = &spec.host {
        let members = inventory.members(host).unwrap_or_default();
        let is_group = inventory.groups.contains_key(host);
        let named = |host: &InventoryHost| PlannedTarget {
            name: if is_group { host.name.clone() } else { name.to_owned() },
            spec: resolve_host(&one, host, inventory),
        };
        return members.into_iter().map(named).collect();
    }
    let named = |name: String| PlannedTarget { name, spec: one.clone() };
    match spec.count {
        1 => vec![named(name.to_owned())],
        count => (1..=count).map(|number| named(format!("{name}{number}"))).collect(),
    }
}

/// How ssh reaches a host of an inventory.
pub fn plan_host(host: &InventoryHost, inventory: &HostInventory) -> SshDestination {
    SshDestination::of_target(&resolve_host(&TargetSpec::new(TargetKind::Ssh), host, inventory))
}

/// The target with what the inventory has of its host: how ssh reaches it, and its variables.
fn resolve_host(spec: &TargetSpec, host: &InventoryHost, inventory: &HostInventory) -> TargetSpec {
    let mut options = spec.ssh_options.clone();
    options.extend(host_options(host));
    let way = inventory.jumps(host);
    let way: Vec<(&str, Vec<String>)> =
        way.into_iter().map(|jump| (jump.address.as_str(), host_options(jump))).collect();
    options.extend(proxy_command(&way).map(|command| format!("ProxyCommand={command}")));
    let mut variables = host.variables.clone();
    variables.extend(spec.variables.clone());
    TargetSpec {
        host: Some(host.name.clone()),
        address: Some(host.address.clone()),
        ssh_options: options,
        variables,
        ..spec.clone()
    }
}

/// What ssh is told of a host, but for the way to it.
fn host_options(host: &InventoryHost) -> Vec<String> {
    let identity = host.identity.as_ref().map(|path| format!("IdentityFile=\"{path}\""));
    let own = [
        host.user.as_ref().map(|user| format!("User={user}")),
        host.port.map(|port| format!("Port={port}")),
        identity,
        Some(format!("ConnectTimeout={}", host.answer_within.0.div_ceil(1_000_000_000))),
    ];
    own.into_iter().flatten().chain(host.ssh_options.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use perflab_model::study::TomlSource;

    use super::*;

    const LAB: &str = "[host.gate]\nuser = \"jump\"\n[host.a]\naddress = \"fe80::1%eth0\"\nport = 2222\njump = \"gate\"\n\
        variables = { disk = \"sda\", rack = 1 }\n[host.b]\n[groups]\nlab = [\"a\", \"b\"]\nall = [\"lab\", \"gate\"]\n";

    fn settle(rest: &str) -> Result<Study, String> {
        let source = TomlSource::new("s.toml", format!("title = \"t\"\n[workload.echo]\n{rest}"));
        let mut study = source.parse_study().map_err(|problems| problems.to_string())?;
        let lab = HostInventory::parse(&TomlSource::new("hosts.toml", LAB)).unwrap();
        let found = settle_hosts(&mut study, &lab);
        if found.is_empty() { Ok(study) } else { Err(source.place_problems(found).to_string()) }
    }

    #[test]
    fn a_group_is_its_hosts_and_a_host_a_target_of_the_studys_name() {
        let lab = HostInventory::parse(&TomlSource::new("hosts.toml", LAB)).unwrap();
        let text = "[target.node]\nkind = \"ssh\"\nhost = \"lab\"\nvariables = { rack = 2 }\n";
        let study = settle(text).unwrap();
        let targets = plan_target("node", &study.target["node"], &lab);
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let spec = &targets[0].spec;
        assert_eq!((spec.host.as_deref(), spec.address.as_deref()), (Some("a"), Some("fe80::1%eth0")));
        assert_eq!(spec.variables["rack"], 2_i64.into());
        insta::assert_snapshot!(spec.ssh_options.join("\n"), @"
Port=2222
ConnectTimeout=10
ProxyCommand=ssh -o BatchMode=yes -o 'User=jump' -o 'ConnectTimeout=10' -W '[%h]:%p' -- gate
");
        let one = plan_target(
            "client",
            &TargetSpec { host: Some("b".into()), ..study.target["node"].clone() },
            &lab,
        );
        assert_eq!((one.len(), one[0].name.as_str(), one[0].spec.host.as_deref()), (1, "client", Some("b")));
    }

    #[test]
    fn a_group_among_levels_is_its_hosts() {
        let text = "[target.box]\nkind = \"ssh\"\n[factor.machine]\nkind = \"target\"\nkey = \"host\"\nlevels = [\"b\", \"all\"]\n";
        let study = settle(text).unwrap();
        let levels: Vec<&str> =
            study.factor["machine"].levels.iter().map(|level| level.name.as_str()).collect();
        assert_eq!(levels, ["b", "a", "gate"]);
    }

    #[test]
    fn hosts_that_there_are_not_are_named_in_their_place() {
        let node = |host: &str| format!("[target.node]\nkind = \"ssh\"\nhost = \"{host}\"\n");
        let factor = "[factor.machine]\nkind = \"target\"\nkey = \"host\"\nlevels = [\"c\", \"lab\"]\n";
        let two = format!("{}[target.a]\nkind = \"process\"\n", node("lab"));
        let all = [
            settle(&node("lba")).unwrap_err(),
            settle(&format!("[target.node]\nkind = \"ssh\"\n{factor}")).unwrap_err(),
            settle(&format!("{}{factor}", node("lab"))).unwrap_err(),
            settle(&two).unwrap_err(),
            settle(&format!("{}[target.one]\nkind = \"ssh\"\nhost = \"b\"\n", node("b"))).unwrap_err(),
            settle(&format!("{}address = \"x\"\ncount = 2\nssh-options = [\"x\"]\n", node("lab")))
                .unwrap_err(),
            settle("[target.node]\nkind = \"process\"\nhost = \"lab\"\n").unwrap_err(),
        ];
        insta::assert_snapshot!(all.join("\n"), @"
s.toml:5:1: `target.node.host`: hosts.toml has no host and no group `lba`; did you mean `lab`?
s.toml:8:11: `factor.machine.levels[0]`: hosts.toml has no host and no group `c`; known here: gate, a, b, lab, all
s.toml:5:1: `target.node.host`: a factor names the host, and this is a group of several; leave `host` out, or the factor
s.toml:9:11: `factor.machine.levels[0]`: hosts.toml has no host and no group `c`; known here: gate, a, b, lab, all
s.toml:6:9: `target.a`: two targets are called `a`; the hosts of a group are targets by their own names: name each once
s.toml:8:1: `target.one.host`: `b` is the host of target `node` already; name it once
s.toml:5:1: `target.node.host`: has its address in the inventory; leave `address` out, or `host`
s.toml:7:1: `target.node.count`: a host is one machine; name a group of the inventory, or several targets
s.toml:8:1: `target.node.ssh-options`: `x` is no option of ssh's; write KEYWORD=VALUE, as in `man ssh_config`: `Port=2222`
s.toml:5:1: `target.node.host`: means nothing for a target of kind `process`
");
    }
}
