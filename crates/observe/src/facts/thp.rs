//! Family `thp`: transparent huge pages, by policy and by size.

use super::notes::Notes;

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn collect(notes: &mut Notes<'_>) {
    notes.choice("thp.enabled", &format!("{DIRECTORY}/enabled"));
    notes.choice("thp.defrag", &format!("{DIRECTORY}/defrag"));
    notes.choice("thp.shmem", &format!("{DIRECTORY}/shmem_enabled"));
    notes.file("thp.size", &format!("{DIRECTORY}/hpage_pmd_size"));
    notes.switch("thp.zero_page", &format!("{DIRECTORY}/use_zero_page"), "1");
    notes.switch("thp.khugepaged_defrag", &format!("{DIRECTORY}/khugepaged/defrag"), "1");
    for name in notes.root.list(DIRECTORY) {
        if let Some(size) = name.strip_prefix("hugepages-") {
            notes.choice(&format!("thp.size.{size}"), &format!("{DIRECTORY}/{name}/enabled"));
        }
    }
}
