//! Family `thp`: transparent huge pages, by policy and by size.

use super::notes::FactCollector;

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn collect_thp_facts(notes: &mut FactCollector<'_>) {
    notes.add_choice("thp.enabled", &format!("{DIRECTORY}/enabled"));
    notes.add_choice("thp.defrag", &format!("{DIRECTORY}/defrag"));
    notes.add_choice("thp.shmem", &format!("{DIRECTORY}/shmem_enabled"));
    notes.add_file("thp.size", &format!("{DIRECTORY}/hpage_pmd_size"));
    notes.add_flag("thp.zero_page", &format!("{DIRECTORY}/use_zero_page"), "1");
    notes.add_flag("thp.khugepaged_defrag", &format!("{DIRECTORY}/khugepaged/defrag"), "1");
    for name in notes.root.list(DIRECTORY) {
        if let Some(size) = name.strip_prefix("hugepages-") {
            notes.add_choice(&format!("thp.size.{size}"), &format!("{DIRECTORY}/{name}/enabled"));
        }
    }
}
