//! What events cannot see.

/// What a sampler by `event` cannot see, and how that misleads; `None` where it sees everything that runs.
pub fn hidden_from_event(event: &str, is_user_only: bool) -> Option<String> {
    if is_user_only || event.ends_with(":u") {
        return Some("the kernel: it was left out, so all time in it is missing".into());
    }
    if event.contains("cpu-clock") || event.contains("task-clock") {
        return Some(
            "what runs while interrupts are off: its time is missing, or lands where they are switched on again \
             (_raw_spin_unlock_irqrestore, _raw_spin_unlock_irq, __local_bh_enable_ip)"
                .into(),
        );
    }
    if event.starts_with("cycles") && !event.contains(":p") && !event.contains(":P") {
        return Some("the very instruction: samples land some instructions late".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::hidden_from_event;

    #[test]
    fn timers_are_blind_while_interrupts_are_off() {
        assert!(
            hidden_from_event("cpu-clock", false).is_some_and(|text| text.contains("interrupts are off"))
        );
        assert!(hidden_from_event("cycles:u", false).is_some_and(|text| text.contains("the kernel")));
        assert!(hidden_from_event("cycles", false).is_some_and(|text| text.contains("late")));
        assert_eq!(hidden_from_event("cycles:P", false), None);
    }
}
