#include "memory.h"

#include <stdint.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_thread.h"

struct memory {
    size_t most;
    os_mutex lock; /* of all below */
    size_t held[N_MEMORY_USES], all;
};

/* A use has at most 1 / part of the whole. */
static const struct {
    const char *name;
    size_t part;
} uses[N_MEMORY_USES] = {[MEMORY_CONNECTIONS] = {"connections", 4},
                         [MEMORY_BODIES] = {"bodies", 8},
                         [MEMORY_REQUESTS] = {"requests", 2},
                         [MEMORY_ANSWERS] = {"answers", 2},
                         [MEMORY_GRAMMARS] = {"grammars", 4},
                         [MEMORY_STREAMS] = {"streams", 8},
                         [MEMORY_STORE] = {"store", 8}};

enum { PART_OF_ONE = 8 };

memory *memory_new(size_t most) {
    memory *m = ggl_calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->most = most;
    ggl_os_mutex_init(&m->lock);
    return m;
}

void memory_free(memory *m) {
    if (m)
        ggl_os_mutex_destroy(&m->lock);
    ggl_free(m);
}

const char *memory_name(memory_use use) {
    return uses[use].name;
}

size_t memory_most(const memory *m, memory_use use) {
    return m ? m->most / uses[use].part : SIZE_MAX;
}

size_t memory_most_of_one(const memory *m) {
    return m ? m->most / PART_OF_ONE : SIZE_MAX;
}

size_t memory_most_of_all(const memory *m) {
    return m ? m->most : SIZE_MAX;
}

size_t memory_held(memory *m, memory_use use) {
    if (!m)
        return 0;
    ggl_os_mutex_lock(&m->lock);
    const size_t n = m->held[use];
    ggl_os_mutex_unlock(&m->lock);
    return n;
}

/* Less always fits. */
static bool change(memory_hold *h, size_t n, bool always) {
    memory *m = h->of;
    if (!m || n == h->n)
        return true;
    ggl_os_mutex_lock(&m->lock);
    const size_t use = m->held[h->use] - h->n, all = m->all - h->n;
    const size_t most = memory_most(m, h->use);
    const bool fits =
        always || n < h->n || (n <= most && use <= most - n && n <= m->most && all <= m->most - n);
    if (fits) {
        m->held[h->use] = use + n;
        m->all = all + n;
        h->n = n;
    }
    ggl_os_mutex_unlock(&m->lock);
    return fits;
}

bool memory_set(memory_hold *h, size_t n) {
    return change(h, n, false);
}

void memory_force(memory_hold *h, size_t n) {
    (void)change(h, n, true);
}
