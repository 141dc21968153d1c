/* Where the other ranks get weights from. Three ways, tried in this order:
 *
 *   a file of their own     at the same path, as long as that of rank 0, and with the same bytes in samples of the weight
 *   a folder of their own   weights that rank 0 has sent before, by digest (GGL_RANK_CACHE)
 *   rank 0                  sends them; they are checked by their digest, and kept in that folder
 *
 * Rank 0 asks which way it is (ORDER_HAS), for a file or for several weights at once, and then says so in the order that needs the
 * weight. */
#ifndef RANKS_SOURCES_H
#define RANKS_SOURCES_H

#include "channel.h"
#include "ggl/internal/file.h"
#include "station.h"

enum source_kind { SOURCE_FILE, SOURCE_KEPT, SOURCE_SENT };

/* A smaller weight is sent without asking, and not kept. */
enum { LEAST_ASKED = 64 << 10 };

/* Rank 0: how a weight gets to the rank, as it is written into an order. */
typedef struct source {
    enum source_kind kind;
    const void *data;
    size_t size;
    const char *path; /* of a file */
    size_t offset, file_size;
    uint64_t digest[2]; /* of samples, for a file; else of all bytes */
} source;

/* A file that the rank has been asked for. */
typedef struct known_file {
    char *path;
    bool has;
} known_file;

typedef struct known_files {
    known_file *at;
    size_t n, cap;
} known_files;

/* Says how the bytes, which are a weight's, get to the rank, as far as that is known without asking it for the weight: SOURCE_FILE, or
 * SOURCE_SENT. Reads them, for their digest. The source is valid as long as the files. False: it must be asked for the source's file
 * first, and then this once more. */
bool ggl_source_find(source *s, const known_files *k, const void *data, size_t size);
/* Asks the rank for that file. */
ggl_status ggl_source_ask_file(const source *s, channel *c, known_files *k, ggl_error *err);
void ggl_known_files_fini(known_files *k);
/* Asks whether the rank keeps those of n weights that would be sent, as far as they are kept at all. ggl_channel_wait waits for the
 * *number, and ggl_source_hear then turns those that it keeps into SOURCE_KEPT. */
enum { MOST_ASKED = 32 };
ggl_status ggl_source_ask(const source *s, size_t n, channel *c, uint64_t *number, ggl_error *err);
ggl_status ggl_source_hear(source *s, size_t n, channel *c, uint64_t number, ggl_error *err);
/* Most bytes of ggl_source_put. */
size_t ggl_source_size(const source *s);
void ggl_source_put(const source *s, ggl_bytes *out);
/* After the order: sends what must be sent. */
ggl_status ggl_source_send(const source *s, channel *c, ggl_error *err);

/* The other ranks: */
typedef struct taken {
    const void *data;  /* NULL: there is none, and the error is noted */
    void *owned;       /* its memory, if it was sent */
    ggl_file_map file; /* the file, if it is kept; closed by ggl_source_drop */
    const ggl_file_map *shared;
    size_t size;
    uint64_t digest[2]; /* that rank 0 has said */
} taken;

/* Reads a source of `size` bytes from an order, and gets the bytes. */
taken ggl_source_take(station *s, ggl_reader *r, size_t size);
/* Checks what was sent by its digest. `what` names it. Any thread. */
ggl_status ggl_source_check(const taken *t, const char *what, ggl_error *err);
/* Keeps what was sent, and has been checked, for the next start. A failure is a note, once. */
void ggl_source_keep(station *s, const taken *t);
void ggl_source_drop(taken *t);
/* Answers ORDER_HAS. */
void ggl_source_execute_has(station *s, ggl_reader *r);
/* Forgets the kept weights that rank 0 has asked for, but not ordered. */
void ggl_source_forget(station *s);

#endif
