//! Functions of expressions that give lists of whole numbers: sweeps over threads, sizes and processors.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Environment, Error, ErrorKind};

use crate::expression_limits::LONGEST_LIST;
use crate::scalar::Scalar;

/// Their names.
pub(crate) const FUNCTIONS: [&str; 3] = ["powers", "steps", "walk"];

/// Adds them; `topology` are the numbers of CPUs at which `walk` stops.
pub(crate) fn add_list_functions(environment: &mut Environment<'_>, topology: Vec<i64>) {
    environment.add_function("powers", list_powers);
    environment.add_function("steps", list_steps);
    environment.add_function("walk", move |low: i64, high: i64| {
        check_bounds(low, high)?;
        let inside = topology.iter().copied().filter(|number| (low..=high).contains(number));
        Ok(sort_distinct(inside.chain([low, high])))
    });
}

/// How many CPUs share something, from a core's to the machine's, as far as `names` tell.
pub(crate) fn topology_steps(names: &BTreeMap<String, Scalar>) -> Vec<i64> {
    let number = |name: &str| match names.get(name) {
        Some(Scalar::Int(number)) => Some(*number).filter(|number| *number > 0),
        _ => None,
    };
    let Some(cpus) = number("cpus") else { return Vec::new() };
    let parts = ["llcs", "sockets", "numa_nodes"].map(|name| number(name).map(|count| cpus / count));
    parts.into_iter().flatten().chain(number("threads_per_core")).chain([cpus]).collect()
}

fn list_powers(low: i64, high: i64) -> Result<Vec<i64>, Error> {
    check_bounds(low, high)?;
    let powers = std::iter::successors(Some(low), |number| number.checked_mul(2));
    Ok(sort_distinct(powers.take_while(|number| *number <= high).chain([high])))
}

fn list_steps(low: i64, high: i64, count: i64) -> Result<Vec<i64>, Error> {
    check_bounds(low, high)?;
    let most = i64::try_from(LONGEST_LIST).unwrap_or(i64::MAX);
    if !(1..=most).contains(&count) {
        let message = format!("n is {count}, and must be between 1 and {most}");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let gaps = (count - 1).max(1);
    let rounded = |step: i64| {
        let way = i128::from(high - low) * i128::from(step);
        low + i64::try_from((way + i128::from(gaps / 2)) / i128::from(gaps)).unwrap_or(0)
    };
    Ok(sort_distinct((0..count).map(rounded)))
}

fn check_bounds(low: i64, high: i64) -> Result<(), Error> {
    if low >= 1 && low <= high {
        return Ok(());
    }
    let message = format!("low is {low} and high {high}, and 1 <= low <= high is needed");
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn sort_distinct(numbers: impl IntoIterator<Item = i64>) -> Vec<i64> {
    numbers.into_iter().collect::<BTreeSet<i64>>().into_iter().collect()
}
