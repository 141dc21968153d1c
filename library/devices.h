/* Where the layers of a model run: the backends of a context, and the share of each. */
#ifndef LIBRARY_DEVICES_H
#define LIBRARY_DEVICES_H

#include "ggl/backends.h"
#include "llm/llm.h"
#include "llm/session.h"

enum { MOST_DEVICES = 16 };

typedef struct devices {
    ggl_backend *backend[MOST_DEVICES];
    char name[MOST_DEVICES][64];
    int64_t n_layers
        [MOST_DEVICES]; /* with `split`: number of layers of each, in the order of the layers */
    int n, host;        /* host: index of the CPU; -1: it is not open */
    bool is_split;
    int64_t n_last;         /* layers at the end that devices have; -1: all */
    ggl_backend *reference; /* computes constants */
} devices;

/* Opens the backends that the parameters name. devices_close also after a failure. err is not NULL. */
ggl_status devices_open(devices *d, const llm_open_params *p, ggl_error *err);
void devices_close(devices *d);
/* Sets p so that the session places its layers as *d says. *d must not move meanwhile. */
void devices_place(devices *d, llm_session_params *p);
/* GGL_USAGE: the numbers of `split` do not add up to the model's layers. */
ggl_status devices_check(const devices *d, const char *split, int64_t n_layer, ggl_error *err);
/* Writes "cpu=12,vulkan0=20", or the name of the only backend. */
void devices_text(const devices *d, int n_layer, char *buf, size_t size);

#endif
