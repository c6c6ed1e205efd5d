//! Columns that are worked out of a monitor's counters when they are read, never stored: efficiency, latency, shares.
//!
//! A monitor's file declares its own beside its columns; `derived_columns` has the list of them. Each is the growth of some
//! counters over something: time, the growth of others, or operations of the workload. It is the same for an iteration,
//! for the time between two ticks, and for a span: growths are added up first and divided then.

/// One column that is worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DerivedColumn {
    /// What it is called beside the monitor's own: `kswapd_efficiency`.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// What it says, and whose formula it is.
    pub meaning: &'static str,
    /// Counters whose growth is added up; those that a kernel has not are left out.
    pub plus: &'static [&'static str],
    /// Counters whose growth is taken off.
    pub minus: &'static [&'static str],
    /// What that is divided by.
    pub divisor: Divisor,
    /// What the quotient is multiplied by to be in `unit`.
    pub scale: f64,
}

/// What a derived column is per.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Divisor {
    /// a second
    Time,
    /// the growth of these counters together
    Growth(&'static [&'static str]),
    /// an operation of the workload, where it says how many a second it did
    Operations,
}

impl DerivedColumn {
    /// In per cent of the growth of other counters.
    pub(crate) const fn share(
        name: &'static str,
        meaning: &'static str,
        plus: &'static [&'static str],
        of: &'static [&'static str],
    ) -> Self {
        DerivedColumn {
            name,
            unit: "%",
            meaning,
            plus,
            minus: &[],
            divisor: Divisor::Growth(of),
            scale: 100.0,
        }
    }

    /// The growth of some counters for each of others: nanoseconds a request.
    pub(crate) const fn each(
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
        plus: &'static [&'static str],
        of: &'static [&'static str],
    ) -> Self {
        DerivedColumn { name, unit, meaning, plus, minus: &[], divisor: Divisor::Growth(of), scale: 1.0 }
    }

    /// The growth of some counters an operation of the workload.
    pub(crate) const fn per_operation(
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
        plus: &'static [&'static str],
    ) -> Self {
        DerivedColumn { name, unit, meaning, plus, minus: &[], divisor: Divisor::Operations, scale: 1.0 }
    }

    /// The growth of some counters a second.
    pub(crate) const fn per_second(
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
        plus: &'static [&'static str],
        scale: f64,
    ) -> Self {
        DerivedColumn { name, unit, meaning, plus, minus: &[], divisor: Divisor::Time, scale }
    }

    /// The value, given how much each counter has grown in that many seconds, and how many operations the workload did then.
    /// None where none of its counters is known, one went backwards, or what it is divided by is nothing.
    pub fn value(
        &self,
        growth: impl Fn(&str) -> Option<f64>,
        seconds: f64,
        operations: Option<f64>,
    ) -> Option<f64> {
        let sum = |names: &[&str]| {
            let known: Vec<f64> = names.iter().filter_map(|name| growth(name)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>())
        };
        let grown = sum(self.plus)? - sum(self.minus).unwrap_or(0.0);
        let divisor = match self.divisor {
            Divisor::Time => seconds,
            Divisor::Growth(names) => sum(names)?,
            Divisor::Operations => operations?,
        };
        (divisor > 0.0).then(|| self.scale * grown / divisor).filter(|value| value.is_finite())
    }

    /// All counters that it needs.
    pub fn counters(&self) -> impl Iterator<Item = &'static str> {
        let below = if let Divisor::Growth(names) = self.divisor { names } else { &[] };
        self.plus.iter().chain(self.minus).chain(below).copied()
    }

    /// The formula, for people: `100 * pgsteal_kswapd / pgscan_kswapd`.
    pub fn formula(&self) -> String {
        let sum = |names: &[&str]| match names {
            [one] => (*one).to_owned(),
            several => format!("({})", several.join(" + ")),
        };
        let mut text = sum(self.plus);
        if !self.minus.is_empty() {
            text = format!("({text} - {})", self.minus.join(" - "));
        }
        let divisor = match self.divisor {
            Divisor::Time => "s".to_owned(),
            Divisor::Growth(names) => sum(names),
            Divisor::Operations => "operations".to_owned(),
        };
        if self.scale == 1.0 {
            format!("{text} / {divisor}")
        } else {
            format!("{} * {text} / {divisor}", self.scale)
        }
    }
}
