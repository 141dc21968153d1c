/* What the parts of placement share: placement.c opens the backends that the command line names,
 * placement_layers.c assigns layers to them and makes sessions. */
#ifndef TOOLS_PLACEMENT_IMPL_H
#define TOOLS_PLACEMENT_IMPL_H

#include "placement.h"

enum { PLACEMENT_MOST = 16 };

struct placement {
    const char *tool; /* for notes on stderr; NULL: none */
    const placement_options *o;
    ggl_backend_params params;
    char names[PLACEMENT_MOST][512];
    ggl_backend *backend[PLACEMENT_MOST];
    ggl_backend *traced[PLACEMENT_MOST]; /* the same backends without --shadow's wrapper */
    int n;
    int n_devices;          /* how many of them --device names, which are the first */
    ggl_backend *reference; /* computes constants */
    ggl_backend *trusted;   /* for --shadow */
    double shadow_rate;
    int host;       /* index of the CPU; -1: not opened */
    bool no_device; /* --device none */
    int part
        [PLACEMENT_MOST]; /* indices of the backends that have layers, in the order of the layers */
    int64_t count[PLACEMENT_MOST]; /* how many layers each of them has */
    int n_parts;
    int64_t n_last;               /* value of -ngl; -1: not given, or already applied */
    double share[PLACEMENT_MOST]; /* -ts: proportions of the devices' layers */
    int n_shares;                 /* 0: by their memory */
    /* [i]: gets no share of the layers: named only by --place, or slower than the CPU */
    bool apart[PLACEMENT_MOST];
    place_rules rules;
    char text[PLACEMENT_MOST * 80];
};

/* Opens the CPU if it is not open. Returns its index; -1: *err. */
int placement_need_host(placement *p, ggl_error *err);
/* Writes the indices of the devices that share layers: all backends but the CPU and those set
 * apart. Returns how many. */
int placement_devices(const placement *p, int *at);
/* Reports the error. Returns exit code 2 also for names that do not exist, as for misspelled
 * flags. */
int placement_tell(const char *tool, const ggl_error *err);

#endif
