/* The texts of a run, one after the other: the arguments, the lines of a file, which may be strings of JSON, or lists of tokens. Lines are read as they are
 * needed, so that a file of any length takes no memory. */
#ifndef TOOLS_EMBED_SOURCE_H
#define TOOLS_EMBED_SOURCE_H

#include <stdio.h>

#include "common/json.h"
#include "options.h"

typedef struct source {
    const arg_list *arg; /* -p or --tokens; NULL: lines of `file` */
    bool is_tokens, is_json;
    const char *path; /* as given, for messages */
    FILE *file;
    char *line;
    size_t cap;
    int32_t *id;
    llm_json *json; /* of the line; NULL: it is text */
    size_t n;       /* texts that were read */
    double n_bytes; /* of the file, that were read */
    double size;    /* of the file; 0: unknown */
    bool is_told;   /* of a line that is no UTF-8 */
} source;

/* A text, valid until the next one is read. */
typedef struct source_text {
    const char *s;
    size_t n;
    const int32_t *id; /* its tokens; NULL: it is text */
    size_t n_id;
} source_text;

/* Returns -1, or an exit code. */
int source_open(source *s, const options *o);
/* Reads the next text. Returns -1 with a text, or 0 at the end, or an exit code. */
int source_next(source *s, source_text *out);
/* Writes the name of text k, from 0 on: "lines.txt, line 3". */
void source_name(const source *s, size_t k, char *buf, size_t size);
void source_close(source *s);

#endif
