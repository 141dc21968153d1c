/* Rank 0: the way to one device of another rank. Orders are collected and sent together; see orders.h.
 *
 *     ggl_channel_begin(c, ORDER_CLEAR, 20);
 *     ggl_put_u32(&c->out, id);
 *     ..
 *     ggl_channel_end(c);
 *     st = ggl_channel_call(c, &result, err);
 *
 * Threads: one at a time calls the functions of a channel. */
#ifndef RANKS_CHANNEL_H
#define RANKS_CHANNEL_H

#include "ggl/internal/bytes.h"
#include "job.h"
#include "orders.h"

enum { N_PACKETS = 8 /* that may be on their way at once */, MOST_WAITED = 256, MOST_PIECES = 192 };

/* A piece of memory that comes or goes: done when the packet with its order is answered. */
typedef struct waited {
    uint64_t number; /* of the packet */
    ggl_request r;   /* data */
    void *to;        /* a piece in an answer: where it belongs; NULL: data */
    size_t size;
} waited;

typedef struct channel {
    job *j;
    int rank, tag;
    char name[32];     /* of the device, for messages */
    uint64_t number;   /* of the packet that is being written */
    uint64_t answered; /* the last packet that is */
    ggl_bytes out;     /* its orders */
    size_t order;      /* offset of the order that is being written */
    size_t n_inline;   /* bytes that its answer will have */
    char *packet[N_PACKETS];
    ggl_request sent[N_PACKETS];
    bool on_way[N_PACKETS];
    char *answer;
    ggl_request answers;
    bool has_answers; /* answers is prepared */
    waited waited[MOST_WAITED];
    size_t n_waited;
    char result[MOST_RESULT];
    size_t n_result;
    ggl_error
        failed; /* that of the first packet that failed and whose error nobody was told; GGL_OK: none */
    uint64_t failed_number;
    /* Asked while packets up to that number are waited for; then the other rank is told to stop. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    uint64_t cancellable, cancel;
    ggl_request cancels;
    bool is_cancelling;
    pause_t polling; /* since when the packet `polled` is asked for */
    uint64_t polled;
} channel;

/* Opens channel k to the rank, whose first packet has that number. GGL_NOMEM, GGL_DEVICE. ggl_channel_fini frees it in any case. */
ggl_status ggl_channel_init(channel *c, job *j, int rank, int k, uint64_t number, const char *name,
                            ggl_error *err);
void ggl_channel_fini(channel *c);

/* Begins an order with a body of at most `size` bytes, which the caller then puts into c->out. */
ggl_status ggl_channel_begin(channel *c, order_op op, size_t size, ggl_error *err);
void ggl_channel_end(channel *c);
/* Sends what is collected. With an answer, *number (may be NULL) is what ggl_channel_wait waits for. */
ggl_status ggl_channel_flush(channel *c, bool has_answer, uint64_t *number, ggl_error *err);
/* Waits until the packet is answered, and all data of it and of those before it has come and gone. Returns the error of the first order that failed. */
ggl_status ggl_channel_wait(channel *c, uint64_t number, ggl_error *err);
/* Looks whether ggl_channel_wait would return at once, and pauses if it would not. GGL_DEVICE: the rank is lost. */
ggl_status ggl_channel_poll(channel *c, uint64_t number, bool *done, ggl_error *err);
/* Flushes and waits; *result (may be NULL) is what the last order has returned, valid until the next call. */
ggl_status ggl_channel_call(channel *c, ggl_reader *result, ggl_error *err);

/* True if all packets are answered, and nothing is collected or awaited. */
static inline bool ggl_channel_is_idle(const channel *c) {
    return c->out.n == 0 && c->answered + 1 == c->number && c->n_waited == 0 &&
           c->failed.status == GGL_OK && !ggl_job_is_lost(c->j, c->rank);
}

/* After ggl_channel_end of its order: sends data, or says where it belongs. The memory belongs to the channel until
 * the packet is waited for; ggl_channel_send_all waits until it is sent. */
ggl_status ggl_channel_send(channel *c, const void *data, size_t size, ggl_error *err);
ggl_status ggl_channel_send_all(channel *c, const void *data, size_t size, ggl_error *err);
ggl_status ggl_channel_receive(channel *c, void *to, size_t size, ggl_error *err);
/* Says where a piece in the answer belongs. */
void ggl_channel_expect(channel *c, void *to, size_t size);
/* True if the answer to the packet that is being written has room for the piece. */
static inline bool ggl_channel_has_room(const channel *c, size_t size) {
    return size <= MOST_INLINE && c->n_inline + size <= MOST_INLINE_ANSWER;
}

#endif
