/* What an eye or an ear reads of a file, before anything is run: rows of its input, part by part. */
#ifndef LIBRARY_NOTICED_H
#define LIBRARY_NOTICED_H

#include "ggl/alloc.h"
#include "llm/internal/media.h"
#include "llm/internal/rows_gather.h"

/* A picture or a sound: a file, or the bytes of one. */
typedef struct llm_noticed_file {
    const char *path; /* NULL: data */
    const void *data; /* [n] */
    size_t n;
    double offset, duration; /* of speech, in seconds; duration 0: to its end */
} llm_noticed_file;

/* One that was read. */
typedef struct llm_noticed {
    uint8_t id[LLM_MEDIA_ID]; /* a digest of its contents */
    const char *name;         /* for messages, borrowed */
    int64_t n_parts;          /* a picture and its tiles, or windows of a sound */
    void *of;                 /* what it is; NULL: nothing */
} llm_noticed;

/* Rows of the input. */
typedef struct llm_noticed_part {
    const float *row;
    int64_t n;
    llm_row_places places;
    /* The rows that are made of them, and their places in a text, as llm_media_rows has them */
    int64_t n_made, n_pos;
    const int32_t *place;
    void *own[3];                             /* the memory of all this */
    void (*free)(struct llm_noticed_part *p); /* NULL: all is in own[0] */
} llm_noticed_part;

static inline void llm_noticed_part_fini(llm_noticed_part *p) {
    if (p->free)
        p->free(p);
    else
        ggl_free(p->own[0]);
    *p = (llm_noticed_part){.row = NULL};
}

#endif
