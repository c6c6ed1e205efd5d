//! What expressions need to know of this host, and where the built-in loads are.

use std::path::PathBuf;

use perflab_model::Scalar;
use perflab_model::expression::ExpressionScope;

/// `cpus`, `cores`, `memory`, `numa_nodes`, `page_size`, as `observe` would say.
pub fn host_scope() -> ExpressionScope {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as i64;
    let mut scope = ExpressionScope::default();
    let page_size = rustix::param::page_size() as i64;
    for (name, value) in
        [("cpus", cpus), ("cores", cpus), ("memory", 1 << 30), ("numa_nodes", 1), ("page_size", page_size)]
    {
        scope.set(name, Scalar::Int(value));
    }
    scope
}

/// The example `load`, which cargo builds beside every test of this package.
pub fn find_load_binary() -> PathBuf {
    let own = std::env::current_exe().expect("the path of a running program is known");
    let profile = own.ancestors().find(|folder| folder.join("examples").is_dir());
    profile.expect("cargo puts examples beside deps").join("examples/load")
}
