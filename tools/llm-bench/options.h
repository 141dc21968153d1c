/* The command line of a measurement: lists of values, and all combinations of them. */
#ifndef TOOLS_BENCH_OPTIONS_H
#define TOOLS_BENCH_OPTIONS_H

#include "common/args.h"
#include "common/adapters.h"
#include "common/hub_options.h"
#include "common/ignore.h"
#include "common/override_options.h"
#include "common/placement_options.h"
#include "lists.h"
#include "row.h"

typedef enum bench_format {
    BENCH_MD,
    BENCH_CSV,
    BENCH_JSON,
    BENCH_JSONL,
    BENCH_SQL,
    BENCH_NONE
} bench_format;

typedef struct bench_options {
    /* compare: OLD, or OLD and NEW, the latter as a positional argument */
    arg_list models, compare;
    int type; /* --type */
    bench_list prompt, gen, depth, threads, batch, ubatch, sequences, type_k, type_v;
    bool types_given; /* of the KV cache, by the user */
    bench_list pair;  /* pp, tg, pp, tg, .. */
    bench_where *where;
    size_t n_where;
    char devices_flag[ARG_TYPED]; /* as it was typed; "": not given */
    placement_rule_options rules; /* for all placements */
    int64_t reps, delay, priority;
    tool_ignore ignore;
    tool_overrides overrides;
    tool_adapters adapters;
    hub_options hub;
    const char *arch, *mask, *cpu_mask, *plot;
    const char *compare_old, *compare_new, *alternation;
    double confidence, tolerance;
    int format, format_err; /* bench_format */
    bool strict, progress, no_warmup, no_limits, profile, no_mmap, no_repack, f16_as_bf16;
} bench_options;

/* Reads the command line. Returns -1, or an exit code. */
int bench_options_read(bench_options *o, int argc, char **argv, const args_command *commands);
void bench_options_fini(bench_options *o);

/* Lists every combination in order: models outermost, then threads, batches, types, depths,
 * sequences. The caller frees *tests. False: out of memory. */
bool bench_options_tests(const bench_options *o, bench_test **tests, size_t *n);

#endif
