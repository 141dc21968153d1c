#include "ahead.h"

#include "base/os_file.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/memory_left.h"
#include "ggl/internal/op_args.h"
#include "repack.h"

/* Bytes that the system is asked for at once. Of more, Linux reads no more than its window for read-ahead,
 * which mostly is this. */
enum { PIECE = 128 << 10 };
/* Places that show whether the files are in memory; and the bytes around a touched one that the system must read for
 * itself to need no help. */
enum { PLACES = 64, WINDOW = 1 << 20 };

bool ggl_sched_note_read(schedule *s, const device *d, const ggl_tensor *node, ggl_tensor *t) {
    int range;
    ggl_tensor *w = t->view_of;
    if (!w || w->op != GGL_OP_WEIGHT || !ggl_sched_host_range(s, w, &range).mapped)
        return true;
    const bool is_stack = ggl_extents(w->ne, 2, GGL_MAX_DIMS, 1) > 1,
               is_repacked_first = d->repack.loc[w->id].region >= 0 && !d->repack.is_late;
    if (node->op == GGL_OP_PICK)
        return true;
    if (is_stack && !is_repacked_first)
        return ggl_node_list_push(&s->stacks, w) &&
               ggl_node_list_push(&s->stack_index,
                                  ggl_n_reads(node) > LINEAR_INDEX && ggl_is_product(node)
                                      ? ggl_read(node, LINEAR_INDEX)
                                      : NULL);
    return ggl_node_list_push(&s->reads, w);
}

static bool push(ahead *a, const void *from, size_t size) {
    if (!ggl_grow(&a->at, &a->cap, a->n + 1, sizeof *a->at))
        return false;
    a->size += size;
    a->at[a->n++] = (struct stretch){from, size};
    return true;
}

/* A byte of what is read: byte `at` of all. */
static const char *byte_at(const ahead *a, size_t at) {
    size_t i = 0;
    for (; at >= a->at[i].size; i++)
        at -= a->at[i].size;
    return a->at[i].from + at;
}

/* Returns the first of some places, evenly spread, whose bytes are not in memory; a->size if all are. To ask for
 * what is there would take the time of a token. */
static size_t find_absent(const ahead *a) {
    for (size_t k = 0; k < PLACES; k++)
        if (ggl_os_map_touch(byte_at(a, a->size / PLACES * k)))
            return a->size / PLACES * k;
    return a->size;
}

/* True if touching byte `at` has made the system read so much around it that it needs no help. What it reads for itself
 * is also faster to use afterwards: it takes larger pages for that. */
static bool reads_far(const ahead *a, size_t at) {
    return a->size - at > WINDOW && !ggl_os_map_touch(byte_at(a, at + WINDOW));
}

/* The main function of the thread. */
static void *read_all(void *arg) {
    ahead *a = arg;
    size_t skip = find_absent(a);
    if (skip == a->size || reads_far(a, skip))
        return NULL;
    for (size_t i = 0; i < a->n; i++) {
        for (size_t at = skip; at < a->at[i].size; at += PIECE) {
            const size_t left = a->at[i].size - at;
            if (atomic_load_explicit(&a->stops, memory_order_relaxed))
                return NULL;
            ggl_os_map_will_need(a->at[i].from + at, left < PIECE ? left : PIECE);
        }
        skip -= skip < a->at[i].size ? skip : a->at[i].size;
    }
    return NULL;
}

bool ggl_ahead_start(ahead *a, const schedule *s, const repack_file *file) {
    const size_t memory = ggl_memory_left("");
    bool ok = true;
    if (file->use == GGL_CACHE_READ)
        ok = push(a, file->map.data, file->map.size);
    for (size_t i = 0; i < s->reads.n && ok; i++)
        if (ggl_sched_still_read(s, s->reads.at[i], NULL))
            ok = push(a, s->reads.at[i]->data, s->reads.at[i]->size);
    if (ok && a->size > 0 && (memory == 0 || a->size < memory))
        a->has_thread = ggl_os_thread_start(&a->thread, read_all, a, 0);
    return ok;
}

double ggl_ahead_present(const ahead *a) {
    int n = 0;
    for (size_t k = 0; k < PLACES && a->size > 0; k++)
        n += ggl_os_map_is_present(byte_at(a, a->size / PLACES * k));
    return a->size > 0 ? (double)n / PLACES : 1;
}

void ggl_ahead_stop(ahead *a) {
    atomic_store(&a->stops, true);
    if (a->has_thread)
        ggl_os_thread_join(a->thread);
    a->has_thread = false;
    ggl_free(a->at);
    *a = (ahead){0};
}
