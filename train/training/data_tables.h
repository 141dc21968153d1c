/* The rows of a Parquet file as JSON objects, read by DuckDB's shared library. It is loaded while the program runs, if it is
 * installed (libduckdb.so, libduckdb.dylib, duckdb.dll): nothing is needed to build the project.
 *
 *     train_table *t;
 *     ggl_str row;
 *     ggl_status st = llm_train_table_open(&t, "talks.parquet", &err);
 *     while (st == GGL_OK && (st = llm_train_table_next(t, &row, &err)) == GGL_OK && row.s) ..
 *     llm_train_table_close(t);
 *
 * Source of the calls: DuckDB's C API, https://duckdb.org/docs/stable/clients/c/overview, which stays as it is.
 * Threads: one at a time uses a table. */
#ifndef TRAIN_DATA_TABLES_H
#define TRAIN_DATA_TABLES_H

#include "ggl/status.h"
#include "ggl/str.h"

typedef struct train_table train_table;

/* Opens a regular file. GGL_UNSUPPORTED: there is no library, or one that lacks a call: the message says so of "it";
 * GGL_FORMAT: the library does not read the file; GGL_NOMEM: it does not start. Messages do not begin with the path. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_train_table_open(train_table **out, const char *path, ggl_error *err);
int64_t llm_train_table_n(const train_table *t); /* rows */
/* *row: the next row as a JSON object, valid until the next call; .s NULL: there are no more. GGL_FORMAT: the file is damaged. */
GGL_NODISCARD ggl_status llm_train_table_next(train_table *t, ggl_str *row, ggl_error *err);
void llm_train_table_close(train_table *t); /* NULL is fine */

#endif
