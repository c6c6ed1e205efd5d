//! Programs that this thread starts lie at the same addresses each time: no randomisation (ADDR_NO_RANDOMIZE).

use std::marker::PhantomData;

use nix::sys::personality::{self, Persona};

/// As long as it lives, programs that this thread starts have no randomised addresses; then it is as before.
#[derive(Debug)]
pub struct FixedAddresses {
    before: Persona,
    /// A thread's personality is its own.
    of_this_thread: PhantomData<*const ()>,
}

impl FixedAddresses {
    /// Asks the kernel for it.
    ///
    /// # Errors
    /// personality(2) is refused, as it is in many containers.
    pub fn request() -> Result<Self, std::io::Error> {
        let before = personality::get()?;
        personality::set(before | Persona::ADDR_NO_RANDOMIZE)?;
        Ok(FixedAddresses { before, of_this_thread: PhantomData })
    }
}

impl Drop for FixedAddresses {
    fn drop(&mut self) {
        // What was allowed a moment ago still is.
        let _ = personality::set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn stack_line() -> String {
        let maps = Command::new("cat").arg("/proc/self/maps").output().unwrap().stdout;
        let maps = String::from_utf8(maps).unwrap();
        maps.lines().find(|line| line.ends_with("[stack]")).unwrap().to_owned()
    }

    #[test]
    fn programs_lie_where_they_did_until_it_is_dropped() {
        let Ok(fixed) = FixedAddresses::request() else { return };
        let (first, second) = (stack_line(), stack_line());
        assert_eq!(first, second);
        drop(fixed);
        assert!(!personality::get().unwrap().contains(Persona::ADDR_NO_RANDOMIZE));
    }
}
