/* Weights of mapped files that do not all have room in memory. Parts of them are filled into private memory (base/os_parts.h) by two
 * threads, ahead of the backends, which say what they are about to read (ggl_backend.reads); some stay, as stream_plan.h says. It is
 * only for speed: a part that is not filled is read as the file's pages, and no result depends on it.
 *
 * Threads: the functions after ggl_stream_start may be called by the threads of all devices. */
#ifndef GGL_SCHED_STREAM_H
#define GGL_SCHED_STREAM_H

#include "base/os_parts.h"
#include "ggl/internal/os_thread.h"
#include "schedule.h"
#include "stream_plan.h"

enum { STREAM_THREADS = 2 };

typedef enum part_state {
    PART_ABSENT,
    PART_LOADING,
    PART_READY,
    PART_SPENT,
    PART_FAILED
} part_state;
typedef enum part_kind { PART_KEPT, PART_PASSING, PART_CHOSEN } part_kind;

typedef struct stream_part {
    const char *at;
    size_t size;
    os_parts *file;
    part_kind kind;
    part_state state;
    int place;      /* in the order of a run; of chosen ones -1 */
    int next_spent; /* the next part in the list of spent ones; -1: none */
    bool is_wanted;
    uint64_t step;    /* that read it last */
    uint64_t counted; /* the run that counted its use last */
    double
        worth; /* of a chosen one: logarithm of its uses; half of those of HALF_LIFE runs ago count */
} stream_part;

/* Matrices that runs choose by an index. */
typedef struct stream_stack {
    const char *at;
    size_t size, matrix; /* bytes of all, and of one */
    const ggl_tensor *index;
} stream_stack;

/* What a device reads. */
typedef struct stream_reader {
    struct stream *s;
    uint64_t step;
    int *now, *before; /* parts that this step reads, and the one before it, by index */
    int n_now, n_before;
    bool is_open; /* a step says what it reads */
} stream_reader;

typedef struct stream {
    stream_part *part; /* ascending by address, without overlaps */
    int n;
    int *order; /* those that each run reads, by place */
    int n_order;
    stream_stack *stack;
    size_t n_stacks;
    os_parts **file;
    size_t n_files;
    stream_reader *reader; /* by device */
    int n_readers;
    stream_plan plan;
    size_t page;            /* bytes of one */
    size_t size, kept_size; /* bytes of all parts; of those that are kept */
    os_thread thread[STREAM_THREADS];
    int n_threads;
    bool has_lock;
    os_mutex lock; /* guards all that follows, and the parts */
    os_cond work, done;
    bool stops, is_full; /* is_full: what a step reads has no room */
    size_t passing, chosen;
    int n_chosen, n_busy; /* chosen parts in memory; parts that are being filled or emptied */
    int cursor;           /* the place after what was read last */
    int spent;            /* list */
    int *wanted;          /* a ring of n: chosen parts that other matrices of the layer announce */
    int wanted_from, n_wanted;
    uint64_t last_step, run;
} stream;

/* Starts, if the weights that devices read in mapped files exceed what memory has left. False: out of memory. */
bool ggl_stream_start(stream *s, const schedule *plan);
void ggl_stream_stop(stream *s);
static inline bool ggl_stream_is_on(const stream *s) {
    return s->n_threads > 0;
}
/* Lets the backend of device k tell what it reads; or no longer. */
void ggl_stream_lend(stream *s, ggl_backend *b, int k, bool lent);

#endif
