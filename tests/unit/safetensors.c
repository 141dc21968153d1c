/* safetensors files, whole and broken. */
#include "convert/safetensors.h"
#include "ggl/types.h"

#include "alloc_fail.h"
#include "steps.h"

static unsigned char bytes[4096];
static size_t n_bytes;
static ggl_error err;

/* A file of this header and so many bytes of data, 0, 1, 2 .. */
static void make(const char *head, size_t n_data) {
    size_t n = strlen(head);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (unsigned char)n;
    bytes[1] = (unsigned char)(n >> 8);
    memcpy(bytes + 8, head, n);
    for (size_t i = 0; i < n_data; i++)
        bytes[8 + n + i] = (unsigned char)i;
    n_bytes = 8 + n + n_data;
}

static ggl_status open_it(llm_safetensors **st) {
    unsigned char *copy = malloc(n_bytes + 1); /* no byte to spare, for the address sanitizer */
    memcpy(copy, bytes, n_bytes);
    err = (ggl_error){0};
    ggl_status s = llm_safetensors_open_memory(st, copy, n_bytes, "x.safetensors", &err);
    if (s != GGL_OK)
        free(copy);
    return s;
}

static const char good[] =
    "{\"__metadata__\": {\"format\": \"pt\"}, \"b\": {\"dtype\": \"F32\", \"shape\": [2, 3], "
    "\"data_offsets\": [4, 28]}, \"a\": {\"dtype\":\"I64\",\"shape\":[0, "
    "7],\"data_offsets\":[4,4]}, "
    "\"c\": {\"dtype\": \"BF16\", \"shape\": [2], \"data_offsets\": [0, 4]}}  ";

TEST(reads) {
    llm_safetensors *st;
    make(good, 28);
    REQUIRE_OK(llm_safetensors_open_memory(&st, bytes, n_bytes, "x", &err), &err);
    CHECK_INT(st->n_tensor, 3);
    const st_tensor *b = llm_safetensors_find(st, "b"), *a = llm_safetensors_find(st, "a"),
                    *c = llm_safetensors_find(st, "c");
    REQUIRE(a && b && c && !llm_safetensors_find(st, "d") &&
            !llm_safetensors_find(st, "__metadata__"));
    CHECK(b->type == GGL_F32 && b->n_dims == 2 && b->ne[0] == 3 && b->ne[1] == 2 && b->size == 24);
    CHECK(((const unsigned char *)b->data)[0] == 4);
    CHECK(a->type == -1 && strcmp(a->dtype, "I64") == 0 && a->size == 0);
    CHECK(c->type == GGL_BF16 && ((const unsigned char *)c->data)[0] == 0);
    llm_safetensors_close(st);
}

#define T(dtype, shape, from, to)                                                                  \
    "{\"t\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": [" from ", " to    \
    "]}}"

TEST(broken) {
    static const struct {
        const char *head;
        size_t n_data;
        const char *words;
    } list[] = {
        {T("F32", "[2]", "0", "8"), 7,
         "its data is at 0 to 8, but the file has 7 bytes of data; it may be truncated"},
        {T("F32", "[2]", "0", "8"), 9, "1 bytes at the end belong to no tensor"},
        {T("F32", "[2]", "4", "12"), 12, "4 bytes before the data of 't' belong to no tensor"},
        {T("F32", "[2]", "8", "0"), 8, "its data is at 8 to 0"},
        {T("F32", "[3]", "0", "8"), 8, "type and shape need 12 bytes, but its data has 8"},
        {T("F32", "[2]", "0", "18446744073709551615"), 8, "an offset is not a whole number"},
        {T("F32", "[2]", "0", "9007199254740991"), 8, "but the file has 8 bytes of data"},
        {T("F32", "[4503599627370496, 4503599627370496]", "0", "8"), 8, "its size is too large"},
        {T("F32", "[-2]", "0", "8"), 8, "a dimension is not a whole number"},
        {T("F32", "[2.5]", "0", "8"), 8, "a dimension is not a whole number"},
        {T("F32", "[1,1,1,1,1,1,1,1,2]", "0", "8"), 8,
         "it has 9 dimensions, at most 8 are supported"},
        {T("F4", "[2]", "0", "8"), 8, "tensor 't': its dtype 'F4' is unknown"},
        {"{\"t\": {\"shape\": [2], \"data_offsets\": [0, 8]}}", 8, "its string 'dtype' is missing"},
        {"{\"t\": {\"dtype\": \"F32\", \"data_offsets\": [0, 8]}}", 8,
         "its array 'shape' is missing"},
        {"{\"t\": {\"dtype\": \"F32\", \"shape\": [2]}}", 8,
         "its array 'data_offsets' of two numbers is missing"},
        {"{\"t\": 3}", 0, "its string 'dtype' is missing"},
        {"[]", 0, "the header is an array, not an object"},
        {"{", 0, "x.safetensors: header:1:2:"},
        {"{\"\": 1}", 0, "a tensor's name is empty"},
        {"{\"a\": {\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}, "
         "\"b\": {\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
         6, "the data of 'b' overlaps that of 'a'"},
        {"{\"a\": {\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}, "
         "\"a\": {\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8, "the name 'a' occurs twice in one object"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        llm_safetensors *st;
        make(list[i].head, list[i].n_data);
        CHECK(open_it(&st) != GGL_OK && !st);
        CHECK_HAS(err.msg, list[i].words);
    }
}

TEST(truncated) {
    make(good, 28);
    size_t whole = n_bytes;
    for (n_bytes = 0; n_bytes < whole; n_bytes++) {
        llm_safetensors *st;
        CHECK_MSG(open_it(&st) == GGL_FORMAT, "the first %zu bytes", n_bytes);
    }
}

static bool open_once(void *arg) {
    llm_safetensors *st;
    ggl_status s = llm_safetensors_open_memory(&st, bytes, n_bytes, "x", arg);
    CHECK(s == GGL_OK || s == GGL_NOMEM);
    llm_safetensors_close(st);
    return s == GGL_OK;
}

TEST(out_of_memory) {
    make(good, 28);
    CHECK(alloc_fail_each(open_once, &err) > 5);
}

static bool put(const char *name, const void *data, size_t n) {
    return test_write_file(test_path(name), data, n);
}

TEST(folders) {
    llm_safetensors *st;
    CHECK_INT(llm_safetensors_open(&st, test_folder(), NULL, &err), GGL_NOT_FOUND);
    REQUIRE(put("pytorch_model.bin", "x", 1));
    CHECK_INT(llm_safetensors_open(&st, test_folder(), NULL, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "pytorch_model.bin: a pickle can run programs");
    make(T("U8", "[2]", "0", "2"), 2);
    REQUIRE(put("model.safetensors", bytes, n_bytes) && put("m-1.safetensors", bytes, n_bytes));
    REQUIRE_OK(llm_safetensors_open(&st, test_folder(), NULL, &err), &err);
    CHECK_INT(st->n_tensor, 1);
    llm_safetensors_close(st);
    remove(test_path("model.safetensors"));

    make("{\"u\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}", 1);
    REQUIRE(put("m-2.safetensors", bytes, n_bytes));
    static const struct {
        const char *index, *words;
    } list[] = {
        {"{\"weight_map\": {\"t\": \"m-1.safetensors\", \"u\": \"m-2.safetensors\"}}", NULL},
        {"{\"weight_map\": {\"t\": \"m-1.safetensors\", \"u\": \"m-1.safetensors\"}}",
         "tensor 'u' is not in 'm-1.safetensors'"},
        {"{\"weight_map\": {\"t\": \"m-2.safetensors\", \"u\": \"m-1.safetensors\"}}",
         "tensor 't' is not in 'm-2.safetensors'"},
        {"{\"weight_map\": {\"t\": \"m-1.safetensors\", \"v\": \"m-2.safetensors\"}}",
         "tensor 'v' is not in 'm-2.safetensors'"},
        {"{\"weight_map\": {\"t\": \"m-3.safetensors\"}}",
         "/m-3.safetensors: no such file, but "
         "model.safetensors.index.json names it: download it"},
        {"{\"weight_map\": {\"t\": \"../m-1.safetensors\"}}",
         "/model.safetensors.index.json: weight_map: tensor 't' is not in any file of this folder, "
         "but in '../m-1.safetensors'"},
        {"{\"weight_map\": {\"t\": 1}}", "tensor 't' is not in any file of this folder"},
        {"{\"weight_map\": {}}", "the object 'weight_map' with tensors is missing"},
        {"{", "model.safetensors.index.json:1:2:"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        REQUIRE(put("model.safetensors.index.json", list[i].index, strlen(list[i].index)));
        ggl_status s = llm_safetensors_open(&st, test_folder(), NULL, &err);
        if (list[i].words) {
            CHECK(s != GGL_OK);
            CHECK_HAS(err.msg, list[i].words);
        } else if (CHECK_OK(s, &err)) {
            CHECK_INT(st->n_tensor, 2);
        }
        llm_safetensors_close(st);
    }
}

static void expect(ggl_status status, const char *words) {
    llm_safetensors *st;
    err = (ggl_error){0};
    CHECK_INT(llm_safetensors_open(&st, test_folder(), NULL, &err), status);
    CHECK_HAS(err.msg, words);
    llm_safetensors_close(st);
}

static bool put_tensor(const char *file, const char *name) {
    char head[128];
    snprintf(head, sizeof head,
             "{\"%s\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}", name);
    make(head, 1);
    return put(file, bytes, n_bytes);
}

/* A folder in the folder has tensors in one file or several; a file of it that is missing is named. */
TEST(folders_within) {
    llm_safetensors *st;
    char folder[400];
    snprintf(folder, sizeof folder, "%s/2_Dense", test_folder());
    REQUIRE(put_tensor("model.safetensors", "a") && ggl_os_make_folder(folder, false));
    static const struct {
        const char *file, *tensor, *words;
    } step[] = {{NULL, NULL, "/2_Dense: there is no model.safetensors and no"},
                {"2_Dense/model-00002-of-00003.safetensors", "a",
                 "/2_Dense: model-00001-of-00003.safetensors is missing: the folder has 1 of"},
                {"2_Dense/model-00001-of-00003.safetensors", "b", "model-00003-of-00003"},
                {"2_Dense/model-00003-of-00003.safetensors", "c", NULL}};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        REQUIRE(!step[i].file || put_tensor(step[i].file, step[i].tensor));
        REQUIRE_OK(llm_safetensors_open(&st, test_folder(), NULL, &err), &err);
        const ggl_status s = llm_safetensors_add(st, test_folder(), "2_Dense", "dense.", &err);
        if (step[i].words) {
            CHECK_INT(s, GGL_NOT_FOUND);
            CHECK_HAS(err.msg, step[i].words);
        } else if (CHECK_OK(s, &err)) {
            const st_tensor *t = llm_safetensors_find(st, "dense.c");
            CHECK(st->n_tensor == 4 && llm_safetensors_find(st, "a") && t &&
                  !llm_safetensors_find(st, "c"));
            CHECK_STR(t ? st->file[t->file].s : "", "2_Dense/model-00003-of-00003.safetensors");
            CHECK_INT(llm_safetensors_add(st, test_folder(), "2_Dense", "dense.", &err),
                      GGL_FORMAT); /* a name occurs twice */
        }
        llm_safetensors_close(st);
    }
    static const char index[] = "{\"weight_map\": {\"a\": \"x.safetensors\"}}";
    REQUIRE(put("2_Dense/model.safetensors.index.json", index, strlen(index)));
    REQUIRE_OK(llm_safetensors_open(&st, test_folder(), NULL, &err), &err);
    CHECK_INT(llm_safetensors_add(st, test_folder(), "2_Dense", "dense.", &err), GGL_IO);
    CHECK_HAS(err.msg, "/2_Dense/x.safetensors: no such file, but model.safetensors.index.json");
    llm_safetensors_close(st);
}

/* Parts without an index are the model if all of them are there. */
TEST(parts_without_index) {
    llm_safetensors *st;
    REQUIRE(put_tensor("model-00001-of-00003.safetensors", "a") &&
            put_tensor("model-00003-of-00003.safetensors", "c") &&
            put_tensor("other-00002-of-00003.safetensors", "z"));
    expect(GGL_NOT_FOUND, "model-00002-of-00003.safetensors is missing: the folder has 2 of the 3 "
                          "parts in their names");
    REQUIRE(put_tensor("model-00002-of-00003.safetensors", "b"));
    if (CHECK_OK(llm_safetensors_open(&st, test_folder(), NULL, &err), &err)) {
        CHECK_INT(st->n_tensor, 3);
        CHECK(llm_safetensors_find(st, "b") && !llm_safetensors_find(st, "z"));
        llm_safetensors_close(st);
    }
    REQUIRE(put_tensor("model-00001-of-00002.safetensors", "a"));
    expect(GGL_FORMAT, "parts of a model of 2 files and of one of 3: either may be the model");
    REQUIRE(put_tensor("model.safetensors", "a"));
    expect(GGL_FORMAT, "there are model.safetensors and model-00001-of-0000");
}

/* One of the two is left over from another download. */
TEST(file_beside_an_index) {
    static const char index[] = "{\"weight_map\": {\"a\": \"model-00001-of-00001.safetensors\"}}",
                      own[] = "{\"weight_map\": {\"b\": \"model.safetensors\"}}";
    llm_safetensors *st;
    REQUIRE(put_tensor("model-00001-of-00001.safetensors", "a") &&
            put_tensor("model.safetensors", "b") &&
            put("model.safetensors.index.json", index, sizeof index - 1));
    expect(GGL_FORMAT, "there are model.safetensors and model.safetensors.index.json, which does "
                       "not name it: either may be the model; move one away");
    REQUIRE(put("model.safetensors.index.json", own, sizeof own - 1));
    if (CHECK_OK(llm_safetensors_open(&st, test_folder(), NULL, &err), &err)) {
        CHECK(llm_safetensors_find(st, "b") != NULL);
        llm_safetensors_close(st);
    }
}

static bool open_folder_once(void *arg) {
    llm_safetensors *st;
    ggl_error e = {0};
    (void)arg;
    ggl_status s = llm_safetensors_open(&st, test_folder(), NULL, &e);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s: %s", ggl_status_text(s), e.msg);
    llm_safetensors_close(st);
    return s == GGL_OK;
}

/* The index names model.safetensors after a part that cannot be read: the error is the part's. */
TEST(faults_of_another_part) {
    static const char index[] =
        "{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"model.safetensors\"}}";
    REQUIRE(put_tensor("model.safetensors", "b") &&
            put("model.safetensors.index.json", index, sizeof index - 1));
    expect(GGL_IO, "/x.safetensors: ");
    REQUIRE(put_tensor("x.safetensors", "a"));
    CHECK(alloc_fail_each(open_folder_once, NULL) > 5);
}

TEST(pointers) {
    static const char pointer[] =
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
    REQUIRE(put("model.safetensors", pointer, sizeof pointer - 1));
    expect(GGL_FORMAT, "/model.safetensors: this is a Git LFS pointer, not the file");
    REQUIRE(put("model.safetensors", "<!DOCTYPE html>", 15));
    expect(GGL_FORMAT, "/model.safetensors: this is text, not safetensors: '<!DOCTYPE html>'");
}

/* 2^bits empty tensors whose names all hashed alike by h * 33 + c: pieces "Ez" and "FY". */
static uint64_t steps_of_colliding(int bits) {
    size_t cap = ((size_t)1 << bits) * 96 + 64, n = 8;
    char *file = ggl_calloc(cap, 1);
    n += (size_t)snprintf(file + n, cap - n, "{");
    for (size_t i = 0; i >> bits == 0; i++) {
        n += (size_t)snprintf(file + n, cap - n, "%s\"", i ? "," : "");
        for (int b = 0; b < bits; b++)
            n += (size_t)snprintf(file + n, cap - n, "%s", i >> b & 1 ? "Ez" : "FY");
        n += (size_t)snprintf(file + n, cap - n,
                              "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}");
    }
    n += (size_t)snprintf(file + n, cap - n, "}");
    for (int k = 0; k < 8; k++)
        file[k] = (char)((n - 8) >> 8 * k);
    llm_safetensors *st;
    ggl_n_steps = 0;
    CHECK_OK(llm_safetensors_open_memory(&st, file, n, "x", &err), &err);
    llm_safetensors_close(st);
    ggl_free(file);
    return ggl_n_steps;
}

TEST(names_made_to_collide) {
    test_linear("names that collide", steps_of_colliding(9), steps_of_colliding(12), 8);
}
