/* Decides where a model runs, from the command line to a session: on which devices, how many layers
 * on each, and single weights elsewhere.
 *
 *     placement_options po = {0};
 *     const arg_option options[] = {.., PLACEMENT_OPTIONS(po), {0}};
 *     placement *p = NULL;
 *     int code = placement_open(&p, TOOL, &po, &backend_params);
 *     if (code < 0)
 *         code = placement_session(p, &session, model, &session_params);
 *     ..
 *     llm_session_free(session);
 *     placement_close(p, &err);              // after the session */
#ifndef TOOLS_PLACEMENT_H
#define TOOLS_PLACEMENT_H

#include "args.h"
#include "ggl/backends.h"
#include "llm/session.h"
#include "place_rules.h"

typedef struct placement_options {
    /* "vulkan0,cpu"; "none": the CPU alone; NULL: those of the other options, else the CPU */
    const char *devices;
    char devices_flag[ARG_TYPED]; /* the flag that was typed; "": --device */
    const char *split;            /* "vulkan0=20,cpu=12", or "auto" */
    const char *shares;           /* "3,1": proportions of the devices' layers */
    int64_t n_gpu_layers;
    bool n_gpu_layers_given, fit, strict;
    place_rule_options rules;
    const char *trace;  /* a file */
    const char *shadow; /* NULL: off; "": the default rate; "0.5" */
    uint64_t shadow_seed;
} placement_options;

/* clang-format off */
#define PLACEMENT_OPTIONS(o)                                                                       \
    {"-dev --device --backend", ARG_STRING, &(o).devices, .value = "NAME,..", .typed = (o).devices_flag, \
     .help = "devices to run on: cpu (default), vulkan0, reference (double precision, slow), ./libmine.so; --list-devices prints all"},                                  \
    {"-ngl --n-gpu-layers --gpu-layers", ARG_INT, &(o).n_gpu_layers, .value = "N",                              \
     .help = "run the last N layers on the --device, or on the first GPU; all layers if the model has fewer",        \
     .min = 0, .max = 1e6, .given = &(o).n_gpu_layers_given},                                      \
    {"--split", ARG_STRING, &(o).split, .value = "A=N,B=M",                                        \
     .help = "run the first N layers on device A, the next M on B; auto: measure each device for about a second, and use those that are faster than the CPU"},                                                                 \
    {"-ts --tensor-split", ARG_STRING, &(o).shares, .value = "N,M",                                \
     .help = "divide the layers of -ngl (without it: all) among the devices in these proportions, instead of by their memory"}, \
    {"--fit", ARG_FLAG, &(o).fit, .help = "run as many layers on the devices as fit into their memory"},   \
    PLACE_RULE_OPTIONS((o).rules),                                                                 \
    {"--strict", ARG_FLAG, &(o).strict,                                                            \
     .help = "stop with an error if a backend cannot run an operation, instead of running it on another backend"},               \
    {"--trace", ARG_STRING, &(o).trace, .value = "FILE",                                           \
     .help = "write a timeline of the backends for ui.perfetto.dev or chrome://tracing"},          \
    {"--shadow", ARG_MAYBE, &(o).shadow, .value = "RATE",                                          \
     .help = "check the devices: compute a share of the runs (default RATE: 0.03125, one of 32) again on the CPU, and report differences"}
/* clang-format on */

typedef struct placement placement;

/* Opens the backends. Returns -1, or an exit code after an error message. `tool` (for messages
 * and notes; NULL: no notes) and `o` are borrowed. */
int placement_open(placement **out, const char *tool, const placement_options *o,
                   const ggl_backend_params *params);
/* Closes the backends; call it after the session is freed. GGL_IO: the timeline of --trace could
 * not be written. p may be NULL. */
ggl_status placement_close(placement *p, ggl_error *err);
/* Returns the file that a timeline is written to, of --trace or a device "trace:NAME"; NULL:
 * none. */
const char *placement_trace(const placement_options *o);
/* Like placement_open, but returns a status, without messages and notes. *out must be closed
 * even after an error. */
ggl_status placement_new(placement **out, const char *tool, const placement_options *o,
                         const ggl_backend_params *params, ggl_error *err);

/* Makes a session with this placement (see llm_session_new). Returns -1, or an exit code after a
 * message. */
int placement_session(placement *p, llm_session **out, const llm_model *m, llm_session_params *sp);
/* Like placement_session, but returns a status, without messages and notes. */
ggl_status placement_session_new(placement *p, llm_session **out, const llm_model *m,
                                 llm_session_params *sp, ggl_error *err);
/* Writes advice after llm_session_alloc has failed for lack of memory to buf, and returns buf:
 * how many layers would fit, if that can be found out, else that -c sets a smaller context.
 * After other failures it is "". */
const char *placement_advice(placement *p, const llm_model *m, llm_session_params *sp,
                             ggl_status why, char *buf, size_t size);

/* True if no option names or chooses a backend, so that everything runs on the CPU. */
bool placement_is_cpu_only(const placement *p);
/* Returns the parameters with which the backends were opened. */
const ggl_backend_params *placement_params(const placement *p);
/* Frees the lists. */
void placement_options_fini(placement_options *o);

int placement_n_backends(const placement *p);
/* the k-th, in the order of a session's backends */
ggl_backend *placement_backend(const placement *p, int k);
/* Prints the findings of --shadow, if it was given. Returns false if an error was beyond its
 * bound. */
bool placement_report(const placement *p, FILE *out);
/* Returns the number of layers that are not on the CPU, of a session made with this placement. */
int64_t placement_n_device_layers(const placement *p, const llm_session *s);
/* Describes the last session's placement: "vulkan0=20,cpu=12", or "cpu" if it uses one backend.
 * Valid until the next session. */
const char *placement_text(const placement *p);

/* Prints all backends and devices of this build, one per line, with the reason if one cannot be
 * used. */
void placement_list(FILE *out);

#endif
