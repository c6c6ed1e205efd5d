//! perflab's nouns: studies, plans, events, samples, series. No I/O.
