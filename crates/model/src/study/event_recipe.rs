//! Tracepoints and pairs that perflab knows by name: what `recipe` of `[events.NAME]` means.
//!
//! One table. Names of tracepoints and fields are those of the kernel; whether this machine has them is found where they are
//! attached (`perflab event list`).

use crate::problem::suggest_name;
use crate::study::events_spec::{
    EventSpec, FieldNames, KeptOfEvents, PairBegins, TracepointSpec, split_tracepoint_name,
};

/// A tracepoint of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipePoint {
    event: &'static str,
    by: &'static [&'static str],
    filter: &'static str,
    task: &'static str,
}

/// A recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecipe {
    /// By which a study names it.
    pub name: &'static str,
    /// What it says.
    pub about: &'static str,
    begins: &'static [RecipePoint],
    /// Of a pair the end; else the tracepoint.
    end: RecipePoint,
    key: &'static [&'static str],
    /// The field whose values are kept, and its unit; of one tracepoint alone.
    value: (&'static str, &'static str),
    /// How many keys are told apart; 0 where that is as always.
    keys: u32,
}

const fn point(event: &'static str, by: &'static [&'static str]) -> RecipePoint {
    RecipePoint { event, by, filter: "", task: "" }
}

const fn pair(
    name: &'static str,
    about: &'static str,
    begins: &'static [RecipePoint],
    end: RecipePoint,
    key: &'static [&'static str],
) -> EventRecipe {
    EventRecipe { name, about, begins, end, key, value: ("", ""), keys: 0 }
}

const fn count(
    name: &'static str,
    about: &'static str,
    event: &'static str,
    key: &'static [&'static str],
) -> EventRecipe {
    EventRecipe { name, about, begins: &[], end: point(event, &[]), key, value: ("", ""), keys: 0 }
}

/// States of a task are bits; of one that could run on they are none of these (`TASK_REPORT` in include/linux/sched.h).
const STILL_RUNNABLE: &str = "!(prev_state & 0x7f) && prev_pid != 0";

const TASK: &[&str] = &[FieldNames::TASK];

/// All recipes, in the order in which they are shown.
pub const EVENT_RECIPES: &[EventRecipe] = &[
    pair(
        "run-queue-delay",
        "time from when a task could run to when it did: woken, created, or preempted",
        &[
            RecipePoint { task: "pid", ..point("sched:sched_wakeup", &["pid"]) },
            RecipePoint { task: "pid", ..point("sched:sched_wakeup_new", &["pid"]) },
            RecipePoint {
                task: "prev_pid",
                filter: STILL_RUNNABLE,
                ..point("sched:sched_switch", &["prev_pid"])
            },
        ],
        RecipePoint { filter: "next_pid != 0", ..point("sched:sched_switch", &["next_pid"]) },
        &[],
    ),
    pair(
        "off-cpu",
        "time from when a task stopped to run, of itself, to when it ran again",
        &[RecipePoint {
            task: "prev_pid",
            filter: "prev_state & 0x7f",
            ..point("sched:sched_switch", &["prev_pid"])
        }],
        RecipePoint { filter: "next_pid != 0", ..point("sched:sched_switch", &["next_pid"]) },
        &[],
    ),
    pair(
        "system-call-latency",
        "time that a system call took, by its number",
        &[point("raw_syscalls:sys_enter", TASK)],
        point("raw_syscalls:sys_exit", TASK),
        &["id"],
    ),
    pair(
        "block-latency",
        "time that a disk took for a request, by disk and kind",
        &[point("block:block_rq_issue", &["dev", "sector"])],
        point("block:block_rq_complete", &["dev", "sector"]),
        &["dev", "rwbs"],
    ),
    EventRecipe {
        value: ("bytes", "bytes"),
        ..count(
            "block-size",
            "size of requests to disks, by disk and kind; one that the disk sent back counts again",
            "block:block_rq_issue",
            &["dev", "rwbs"],
        )
    },
    pair(
        "direct-reclaim",
        "time that a task freed memory itself before it got any",
        &[point("vmscan:mm_vmscan_direct_reclaim_begin", TASK)],
        point("vmscan:mm_vmscan_direct_reclaim_end", TASK),
        &[],
    ),
    pair(
        "compaction",
        "time that moving pages together took",
        &[point("compaction:mm_compaction_begin", TASK)],
        point("compaction:mm_compaction_end", TASK),
        &[],
    ),
    EventRecipe {
        value: ("pause", "ms"),
        ..count(
            "writeback-stalls",
            "time for which a task that writes was held up, as dirty pages were too many",
            "writeback:balance_dirty_pages",
            &[],
        )
    },
    pair(
        "lock-contention",
        "time that a task waited for a lock of the kernel",
        &[point("lock:contention_begin", TASK)],
        point("lock:contention_end", TASK),
        &[],
    ),
    EventRecipe {
        value: ("bytes_alloc", "bytes"),
        keys: 512,
        ..count(
            "slab-by-call-site",
            "memory that kmalloc gave, by the code that asked",
            "kmem:kmalloc",
            &["call_site"],
        )
    },
    count(
        "page-cache",
        "folios (pages, or several in one) that came into the page cache, by file system",
        "filemap:mm_filemap_add_to_page_cache",
        &["s_dev"],
    ),
    count("tlb", "flushes of a TLB, by reason", "tlb:tlb_flush", &["reason"]),
    count(
        "migrations",
        "tasks moved from one CPU to another, by both",
        "sched:sched_migrate_task",
        &["orig_cpu", "dest_cpu"],
    ),
    count("guest-exits", "exits from guests to KVM, by reason", "kvm:kvm_exit", &["exit_reason"]),
];

/// The recipe called so.
pub fn find_event_recipe(name: &str) -> Option<&'static EventRecipe> {
    EVENT_RECIPES.iter().find(|recipe| recipe.name == name)
}

fn field_names(names: &[&str]) -> Option<FieldNames> {
    (!names.is_empty()).then(|| FieldNames(names.iter().map(|name| (*name).to_owned()).collect()))
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl RecipePoint {
    fn spec(&self) -> TracepointSpec {
        TracepointSpec {
            event: self.event.into(),
            by: field_names(self.by),
            filter: non_empty(self.filter),
            task: non_empty(self.task),
        }
    }
}

impl EventRecipe {
    /// As a study would write it.
    pub fn spec(&self) -> EventSpec {
        let is_pair = !self.begins.is_empty();
        let has_values = is_pair || !self.value.0.is_empty();
        EventSpec {
            keep: Some(if has_values { KeptOfEvents::Histogram } else { KeptOfEvents::Count }),
            event: (!is_pair).then(|| self.end.event.to_owned()),
            filter: (!is_pair).then(|| non_empty(self.end.filter)).flatten(),
            value: non_empty(self.value.0),
            unit: non_empty(self.value.1),
            begin: is_pair.then(|| PairBegins(self.begins.iter().map(RecipePoint::spec).collect())),
            end: is_pair.then(|| self.end.spec()),
            key: field_names(self.key),
            keys: (self.keys > 0).then_some(self.keys),
            ..EventSpec::default()
        }
    }
}

/// An event that is named on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventChoice {
    /// What it is called in the record.
    pub name: String,
    /// What is counted.
    pub spec: EventSpec,
}

impl std::str::FromStr for EventChoice {
    type Err = String;

    /// A recipe, or a tracepoint, which is counted.
    ///
    /// # Errors
    /// It is neither; the nearest recipe.
    fn from_str(text: &str) -> Result<Self, String> {
        if find_event_recipe(text).is_some() {
            let spec = EventSpec { recipe: Some(text.into()), ..EventSpec::default() };
            return Ok(EventChoice { name: text.into(), spec });
        }
        if let Some((_, event)) = split_tracepoint_name(text) {
            let spec = EventSpec { event: Some(text.into()), ..EventSpec::default() };
            return Ok(EventChoice { name: event.into(), spec });
        }
        let hint = suggest_name(text, EVENT_RECIPES.iter().map(|recipe| recipe.name));
        Err(format!("`{text}` is no recipe, and no tracepoint GROUP:NAME; {hint}"))
    }
}

impl EventSpec {
    /// It with all that its recipe says, where what it says itself takes precedence.
    #[must_use]
    pub fn resolve(&self) -> EventSpec {
        let Some(recipe) = self.recipe.as_deref().and_then(find_event_recipe) else { return self.clone() };
        let (base, own) = (recipe.spec(), self.clone());
        EventSpec {
            recipe: own.recipe,
            keep: own.keep.or(base.keep),
            event: own.event.or(base.event),
            filter: own.filter.or(base.filter),
            value: own.value.or(base.value),
            unit: own.unit.or(base.unit),
            begin: own.begin.or(base.begin),
            end: own.end.or(base.end),
            by: own.by.or(base.by),
            key: own.key.or(base.key),
            keys: own.keys.or(base.keys),
            of: own.of.or(base.of),
            in_flight: own.in_flight.or(base.in_flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::events_spec::EventOwner;

    #[test]
    fn no_two_recipes_have_a_name() {
        for (index, recipe) in EVENT_RECIPES.iter().enumerate() {
            assert!(EVENT_RECIPES[..index].iter().all(|earlier| earlier.name != recipe.name));
        }
    }

    #[test]
    fn a_recipe_gives_way_to_what_stands_beside_it() {
        let spec =
            serde_json::from_str::<EventSpec>(r#"{"recipe":"system-call-latency","of":"workload"}"#).unwrap();
        let whole = spec.resolve();
        assert_eq!(whole.of, Some(EventOwner::Workload));
        assert_eq!(whole.end.unwrap().event, "raw_syscalls:sys_exit");
        let named = |text: &str| text.parse::<EventChoice>().map(|choice| choice.name);
        assert_eq!(named("system-call-latency").as_deref(), Ok("system-call-latency"));
        assert_eq!(named("sched:sched_switch").as_deref(), Ok("sched_switch"));
        assert!(named("nothing").is_err());
    }
}
