#include "data_tables.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_library.h"

/* --- the library ------------------------------------------------------------------------------ */

/* Its name for the system's search; the first that is there. */
static const char *const names[] = {"libduckdb.so", "libduckdb.dylib", "duckdb.dll"};

/* duckdb_result and duckdb_string_t: DuckDB gives their layout to its users. */
typedef struct duck_result {
    uint64_t unused[3];
    void *columns;
    char *error;
    void *data;
} duck_result;

typedef union duck_string {
    struct {
        uint32_t n;
        char s[12];
    } few; /* n <= 12 */
    struct {
        uint32_t n;
        char first[4];
        const char *s;
    } many;
} duck_string;

/* X(type, name without "duckdb_", arguments). A call that returns int returns 0 if all went well. */
#define CALLS(X)                                                                                   \
    X(int, create_config, (void **config))                                                         \
    X(int, set_config, (void *config, const char *name, const char *option))                       \
    X(void, destroy_config, (void **config))                                                       \
    X(int, open_ext, (const char *path, void **database, void *config, char **error))              \
    X(void, close, (void **database))                                                              \
    X(int, connect, (void *database, void **connection))                                           \
    X(void, disconnect, (void **connection))                                                       \
    X(int, prepare, (void *connection, const char *query, void **statement))                       \
    X(const char *, prepare_error, (void *statement))                                              \
    X(int, bind_varchar, (void *statement, uint64_t index, const char *value))                     \
    X(int, execute_prepared, (void *statement, duck_result *result))                               \
    X(void, destroy_prepare, (void **statement))                                                   \
    X(const char *, result_error, (duck_result * result))                                          \
    X(void *, fetch_chunk, (duck_result result))                                                   \
    X(uint64_t, data_chunk_get_size, (void *chunk))                                                \
    X(void *, data_chunk_get_vector, (void *chunk, uint64_t column))                               \
    X(void *, vector_get_data, (void *vector))                                                     \
    X(void, destroy_data_chunk, (void **chunk))                                                    \
    X(void, destroy_result, (duck_result * result))                                                \
    X(void, free, (void *text))

typedef struct duck_calls {
#define X(type, name, arguments) type(*name) arguments;
    CALLS(X)
#undef X
    /* duckdb_execute_prepared_streaming: rows come as they are fetched, and are not kept. DuckDB has it still, but says that it may go. NULL: it has gone. */
    int (*stream)(void *statement, duck_result *result);
} duck_calls;

static const struct {
    const char *name;
    size_t at;
} calls[] = {
#define X(type, name, arguments) {"duckdb_" #name, offsetof(duck_calls, name)},
    CALLS(X)
#undef X
};

static void *open_library(ggl_error *err) {
    const char *const set = getenv("GGL_DUCKDB"), *const given = set && *set ? set : NULL;
    void *library = given ? ggl_os_library_open(given) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !given && !library; i++)
        if (ggl_os_library_is_name(names[i]))
            library = ggl_os_library_open(names[i]);
    if (!library)
        (void)ggl_fail(err, GGL_UNSUPPORTED, "that library cannot be loaded: %s",
                       ggl_os_library_error());
    return library;
}

static ggl_status find_calls(duck_calls *to, void *library, ggl_error *err) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *const call = ggl_os_library_find(library, calls[i].name);
        if (!call)
            return ggl_fail(err, GGL_UNSUPPORTED, "that library lacks %s: a newer one is needed",
                            calls[i].name);
        memcpy((char *)to + calls[i].at, &call, sizeof call);
    }
    void *const stream = ggl_os_library_find(library, "duckdb_execute_prepared_streaming");
    memcpy(&to->stream, &stream, sizeof stream);
    return GGL_OK;
}

/* --- queries ---------------------------------------------------------------------------------- */

struct train_table {
    duck_calls duck;
    void *library, *database, *connection;
    char *pattern; /* the path */
    void *statement;
    duck_result rows;     /* of the statement */
    void *chunk, *values; /* some rows, of which row `at` is the next */
    uint64_t at, n_chunk;
    int64_t n;
};

/* Only the first line of DuckDB's messages says what is wrong; the others show the query. */
static ggl_status fail(ggl_status st, const char *text, ggl_error *err) {
    const char *why = text ? text : "no reason was given";
    return ggl_fail(err, st, "DuckDB: %.*s%s", (int)strcspn(why, "\r\n"), why,
                    st == GGL_FORMAT ? "; is the file whole? If not, download or write it again"
                                     : "");
}

/* The path as a pattern that only this file has: DuckDB reads all files that a pattern fits, and ~ is a user's folder. */
static char *pattern_of(const char *path) {
    static const char here[] = "./";
    char *out = ggl_calloc(sizeof here + 3 * strlen(path), 1), *to = out;
    if (out && !ggl_os_is_absolute(path))
        to = (char *)memcpy(out, here, sizeof here) + sizeof here - 1;
    for (; out && *path; path++) {
        const bool special = strchr("*?[", *path) != NULL;
        if (special)
            *to++ = '[';
        *to++ = *path;
        if (special)
            *to++ = ']';
    }
    return out;
}

static ggl_status connect(train_table *t, ggl_error *err) {
    /* Nothing is downloaded, and the program's threads have the processor. */
    static const char *const setting[][2] = {{"threads", "1"},
                                             {"autoinstall_known_extensions", "false"},
                                             {"autoload_known_extensions", "false"}};
    const duck_calls *d = &t->duck;
    void *config = NULL;
    char *why = NULL;
    if (d->create_config(&config) != 0)
        return ggl_fail(err, GGL_NOMEM, "out of memory for DuckDB");
    for (size_t i = 0; i < sizeof setting / sizeof *setting; i++)
        (void)d->set_config(config, setting[i][0], setting[i][1]); /* others have other settings */
    const bool opened = d->open_ext(NULL, &t->database, config, &why) == 0;
    d->destroy_config(&config);
    const ggl_status st = opened ? GGL_OK : fail(GGL_NOMEM, why, err);
    if (why)
        d->free(why);
    if (st != GGL_OK)
        return st;
    return d->connect(t->database, &t->connection) == 0
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory for DuckDB");
}

/* Prepares a query whose only parameter is the file. *out is destroyed by the caller, also after a failure. */
static ggl_status prepare(const train_table *t, const char *text, void **out, ggl_error *err) {
    const duck_calls *d = &t->duck;
    return d->prepare(t->connection, text, out) == 0 && d->bind_varchar(*out, 1, t->pattern) == 0
               ? GGL_OK
               : fail(GGL_FORMAT, d->prepare_error(*out), err);
}

/* Runs a query to its end. The caller destroys the result, also after a failure. */
static ggl_status query(const train_table *t, const char *text, duck_result *out, ggl_error *err) {
    const duck_calls *d = &t->duck;
    void *statement = NULL;
    ggl_status st = prepare(t, text, &statement, err);
    if (st == GGL_OK && d->execute_prepared(statement, out) != 0)
        st = fail(GGL_FORMAT, d->result_error(out), err);
    d->destroy_prepare(&statement);
    return st;
}

/* *values: the first column of the next chunk, of *n rows; *chunk NULL: there are no more. */
static ggl_status next_chunk(const train_table *t, duck_result *from, void **chunk, void **values,
                             uint64_t *n, ggl_error *err) {
    const duck_calls *d = &t->duck;
    *n = 0;
    *chunk = d->fetch_chunk(*from);
    if (!*chunk) {
        const char *why = d->result_error(from);
        return why && *why ? fail(GGL_FORMAT, why, err) : GGL_OK;
    }
    *n = d->data_chunk_get_size(*chunk);
    *values = d->vector_get_data(d->data_chunk_get_vector(*chunk, 0));
    return GGL_OK;
}

static ggl_status count(train_table *t, ggl_error *err) {
    duck_result result = {.data = NULL};
    void *chunk = NULL, *values;
    uint64_t n = 0;
    ggl_status st =
        query(t, "SELECT count(*) FROM read_parquet($1, hive_partitioning = false)", &result, err);
    if (st == GGL_OK)
        st = next_chunk(t, &result, &chunk, &values, &n, err);
    if (n > 0)
        t->n = *(const int64_t *)values;
    if (chunk)
        t->duck.destroy_data_chunk(&chunk);
    t->duck.destroy_result(&result);
    return st;
}

/* Checks that it writes JSON, which is an extension that may be missing. */
static ggl_status check_json(const train_table *t, ggl_error *err) {
    duck_result result = {.data = NULL};
    const ggl_status st = query(t, "SELECT to_json($1)", &result, err);
    t->duck.destroy_result(&result);
    return st == GGL_OK ? st
                        : ggl_fail(err, GGL_UNSUPPORTED, "that library lacks the extension json");
}

/* Begins to read the rows. The name of the table is none that columns have. */
static ggl_status begin(train_table *t, ggl_error *err) {
    const duck_calls *d = &t->duck;
    const ggl_status st = prepare(t,
                                  "SELECT CAST(to_json(\"ggl row\") AS VARCHAR) "
                                  "FROM read_parquet($1, hive_partitioning = false) AS \"ggl row\"",
                                  &t->statement, err);
    if (st != GGL_OK)
        return st;
    return (d->stream ? d->stream : d->execute_prepared)(t->statement, &t->rows) == 0
               ? GGL_OK
               : fail(GGL_FORMAT, d->result_error(&t->rows), err);
}

ggl_status llm_train_table_open(train_table **out, const char *path, ggl_error *err) {
    train_table *t = *out = ggl_calloc(1, sizeof *t);
    if (!t)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a table");
    t->library = open_library(err);
    ggl_status st = t->library ? find_calls(&t->duck, t->library, err) : err->status;
    t->pattern = pattern_of(path);
    if (st == GGL_OK && !t->pattern)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a table");
    if (st == GGL_OK)
        st = connect(t, err);
    if (st == GGL_OK)
        st = check_json(t, err);
    if (st == GGL_OK)
        st = count(t, err);
    if (st == GGL_OK)
        st = begin(t, err);
    if (st != GGL_OK) {
        llm_train_table_close(t);
        *out = NULL;
    }
    return st;
}

int64_t llm_train_table_n(const train_table *t) {
    return t->n;
}

ggl_status llm_train_table_next(train_table *t, ggl_str *row, ggl_error *err) {
    *row = (ggl_str){NULL, 0};
    while (t->at == t->n_chunk) {
        if (t->chunk)
            t->duck.destroy_data_chunk(&t->chunk);
        t->at = 0;
        const ggl_status st = next_chunk(t, &t->rows, &t->chunk, &t->values, &t->n_chunk, err);
        if (st != GGL_OK || !t->chunk)
            return st;
    }
    const duck_string *s = (const duck_string *)t->values + t->at++;
    *row = (ggl_str){s->few.n <= sizeof s->few.s ? s->few.s : s->many.s, s->few.n};
    return GGL_OK;
}

void llm_train_table_close(train_table *t) {
    if (!t)
        return;
    const duck_calls *d = &t->duck;
    if (t->chunk)
        d->destroy_data_chunk(&t->chunk);
    if (t->connection) {
        d->destroy_result(&t->rows);
        if (t->statement)
            d->destroy_prepare(&t->statement);
        d->disconnect(&t->connection);
    }
    if (t->database)
        d->close(&t->database);
    if (t->library)
        ggl_os_library_close(t->library);
    ggl_free(t->pattern);
    ggl_free(t);
}
