/* The other ranks: one device, what rank 0 has made on it, and its messages. */
#ifndef RANKS_STATION_H
#define RANKS_STATION_H

#include "../common/recorder.h"
#include "ggl/graph.h"
#include "ggl/internal/bytes.h"
#include "ggl/internal/file.h"
#include "job.h"
#include "orders.h"
#include "queue.h"

typedef struct held_buffer {
    ggl_buffer *b; /* NULL: there is none of that id */
    char *host;    /* its memory, if orders may read and write that; else NULL */
    void *owned;   /* that memory, if it was allocated for the buffer */
    size_t size;
} held_buffer;

typedef struct held_graph {
    ggl_graph *g;
    ggl_tensor **tensor; /* by id */
} held_graph;

typedef struct held_plan {
    ggl_plan *p;
    ggl_loc *store_loc;
} held_plan;

typedef struct held_file {
    char *path;
    ggl_file_map map;
} held_file;

/* A kept weight that rank 0 has asked for, and will order. */
typedef struct found_weight {
    uint64_t digest[2];
    ggl_file_map map;
} found_weight;

/* Weights on their way to the device: arriving.c. */
typedef struct arriving {
    queue loaded, kept;
    room room;
    os_mutex lock;
    ggl_error
        failed; /* of the first weight that failed, of which nobody has been told; GGL_OK: none did */
    bool is_made; /* the members above are */
    bool is_on;   /* some may be under way */
} arriving;

typedef struct station {
    job *j;
    int tag;
    ggl_backend *b;
    recorder *log; /* what it does; NULL: rank 0 does not want to know */
    char *events;  /* [EVENTS_SIZE], if there is a log */
    /* by id */
    held_buffer *buffer;
    held_graph *graph;
    held_plan *plan;
    size_t cap_buffers, cap_graphs, cap_plans;
    ggl_buffer **region; /* of a run */
    size_t cap_regions;
    held_file *
        *file; /* from which weights were taken; each stays where it is, as a thread reads them */
    size_t n_files, cap_files;
    found_weight *found;
    size_t n_found, cap_found;
    arriving arriving;
    bool keeps_none;                /* keeping a weight has failed; of the thread that keeps them */
    void (*note)(const char *text); /* for the user; may be NULL */
    /* the packet that is carried out */
    uint64_t number;
    ggl_error failed; /* the first order that failed since the last answer; GGL_OK: none */
    ggl_bytes piece;  /* what its answer has: pieces, and the last result */
    ggl_bytes result;
    char *data; /* [DATA_PIECE], for data that does not go straight to its place */
    /* packets up to that number are cancelled */
    uint64_t cancel_in, cancelled;
    ggl_request cancels;
    bool has_cancels;
    bool is_lost; /* a message failed, so nothing more can be done */
} station;

/* Keeps the first error, until an answer tells it. */
void ggl_station_note(station *s, ggl_status st, const ggl_error *err);
void ggl_station_fail(station *s, ggl_status st, const char *what);
bool ggl_station_ok(const station *s); /* no order has failed since the last answer */
/* Return the log's time, and write a span since then to it. Without a log they do nothing. */
uint64_t ggl_station_since(const station *s);
void ggl_station_span(station *s, const char *name, uint64_t since, size_t bytes);
/* Sends or receives data from or to memory, in pieces. */
bool ggl_station_move(station *s, void *data, size_t size, bool sends);
/* Receives `size` bytes that the caller frees; NULL: they were received and forgotten, for lack of memory, which is noted. */
char *ggl_station_receive(station *s, uint64_t size);
/* Receives data to, or sends it from, memory that only the backend reaches. h NULL: the data is received and forgotten, or zeros
 * are sent. */
void ggl_station_move_through(station *s, held_buffer *h, uint64_t offset, uint64_t size,
                              bool sends);
void ggl_station_drop_buffer(station *s, held_buffer *h);
void ggl_station_drop_graph(held_graph *h);
void ggl_station_drop_plan(station *s, held_plan *h);
/* Frees all that is held, and closes the backend. */
void ggl_station_fini(station *s);

#endif
