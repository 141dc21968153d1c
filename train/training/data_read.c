/* Reads files: which form they have, and what was left out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/other_text.h"
#include "common/text_file.h"
#include "common/user_text.h"
#include "data_impl.h"
#include "data_records.h"
#include "data_shapes.h"
#include "data_tables.h"
#include "data_text.h"
#include "ggl/internal/file.h"
#include "ggl/internal/text.h"
#include "ggl/internal/os_fs.h"

ggl_status llm_train_data_new(train_data **out, const train_data_params *params, ggl_error *err) {
    *out = NULL;
    if (params->n_ctx < 1 || params->n_ctx >= INT32_MAX)
        return ggl_fail(err, GGL_USAGE, "n_ctx (-c) is %" PRId64 ", but must be 1 .. %" PRId32,
                        params->n_ctx, INT32_MAX - 1);
    if (params->separator && !params->separator[0])
        return ggl_fail(err, GGL_USAGE, "the separator of documents is empty");
    train_data *d = ggl_calloc(1, sizeof *d);
    if (!d)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the data to learn from");
    d->p = *params;
    d->wide = llm_tokenizer_n_vocab(params->tokenizer) > UINT16_MAX + 1 ||
              (params->senses && params->senses->marks);
    ggl_xxh64_begin(&d->digest);
    *out = d;
    return GGL_OK;
}

void llm_train_data_free(train_data *d) {
    if (!d)
        return;
    llm_train_items_fini(d);
    ggl_free(d);
}

/* --- which form ------------------------------------------------------------------------------- */

/* Tables of texts have no beginning of their own. */
static const struct {
    const char *end, *advice;
} tables[] = {
    {".csv", LLM_TABLE_ADVICE("read_csv")},
    {".tsv", LLM_TABLE_ADVICE("read_table")},
};

/* Fails if the name says that it is a table, in which every row would be learned with its commas. */
static ggl_status check_table(const char *name, ggl_error *err) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (ggl_case_ends_with(name, tables[i].end))
            return ggl_fail(err, GGL_UNSUPPORTED, "%s: this is a table (%s), and no text; %s", name,
                            tables[i].end + 1, tables[i].advice);
    if (ggl_case_ends_with(name, ".parquet"))
        return ggl_fail(
            err, GGL_FORMAT,
            "%s: this is no Parquet file, whatever its name says: those begin with PAR1. "
            "Download or write it again",
            name);
    return GGL_OK;
}

static ggl_status check_other(ggl_str text, ggl_error *err) {
    const llm_other_file *other = llm_other_file_of(text);
    return other ? ggl_fail(err, GGL_UNSUPPORTED, "this is %s, which is not read; %s", other->what,
                            other->advice ? other->advice : "a text is expected, or JSON")
                 : GGL_OK;
}

/* --- what is left out ------------------------------------------------------------------------- */

/* The words of notes that say what was left out of a file: "1 without text was left out", "2 without text were left out". */
static const struct {
    size_t at;
    const char *which, *what;
} losses[] = {
#define LOSS(member) offsetof(train_data_stats, member)
    {LOSS(n_cut), "longer than the context", "cut at the end"},
    {LOSS(n_long), "without room in the context for what counts", "left out"},
    {LOSS(n_empty), "without text", "left out"},
    {LOSS(n_silent), "without an answer that counts", "left out"},
    {LOSS(n_same), "with two equal answers", "left out"},
    {LOSS(n_alone), "without a text that does not belong to the others",
     "left out: a model that scores learns from both"},
#undef LOSS
};
enum { N_LOSSES = sizeof losses / sizeof *losses };

static int64_t loss(const train_data_stats *s, int i) {
    return *(const int64_t *)(const void *)((const char *)s + losses[i].at);
}

/* For the note about what was left out of a file: the counts before it was read, and for each reason the line or row where it came first; 0: it did not come,
 * or the file has no lines. */
typedef struct train_losses {
    train_data_stats was;
    int64_t first[N_LOSSES];
} train_losses;

static void note_line(const train_data *d, train_losses *x, int64_t line) {
    for (int i = 0; i < N_LOSSES; i++)
        if (x->first[i] == 0 && loss(&d->stats, i) > loss(&x->was, i))
            x->first[i] = line;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Notes the folder of the file, in which paths begin; those of a stream begin in the current one. */
static ggl_status set_folder(train_data *d, const char *name, ggl_error *err) {
    const bool is_stream = strncmp(name, "/dev/", 5) == 0 || strncmp(name, "/proc/", 6) == 0;
    const char *slash = is_stream ? NULL : ggl_os_last_separator(name);
    const size_t n = slash ? (size_t)(slash + 1 - name) : 0;
    ggl_free(d->folder);
    d->folder = NULL;
    if (n == 0)
        return GGL_OK;
    d->folder = ggl_calloc(n + 1, 1);
    if (!d->folder)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the data to learn from");
    memcpy(d->folder, name, n);
    return GGL_OK;
}

static ggl_status read_objects(train_data *d, const char *path, ggl_str text, train_losses *lost,
                               ggl_error *err) {
    train_records r;
    train_record one;
    ggl_status st = GGL_OK;
    llm_train_records_begin(&r, path, text);
    while (st == GGL_OK && llm_train_records_next(&r, &one, err)) {
        llm_json *doc;
        st = llm_train_record_parse(&doc, &r, &one, err);
        if (st != GGL_OK)
            return st;
        st = llm_train_object(d, &doc->root, err);
        llm_json_free(doc);
        if (st != GGL_OK)
            return ggl_within(err, st, "%s:%" PRId64, path, one.line);
        note_line(d, lost, one.line);
        st = llm_train_progress(d, r.at, text.n, err);
    }
    return st == GGL_OK ? r.status : st;
}

/* The rows of a table are objects, too. */
static ggl_status read_rows(train_data *d, const char *path, size_t size, train_table *t,
                            train_losses *lost, ggl_error *err) {
    const double n = (double)llm_train_table_n(t);
    ggl_status st = GGL_OK;
    ggl_str row;
    for (int64_t i = 1; st == GGL_OK; i++) {
        llm_json *doc;
        st = llm_train_table_next(t, &row, err);
        if (st != GGL_OK || !row.s)
            return ggl_within(err, st, "%s", path);
        st = llm_json_parse(&doc, row.s, row.n, "JSON", err);
        if (st == GGL_OK)
            st = doc->root.kind == JSON_OBJECT
                     ? llm_train_object(d, &doc->root, err)
                     : ggl_fail(err, GGL_FORMAT, "an object is expected, not %s",
                                llm_json_kind_text((json_kind)doc->root.kind));
        llm_json_free(doc);
        if (st != GGL_OK)
            return ggl_within(err, st, "%s: row %" PRId64, path, i);
        note_line(d, lost, i);
        st = llm_train_progress(d, (double)i < n ? (size_t)((double)size * (double)i / n) : size,
                                size, err);
    }
    return st;
}

/* unit: what `first` counts. */
static void list_losses(const train_data *d, const train_losses *x, const char *unit, char *out,
                        size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < N_LOSSES && used < size; i++) {
        const int64_t n = loss(&d->stats, i) - loss(&x->was, i);
        char at[64] = "";
        if (x->first[i] > 0)
            snprintf(at, sizeof at, " (%s%s %" PRId64 ")", n > 1 ? "the first: " : "", unit,
                     x->first[i]);
        if (n > 0)
            used += (size_t)snprintf(out + used, size - used, "%s%" PRId64 " %s%s %s %s",
                                     used > 0 ? "; " : "", n, losses[i].which, at,
                                     n == 1 ? "was" : "were", losses[i].what);
    }
}

static ggl_status tell(const train_data *d, const train_losses *x, const char *unit,
                       const char *path, ggl_error *err) {
    char lost[900], line[1500];
    list_losses(d, x, unit, lost, sizeof lost);
    if (d->stats.n_items == x->was.n_items)
        return ggl_fail(err, GGL_FORMAT, "%s: there is nothing to learn from%s%s", path,
                        lost[0] ? ": " : "", lost);
    if (lost[0] && d->p.note) {
        snprintf(line, sizeof line, "%.500s: %s", path, lost);
        d->p.note(d->p.user, line);
    }
    return GGL_OK;
}

/* A file's contents, or, if t is not NULL, the rows of the table that it is. */
static ggl_status add(train_data *d, const char *name, ggl_str text, train_table *t,
                      ggl_error *err) {
    train_losses lost = {.was = d->stats};
    ggl_status st = set_folder(d, name, err);
    if (st != GGL_OK)
        return st;
    text = llm_text_after_mark(text);
    d->told = 0;
    if (t)
        st = read_rows(d, name, text.n, t, &lost, err);
    else if (llm_text_is_json(name, text))
        st = read_objects(d, name, text, &lost, err);
    else if ((st = check_table(name, err)) == GGL_OK)
        st = llm_train_documents(d, name, text, err);
    return st == GGL_OK ? tell(d, &lost, t ? "row" : "line", name, err) : st;
}

ggl_status llm_train_data_add(train_data *d, const char *name, ggl_str text, ggl_error *err) {
    const ggl_status st = check_other(text, err);
    return st == GGL_OK ? add(d, name, text, NULL, err) : ggl_within(err, st, "%s", name);
}

/* Reads a Parquet file by a library that may be there. */
static ggl_status add_table(train_data *d, const char *path, ggl_str text, ggl_error *err) {
    ggl_error why = {0};
    train_table *t;
    ggl_status st = llm_train_table_open(&t, path, &why);
    if (st == GGL_UNSUPPORTED)
        return ggl_fail(err, st,
                        "%s: this is a Parquet file, which DuckDB's library reads, but %s; or %s",
                        path, why.msg, llm_other_file_of(text)->advice);
    if (st != GGL_OK)
        return ggl_fail(err, st, "%s: %s", path, why.msg);
    st = add(d, path, text, t, err);
    llm_train_table_close(t);
    return st;
}

/* Checks the first bytes of a stream, before the rest is read. */
static ggl_status check_beginning(const char *name, ggl_str text, ggl_error *err) {
    if (llm_is_parquet(text))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: this is a Parquet file, which is not read from a pipe: give its name",
                        name);
    const ggl_status st = check_other(text, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", name);
    return memchr(text.s, 0, text.n) && !llm_text_wide(text) /* which is explained later */
               ? ggl_fail(err, GGL_FORMAT, "%s: it has a byte 0x00: this is no text", name)
               : GGL_OK;
}

/* Reads all of a pipe or a device into *out, which the caller frees. */
static ggl_status read_stream(const train_data *d, FILE *f, const char *name, char **out, size_t *n,
                              ggl_error *err) {
    enum { PIECE = 1 << 16 };
    const size_t most = llm_most_of_stream();
    size_t cap = 0;
    int why = 0;
    for (size_t got = PIECE; got == PIECE; *n += got) { /* less: the end, or a signal */
        if (!ggl_grow(out, &cap, *n + PIECE, 1))
            return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
        got = fread(*out + *n, 1, PIECE, f);
        why = errno;
        const ggl_status st = *n == 0 ? check_beginning(name, (ggl_str){*out, got}, err) : GGL_OK;
        if (st != GGL_OK)
            return st;
        if (got > most - *n)
            return ggl_fail(err, GGL_LIMIT,
                            "%s: the text is longer than %.1f MiB, the most that is read of a pipe "
                            "(2 GiB, or the memory that is free); give the name of a file",
                            name, (double)most / 0x1p20);
    }
    if (!ferror(f))
        return GGL_OK;
    return d->p.progress && !d->p.progress(d->p.user, 0, 1) /* a signal ended the reading */
               ? ggl_fail(err, GGL_CANCELLED, "cancelled")
               : ggl_fail(err, GGL_IO, "%s: %s", name, strerror(why));
}

/* Adds what a pipe or a device has; path NULL: standard input. */
static ggl_status add_stream(train_data *d, const char *path, ggl_error *err) {
    const char *name = path ? path : "stdin";
    char *own = NULL;
    size_t n = 0;
    FILE *f = path ? ggl_os_fopen(path, "rb") : stdin;
    const int why = errno;
    if (!f && d->p.progress && !d->p.progress(d->p.user, 0, 1)) /* no writer came before a signal */
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    if (!f)
        return ggl_fail(err, GGL_IO, "%s: %s", name, strerror(why));
    ggl_status st = read_stream(d, f, name, &own, &n, err);
    if (st == GGL_OK)
        st = llm_train_data_add(d, name, (ggl_str){own, n}, err);
    ggl_free(own);
    if (path)
        fclose(f);
    return st;
}

ggl_status llm_train_data_read(train_data *d, const char *path, ggl_error *err) {
    ggl_file_map map;
    os_stat is;
    if (strcmp(path, "-") == 0)
        return add_stream(d, NULL, err);
    if (ggl_os_stat(path, &is) && is.kind != OS_FILE && is.kind != OS_FOLDER)
        return add_stream(d, path, err);
    ggl_status st = ggl_file_map_open(&map, path, err);
    const ggl_str text = {st == GGL_OK ? map.data : NULL, st == GGL_OK ? map.size : 0};
    if (st == GGL_OK)
        st = llm_is_parquet(text) ? add_table(d, path, text, err)
                                  : llm_train_data_add(d, path, text, err);
    ggl_file_map_close(&map);
    return st;
}
