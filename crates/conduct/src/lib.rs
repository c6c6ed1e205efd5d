//! From a plan to one stream of events: settings, targets, phases.
