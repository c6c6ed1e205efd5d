//! A study made from another suite's configuration, without running it: `perflab study from FILE`.
//!
//! | file | content |
//! |---|---|
//! | `shell_value` | what a variable holds, where the machine decides some of it |
//! | `shell_config` | a shell configuration as variables, changes to the machine, and files: its statements |
//! | `word_expansion`, `shell_conditions` | its words and its conditions |
//! | `mmtests_study` | a configuration of MMTests as a study, by the table `mmtests.toml` |
//! | `yaml_tree` | YAML as a tree that knows its lines |
//! | `job_file` | a job file of lkp-tests as documents of keys |
//! | `lkp_study` | a job file of lkp-tests as a study, by the table `lkp.toml` |
//! | `counterpart_table` | tables of what stands here for what another suite has |
//! | `line_account` | the study, and what became of each line |
//! | `study_text` | the text of a study, made of what others write |

mod counterpart_table;
mod job_file;
mod line_account;
mod lkp_study;
mod mmtests_study;
mod shell_conditions;
mod shell_config;
mod shell_value;
mod study_text;
mod word_expansion;
mod yaml_tree;

use std::path::Path;

pub use line_account::{ConvertedStudy, FateCounts, LineAccount, LineFate};
use shell_config::LONGEST_CONFIGURATION;

use crate::error::ImportError;

/// Makes a study of a configuration of MMTests, or of a job file of lkp-tests: which of them it is, its content says.
///
/// # Errors
/// A file that cannot be read, that is neither, or of whose benchmarks none has a counterpart.
pub fn convert_study(path: &Path) -> Result<ConvertedStudy, ImportError> {
    let foreign = |reason: String| ImportError::Foreign { path: path.to_owned(), line: None, reason };
    let bytes = perflab_files::read_finite_file(path, LONGEST_CONFIGURATION)
        .map_err(|source| foreign(source.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| foreign("it is no text in UTF-8".into()))?;
    // Editors of other systems begin a file so.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match job_file::is_lkp_job_file(&text) {
        true => lkp_study::convert_job_file(&text, folder, &name).map_err(foreign),
        false => mmtests_study::convert_configuration(&text, folder, &name).map_err(foreign),
    }
}
