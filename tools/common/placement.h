/* Where a model runs: devices, how many layers each has, and single weights elsewhere; from the
 * command line to a session.
 *
 *     placement_options po = {0};
 *     const arg_option options[] = {.., PLACEMENT_OPTIONS(po), {0}};
 *     placement *p = NULL;
 *     int code = placement_open(&p, TOOL, &po, &backend_params);
 *     if (code < 0)
 *         code = placement_session(p, &session, model, &session_params);
 *     ..
 *     llm_session_free(session);
 *     placement_close(p);                    // after the session
 */
#ifndef TOOLS_PLACEMENT_H
#define TOOLS_PLACEMENT_H

#include "args.h"
#include "ggl/backends.h"
#include "llm/session.h"

typedef struct placement_options {
    const char *devices; /* "vulkan0,cpu"; NULL: as the others say, else the CPU */
    const char *split;   /* "vulkan0=20,cpu=12", or "auto" */
    int64_t n_gpu_layers;
    bool n_gpu_layers_given, fit, strict;
    arg_list place;     /* "PATTERN=BACKEND" */
    const char *trace;  /* a file */
    const char *shadow; /* NULL: no; "": at the usual rate; "0.5" */
    uint64_t shadow_seed;
} placement_options;

/* clang-format off */
#define PLACEMENT_OPTIONS(o)                                                                       \
    {"-dev --device --backend", ARG_STRING, &(o).devices, .value = "NAME,..",                           \
     .help = "what to run on: cpu (default), vulkan0, reference (double precision, slow), "        \
             "./libmine.so; --list-devices tells what there is"},                                  \
    {"-ngl --n-gpu-layers --gpu-layers", ARG_INT, &(o).n_gpu_layers, .value = "N",                              \
     .help = "the last N layers on the device, or the first GPU; more than there are: all",        \
     .min = 0, .max = 1e6, .given = &(o).n_gpu_layers_given},                                      \
    {"--split", ARG_STRING, &(o).split, .value = "A=N,B=M",                                        \
     .help = "the first N layers on A, M on B; auto: measure each for a second, and take the "     \
             "fastest that fits"},                                                                 \
    {"--fit", ARG_FLAG, &(o).fit, .help = "as many layers on devices as fit into their memory"},   \
    {"--place", ARG_LIST, &(o).place, .value = "PATTERN=NAME",                                     \
     .help = "what reads weights of such names runs there: 'blk.*.ffn_*exps*=cpu'; repeatable"},   \
    {"--strict", ARG_FLAG, &(o).strict,                                                            \
     .help = "what a backend refuses is an error, and does not run on another one"},               \
    {"--trace", ARG_STRING, &(o).trace, .value = "FILE",                                           \
     .help = "write a timeline of the backends for ui.perfetto.dev or chrome://tracing"},          \
    {"--shadow", ARG_MAYBE, &(o).shadow, .value = "RATE",                                          \
     .help = "compute nodes of some runs (default RATE: 0.03 of them) again on the CPU, and "      \
             "report what differs"}
/* clang-format on */

typedef struct placement placement;

/* Opens the backends. -1: go on, else the exit code after a message. `tool` (for messages and
 * notes; NULL: no notes) and `o` are borrowed. */
int placement_open(placement **out, const char *tool, const placement_options *o,
                   const ggl_backend_params *params);
/* After the session is freed. GGL_IO: the timeline of --trace could not be written. NULL is fine.
 */
ggl_status placement_close(placement *p, ggl_error *err);
/* The file that a timeline is written to: of --trace, or of a device "trace:NAME"; NULL: none. */
const char *placement_trace(const placement_options *o);
/* The same with a status instead of messages, exit codes and notes; *out has to be closed even
 * after an error. */
ggl_status placement_new(placement **out, const char *tool, const placement_options *o,
                         const ggl_backend_params *params, ggl_error *err);

/* A session that is placed so: llm_session_new with its backends. */
int placement_session(placement *p, llm_session **out, const llm_model *m, llm_session_params *sp);
/* The same, with a status instead of messages and exit codes, and notes left out. */
ggl_status placement_session_new(placement *p, llm_session **out, const llm_model *m,
                                 llm_session_params *sp, ggl_error *err);
/* After llm_session_alloc has failed for want of memory: how many layers would fit, if that is known,
 * else that -c sets a smaller context; into buf. After other failures "". */
const char *placement_advice(placement *p, const llm_model *m, llm_session_params *sp,
                             ggl_status why, char *buf, size_t size);

int placement_n_backends(const placement *p);
ggl_backend *placement_backend(const placement *p, int k); /* in the order of the session's */
/* What --shadow has found, if it was asked for. False: something was beyond its bound. */
bool placement_report(const placement *p, FILE *out);
/* How many layers of a session that was placed so are not with the CPU. */
int64_t placement_n_device_layers(const placement *p, const llm_session *s);
/* "vulkan0=20,cpu=12" of the last session; "cpu" if it is one backend. Valid until the next. */
const char *placement_text(const placement *p);

/* All backends and devices of this build, a line each; what there is not, with the reason. */
void placement_list(FILE *out);

#endif
