//! Family `reclaim`: what takes pages out of memory though nobody is short of it, and how the kernel ages them.

use perflab_model::Scalar;

use super::notes::FactCollector;

/// Of root alone, all of it.
const DAMON: &str = "/sys/kernel/mm/damon/admin/kdamonds";

pub(super) fn collect_reclaim_facts(notes: &mut FactCollector<'_>) {
    notes.add_file("reclaim.lru_gen", "/sys/kernel/mm/lru_gen/enabled");
    notes.add_flag("reclaim.damon.reclaim", "/sys/module/damon_reclaim/parameters/enabled", "Y");
    for thread in notes.root.list(DAMON) {
        let directory = format!("{DAMON}/{thread}");
        if notes.read(&format!("{directory}/state")).is_some_and(|state| state == "on") {
            let actions = read_damon_actions(notes, &directory);
            notes.add_optional(&format!("reclaim.damon.{thread}"), actions, &directory);
        }
    }
}

/// What a thread of DAMON does about memory: `pageout`, `cold hugepage`; nothing where it only watches.
fn read_damon_actions(notes: &FactCollector<'_>, thread: &str) -> Option<Scalar> {
    let below = |directory: String| {
        let numbers = notes.root.list(&directory).into_iter().filter(|name| name.parse::<u32>().is_ok());
        numbers.map(|name| format!("{directory}/{name}")).collect::<Vec<_>>()
    };
    let contexts = below(format!("{thread}/contexts"));
    let schemes = contexts.iter().flat_map(|context| below(format!("{context}/schemes")));
    let mut actions: Vec<_> = schemes.filter_map(|scheme| notes.read(&format!("{scheme}/action"))).collect();
    actions.sort();
    actions.dedup();
    (!actions.is_empty()).then(|| Scalar::Text(actions.join(" ")))
}
