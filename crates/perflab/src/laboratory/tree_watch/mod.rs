//! What `perflab queue watch` works with: what is watched, what is known of it, a commit's build and runs, and what stepped with it.

pub mod commit_test;
pub mod stepped_metric;
pub mod tested_commit_text;
pub mod watch_state;
pub mod watched_tree;
