//! The interface for C, declared in `include/optrace.h`.
//!
//! Null pointers, texts and ownership are dealt with here: every function takes null and does nothing with it, so
//! that a program can be traced or not without `if`s of its own.

#![expect(unsafe_code, reason = "C hands over pointers")]

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

use crate::recorder::Recorder;
use crate::trace::{Trace, TraceOptions};
use crate::vocabulary::Vocabulary;

/// Opens a trace. `path` null: the file that `OPTRACE_FILE` names. The other texts are lists with commas; null is an
/// empty one. Null where nothing is to be traced, or where it cannot be: then stderr says why.
///
/// # Safety
/// Each argument is null or a text that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn optrace_open(
    path: *const c_char,
    operations: *const c_char,
    spans: *const c_char,
    numbers: *const c_char,
) -> *mut Trace {
    // SAFETY: the caller guarantees it, see optrace.h.
    let [path, operations, spans, numbers] =
        [path, operations, spans, numbers].map(|text| unsafe { read_c_text(text) });
    let list = |text: &Option<String>| {
        let text = text.clone().unwrap_or_default();
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let lists = [&operations, &spans, &numbers].map(list);
    let [operations, spans, numbers] =
        lists.each_ref().map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
    let opened = Vocabulary::new(&operations, &spans, &numbers).and_then(|words| match &path {
        Some(path) => Trace::create(Path::new(path), &words, TraceOptions::default()).map(Some),
        None => Trace::from_environment(&words),
    });
    match opened {
        Ok(trace) => trace.map_or(std::ptr::null_mut(), |trace| Box::into_raw(Box::new(trace))),
        Err(error) => {
            print_error(format_args!("{error}"));
            std::ptr::null_mut()
        }
    }
}

/// Says it on stderr, if there is one: a panic must not pass into C.
fn print_error(what: std::fmt::Arguments<'_>) {
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("optrace: {what}\n"));
}

/// # Safety
/// `text` is null or a text that ends in zero.
unsafe fn read_c_text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees it, see optrace.h.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Ends a trace: 0, or -1 where the file could not be written or a recorder is still open (then nothing happens).
///
/// # Safety
/// `trace` is null or from `optrace_open`, and not used afterwards if this gives 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn optrace_close(trace: *mut Trace) -> c_int {
    // SAFETY: the caller guarantees it, see optrace.h.
    let Some(open) = (unsafe { trace.as_ref() }) else { return 0 };
    if !open.is_forked_child() && open.open_recorders() > 0 {
        print_error(format_args!("a recorder is still open"));
        return -1;
    }
    // SAFETY: `trace` came from `Box::into_raw` in `optrace_open`, and no recorder borrows it any more.
    match unsafe { Box::from_raw(trace) }.finish() {
        Ok(_) => 0,
        Err(error) => {
            print_error(format_args!("{error}"));
            -1
        }
    }
}

/// A recorder for the calling thread; null for a null trace.
///
/// # Safety
/// `trace` is null or from `optrace_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn optrace_recorder(trace: *const Trace) -> *mut Recorder<'static> {
    // SAFETY: the caller guarantees it, see optrace.h; `optrace_close` refuses while the recorder is open, so the trace outlives it.
    let trace: Option<&'static Trace> = unsafe { trace.as_ref() };
    trace.map_or(std::ptr::null_mut(), |trace| Box::into_raw(Box::new(trace.recorder())))
}

/// Ends a recorder, on its thread.
///
/// # Safety
/// `recorder` is null or from `optrace_recorder`, on the same thread, and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn optrace_recorder_close(recorder: *mut Recorder<'static>) {
    if !recorder.is_null() {
        // SAFETY: the pointer came from `Box::into_raw` in `optrace_recorder`.
        drop(unsafe { Box::from_raw(recorder) });
    }
}

/// Declares functions that pass on to a method of the recorder.
macro_rules! pass_on {
    ($($(#[$docs:meta])* $name:ident => $method:ident($($argument:ident: $kind:ty),*);)*) => { $(
        $(#[$docs])*
        ///
        /// # Safety
        /// `recorder` is null or an open one of the calling thread.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(recorder: *const Recorder<'static>, $($argument: $kind),*) {
            // SAFETY: the caller guarantees it, see optrace.h.
            if let Some(recorder) = unsafe { recorder.as_ref() } {
                recorder.$method($($argument),*);
            }
        }
    )* };
}

pass_on! {
    /// [`Recorder::begin`]
    optrace_begin => begin(operation: u8);
    /// [`Recorder::end`]
    optrace_end => end();
    /// [`Recorder::abandon`]
    optrace_abandon => abandon();
    /// [`Recorder::next`]
    optrace_next => next(operation: u8);
    /// [`Recorder::begin_in`]
    optrace_begin_in => begin_in(operation: u8, span: u8);
    /// [`Recorder::next_in`]
    optrace_next_in => next_in(operation: u8, span: u8);
    /// [`Recorder::enter`]
    optrace_enter => enter(span: u8);
    /// [`Recorder::leave`]
    optrace_leave => leave();
    /// [`Recorder::switch`]
    optrace_switch => switch(span: u8);
    /// [`Recorder::number`]
    optrace_number => number(number: u8, value: i64);
}
