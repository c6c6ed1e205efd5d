//! Hosts of an inventory: `perflab host list`, `check`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use perflab_conduct::launcher::{HostFacts, HostHolder, ReachedHost};
use perflab_conduct::plan_host;
use perflab_model::error_class::ErrorClass;
use perflab_model::{HostInventory, InventoryHost, StopRequest};
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use serde::Serialize;

use crate::app::{App, print_result};
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::inventory_file::{find_inventory, read_inventory};
use crate::measure::run::stop_on_interrupt;
use crate::verb::Verb;

/// Look at the hosts of an inventory, and whether perflab runs there
#[derive(Debug, Args)]
#[command(after_long_help = HOST)]
pub struct HostArgs {
    #[command(subcommand)]
    verb: HostVerb,
}

const HOST: &str = "\
Examples:
  perflab host list                 the hosts of ./hosts.toml, else of ~/.config/perflab/hosts.toml
  perflab host check lab            reach all hosts of a group: kernel, login, who holds them";

impl Verb for HostArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match &self.verb {
            HostVerb::List(chosen) => list_hosts(app, chosen),
            HostVerb::Check(chosen) => check_hosts(app, chosen),
        }
    }
}

/// What there is to ask of hosts.
#[derive(Debug, Subcommand)]
enum HostVerb {
    /// List hosts, how ssh reaches them, and their groups
    List(ChosenHosts),
    /// Reach hosts, all at the same time, and start perflab there; exit with code 3 if one cannot be used
    Check(ChosenHosts),
}

/// Which hosts.
#[derive(Debug, Args)]
struct ChosenHosts {
    /// Hosts or groups (default: all hosts)
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The inventory (default: hosts.toml here, else that of the user, ~/.config/perflab/hosts.toml)
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

impl ChosenHosts {
    fn read_inventory(&self) -> Result<HostInventory, Failure> {
        let inventory = match &self.inventory {
            Some(path) => read_inventory(path)?,
            None => find_inventory(Path::new(""))?,
        };
        if inventory.file.is_none() {
            let message = format!("there is no inventory: neither {}", inventory.looked_in.join(" nor "));
            let hint = "write one, with `[host.NAME]` and its `address`, or name its file by --inventory";
            return Err(UsageError::new(message, hint).into());
        }
        Ok(inventory)
    }

    /// Each host that is named, by itself or by its group, once.
    fn select<'a>(&self, inventory: &'a HostInventory) -> Result<Vec<&'a InventoryHost>, UsageError> {
        if self.names.is_empty() {
            return Ok(inventory.hosts.values().collect());
        }
        let mut selected: Vec<&InventoryHost> = Vec::new();
        for name in &self.names {
            let members = inventory.members(name).ok_or_else(|| {
                let (message, hint) = inventory.unknown_name(name);
                UsageError::new(message, hint)
            })?;
            for host in members {
                if !selected.contains(&host) {
                    selected.push(host);
                }
            }
        }
        Ok(selected)
    }
}

/// A host with its groups.
#[derive(Debug, Serialize)]
struct ListedHost<'a> {
    #[serde(flatten)]
    host: &'a InventoryHost,
    groups: Vec<&'a str>,
}

fn list_hosts(context: &App, chosen: &ChosenHosts) -> Result<Exit, Failure> {
    let inventory = chosen.read_inventory()?;
    let listed = chosen.select(&inventory)?.into_iter();
    let listed: Vec<ListedHost<'_>> =
        listed.map(|host| ListedHost { host, groups: inventory.groups_of(&host.name) }).collect();
    context.note_line(&format!("inventory: {}", inventory.file.as_deref().unwrap_or_default()));
    print_result(context, &listed, || {
        let columns = ["host", "address", "user", "port", "through", "groups", "variables"];
        let mut grid = Grid::new(columns.map(GridColumn::left));
        for ListedHost { host, groups } in &listed {
            let variables = host.variables.iter().map(|(name, value)| format!("{name}={value}"));
            let port = host.port.map(|port| port.to_string()).unwrap_or_default();
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let cells = [
                host.name.clone(),
                host.address.clone(),
                text(&host.user),
                port,
                text(&host.jump),
                groups.join(", "),
                variables.collect::<Vec<_>>().join(", "),
            ];
            grid.add_row(cells.iter().map(|text| GridCell::from(text.as_str())));
        }
        grid
    })?;
    Ok(Exit::Fine)
}

/// What came of reaching a host.
#[derive(Debug, Serialize)]
struct CheckedHost<'a> {
    host: &'a str,
    /// what it is, where it was reached
    facts: Option<HostFacts>,
    /// whether perflab ran there
    runs: bool,
    /// whether a study holds it
    held: bool,
    /// which one, if it says so
    holder: Option<HostHolder>,
    /// why it cannot be used
    problem: Option<String>,
}

fn check_hosts(context: &App, chosen: &ChosenHosts) -> Result<Exit, Failure> {
    let inventory = chosen.read_inventory()?;
    let hosts = chosen.select(&inventory)?;
    let perflab = std::env::current_exe().context("cannot find perflab's own binary")?;
    let stop = stop_on_interrupt()?;
    let checked: Vec<CheckedHost<'_>> = std::thread::scope(|scope| {
        let check = |host| {
            let (inventory, perflab, stop) = (&inventory, &perflab, &stop);
            scope.spawn(move || check_host(host, inventory, perflab, stop))
        };
        let checking: Vec<_> = hosts.into_iter().map(check).collect();
        checking.into_iter().filter_map(|one| one.join().ok()).collect()
    });
    print_result(context, &checked, || {
        let columns = ["host", "answers after", "architecture", "kernel", "login", "perflab", "held by"];
        let mut grid = Grid::new(columns.map(GridColumn::left));
        for host in &checked {
            let facts = host.facts.as_ref();
            let login = facts.map(|facts| match facts.root {
                true => facts.user.clone(),
                false => format!("{}, not root", facts.user),
            });
            let holder = match (&host.holder, host.held) {
                (Some(holder), _) => holder.to_string(),
                (None, true) => "a study that does not say which".to_owned(),
                (None, false) => String::new(),
            };
            let cells = [
                host.host.to_owned(),
                facts.map(|facts| facts.answered_after.to_string()).unwrap_or_default(),
                facts.map(|facts| facts.architecture.clone()).unwrap_or_default(),
                facts.map(|facts| facts.kernel.clone()).unwrap_or_default(),
                login.unwrap_or_default(),
                if host.runs { "runs".to_owned() } else { "does not run".to_owned() },
                holder,
            ];
            grid.add_row(cells.iter().map(|text| GridCell::from(text.as_str())));
        }
        grid
    })?;
    let problems: Vec<&str> = checked.iter().filter_map(|host| host.problem.as_deref()).collect();
    problems.iter().for_each(|problem| stderr_line!("error: {problem}"));
    Ok(if problems.is_empty() { Exit::Fine } else { Exit::Class(ErrorClass::Environment) })
}

fn check_host<'a>(
    host: &'a InventoryHost,
    inventory: &HostInventory,
    perflab: &Path,
    stop: &StopRequest,
) -> CheckedHost<'a> {
    let destination = plan_host(host, inventory);
    match ReachedHost::reach(&host.name, &destination, perflab, stop) {
        Ok(reached) => CheckedHost {
            host: &host.name,
            facts: Some(reached.facts.clone()),
            runs: true,
            held: reached.is_held,
            holder: reached.holder.clone(),
            problem: None,
        },
        Err(refusal) => CheckedHost {
            host: &host.name,
            facts: None,
            runs: false,
            held: false,
            holder: None,
            problem: Some(refusal.to_string()),
        },
    }
}
