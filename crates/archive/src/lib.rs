//! Runs on disk: the recorder, the reader, retention, the portable file.
