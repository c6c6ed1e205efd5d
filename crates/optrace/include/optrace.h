/* optrace: the latency of every operation, and of the spans inside it. See the crate's documentation.
 *
 * A forked child has no part in its parent's trace: there all functions do nothing. What was recorded before an abort, a
 * signal or _exit is in the file.
 *
 * Link with -loptrace (shared), or with liboptrace.a -lpthread -ldl -lm. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef OPTRACE_H
#define OPTRACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct optrace optrace;
typedef struct optrace_recorder_s optrace_recorder_t;

/* Opens a trace. path NULL: the file that OPTRACE_FILE names (perflab trace run sets it). The other texts are lists
 * with commas; a number on the measured path is an index into its list. NULL where nothing is to be traced: all
 * functions below take NULL and do nothing. */
optrace *optrace_open(const char *path, const char *operations, const char *spans, const char *numbers);
/* Ends it: 0, or -1 where the file could not be written or a recorder is open. */
int optrace_close(optrace *trace);

/* One for each thread that records, made and closed on that thread. */
optrace_recorder_t *optrace_recorder(const optrace *trace);
void optrace_recorder_close(optrace_recorder_t *recorder);

void optrace_begin(const optrace_recorder_t *recorder, uint8_t operation);
void optrace_end(const optrace_recorder_t *recorder);
/* forgets the operation that is open: for who came out of it by longjmp or an exception */
void optrace_abandon(const optrace_recorder_t *recorder);
/* end and begin with one time stamp */
void optrace_next(const optrace_recorder_t *recorder, uint8_t operation);
/* begin or next, and enter, with one time stamp */
void optrace_begin_in(const optrace_recorder_t *recorder, uint8_t operation, uint8_t span);
void optrace_next_in(const optrace_recorder_t *recorder, uint8_t operation, uint8_t span);
void optrace_enter(const optrace_recorder_t *recorder, uint8_t span);
void optrace_leave(const optrace_recorder_t *recorder);
/* leave and enter with one time stamp */
void optrace_switch(const optrace_recorder_t *recorder, uint8_t span);
void optrace_number(const optrace_recorder_t *recorder, uint8_t number, int64_t value);

#ifdef __cplusplus
}
#endif

#endif
