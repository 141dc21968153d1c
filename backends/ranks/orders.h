/* What passes between rank 0 and a device of another rank.
 *
 * Rank 0 sends packets of orders, which the other rank carries out one after another: what the functions of a backend are
 * called with (ggl/backend.h). A packet may ask for one answer: how its orders, and those of packets before it without an answer, have
 * ended. Small pieces of memory travel in packets and answers. A larger piece is a message, or several, of the tag TAG_DATA,
 * from the memory where it lies to the memory where it belongs; both sides know its size by the order.
 *
 * Weights are loaded meanwhile (FILL, REPACK): only the answer to other orders than HAS says that they are.
 *
 * After an order that fails the rest is not carried out until an answer has said so, but its data is received and sent. */
#ifndef RANKS_ORDERS_H
#define RANKS_ORDERS_H

#include <stddef.h>
#include <stdint.h>

/* Grows whenever what is below changes, or what orders have: builds of one version may differ in it. */
enum { ORDERS_VERSION = 5 };

enum {
    PACKET_SIZE = 64 << 10,        /* most bytes of a packet, and of an answer */
    MOST_INLINE = 8 << 10,         /* a larger piece is data */
    MOST_INLINE_ANSWER = 32 << 10, /* all pieces of an answer together */
    MOST_RESULT = 4 << 10,
    DATA_PIECE = 8 << 20,    /* most bytes of a message of data */
    EVENTS_SIZE = 256 << 10, /* most bytes of a message of events */
    LEAST_EVENTS = 64 << 10, /* bytes of events for which a message pays */
    MOST_EVENTS = 64 << 20   /* most bytes of them that a rank keeps: over a million steps */
};

/* ORDER(NAME, name): the function execute_NAME of execute.c carries it out. */
#define ORDERS                                                                                     \
    ORDER(ALLOC, alloc)     /* id, region, size */                                                 \
    ORDER(FREE, free)       /* id */                                                               \
    ORDER(PUT, put)         /* id, offset, size, is data; bytes */                                 \
    ORDER(GET, get)         /* id, offset, size, is data */                                        \
    ORDER(COPY, copy)       /* to, from, n; n ggl_copy_range */                                    \
    ORDER(CLEAR, clear)     /* id, offset, size */                                                 \
    ORDER(REFUSES, refuses) /* size; data: an image of a node */                                   \
    ORDER(COMPILE, compile) /* plan, graph, size of its image or 0, size; data: image, segment */  \
    ORDER(PLAN_FREE, plan_free) /* plan, graph that is not used any more, or 0 */                  \
    ORDER(DESCRIBE, describe)   /* plan, n */                                                      \
    ORDER(RUN, run)             /* plan, n, n_regions; ids of buffers, 0: none */                  \
    ORDER(WAIT, wait)                                                                              \
    ORDER(EVENTS, events) /* least bytes of events to send any; data: events_head, events */       \
    ORDER(HAS, has)       /* what; a path, or n, and size and digest of n weights: sources.c */    \
    ORDER(FILL, fill)     /* id, offset, size, source; data */                                     \
    ORDER(REPACK_SIZE, repack_size) /* image of a weight */                                        \
    ORDER(REPACK, repack)           /* id, offset, image of a weight, source; data */

typedef enum order_op {
#define ORDER(NAME, name) ORDER_##NAME,
    ORDERS
#undef ORDER
        ORDER_OPEN, /* number of a channel, name, parameters: to the first channel, alone in its packet */
    ORDER_CLOCK, /* to the first channel; its result is the rank's time */
    ORDER_CLOSE, /* ends the channel; that of the first one ends the job. Of the first one: all ranks leave MPI, or one is lost */
    ORDER_COUNT
} order_op;

typedef struct packet_head {
    uint64_t number;     /* of the packet in its channel, from 1 on */
    uint32_t size;       /* bytes of orders that follow */
    uint32_t has_answer; /* one is wanted */
} packet_head;

typedef struct order_head {
    uint32_t op, size; /* bytes that follow */
} order_head;

typedef struct answer_head {
    uint64_t number;
    uint32_t status; /* of the first order that failed */
    uint32_t n_inline,
        n_result; /* bytes: of pieces, in the order of their orders; of the last order's result */
    uint32_t n_error; /* and of the message */
} answer_head;

/* Before events that the rank has recorded (common/recorder.h). In place of a node's address they have its graph's id. */
typedef struct events_head {
    uint32_t size; /* bytes that follow */
    uint32_t unused;
    uint64_t left; /* bytes of events that stay */
    uint64_t lost; /* events that had no room, since the device was opened */
} events_head;

#endif
