//! Expressions and templates over host facts: `2 * cpus`, `{{ scratch }}/file`.
//!
//! Evaluated by minijinja, whose arithmetic, comparisons, `if … else` and filters (`|int`, `|min`) are what a study
//! may use. This module adds named values that refer to each other, finds those that form a cycle, and refuses what
//! could fill the memory or the stack before the library sees it.

use std::collections::BTreeMap;

use minijinja::{Environment, UndefinedBehavior};

use crate::expression_limits::{self, ExpressionTooLarge};
use crate::expression_lists;
use crate::problem;
use crate::scalar::Scalar;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The library refused it.
    #[error("`{expression}`: {reason}")]
    Failed {
        /// the text
        expression: String,
        /// the library's reason
        reason: String,
    },
    /// A name that nobody defined.
    #[error("`{expression}`: `{name}` is not known; {hint}")]
    Unknown {
        /// the text
        expression: String,
        /// the name
        name: String,
        /// the nearest name, or all
        hint: String,
    },
    /// Its value is a list or nothing at all.
    #[error("`{expression}` gives {kind}, and a number or a text is needed")]
    NotAScalar {
        /// the text
        expression: String,
        /// what it gives
        kind: String,
    },
    /// Longer, deeper or able to grow more than an expression may be.
    #[error(transparent)]
    TooLarge(#[from] ExpressionTooLarge),
    /// Values that need each other.
    #[error("the values {path} need each other in a cycle")]
    Cycle {
        /// `a -> b -> a`
        path: String,
    },
}

/// The names that an expression may use, with their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpressionScope {
    names: BTreeMap<String, Scalar>,
}

impl ExpressionScope {
    /// A scope of host facts (see [`crate::Facts::expression_names`]).
    pub fn new(names: BTreeMap<String, Scalar>) -> Self {
        ExpressionScope { names }
    }

    /// Adds or replaces one name; `a.b` is the name `b` of a table `a`.
    pub fn set(&mut self, name: &str, value: Scalar) {
        self.names.insert(name.into(), value);
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        self.names.get(name)
    }

    /// The known names.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.keys().map(String::as_str)
    }

    /// Evaluates `expression`. Division of integers that leaves no rest stays an integer.
    pub fn evaluate(&self, expression: &str) -> Result<Scalar, ExpressionError> {
        expression_limits::check_expression(expression)?;
        self.check_factors(expression, expression)?;
        let environment = strict_environment();
        let failed = |error: minijinja::Error| evaluation_error(expression, &error);
        let compiled = environment.compile_expression(expression).map_err(failed)?;
        for name in compiled.undeclared_variables(false) {
            self.require_defined(expression, &name)?;
        }
        to_scalar(expression, &compiled.eval(self.minijinja_context()).map_err(failed)?)
    }

    /// Evaluates an expression that gives a list; a single value is a list of one. Besides lists such as `[1, cpus]`, these
    /// functions give one, in ascending order and without repetitions:
    ///
    /// | function | values |
    /// |---|---|
    /// | `powers(low, high)` | low, twice as much, … up to high, and high |
    /// | `steps(low, high, n)` | n numbers from low to high, at equal distances, rounded |
    /// | `walk(low, high)` | low, the threads of a core, the CPUs of a last-level cache, of a node, of the machine, high |
    ///
    /// # Errors
    /// It has no value, one of its elements is no scalar, or there are more than 1,000.
    pub fn evaluate_list(&self, expression: &str) -> Result<Vec<Scalar>, ExpressionError> {
        expression_limits::check_expression(expression)?;
        self.check_factors(expression, expression)?;
        let mut environment = strict_environment();
        expression_lists::add_list_functions(&mut environment, expression_lists::topology_steps(&self.names));
        let failed = |error: minijinja::Error| evaluation_error(expression, &error);
        let compiled = environment.compile_expression(expression).map_err(failed)?;
        for name in compiled.undeclared_variables(false) {
            self.require_defined(expression, &name)?;
        }
        let value = compiled.eval(self.minijinja_context()).map_err(failed)?;
        if value.kind() != minijinja::value::ValueKind::Seq {
            return Ok(vec![to_scalar(expression, &value)?]);
        }
        let elements: Vec<minijinja::Value> = value.try_iter().map_err(failed)?.collect();
        expression_limits::check_list_length(expression, elements.len())?;
        elements.iter().map(|element| to_scalar(expression, element)).collect()
    }

    /// Fills the `{{ … }}` of a template; a text without any is returned as it is.
    pub fn render(&self, template: &str) -> Result<String, ExpressionError> {
        if !template.contains("{{") && !template.contains("{%") {
            return Ok(template.into());
        }
        let tags = expression_limits::check_template(template)?;
        tags.into_iter().try_for_each(|code| self.check_factors(template, code))?;
        let environment = strict_environment();
        let failed = |error: minijinja::Error| evaluation_error(template, &error);
        let compiled = environment.template_from_str(template).map_err(failed)?;
        for name in compiled.undeclared_variables(false) {
            self.require_defined(template, &name)?;
        }
        compiled.render(self.minijinja_context()).map_err(failed)
    }

    /// Adds named values, each a scalar or an expression over the others and what is known already.
    /// On an error, also says which name it is about.
    pub fn define<'a>(
        &mut self,
        values: impl IntoIterator<Item = (&'a str, &'a Scalar)>,
    ) -> Result<(), (String, ExpressionError)> {
        let values: BTreeMap<&str, &Scalar> = values.into_iter().collect();
        for name in values.keys() {
            self.define_recursively(name, &values, &mut Vec::new())?;
        }
        Ok(())
    }

    fn minijinja_context(&self) -> minijinja::Value {
        nest_names(self.names.iter().map(|(name, value)| (name.as_str(), value)).collect())
    }

    fn define_recursively<'a>(
        &mut self,
        name: &'a str,
        values: &BTreeMap<&'a str, &'a Scalar>,
        path: &mut Vec<&'a str>,
    ) -> Result<(), (String, ExpressionError)> {
        if path.contains(&name) {
            path.push(name);
            return Err((name.into(), ExpressionError::Cycle { path: path.join(" -> ") }));
        }
        let Some(Scalar::Text(expression)) = values.get(name) else {
            values.get(name).into_iter().for_each(|value| self.set(name, (*value).clone()));
            return Ok(());
        };
        path.push(name);
        for needed in find_undeclared_names(expression).map_err(|error| (name.to_owned(), error))? {
            if let Some((needed, _)) = values.get_key_value(needed.as_str()) {
                self.define_recursively(needed, values, path)?;
            }
        }
        path.pop();
        let value = self.evaluate(expression).map_err(|error| (name.to_owned(), error))?;
        self.set(name, value);
        Ok(())
    }

    /// Refuses to multiply what is not a number: a text or a list would be repeated that often. Those that are reached only under
    /// other conditions are refused too; what fails by itself is reported where it is needed. Before the whole is compiled, as the
    /// library multiplies what it can then.
    fn check_factors(&self, whole: &str, code: &str) -> Result<(), ExpressionError> {
        use minijinja::value::ValueKind::{Bool, None, Number, Undefined};
        let environment = strict_environment();
        for factor in expression_limits::find_factors(code) {
            let value = environment
                .compile_expression(factor)
                .and_then(|compiled| compiled.eval(self.minijinja_context()));
            let is_number = match &value {
                Ok(value) => matches!(value.kind(), Number | Bool | None | Undefined),
                Err(error) => error.kind() != minijinja::ErrorKind::SyntaxError,
            };
            if !is_number {
                return Err(expression_limits::multiplication_error(whole).into());
            }
        }
        Ok(())
    }

    fn require_defined(&self, expression: &str, name: &str) -> Result<(), ExpressionError> {
        let is_global = strict_environment().globals().any(|(global, _)| global == name);
        let is_table =
            || self.names().any(|known| known.split_once('.').is_some_and(|(table, _)| table == name));
        if self.names.contains_key(name)
            || is_table()
            || is_global
            || expression_lists::FUNCTIONS.contains(&name)
        {
            return Ok(());
        }
        let hint = problem::suggest_name(name, self.names());
        Err(ExpressionError::Unknown { expression: expression.into(), name: name.into(), hint })
    }
}

/// Names as a template sees them: `target.address` is `address` of the table `target`, unless a name is `target` itself.
fn nest_names(names: BTreeMap<&str, &Scalar>) -> minijinja::Value {
    let mut flat: BTreeMap<&str, minijinja::Value> = BTreeMap::new();
    let mut tables: BTreeMap<&str, BTreeMap<&str, &Scalar>> = BTreeMap::new();
    for (name, value) in names {
        match name.split_once('.') {
            Some((table, rest)) => drop(tables.entry(table).or_default().insert(rest, value)),
            None => drop(flat.insert(name, to_minijinja_value(value))),
        }
    }
    for (table, names) in tables {
        flat.entry(table).or_insert_with(|| nest_names(names));
    }
    minijinja::Value::from_pairs(flat)
}

fn strict_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    expression_limits::add_bounded_filters(&mut environment);
    environment
}

/// The names that a template needs from its scope, sorted; none of a text that is no template.
///
/// # Errors
/// A template that is too large or does not compile.
pub fn template_names(template: &str) -> Result<Vec<String>, ExpressionError> {
    if !template.contains("{{") && !template.contains("{%") {
        return Ok(Vec::new());
    }
    let tags = expression_limits::check_template(template)?;
    tags.into_iter().try_for_each(|code| ExpressionScope::default().check_factors(template, code))?;
    let environment = strict_environment();
    let compiled =
        environment.template_from_str(template).map_err(|error| evaluation_error(template, &error))?;
    let mut names: Vec<String> = compiled.undeclared_variables(false).into_iter().collect();
    names.sort();
    Ok(names)
}

fn find_undeclared_names(expression: &str) -> Result<Vec<String>, ExpressionError> {
    expression_limits::check_expression(expression)?;
    ExpressionScope::default().check_factors(expression, expression)?;
    let environment = strict_environment();
    let compiled =
        environment.compile_expression(expression).map_err(|error| evaluation_error(expression, &error))?;
    let mut names: Vec<String> = compiled.undeclared_variables(false).into_iter().collect();
    names.sort();
    Ok(names)
}

fn evaluation_error(expression: &str, error: &minijinja::Error) -> ExpressionError {
    let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    ExpressionError::Failed { expression: expression.into(), reason }
}

fn to_minijinja_value(value: &Scalar) -> minijinja::Value {
    match value {
        Scalar::Bool(truth) => (*truth).into(),
        Scalar::Int(whole) => (*whole).into(),
        Scalar::Float(number) => (*number).into(),
        Scalar::Text(text) => text.as_str().into(),
    }
}

fn to_scalar(expression: &str, value: &minijinja::Value) -> Result<Scalar, ExpressionError> {
    if let Some(text) = value.as_str() {
        expression_limits::check_text_length(expression, text)?;
        return Ok(Scalar::Text(text.into()));
    }
    if value.kind() == minijinja::value::ValueKind::Bool {
        return Ok(Scalar::Bool(value.is_true()));
    }
    match (value.is_integer(), i64::try_from(value.clone()), f64::try_from(value.clone())) {
        (true, Ok(whole), _) => Ok(Scalar::Int(whole)),
        (_, _, Ok(number)) if !number.is_finite() => {
            Err(ExpressionError::Failed { expression: expression.into(), reason: format!("gives {number}") })
        }
        (_, _, Ok(number)) if number.fract() == 0.0 && number.abs() < 9e15 => Ok(Scalar::Int(number as i64)),
        (_, _, Ok(number)) => Ok(Scalar::Float(number)),
        _ => {
            Err(ExpressionError::NotAScalar { expression: expression.into(), kind: value.kind().to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_scope() -> ExpressionScope {
        let mut scope = ExpressionScope::default();
        scope.set("cpus", Scalar::Int(4));
        scope.set("memory", Scalar::Int(8 << 30));
        scope
    }

    #[test]
    fn arithmetic_over_facts_keeps_integers() {
        assert_eq!(host_scope().evaluate("2 * cpus"), Ok(Scalar::Int(8)));
        assert_eq!(host_scope().evaluate("memory / 4"), Ok(Scalar::Int(2 << 30)));
        assert_eq!(host_scope().evaluate("cpus / 3"), Ok(Scalar::Float(4.0 / 3.0)));
        assert_eq!(host_scope().evaluate("'a' if cpus > 2 else 'b'"), Ok(Scalar::from("a")));
        assert_eq!(host_scope().evaluate("[cpus, 2]|min"), Ok(Scalar::Int(2)));
    }

    #[test]
    fn lists_follow_the_processors() {
        let list = |expression: &str| -> String {
            let values = host_scope().evaluate_list(expression).unwrap();
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(list("powers(1, 2 * cpus)"), "1 2 4 8");
        assert_eq!(list("powers(1, 12)"), "1 2 4 8 12");
        assert_eq!(list("powers(3, 3)"), "3");
        assert_eq!(list("steps(1, 10, 4)"), "1 4 7 10");
        assert_eq!(list("steps(1, 3, 9)"), "1 2 3");
        assert_eq!(list("[1, cpus, 'all']"), "1 4 all");
        assert_eq!(list("cpus"), "4");
        // Two sockets of two cores of two threads, a cache each socket, one node.
        let mut scope = ExpressionScope::default();
        let known = [("cpus", 8), ("threads_per_core", 2), ("llcs", 2), ("numa_nodes", 1)];
        known.into_iter().for_each(|(name, value)| scope.set(name, Scalar::Int(value)));
        let walk = |expression: &str| scope.evaluate_list(expression).unwrap();
        assert_eq!(walk("(walk(2, 8))|first"), [Scalar::Int(2)]);
        assert_eq!(walk("walk(1, 2 * cpus)"), [1, 2, 4, 8, 16].map(Scalar::Int));
        assert_eq!(walk("walk(1, 4)"), [1, 2, 4].map(Scalar::Int));
    }

    #[test]
    fn lists_that_are_none_or_too_long_are_refused() {
        let refusal = |expression: &str| host_scope().evaluate_list(expression).unwrap_err().to_string();
        insta::assert_snapshot!(refusal("powers(0, 8)"), @"`powers(0, 8)`: low is 0 and high 8, and 1 <= low <= high is needed");
        insta::assert_snapshot!(refusal("powers(8, 1)"), @"`powers(8, 1)`: low is 8 and high 1, and 1 <= low <= high is needed");
        insta::assert_snapshot!(refusal("steps(1, 8, 0)"), @"`steps(1, 8, 0)`: n is 0, and must be between 1 and 1000");
        insta::assert_snapshot!(refusal("range(5000)"), @"`range(5000)`: it gives a list of 5000 values; at most 1000 are allowed");
        insta::assert_snapshot!(refusal("[[1]]"), @"`[[1]]` gives sequence, and a number or a text is needed");
        insta::assert_snapshot!(refusal("power(1, 2)"), @"`power(1, 2)`: `power` is not known; known here: cpus, memory");
    }

    #[test]
    fn unknown_names_and_bad_arithmetic_are_named() {
        let error = host_scope().evaluate("2 * cpu").unwrap_err().to_string();
        assert_eq!(error, "`2 * cpu`: `cpu` is not known; did you mean `cpus`?");
        assert!(host_scope().evaluate("cpus / 0").is_err());
        assert!(host_scope().evaluate("2 *").is_err());
        assert!(host_scope().evaluate("[1, 2]").is_err());
    }

    #[test]
    fn values_may_need_each_other_but_not_in_a_cycle() {
        let mut scope = host_scope();
        let (half, all, threads) = (Scalar::from("all / 2"), Scalar::from("cpus * 8"), Scalar::Int(3));
        scope.define([("half", &half), ("all", &all), ("threads", &threads)]).unwrap();
        assert_eq!(scope.get("half"), Some(&Scalar::Int(16)));
        let (a, b) = (Scalar::from("b + 1"), Scalar::from("a + 1"));
        let (_, error) = host_scope().define([("a", &a), ("b", &b)]).unwrap_err();
        assert_eq!(error.to_string(), "the values a -> b -> a need each other in a cycle");
    }

    #[test]
    fn templates_fill_names() {
        assert_eq!(host_scope().render("--threads={{ cpus * 2 }}"), Ok("--threads=8".into()));
        assert_eq!(host_scope().render("plain"), Ok("plain".into()));
        assert!(host_scope().render("{{ nobody }}").is_err());
    }
}
