/* Shared by the parts of placement: placement.c opens the backends that the choice names,
 * placement_layers.c assigns layers to them and makes sessions. */
#ifndef LIBRARY_PLACEMENT_IMPL_H
#define LIBRARY_PLACEMENT_IMPL_H

#include "placement.h"

enum { PLACEMENT_MOST = 64 };

struct llm_placement {
    llm_placement_choice o; /* after the opening only `split` and numbers are read */
    char *split;            /* o.split */
    ggl_backend_params params;
    char names[PLACEMENT_MOST][512];
    ggl_backend *backend[PLACEMENT_MOST];
    ggl_backend *traced[PLACEMENT_MOST]; /* the same backends without shadow's wrapper */
    int n;
    int n_devices;          /* how many of them `devices` names, which are the first */
    ggl_backend *reference; /* computes constants */
    ggl_backend *
        trusted; /* a CPU that no layer runs on: for shadow, and for large constants if there is no other */
    double shadow_rate;
    int host;          /* index of the CPU; -1: not opened */
    bool no_device;    /* devices is "none" */
    bool is_job;       /* all ranks of the job share the layers */
    double after;      /* in a job: what follows the last layer, which rank 0 computes, in layers */
    double batch_cost; /* in a job: as llm_session_params has it, for processors */
    bool by_rows; /* `split` is "rows": the rows of large products are divided among all backends */
    int part
        [PLACEMENT_MOST]; /* indices of the backends that have layers, in the order of the layers */
    int64_t count[PLACEMENT_MOST]; /* how many layers each of them has */
    int n_parts;
    int64_t n_last;               /* n_gpu_layers; -1: not given, or already applied */
    double share[PLACEMENT_MOST]; /* shares: proportions of the devices' layers */
    int n_shares;                 /* 0: by their memory */
    /* [i]: gets no share of the layers: named only by a rule, or slower than the CPU */
    bool apart[PLACEMENT_MOST];
    ggl_memory reserved[PLACEMENT_MOST];
    place_rules rules;
    char text[PLACEMENT_MOST * 80];
};

/* Opens the CPU if it is not open. Returns its index; -1: *err. */
int llm_placement_need_host(llm_placement *p, ggl_error *err);
/* Writes the indices of the devices that share layers: all backends but the CPU and those set
 * apart. Returns how many. */
int llm_placement_devices(const llm_placement *p, int *at);

#endif
