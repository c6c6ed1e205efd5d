//! Expressions and templates over host facts: `2 * cpus`, `{{ scratch }}/file`.
//!
//! Evaluated by minijinja, whose arithmetic, comparisons, `if … else` and filters (`|int`, `|min`)
//! are what a study may use. This module adds named values that may refer to each other, and says
//! which of them form a cycle. What could fill the memory or the stack is refused before the library sees it.

mod limits;

use std::collections::BTreeMap;

use minijinja::{Environment, UndefinedBehavior};

use crate::{Value, nearest};

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
    #[error("`{beginning}`: {reason}")]
    TooLarge {
        /// the beginning of the text
        beginning: String,
        /// what is too large, and how large it may be
        reason: String,
    },
    /// Values that need each other.
    #[error("the values {path} need each other in a cycle")]
    Cycle {
        /// `a -> b -> a`
        path: String,
    },
}

/// The names that an expression may use, with their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scope {
    names: BTreeMap<String, Value>,
}

impl Scope {
    /// A scope of host facts (see [`crate::Facts::variables`]).
    pub fn new(names: BTreeMap<String, Value>) -> Self {
        Scope { names }
    }

    /// Adds or replaces one name.
    pub fn set(&mut self, name: &str, value: Value) {
        self.names.insert(name.into(), value);
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.names.get(name)
    }

    /// The known names.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.keys().map(String::as_str)
    }

    /// Evaluates `expression`. Division of integers that leaves no rest stays an integer.
    pub fn evaluate(&self, expression: &str) -> Result<Value, ExpressionError> {
        limits::check_expression(expression)?;
        self.check_factors(expression, expression)?;
        let environment = environment();
        let failed = |error: minijinja::Error| failure(expression, &error);
        let compiled = environment.compile_expression(expression).map_err(failed)?;
        for name in compiled.undeclared_variables(false) {
            self.require(expression, &name)?;
        }
        scalar(expression, &compiled.eval(self.context()).map_err(failed)?)
    }

    /// Fills the `{{ … }}` of a template; a text without any is returned as it is.
    pub fn render(&self, template: &str) -> Result<String, ExpressionError> {
        if !template.contains("{{") && !template.contains("{%") {
            return Ok(template.into());
        }
        let tags = limits::check_template(template)?;
        tags.into_iter().try_for_each(|code| self.check_factors(template, code))?;
        let environment = environment();
        let failed = |error: minijinja::Error| failure(template, &error);
        let compiled = environment.template_from_str(template).map_err(failed)?;
        for name in compiled.undeclared_variables(false) {
            self.require(template, &name)?;
        }
        compiled.render(self.context()).map_err(failed)
    }

    /// Adds named values, each a scalar or an expression over the others and what is known already.
    /// On an error, also says which name it is about.
    pub fn define<'a>(
        &mut self,
        values: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<(), (String, ExpressionError)> {
        let values: BTreeMap<&str, &Value> = values.into_iter().collect();
        for name in values.keys() {
            self.define_one(name, &values, &mut Vec::new())?;
        }
        Ok(())
    }

    fn context(&self) -> minijinja::Value {
        minijinja::Value::from_pairs(self.names.iter().map(|(name, value)| (name.as_str(), from(value))))
    }

    fn define_one<'a>(
        &mut self,
        name: &'a str,
        values: &BTreeMap<&'a str, &'a Value>,
        path: &mut Vec<&'a str>,
    ) -> Result<(), (String, ExpressionError)> {
        if path.contains(&name) {
            path.push(name);
            return Err((name.into(), ExpressionError::Cycle { path: path.join(" -> ") }));
        }
        let Some(Value::Text(expression)) = values.get(name) else {
            values.get(name).into_iter().for_each(|value| self.set(name, (*value).clone()));
            return Ok(());
        };
        path.push(name);
        for needed in needs(expression).map_err(|error| (name.to_owned(), error))? {
            if let Some((needed, _)) = values.get_key_value(needed.as_str()) {
                self.define_one(needed, values, path)?;
            }
        }
        path.pop();
        let value = self.evaluate(expression).map_err(|error| (name.to_owned(), error))?;
        self.set(name, value);
        Ok(())
    }

    /// Refuses to multiply what is no number: a text or a list would be repeated that often. Those that are reached only under
    /// other conditions are refused too; what fails by itself is told where it is needed. Before the whole is compiled, as the
    /// library multiplies what it can then.
    fn check_factors(&self, whole: &str, code: &str) -> Result<(), ExpressionError> {
        use minijinja::value::ValueKind::{Bool, None, Number, Undefined};
        let environment = environment();
        for factor in limits::factors(code) {
            let value =
                environment.compile_expression(factor).and_then(|compiled| compiled.eval(self.context()));
            let is_number = match &value {
                Ok(value) => matches!(value.kind(), Number | Bool | None | Undefined),
                Err(error) => error.kind() != minijinja::ErrorKind::SyntaxError,
            };
            if !is_number {
                return Err(limits::not_a_number(whole));
            }
        }
        Ok(())
    }

    fn require(&self, expression: &str, name: &str) -> Result<(), ExpressionError> {
        if self.names.contains_key(name) || environment().globals().any(|(global, _)| global == name) {
            return Ok(());
        }
        let hint = nearest::hint(name, self.names());
        Err(ExpressionError::Unknown { expression: expression.into(), name: name.into(), hint })
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    limits::bound_filters(&mut environment);
    environment
}

fn needs(expression: &str) -> Result<Vec<String>, ExpressionError> {
    limits::check_expression(expression)?;
    Scope::default().check_factors(expression, expression)?;
    let environment = environment();
    let compiled = environment.compile_expression(expression).map_err(|error| failure(expression, &error))?;
    let mut names: Vec<String> = compiled.undeclared_variables(false).into_iter().collect();
    names.sort();
    Ok(names)
}

fn failure(expression: &str, error: &minijinja::Error) -> ExpressionError {
    let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    ExpressionError::Failed { expression: expression.into(), reason }
}

fn from(value: &Value) -> minijinja::Value {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Int(whole) => (*whole).into(),
        Value::Float(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
    }
}

fn scalar(expression: &str, value: &minijinja::Value) -> Result<Value, ExpressionError> {
    if let Some(text) = value.as_str() {
        limits::check_text(expression, text)?;
        return Ok(Value::Text(text.into()));
    }
    if value.kind() == minijinja::value::ValueKind::Bool {
        return Ok(Value::Bool(value.is_true()));
    }
    match (value.is_integer(), i64::try_from(value.clone()), f64::try_from(value.clone())) {
        (true, Ok(whole), _) => Ok(Value::Int(whole)),
        (_, _, Ok(number)) if !number.is_finite() => {
            Err(ExpressionError::Failed { expression: expression.into(), reason: format!("gives {number}") })
        }
        (_, _, Ok(number)) if number.fract() == 0.0 && number.abs() < 9e15 => Ok(Value::Int(number as i64)),
        (_, _, Ok(number)) => Ok(Value::Float(number)),
        _ => {
            Err(ExpressionError::NotAScalar { expression: expression.into(), kind: value.kind().to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Scope {
        let mut scope = Scope::default();
        scope.set("cpus", Value::Int(4));
        scope.set("memory", Value::Int(8 << 30));
        scope
    }

    #[test]
    fn arithmetic_over_facts_keeps_integers() {
        assert_eq!(host().evaluate("2 * cpus"), Ok(Value::Int(8)));
        assert_eq!(host().evaluate("memory / 4"), Ok(Value::Int(2 << 30)));
        assert_eq!(host().evaluate("cpus / 3"), Ok(Value::Float(4.0 / 3.0)));
        assert_eq!(host().evaluate("'a' if cpus > 2 else 'b'"), Ok(Value::from("a")));
        assert_eq!(host().evaluate("[cpus, 2]|min"), Ok(Value::Int(2)));
    }

    #[test]
    fn unknown_names_and_bad_arithmetic_are_named() {
        let error = host().evaluate("2 * cpu").unwrap_err().to_string();
        assert_eq!(error, "`2 * cpu`: `cpu` is not known; did you mean `cpus`?");
        assert!(host().evaluate("cpus / 0").is_err());
        assert!(host().evaluate("2 *").is_err());
        assert!(host().evaluate("[1, 2]").is_err());
    }

    #[test]
    fn values_may_need_each_other_but_not_in_a_cycle() {
        let mut scope = host();
        let (half, all, threads) = (Value::from("all / 2"), Value::from("cpus * 8"), Value::Int(3));
        scope.define([("half", &half), ("all", &all), ("threads", &threads)]).unwrap();
        assert_eq!(scope.get("half"), Some(&Value::Int(16)));
        let (a, b) = (Value::from("b + 1"), Value::from("a + 1"));
        let (_, error) = host().define([("a", &a), ("b", &b)]).unwrap_err();
        assert_eq!(error.to_string(), "the values a -> b -> a need each other in a cycle");
    }

    #[test]
    fn templates_fill_names() {
        assert_eq!(host().render("--threads={{ cpus * 2 }}"), Ok("--threads=8".into()));
        assert_eq!(host().render("plain"), Ok("plain".into()));
        assert!(host().render("{{ nobody }}").is_err());
    }
}
