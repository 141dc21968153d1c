/* Where the other ranks get weights from. Three ways, tried in this order:
 *
 *   a file of their own     at the same path, as long as that of rank 0, and with the same bytes in samples of the weight
 *   a folder of their own   weights that rank 0 has sent before, by digest (GGL_RANK_CACHE)
 *   rank 0                  sends them; they are checked by their digest, and kept in that folder
 *
 * Rank 0 asks which way it is (ORDER_HAS), and then says so in the order that needs the weight. */
#ifndef RANKS_SOURCES_H
#define RANKS_SOURCES_H

#include "channel.h"
#include "ggl/internal/file.h"
#include "station.h"

enum source_kind { SOURCE_FILE, SOURCE_KEPT, SOURCE_SENT };

/* A smaller weight is sent without asking. */
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

/* Files that the rank has been asked for. */
typedef struct known_files {
    char *path[16];
    bool has[16];
    size_t n;
} known_files;

/* Finds out how the bytes, which are a weight's, get to the rank. May ask it. */
ggl_status ggl_source_find(source *s, channel *c, known_files *k, const void *data, size_t size,
                           ggl_error *err);
/* Most bytes of ggl_source_put. */
size_t ggl_source_size(const source *s);
void ggl_source_put(const source *s, ggl_bytes *out);
/* After the order: sends what must be sent. */
ggl_status ggl_source_send(const source *s, channel *c, ggl_error *err);
void ggl_known_files_fini(known_files *k);

/* The other ranks: */
typedef struct taken {
    const void *data;  /* NULL: there is none, and the error is noted */
    void *owned;       /* its memory, if it was sent */
    ggl_file_map file; /* the file, if it is kept; closed by ggl_source_drop */
    const ggl_file_map *shared;
    size_t size;
} taken;

/* Reads a source of `size` bytes from an order, and gets the bytes. */
taken ggl_source_take(station *s, ggl_reader *r, size_t size);
void ggl_source_drop(taken *t);
/* Answers ORDER_HAS. */
void ggl_source_execute_has(station *s, ggl_reader *r);

#endif
