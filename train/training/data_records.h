/* The JSON values of a file, one after the other: a line each, or the elements of a list. Each is parsed by itself, so that memory does not
 * depend on the file.
 *
 *     train_records r;
 *     train_record one;
 *     llm_train_records_begin(&r, "talks.jsonl", text);
 *     while (llm_train_records_next(&r, &one, &err) && llm_train_record_parse(&doc, &r, &one, &err) == GGL_OK) .. */
#ifndef TRAIN_DATA_RECORDS_H
#define TRAIN_DATA_RECORDS_H

#include "common/json.h"

typedef struct train_records {
    const char *name;
    ggl_str text;
    enum { RECORD_LINES, RECORD_LIST, RECORD_VALUES } form;
    size_t at, line_at,
        counted;       /* read so far; where the last line begins; up to where lines are counted */
    int64_t line;      /* its number, from 1 on */
    bool any, ended;   /* of a list: an element was read; the closing bracket was */
    ggl_status status; /* why no record came; GGL_OK: there are no more */
} train_records;

typedef struct train_record {
    ggl_str text;
    int64_t line, column; /* where it begins; columns in bytes, from 0 on */
} train_record;

/* name and text are borrowed. A text that begins with '[' is a list; one whose first line is no whole object has values of several lines. */
void llm_train_records_begin(train_records *r, const char *name, ggl_str text);
/* False: there are no more, or r->status says what is wrong. */
bool llm_train_records_next(train_records *r, train_record *out, ggl_error *err);
/* Parses a record. Messages begin with "NAME:LINE:COLUMN: ". GGL_FORMAT: it is no JSON, or no object. */
GGL_NODISCARD ggl_status llm_train_record_parse(llm_json **out, const train_records *r,
                                                const train_record *of, ggl_error *err);

#endif
