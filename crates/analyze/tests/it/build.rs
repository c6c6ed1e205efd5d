//! Makes runs for tests: a plan from workloads and factors, and a value for every slot. It refuses chance: noise
//! comes from a seed.

use indexmap::IndexMap;
use perflab_model::run::ClockAnchor;
use perflab_model::study::TomlSource;
use perflab_model::{
    Case, Direction, FORMAT_VERSION, Facts, IterationRecord, Manifest, Nanos, Outcome, Overhead, RunPlan,
    RunRecord, RunStatus, Sample, Slot, Unit,
};

/// A metric of every workload of a run.
#[derive(Clone)]
pub struct MeasuredMetric {
    pub name: &'static str,
    pub unit: &'static str,
    pub direction: Direction,
    pub primary: bool,
}

pub fn primary_metric(name: &'static str, unit: &'static str, direction: Direction) -> MeasuredMetric {
    MeasuredMetric { name, unit, direction, primary: true }
}

pub fn explanatory_metric(name: &'static str, unit: &'static str, direction: Direction) -> MeasuredMetric {
    MeasuredMetric { name, unit, direction, primary: false }
}

/// Where a value is measured.
pub struct MeasuredPoint<'a> {
    pub case: &'a Case,
    pub metric: &'a str,
    pub boot: u32,
    pub iteration: u32,
}

impl MeasuredPoint<'_> {
    pub fn level(&self, factor: &str) -> &str {
        self.case.levels.get(factor).map_or("", String::as_str)
    }
}

pub struct RunBuilder {
    pub id: String,
    pub boot_id: String,
    pub workloads: Vec<&'static str>,
    pub factors: Vec<(&'static str, Vec<&'static str>)>,
    pub metrics: Vec<MeasuredMetric>,
    pub iterations: u32,
    pub boots: u32,
    pub order: &'static str,
    pub start: u64,
}

impl RunBuilder {
    pub fn new(id: &str) -> Self {
        RunBuilder {
            id: id.into(),
            boot_id: "boot-1".into(),
            workloads: vec!["sweep"],
            factors: Vec::new(),
            metrics: vec![primary_metric("time", "s", Direction::Lower)],
            iterations: 10,
            boots: 1,
            order: "randomised",
            start: 1_000_000_000,
        }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn build_cases(&self) -> Vec<Case> {
        let mut all: Vec<IndexMap<String, String>> = vec![IndexMap::new()];
        for (factor, levels) in &self.factors {
            let extended = all.iter().flat_map(|levels_so_far| {
                levels.iter().map(move |level| {
                    let mut next = levels_so_far.clone();
                    next.insert((*factor).into(), (*level).into());
                    next
                })
            });
            all = extended.collect();
        }
        let case = |workload: &str, levels: &IndexMap<String, String>| Case {
            workload: workload.into(),
            uses: workload.into(),
            point: IndexMap::new(),
            parameters: IndexMap::new(),
            environment: IndexMap::new(),
            levels: levels.clone(),
        };
        self.workloads.iter().flat_map(|workload| all.iter().map(|levels| case(workload, levels))).collect()
    }

    fn build_plan(&self) -> RunPlan {
        let cases = self.build_cases();
        let count = u32::try_from(cases.len()).unwrap();
        let slots = (0..self.iterations)
            .flat_map(|block| {
                (0..count).map(move |case| Slot { case, iteration: block, block, warmup: false, boot: 0 })
            })
            .collect();
        let factors = self.factors.iter();
        let factors = factors.map(|(name, levels)| {
            ((*name).to_owned(), levels.iter().map(|level| (*level).to_owned()).collect())
        });
        RunPlan {
            seed: 1,
            order: self.order.into(),
            cases,
            factors: factors.collect(),
            slots,
            definitions: IndexMap::new(),
            metrics: IndexMap::new(),
            margins: IndexMap::new(),
        }
    }

    /// The run, with the value that `measure` gives for each spot; `None` is a failed iteration.
    pub fn build_run(&self, mut measure: impl FnMut(&MeasuredPoint) -> Option<f64>) -> RunRecord {
        let plan = self.build_plan();
        let (mut samples, mut iterations) = (Vec::new(), Vec::new());
        let mut now = self.start;
        for boot in 0..self.boots {
            for (number, slot) in plan.slots.iter().enumerate() {
                let case = &plan.cases[slot.case as usize];
                let (start, end) = (Nanos(now), Nanos(now + 500_000_000));
                now += 1_000_000_000;
                let mut outcome = Outcome::Ok;
                for metric in &self.metrics {
                    let spot = MeasuredPoint { case, metric: metric.name, boot, iteration: slot.iteration };
                    match measure(&spot) {
                        Some(value) => samples.push(Sample {
                            boot,
                            target: None,
                            case: slot.case,
                            iteration: slot.iteration,
                            metric: metric.name.into(),
                            value,
                            unit: Unit::new(metric.unit),
                            direction: metric.direction,
                            primary: metric.primary,
                            start,
                            end,
                        }),
                        None => outcome = Outcome::Failed { reason: "exit code 1".into() },
                    }
                }
                iterations.push(IterationRecord {
                    target: None,
                    slot: u32::try_from(number).unwrap(),
                    outcome,
                    start,
                    end,
                });
            }
        }
        RunRecord {
            manifest: self.build_manifest(plan),
            samples,
            iterations,
            gaps: Vec::new(),
            warnings: Vec::new(),
            clock_bounds: Vec::new(),
        }
    }

    fn build_manifest(&self, plan: RunPlan) -> Manifest {
        let text = "title = \"test\"\n[workload.sweep]\n";
        Manifest {
            format: FORMAT_VERSION,
            writer: "perflab test".into(),
            id: self.id.clone(),
            label: None,
            study: TomlSource::new("test.toml", text).parse_study().unwrap(),
            study_text: text.into(),
            study_file: "test.toml".into(),
            plan,
            facts: Facts::default(),
            boot_id: self.boot_id.clone(),
            target: "host".into(),
            targets: Vec::new(),
            anchor: ClockAnchor { monotonic: Nanos(0), realtime: Nanos(1_700_000_000_000_000_000) },
            status: RunStatus::Finished,
            overhead: Overhead::default(),
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014), and normal values by Box and Muller.
pub struct SplitMixNoise(pub u64);

impl SplitMixNoise {
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A log-normal value around `centre` with a relative spread.
    pub fn lognormal_around(&mut self, centre: f64, spread: f64) -> f64 {
        centre * (spread * self.normal()).exp()
    }
}
