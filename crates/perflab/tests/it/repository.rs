//! A git repository of the test's own, with a program that sleeps, or says a number, in its commits.

use std::process::Command;

use crate::laboratory::{Sandbox, skip_test};

pub struct Repository {
    pub sandbox: Sandbox,
    pub commits: Vec<String>,
}

impl Repository {
    /// One without commits, in the sandbox's `tree`; nothing where git is not there.
    pub fn empty(test: &str) -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            skip_test(test, "git is not installed");
            return None;
        }
        let repository = Repository { sandbox: Sandbox::new(), commits: Vec::new() };
        std::fs::create_dir(repository.sandbox.path("tree")).unwrap();
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["config", "user.name", "Jane Doe"]);
        repository.git(&["config", "user.email", "jane@example.org"]);
        Some(repository)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.sandbox.path("tree").join(name), text).unwrap();
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("git").arg("-C").arg(self.sandbox.path("tree")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits the tree as it is.
    pub fn commit(&mut self, subject: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
        let head = self.git(&["rev-parse", "HEAD"]);
        self.commits.push(head.clone());
        head
    }
}
