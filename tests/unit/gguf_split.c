#include "gguf_bytes.h"
#include "ggl/internal/gguf.h"
#include "gguf_found.h"
#include "test.h"

static const float values[4] = {1, 2, 3, 4};

/* Writes part `no` of `count` with one tensor named `tensor`; keys whose number is negative are
 * left out. */
static const char *write_part(const char *file, int no, int count, int total, const char *tensor) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_error err;
    const char *path = test_path(file);
    if (no == 0)
        ggl_gguf_put_string(w, "general.architecture", "test", 4);
    if (no >= 0)
        ggl_gguf_put(w, "split.no", GGL_GGUF_U16, false, &(uint16_t){(uint16_t)no}, 1);
    if (count >= 0)
        ggl_gguf_put(w, "split.count", GGL_GGUF_U16, false, &(uint16_t){(uint16_t)count}, 1);
    if (total >= 0)
        ggl_gguf_put(w, "split.tensors.count", GGL_GGUF_I32, false, &(int32_t){total}, 1);
    float *data = malloc(sizeof values);
    memcpy(data, values, sizeof values);
    data[0] = (float)no;
    ggl_gguf_put_tensor(w, tensor, GGL_F32, 1, (const int64_t[]){4}, data);
    CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    free(data);
    return path;
}

static void refused(const char *path, const char *words) {
    ggl_gguf *f = NULL;
    ggl_error err = {0};
    ggl_status s = ggl_gguf_open(&f, path, NULL, &err);
    CHECK(s != GGL_OK && !f);
    CHECK_HAS(err.msg, words);
    CHECK(strncmp(err.msg, test_folder(), strlen(test_folder())) == 0); /* the path comes first */
    ggl_gguf_close(f);
}

TEST(split_opens) {
    const char *first = write_part("m-00001-of-00003.gguf", 0, 3, 3, "a");
    const char *second = write_part("m-00002-of-00003.gguf", 1, 3, 3, "b");
    write_part("m-00003-of-00003.gguf", 2, 3, 3, "c");
    ggl_gguf *f;
    ggl_error err;
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        ggl_gguf_params params = {.size = sizeof params, .no_mmap = no_mmap != 0, .lock = true};
        REQUIRE_OK(ggl_gguf_open(&f, first, &params, &err), &err);
        CHECK_INT(ggl_gguf_n_parts(f), 3);
        CHECK_INT(ggl_gguf_n_tensors(f), 3);
        CHECK(ggl_gguf_find(f, "general.architecture"));
        const char *names[] = {"a", "b", "c"};
        for (int i = 0; i < 3; i++) {
            const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, names[i]);
            size_t size;
            const char *part = ggl_gguf_part(f, i, &size);
            REQUIRE(t && t->part == i && part);
            CHECK(((const float *)t->data)[0] == (float)i);
            CHECK((const char *)t->data > part && (const char *)t->data + t->size <= part + size);
        }
        ggl_gguf_close(f);
    }
    char want[1100];
    snprintf(want, sizeof want, "is part 2 of 3 of a split model, give its first part: '%s'",
             first);
    refused(second, want);
}

TEST(split_part_missing) {
    const char *first = write_part("m-00001-of-00002.gguf", 0, 2, 2, "a");
    refused(first, "m-00002-of-00002.gguf: cannot be opened: No such file");
}

TEST(split_names) {
    refused(write_part("renamed.gguf", 1, 3, 3, "b"),
            "is part 2 of 3 of a split model, give its first part, whose name ends in "
            "'-00001-of-00003.gguf'");
    refused(write_part("renamed.gguf", 0, 3, 3, "b"),
            "its name must end in '-00001-of-00003.gguf'");
    refused(write_part("n-00001-of-00004.gguf", 0, 3, 3, "b"),
            "its name must end in '-00001-of-00003.gguf'");
}

TEST(split_keys) {
    const char *first = write_part("m-00001-of-00002.gguf", 0, 2, 2, "a");
    write_part("m-00002-of-00002.gguf", 0, 2, 2, "b");
    refused(first, "m-00002-of-00002.gguf: key 'split.no' is 0, 1 is expected");
    ggl_gguf *f;
    ggl_error err = {0};
    CHECK(ggl_gguf_open(&f, first, NULL, &err) != GGL_OK && !strstr(err.msg, "and not"));
    write_part("m-00002-of-00002.gguf", 1, 3, 2, "b");
    refused(first, "m-00002-of-00002.gguf: key 'split.count' is 3, 2 is expected");
    write_part("m-00002-of-00002.gguf", 1, -1, 2, "b");
    refused(
        first,
        "m-00002-of-00002.gguf: is part of a split model, but its key 'split.count' is missing");
    write_part("m-00002-of-00002.gguf", 1, 2, 2, "a");
    refused(first, "tensor 2 of 2: 'a' is already tensor 1");
    write_part("m-00002-of-00002.gguf", 1, 2, 2, "b");
    write_part("m-00001-of-00002.gguf", 0, 2, 5, "a");
    refused(first, "split.tensors.count is 5, but its 2 parts hold 2 tensors");
    write_part("m-00001-of-00002.gguf", 0, 2, -1, "a");
    refused(first, "but its key 'split.tensors.count' is missing");
    write_part("m-00001-of-00002.gguf", -1, 2, 2, "a");
    refused(first, "but its key 'split.no' is missing");
    write_part("m-00001-of-00002.gguf", 7, 2, 2, "a");
    refused(first, "key 'split.no' is 7, 0 to 1 is expected");
}

/* Opens the split model with one defect, whose text must have these words; returns its tensors. */
static int opened_with_defect(const char *first, const char *words) {
    gguf_found seen = {.n = 0};
    const ggl_gguf_params p = {.size = sizeof p, .defect = gguf_on_defect, .ctx = &seen};
    ggl_gguf *f;
    ggl_error err = {0};
    if (!CHECK_OK(ggl_gguf_open(&f, first, &p, &err), &err))
        return -1;
    const int n = (int)ggl_gguf_n_tensors(f);
    CHECK_MSG(seen.n == 1 && strstr(seen.text, words), "%d defects: %s", seen.n, seen.text);
    ggl_gguf_close(f);
    return n;
}

/* A defect names the part that has it; the tensors of a part that does not belong to the model are left out. */
TEST(split_defects) {
    const char *first = write_part("m-00001-of-00002.gguf", 0, 2, 2, "a");
    char second[1024], bytes[4096];
    snprintf(second, sizeof second, "%s", write_part("m-00002-of-00002.gguf", 0, 2, 2, "a"));
    CHECK_INT(opened_with_defect(first, "m-00002-of-00002.gguf: key 'split.no' is 0"), 1);
    write_part("m-00002-of-00002.gguf", 1, 2, 2, "b");
    FILE *f = fopen(second, "rb");
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    REQUIRE(n > 32 && n < sizeof bytes &&
            test_write_file(second, bytes, n - 24)); /* 16 are padding */
    CHECK_INT(opened_with_defect(first, "m-00002-of-00002.gguf: the file is truncated"), 2);
    REQUIRE(test_write_file(second, bytes, 30));
    CHECK_INT(opened_with_defect(first, "m-00002-of-00002.gguf: "), 1);
    CHECK(remove(second) == 0);
    CHECK_INT(opened_with_defect(first, "m-00002-of-00002.gguf: cannot be opened"), 1);
}

TEST(split_of_one) {
    ggl_gguf *f;
    ggl_error err;
    REQUIRE_OK(ggl_gguf_open(&f, write_part("m-00001-of-00001.gguf", 0, 1, 1, "a"), NULL, &err),
               &err);
    CHECK_INT(ggl_gguf_n_parts(f), 1);
    ggl_gguf_close(f);
}
