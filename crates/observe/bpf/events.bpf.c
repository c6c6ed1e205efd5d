/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/*
 * Counts what tracepoints say, in the kernel: how often, how much, how long from one to another.
 *
 * Where a field lies in a tracepoint's record is not known here: perflab reads it from the tracepoint's `format` when it
 * attaches, and puts it into `config`, which the kernel takes as constants. One loaded object is one event of a study.
 *
 * Built by `cargo xtask bpf` with `clang -target bpf`; the object is committed beside this file. It includes nothing, so that it
 * is the same everywhere.
 */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define inline inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_HASH = 5, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static u64 (*const get_current_pid_tgid)(void) = (void *)14;
static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

/* Of a record, this much is looked at. */
#define RECORD 256
/* Comparisons of a filter. */
#define STEPS 12
/* Tracepoints that a pair may begin with. */
#define BEGINS 4
/* 16 a power of two: a value is known to 1/32. */
#define SUB_BITS 4
#define TOP_BIT 47
#define BUCKETS ((TOP_BIT - SUB_BITS + 2) << SUB_BITS)

enum field_kind { FIELD_NONE, FIELD_UNSIGNED, FIELD_SIGNED, FIELD_TEXT, FIELD_LOCATED_TEXT, FIELD_TASK };

struct field {
	u16 offset;
	u8 size;
	u8 kind;
};

enum step_op { OP_EQUAL, OP_LESS, OP_LESS_SIGNED, OP_AND };

/* What is accepted, and what is not, instead of a next step. */
#define ACCEPT 0xff
#define REJECT 0xfe

struct step {
	struct field field;
	u8 op;
	u8 yes;
	u8 no;
	u8 pad;
	u64 value[2];
	u64 mask[2];
};

/* A tracepoint. */
struct point {
	/* how much of its record is read; 0: nothing */
	u32 record;
	u32 steps;
	/* what an end and its begin have in common */
	struct field by[2];
	struct field key[2];
	struct field value;
	/* whose it is, where that is not the task that runs */
	struct field task;
	struct step step[STEPS];
};

struct config {
	/* whether there are buckets */
	u32 histogram;
	u32 keyed;
	/* whether only tasks of the workload count */
	u32 workload;
	u32 pad;
	struct point begin[BEGINS];
	/* of a pair the end; else the tracepoint */
	struct point end;
	/* sched_process_fork: `by` are the parent and the child */
	struct point fork;
};

const volatile struct config config = {};

/* Two words: a number each, or a text of 16 bytes. */
struct words {
	u64 word[2];
};

struct begun {
	u64 since;
	struct words key;
};

struct counts {
	u64 count;
	u64 sum;
	u64 max;
	/* the reading that `max` is of */
	u64 epoch;
};

struct histogram {
	struct counts counts;
	u64 buckets[BUCKETS];
};

/* What could not be counted. */
enum lost { LOST_BEGINS, LOST_KEYS, LOST_TASKS, LOST_VALUES, UNMATCHED, LOST_KINDS };

/* `keyed` and `keyed_histograms` have a row a key; row 0 of the others is what has none, or one too many. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} plain SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct words);
	__type(value, struct counts);
} keyed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct histogram);
} plain_histogram SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct words);
	__type(value, struct histogram);
} keyed_histograms SEC(".maps");

/* What a new key begins with. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct histogram);
} nothing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct words);
	__type(value, struct begun);
} begun SEC(".maps");

/* perflab's thread that starts the workload, and what it started: a task is the workload's from its exec on. */
enum task_state { TASK_STARTS = 1, TASK_COUNTS = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u8);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOST_KINDS);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

/* Counts edges: a largest value is one since the last of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} epoch SEC(".maps");

static inline void count_lost(u32 kind)
{
	u64 *count = map_lookup(&lost, &kind);

	if (count)
		*count += 1;
}

static inline u32 current_task(void)
{
	return (u32)get_current_pid_tgid();
}

static inline void load_field(const volatile struct field *field, const u8 *record, const u8 *event,
			      struct words *into)
{
	u16 at = field->offset;
	u8 size = field->size;

	into->word[0] = 0;
	into->word[1] = 0;
	switch (field->kind) {
	case FIELD_UNSIGNED:
		if (size == 1)
			into->word[0] = record[at];
		else if (size == 2)
			into->word[0] = *(u16 *)(record + at);
		else if (size == 4)
			into->word[0] = *(u32 *)(record + at);
		else
			into->word[0] = *(u64 *)(record + at);
		break;
	case FIELD_SIGNED:
		if (size == 1)
			into->word[0] = (long long)(signed char)record[at];
		else if (size == 2)
			into->word[0] = (long long)*(short *)(record + at);
		else if (size == 4)
			into->word[0] = (long long)*(int *)(record + at);
		else
			into->word[0] = *(u64 *)(record + at);
		break;
	case FIELD_TEXT:
		/* within its record, and 16 bytes at most */
		probe_read_kernel(into, size, event + at);
		break;
	case FIELD_LOCATED_TEXT: {
		u32 where = *(u32 *)(record + at);
		u32 length = where >> 16;

		if (length > sizeof(*into))
			length = sizeof(*into);
		probe_read_kernel(into, length, event + (where & 0xffff));
		break;
	}
	case FIELD_TASK:
		into->word[0] = current_task();
		break;
	}
}

/* Behind the end of a text lies what was there before: texts that read alike are to be alike. */
static inline void end_text(struct words *text)
{
	u8 *bytes = (u8 *)text;
	u8 keep = 0xff;

#pragma unroll
	for (u32 i = 0; i < sizeof(*text); i++) {
		if (!bytes[i])
			keep = 0;
		bytes[i] &= keep;
	}
}

/* One field is all there is to a pair or a key, or each of two has a word. */
static inline void load_words(const volatile struct field *fields, const u8 *record, const u8 *event,
			      struct words *into)
{
	struct words second;

	load_field(&fields[0], record, event, into);
	if (fields[0].kind == FIELD_TEXT || fields[0].kind == FIELD_LOCATED_TEXT)
		end_text(into);
	if (fields[1].kind == FIELD_NONE)
		return;
	load_field(&fields[1], record, event, &second);
	if (fields[1].kind == FIELD_TEXT || fields[1].kind == FIELD_LOCATED_TEXT)
		end_text(&second);
	into->word[1] = second.word[0];
}

static inline int read_record(const volatile struct point *point, u8 *record, const void *event)
{
	return !point->record || probe_read_kernel(record, point->record, event) == 0;
}

static inline int is_accepted(const volatile struct point *point, const u8 *record, const u8 *event)
{
	u8 next = 0;

	if (!point->steps)
		return 1;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < STEPS; i++) {
		const volatile struct step *step = &point->step[i];
		struct words found;
		u64 first, second;
		int is_met;

		if (i >= point->steps)
			break;
		if (next != i)
			continue;
		load_field(&step->field, record, event, &found);
		first = found.word[0] & step->mask[0];
		second = found.word[1] & step->mask[1];
		switch (step->op) {
		case OP_EQUAL:
			is_met = first == step->value[0] && second == step->value[1];
			break;
		case OP_LESS:
			is_met = first < step->value[0];
			break;
		case OP_LESS_SIGNED:
			is_met = (long long)first < (long long)step->value[0];
			break;
		default:
			is_met = first != 0;
			break;
		}
		next = is_met ? step->yes : step->no;
	}
	return next == ACCEPT;
}

/* Whether it is one of the tasks that are looked at. */
static inline int is_watched(const volatile struct point *point, const u8 *record, const u8 *event)
{
	struct words task;
	u32 number;
	u8 *state;

	if (!config.workload)
		return 1;
	if (point->task.kind == FIELD_NONE) {
		number = current_task();
	} else {
		load_field(&point->task, record, event, &task);
		number = (u32)task.word[0];
	}
	state = map_lookup(&tasks, &number);
	return state && *state == TASK_COUNTS;
}

static inline u32 find_bucket(u64 value)
{
	u64 rest = value;
	u32 bit = 0;

	if (value < (1 << SUB_BITS))
		return (u32)value;
	if (value >> (TOP_BIT + 1))
		return BUCKETS - 1;
	if (rest >> 32) {
		rest >>= 32;
		bit += 32;
	}
	if (rest >> 16) {
		rest >>= 16;
		bit += 16;
	}
	if (rest >> 8) {
		rest >>= 8;
		bit += 8;
	}
	if (rest >> 4) {
		rest >>= 4;
		bit += 4;
	}
	if (rest >> 2) {
		rest >>= 2;
		bit += 2;
	}
	bit += (u32)(rest >> 1);
	return ((bit - SUB_BITS + 1) << SUB_BITS) + ((value >> (bit - SUB_BITS)) & ((1 << SUB_BITS) - 1));
}

static inline void add_value(struct counts *counts, u64 value)
{
	u32 zero = 0;
	u64 *now = map_lookup(&epoch, &zero);

	counts->count += 1;
	counts->sum += value;
	if (now && counts->epoch != *now) {
		counts->epoch = *now;
		counts->max = value;
	} else if (value > counts->max) {
		counts->max = value;
	}
}

/* The row of a key; that of all keys that are too many where there is no room for it. */
static inline void *find_row(void *rows, void *rest, const struct words *key)
{
	u32 zero = 0;
	void *row, *empty;

	if (!config.keyed)
		return map_lookup(rest, &zero);
	row = map_lookup(rows, key);
	if (row)
		return row;
	empty = map_lookup(&nothing, &zero);
	if (empty)
		map_update(rows, key, empty, BPF_NOEXIST);
	row = map_lookup(rows, key);
	if (row)
		return row;
	count_lost(LOST_KEYS);
	return map_lookup(rest, &zero);
}

static inline void account(const struct words *key, u64 value)
{
	if (config.histogram) {
		struct histogram *histogram = find_row(&keyed_histograms, &plain_histogram, key);
		u32 bucket = find_bucket(value);

		if (!histogram)
			return;
		add_value(&histogram->counts, value);
		if (bucket < BUCKETS)
			histogram->buckets[bucket] += 1;
	} else {
		struct counts *counts = find_row(&keyed, &plain, key);

		if (counts)
			add_value(counts, value);
	}
}

/*
 * Each program returns 1: with 0, the kernel would take the event away from whoever else counts this tracepoint
 * (perf_trace_run_bpf_submit in kernel/events/core.c).
 */

SEC("tracepoint")
int one(void *event)
{
	const volatile struct point *point = &config.end;
	u8 record[RECORD];
	struct words key, value;

	if (!read_record(point, record, event)) {
		count_lost(LOST_VALUES);
		return 1;
	}
	if (!is_accepted(point, record, event) || !is_watched(point, record, event))
		return 1;
	load_words(point->key, record, event, &key);
	load_field(&point->value, record, event, &value);
	/* less than nothing is no size, and no time; formats call some of it unsigned: all pages of a TLB are -1 */
	if ((long long)value.word[0] < 0) {
		count_lost(LOST_VALUES);
		value.word[0] = 0;
	}
	account(&key, value.word[0]);
	return 1;
}

static inline int begin_pair(const volatile struct point *point, void *event)
{
	u8 record[RECORD];
	struct words by;
	struct begun found;

	if (!read_record(point, record, event)) {
		count_lost(LOST_VALUES);
		return 1;
	}
	if (!is_accepted(point, record, event) || !is_watched(point, record, event))
		return 1;
	load_words(point->by, record, event, &by);
	load_words(point->key, record, event, &found.key);
	found.since = ktime_get_ns();
	/* The last begin counts: a task that is woken twice waits since the second time. */
	if (map_update(&begun, &by, &found, BPF_ANY) != 0)
		count_lost(LOST_BEGINS);
	return 1;
}

SEC("tracepoint")
int begin0(void *event)
{
	return begin_pair(&config.begin[0], event);
}

SEC("tracepoint")
int begin1(void *event)
{
	return begin_pair(&config.begin[1], event);
}

SEC("tracepoint")
int begin2(void *event)
{
	return begin_pair(&config.begin[2], event);
}

SEC("tracepoint")
int begin3(void *event)
{
	return begin_pair(&config.begin[3], event);
}

SEC("tracepoint")
int end(void *event)
{
	const volatile struct point *point = &config.end;
	u64 now = ktime_get_ns();
	u8 record[RECORD];
	struct words by, key;
	struct begun *found;
	u64 since;

	if (!read_record(point, record, event)) {
		count_lost(LOST_VALUES);
		return 1;
	}
	if (!is_accepted(point, record, event))
		return 1;
	load_words(point->by, record, event, &by);
	found = map_lookup(&begun, &by);
	if (!found) {
		/* It began before. Of a workload's, most ends are of others. */
		if (!config.workload)
			count_lost(UNMATCHED);
		return 1;
	}
	since = found->since;
	if (point->key[0].kind == FIELD_NONE)
		key = found->key;
	else
		load_words(point->key, record, event, &key);
	map_delete(&begun, &by);
	account(&key, now > since ? now - since : 0);
	return 1;
}

/* What a task of the workload starts is one, too. */
SEC("tracepoint")
int fork(void *event)
{
	const volatile struct point *point = &config.fork;
	u8 record[RECORD];
	struct words parent, child;
	u32 number;
	u8 *known, state;

	if (!read_record(point, record, event))
		return 1;
	load_field(&point->by[0], record, event, &parent);
	number = (u32)parent.word[0];
	known = map_lookup(&tasks, &number);
	if (!known)
		return 1;
	state = *known;
	load_field(&point->by[1], record, event, &child);
	number = (u32)child.word[0];
	if (map_update(&tasks, &number, &state, BPF_ANY) != 0)
		count_lost(LOST_TASKS);
	return 1;
}

SEC("tracepoint")
int start(void *event)
{
	u32 number = current_task();
	u8 *state = map_lookup(&tasks, &number);

	if (state)
		*state = TASK_COUNTS;
	return 1;
}

SEC("tracepoint")
int leave(void *event)
{
	u32 number = current_task();

	map_delete(&tasks, &number);
	return 1;
}

char program_license[] SEC("license") = "Dual MIT/GPL";
