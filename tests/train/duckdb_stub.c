/* Stands for DuckDB's library in train_tables.c: the calls of its C API that train/training/data_tables.c makes. A file of the test
 * is "PAR1" and a line for each row. Rows come three at a time; a row DAMAGED is a failure. Calls in a wrong order, or for what was
 * freed, end the program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef NDEBUG
#include <assert.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* they are in DuckDB's header */

enum { N_CHUNK = 3 };

typedef struct duckdb_string_t {
    uint32_t length;
    char first[4];
    union {
        char more[8];
        char *s;
    } u;
} duckdb_string_t;

typedef struct duckdb_result {
    uint64_t deprecated[3];
    void *columns;
    char *error;
    struct rows *rows;
} duckdb_result;

typedef struct rows {
    FILE *file; /* NULL: the result is a number */
    int64_t n;
    char failure[80];
} rows;

typedef struct chunk {
    uint64_t n;
    union {
        duckdb_string_t text[N_CHUNK];
        int64_t number;
    } of;
    char *line[N_CHUNK];
} chunk;

typedef struct statement {
    int counts, asks_json, is_streamed;
    char *path;
    char failure[200];
} statement;

static int n_open; /* databases, connections, statements, results, chunks, settings */

int duckdb_create_config(void **config) {
    *config = malloc(1);
    n_open++;
    return *config ? 0 : 1;
}

int duckdb_set_config(void *config, const char *name, const char *option) {
    assert(config);
    assert(strcmp(option, strcmp(name, "threads") == 0 ? "1" : "false") == 0);
    return 0;
}

void duckdb_destroy_config(void **config) {
    free(*config);
    *config = NULL;
    n_open--;
}

int duckdb_open_ext(const char *path, void **database, void *config, char **error) {
    assert(!path && config);
#ifdef DOES_NOT_OPEN
    *database = NULL;
    *error = malloc(40);
    strcpy(*error, "IO Error: no room\nfor this database");
    return 1;
#else
    *error = NULL;
    *database = malloc(1);
    n_open++;
    return 0;
#endif
}

void duckdb_free(void *text) {
    free(text);
}

static void let_go(void **what) {
    assert(*what);
    free(*what);
    *what = NULL;
    n_open--;
}

void duckdb_close(void **database) {
    let_go(database);
    assert(n_open == 0);
}

int duckdb_connect(void *database, void **connection) {
    assert(database);
    *connection = malloc(1);
    n_open++;
    return 0;
}

void duckdb_disconnect(void **connection) {
    let_go(connection);
}

int duckdb_prepare(void *connection, const char *query, void **out) {
    statement *s = calloc(1, sizeof *s);
#ifdef HAS_NO_JSON
    if (strcmp(query, "SELECT to_json($1)") == 0) {
        snprintf(s->failure, sizeof s->failure, "Catalog Error: no to_json");
        n_open++;
        *out = s;
        return 1;
    }
#endif
    s->asks_json = strcmp(query, "SELECT to_json($1)") == 0;
    assert(connection &&
           (s->asks_json || strstr(query, "read_parquet($1, hive_partitioning = false)")));
    s->counts = strstr(query, "count(*)") != NULL;
    assert(s->counts || strstr(query, "to_json("));
    s->is_streamed = !s->counts && !s->asks_json;
    n_open++;
    *out = s;
    return 0;
}

const char *duckdb_prepare_error(void *s) {
    return ((statement *)s)->failure;
}

/* The pattern as a path: each special character is in brackets. */
int duckdb_bind_varchar(void *p, uint64_t index, const char *value) {
    statement *s = p;
    assert(index == 1);
    char *to = s->path = malloc(strlen(value) + 1);
    for (; *value; value++) {
        if (*value == '[') {
            assert(value[1] && value[2] == ']');
            *to++ = value[1];
            value += 2;
            continue;
        }
        assert(!strchr("*?", *value));
        *to++ = *value;
    }
    *to = '\0';
    return 0;
}

static int execute(const statement *s, duckdb_result *result) {
    char line[4096];
    rows *r = result->rows = calloc(1, sizeof *r);
    n_open++;
    r->n = -1;
    if (s->asks_json)
        return 0;
    r->n = 0;
    r->file = fopen(s->path, "r");
    if (!r->file || !fgets(line, sizeof line, r->file) || strcmp(line, "PAR1\n") != 0) {
        snprintf(r->failure, sizeof r->failure, "Invalid Input Error: no magic bytes\nLINE 1");
        return 1;
    }
    if (!s->counts)
        return 0;
    while (fgets(line, sizeof line, r->file))
        r->n++;
    fclose(r->file);
    r->file = NULL;
    return 0;
}

int duckdb_execute_prepared(void *p, duckdb_result *result) {
#ifndef DOES_NOT_STREAM
    assert(!((statement *)p)->is_streamed);
#endif
    return execute(p, result);
}

#ifndef DOES_NOT_STREAM
int duckdb_execute_prepared_streaming(void *p, duckdb_result *result) {
    assert(((statement *)p)->is_streamed);
    return execute(p, result);
}
#endif

void duckdb_destroy_prepare(void **p) {
    free(((statement *)*p)->path);
    let_go(p);
}

const char *duckdb_result_error(duckdb_result *result) {
    return result->rows && result->rows->failure[0] ? result->rows->failure : NULL;
}

void *duckdb_fetch_chunk(duckdb_result result) {
    rows *r = result.rows;
    char line[4096];
    chunk *c = calloc(1, sizeof *c);
    if (!r->file && r->n >= 0) {
        c->n = 1;
        c->of.number = r->n;
        r->n = -1;
    }
    while (r->file && c->n < N_CHUNK && fgets(line, sizeof line, r->file)) {
        const size_t n = strcspn(line, "\n");
        if (strcmp(line, "DAMAGED\n") == 0) {
            snprintf(r->failure, sizeof r->failure, "IO Error: a page is damaged");
            c->n = 0;
            break;
        }
        duckdb_string_t *to = &c->of.text[c->n];
        to->length = (uint32_t)n;
        char *own = c->line[c->n++] = malloc(n + 1); /* without a NUL, as DuckDB's */
        memcpy(own, line, n);
        if (n > 12)
            to->u.s = own;
        else
            memcpy(to->first, own, n);
    }
    if (c->n == 0) {
        for (int i = 0; i < N_CHUNK; i++)
            free(c->line[i]);
        free(c);
        return NULL;
    }
    n_open++;
    return c;
}

uint64_t duckdb_data_chunk_get_size(void *c) {
    return ((chunk *)c)->n;
}

void *duckdb_data_chunk_get_vector(void *c, uint64_t column) {
    assert(column == 0);
    return c;
}

void *duckdb_vector_get_data(void *c) {
    return &((chunk *)c)->of;
}

void duckdb_destroy_data_chunk(void **p) {
    chunk *c = *p;
    for (int i = 0; i < N_CHUNK; i++)
        free(c->line[i]);
    let_go(p);
}

#ifndef LACKS_A_CALL
void duckdb_destroy_result(duckdb_result *result) {
    if (!result->rows)
        return;
    if (result->rows->file)
        fclose(result->rows->file);
    let_go((void **)&result->rows);
}
#endif
