/* Data in Parquet files, which DuckDB's library reads: a stub of it stands for the library (duckdb_stub.c). */
#include "alloc_fail.h"
#include "train_data_test.h"

#define STUB(name) STUBS "/" name ".so"

static void use(const char *library) {
    setenv("GGL_DUCKDB", library, 1);
}

/* Short rows, whose text DuckDB keeps in the string itself, and long ones; more than a chunk has. */
#define ROWS                                                                                       \
    "{'text':'a'}\n"                                                                               \
    "{'text':'ab'}\n"                                                                              \
    "{'text':'Once upon a time, there was a little boy.'}\n"                                       \
    "{'prompt':'The capital of France is','completion':' Paris.','text':null}\n"                   \
    "{'messages':[{'role':'user','content':'Hi'},{'role':'assistant','content':'Ho'}]}\n"          \
    "{'text':' '}\n"                                                                               \
    "{'text':'the last one'}\n"

static void check_rows(const char *library) {
    model m;
    use(library);
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    train_data *lines = data_of(&p, "a.jsonl", ROWS),
               *rows = data_of(&p, "a.parquet", "PAR1\n" ROWS);
    REQUIRE(lines && rows);
    CHECK_INT(llm_train_data_stats(rows).n_records, 6);
    CHECK_INT(llm_train_data_stats(rows).n_empty, 1);
    CHECK(llm_train_data_digest(rows) == llm_train_data_digest(lines));
    CHECK_HAS(notes, "a.parquet: 1 without text (row 6) was left out");
    llm_train_data_free(rows);
    llm_train_data_free(lines);
    model_fini(&m);
}

/* As they come, and, by a library without that call, all at once. */
TEST(rows_are_objects) {
    check_rows(STUB("whole"));
    check_rows(STUB("does_not_stream"));
}

/* The library reads all files that a pattern fits; a name may look like one. Files are known by how they begin. */
TEST(names) {
    static const char *const name[] = {"talks[1-3]?.parquet", "*.parquet", "[.jsonl", "a]b"};
    model m;
    use(STUB("whole"));
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        train_data *d = data_of(&p, name[i], "PAR1\n" ROWS);
        CHECK(d && llm_train_data_stats(d).n_records == 6);
        llm_train_data_free(d);
    }
    model_fini(&m);
}

static void refuse_all(const model *m, ggl_status status, const char *words) {
    const train_data_params p = params_of(m, 512);
    refuse(&p, "a.parquet", "PAR1\n" ROWS, status, words);
}

TEST(mistakes) {
    model m;
    use(STUB("whole"));
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    refuse(&p, "a.parquet", "PAR1\n{'text':'a'}\n{'txt':'b'}\n", GGL_FORMAT,
           "a.parquet: row 2: the object has the keys \"txt\"");
    refuse(&p, "a.parquet", "PAR1\n{'text':'a'}\n{'text':nan}\n", GGL_FORMAT, "a.parquet: row 2: ");
    refuse(&p, "a.parquet", "PAR1\n{'text':'a'}\n[3]\n", GGL_FORMAT,
           "a.parquet: row 2: an object is expected, not an array");
    refuse(&p, "a.parquet", "PAR1\n{'text':'a'}\n{'text':'b'}\nDAMAGED\n", GGL_FORMAT,
           "a.parquet: DuckDB: IO Error: a page is damaged");
    refuse(&p, "a.parquet", "PAR1\n", GGL_FORMAT, "a.parquet: there is nothing to learn from");
    refuse(&p, "a.parquet", "PAR1", GGL_FORMAT,
           "a.parquet: DuckDB: Invalid Input Error: no magic bytes; is the file whole?");
    refuse(&p, "a.parquet", "<html>", GGL_FORMAT, "a.parquet: this is no Parquet file, whatever");
    refuse(&p, "b.PARQUET", "PAR", GGL_FORMAT, "b.PARQUET: this is no Parquet file, whatever");
    CHECK(!strchr(err.msg, '\n'));
    /* standard input cannot be read in any order */
    train_data *d = data_new(&p);
    CHECK_INT(llm_train_data_add(d, "stdin", (ggl_str){"PAR1\n", 5}, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg,
              "stdin: this is a Parquet file, which is not read; write it as lines of JSON");
    llm_train_data_free(d);
    model_fini(&m);
}

TEST(libraries) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    use("none.so");
    refuse_all(&m, GGL_UNSUPPORTED,
               "a.parquet: this is a Parquet file, which DuckDB's library reads, but that library "
               "cannot be "
               "loaded: none.so");
    CHECK_HAS(err.msg, "; or write it as lines of JSON, such as with Python: pandas.read_parquet");
    use(STUB("lacks_a_call"));
    refuse_all(&m, GGL_UNSUPPORTED,
               "but that library lacks duckdb_destroy_result: a newer one is needed; or");
    use(STUB("has_no_json"));
    refuse_all(&m, GGL_UNSUPPORTED, "but that library lacks the extension json; or write it as");
    use(STUB("does_not_open"));
    refuse_all(&m, GGL_NOMEM, "a.parquet: DuckDB: IO Error: no room");
    model_fini(&m);
}

static bool stop(void *user, size_t done, size_t total) {
    *(size_t *)user = done;
    CHECK_INT(total, strlen("PAR1\n" ROWS));
    return false;
}

TEST(stopped) {
    model m;
    size_t done = 0;
    use(STUB("whole"));
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 512);
    p.note = NULL;
    p.progress = stop;
    p.user = &done;
    train_data *d = data_new(&p);
    CHECK_INT(llm_train_data_read(d, file_of("a.parquet", "PAR1\n" ROWS), &err), GGL_CANCELLED);
    CHECK_INT(done, strlen("PAR1\n" ROWS)); /* progress comes with every 64 KiB, and at the end */
    llm_train_data_free(d);
    model_fini(&m);
}

static bool read_rows(void *arg) {
    const train_data_params *p = arg;
    train_data *d;
    if (llm_train_data_new(&d, p, &err) != GGL_OK)
        return false;
    const ggl_status st = llm_train_data_read(d, test_path("a.parquet"), &err);
    CHECK(st == GGL_OK || st == GGL_NOMEM);
    llm_train_data_free(d);
    return st == GGL_OK;
}

TEST(memory) {
    model m;
    use(STUB("whole"));
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 512);
    p.note = NULL;
    (void)file_of("a.parquet", "PAR1\n" ROWS);
    CHECK(alloc_fail_each(read_rows, &p) > 10);
    model_fini(&m);
}
