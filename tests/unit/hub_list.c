/* Names and lists of files from a hub: hostile paths, sizes and digests, and which file is meant. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "common/amounts.h"
#include "hub/hub_list.h"
#include "common/split_name.h"

TEST(paths) {
    static const char *const good[] = {"a.gguf",
                                       "A b/c-Q4_K_M.GGUF",
                                       "a./b..gguf",
                                       "parts/a.part.gguf",
                                       "\xe6\x97\xa5.gguf",
                                       "\xe2\x80\x93.gguf"};
    static const char *const bad[] = {"",
                                      "a.txt",
                                      ".gguf/",
                                      "/a.gguf",
                                      "../a.gguf",
                                      "a/../b.gguf",
                                      "./a.gguf",
                                      "a/./b.gguf",
                                      "a//b.gguf",
                                      "a/..",
                                      "a\nb.gguf",
                                      "config.json.unfinished/a.gguf",
                                      "a/b.VERSION/c/d.gguf",
                                      "x.0123.part/a.gguf",
                                      ".part/a.gguf",
                                      "a\x7f.gguf",
                                      "a\\b.gguf",
                                      "\xff.gguf",
                                      "\x1b[31m.gguf",
                                      "../.gguf",
                                      "../../.gguf",
                                      ".gguf",
                                      "..gguf",
                                      ".a/b.gguf",
                                      "a/.b.gguf", /* a folder's list leaves these out */
                                      "\xe2\x80\xaegguf.exe.gguf",
                                      "\xe2\x80\x8f.gguf",
                                      "\xe2\x81\xa6.gguf",
                                      "\xe2\x80\xa8.gguf"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_MSG(llm_hub_is_path(good[i]), "%s is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(!llm_hub_is_path(bad[i]), "%s is accepted", bad[i]);
    char path[1000];
    memset(path, 'a', sizeof path);
    strcpy(path + 251, ".gguf");
    CHECK(!llm_hub_is_path(path)); /* 256 bytes, more than a file system takes */
    CHECK(llm_hub_is_path(path + 1));
    for (size_t i = 0; i < 600; i++)
        path[i] = i % 10 == 9 ? '/' : 'a';
    strcpy(path + 600, "a.gguf");
    CHECK(!llm_hub_is_path(path));
    CHECK(llm_hub_is_path(path + 100)); /* 506 bytes */
}

TEST(repositories) {
    static const char *const bad[] = {"",       "a",    "a/",    "/b",   "a/b/c", "../b", "a/..",
                                      "a/.git", "-a/b", "a b/c", "a/b?", "a/b:c", "a\n/b"};
    CHECK(llm_hub_is_repo("user/repo-1.5_x"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(!llm_hub_is_repo(bad[i]), "%s is accepted", bad[i]);
}

static const char *size_text(uint64_t n) {
    static char buf[AMOUNT_TEXT];
    return llm_amount_bytes(buf, n);
}

TEST(sizes) {
    CHECK_STR(size_text(0), "0 bytes");
    CHECK_STR(size_text(999), "999 bytes");
    CHECK_STR(size_text(1234), "1.23 kB");
    CHECK_STR(size_text(45600000), "45.6 MB");
    CHECK_STR(size_text(4680000000u), "4.68 GB");
    CHECK_STR(size_text(UINT64_MAX), "18446744 TB");
}

TEST(parts) {
    char path[HUB_MOST_PATH];
    CHECK_INT(llm_split_n_parts("x/m-00002-of-00012.gguf"), 12);
    CHECK(!llm_split_is_first("x/m-00002-of-00012.gguf") &&
          llm_split_is_first("x/m-00001-of-00012.gguf"));
    llm_split_part_path(path, sizeof path, "x/m-00002-of-00012.GGUF", 11);
    CHECK_STR(path, "x/m-00011-of-00012.GGUF");
    static const char *const whole[] = {"m.gguf",
                                        "m-00000-of-00002.gguf",
                                        "m-00003-of-00002.gguf",
                                        "-00001-of-00002.gguf",
                                        "m-1-of-00002.gguf",
                                        "m-00001-of-0000x.gguf",
                                        "m-+0001-of-00002.gguf"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        CHECK_MSG(llm_split_n_parts(whole[i]) == 1 && llm_split_is_first(whole[i]), "%s is a part",
                  whole[i]);
    llm_split_part_path(path, sizeof path, "m.gguf", 1);
    CHECK_STR(path, "m.gguf");
}

/* As a folder is read: in any order. */
static hub_list unsorted(const char *const *path) {
    hub_list l = {0};
    ggl_error err = {0};
    char text[300];
    for (; *path; path++) {
        const int n =
            snprintf(text, sizeof text, "[{\"type\":\"file\",\"path\":\"%s\",\"size\":7}]", *path);
        CHECK_OK(llm_hub_list_add_json(&l, text, (size_t)n, "list", &err), &err);
    }
    return l;
}

static hub_list list_of(const char *const *path) {
    hub_list l = unsorted(path);
    llm_hub_list_sort(&l);
    return l;
}

static const char *chosen(const hub_list *l, const char *quant, const char *file, size_t others) {
    size_t n;
    const hub_wish wish = {quant, file};
    const hub_file *f = llm_hub_list_choose(l, &wish, &n);
    CHECK_INT(n, others);
    return f ? f->path : "none";
}

/* The eye that belongs to the model of this path. */
static const char *eye_of(const hub_list *l, const char *model) {
    const hub_file *m = llm_hub_list_find(l, model), *f = m ? llm_hub_list_eye(l, m) : NULL;
    return f ? f->path : "none";
}

TEST(eyes) {
    static const char *const path[] = {"a-Q4_K_M.gguf",
                                       "mmproj-a-BF16.gguf",
                                       "mmproj-a-F32.gguf",
                                       "mmproj-a-f16.gguf",
                                       "b/b-Q8_0.gguf",
                                       "b/b-mmproj-Q8_0.gguf",
                                       "b/mmproj.gguf",
                                       "c/c-Q8_0.gguf",
                                       "mmproj/d-Q8_0.gguf",
                                       "mmproj-f16.txt",
                                       NULL};
    hub_list l = list_of(path);
    CHECK_STR(eye_of(&l, "a-Q4_K_M.gguf"), "mmproj-a-f16.gguf");
    CHECK_STR(eye_of(&l, "b/b-Q8_0.gguf"), "b/b-mmproj-Q8_0.gguf"); /* beside it */
    CHECK_STR(eye_of(&l, "c/c-Q8_0.gguf"), "mmproj-a-f16.gguf");
    llm_hub_list_fini(&l);
    l = list_of(path + 4);
    CHECK_STR(eye_of(&l, "c/c-Q8_0.gguf"), "b/b-mmproj-Q8_0.gguf");
    llm_hub_list_fini(&l);
    l = list_of(path + 7);
    CHECK_STR(eye_of(&l, "mmproj/d-Q8_0.gguf"), "none"); /* a folder's name does not count */
    llm_hub_list_fini(&l);
}

TEST(choice) {
    static const char *const path[] = {"b-Q4_K_M.gguf",     "UD-b-Q4_K_M.gguf",
                                       "b-Q8_0.gguf",       "b-Q4_K.gguf",
                                       "mmproj-b-F16.gguf", "b-f16-00002-of-00002.gguf",
                                       "b-IQ3/part.gguf",   "b-f16-00001-of-00002.gguf",
                                       "b-Q8_0.gguf",       "b.imatrix-Q2_K.gguf",
                                       "c_q5_0.gguf",       NULL};
    hub_list l = list_of(path);
    CHECK_INT(l.n, 10); /* one was there twice */
    CHECK_STR(chosen(&l, NULL, NULL, 1), "b-Q4_K_M.gguf");
    CHECK_STR(chosen(&l, "q4_k_m", NULL, 1), "b-Q4_K_M.gguf");
    CHECK_STR(chosen(&l, "Q4_K", NULL, 0), "b-Q4_K.gguf");
    CHECK_STR(chosen(&l, "F16", NULL, 0), "b-f16-00001-of-00002.gguf");
    CHECK_STR(chosen(&l, "b-IQ3", NULL, 0), "b-IQ3/part.gguf");
    CHECK_STR(chosen(&l, "Q5_0", NULL, 0), "c_q5_0.gguf");
    CHECK_STR(chosen(&l, "Q2_K", NULL, 0), "none");
    CHECK_STR(chosen(&l, "4_K", NULL, 0), "none");
    CHECK_STR(chosen(&l, "UD-b-Q4_K_M", NULL, 0), "UD-b-Q4_K_M.gguf");
    CHECK_STR(chosen(&l, NULL, "mmproj-b-F16.gguf", 0), "mmproj-b-F16.gguf");
    CHECK_STR(chosen(&l, NULL, "PART.gguf", 0), "b-IQ3/part.gguf");
    CHECK_STR(chosen(&l, NULL, "b-f16-00002-of-00002.gguf", 0), "b-f16-00001-of-00002.gguf");
    CHECK_STR(chosen(&l, NULL, "d.gguf", 0), "none");
    llm_hub_list_fini(&l);
    static const char *const few[] = {"y.gguf", "x-q8_0.gguf", "mmproj-a.gguf", NULL};
    l = list_of(few);
    CHECK_STR(chosen(&l, NULL, NULL, 0), "x-q8_0.gguf");
    llm_hub_list_fini(&l);
    l = list_of(few + 2);
    CHECK_STR(chosen(&l, NULL, NULL, 0), "none");
    llm_hub_list_fini(&l);
    l = list_of(few + 3);
    CHECK_STR(chosen(&l, NULL, "x.gguf", 0), "none");
    llm_hub_list_fini(&l);
}

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(entries) {
    static const char text[] =
        "[{\"type\":\"file\",\"path\":\"a.gguf\",\"size\":134,\"oid\":\"x\",\"lfs\":{\"oid\":"
        "\"" DIGEST "\",\"size\":5000000000,\"pointerSize\":134}},"
        "{\"type\":\"file\",\"path\":\"b.gguf\",\"size\":9,\"oid\":"
        "\"0123456789abcdef0123456789abcdef01234567\"},"
        "{\"type\":\"file\",\"path\":\"c.gguf\",\"size\":9,\"oid\":\"../x\"},"
        "{\"type\":\"directory\",\"path\":\"d.gguf\"}, {\"type\":\"file\",\"path\":\"e.txt\"},"
        "{\"type\":\"file\",\"path\":\"../f.gguf\",\"size\":1}, "
        "{\"type\":\"file\",\"path\":\"g\\u0000.gguf\"},"
        "{\"type\":\"file\",\"path\":7}, 7, null, [], {}]";
    hub_list l = {0};
    ggl_error err = {0};
    REQUIRE_OK(llm_hub_list_add_json(&l, text, sizeof text - 1, "list", &err), &err);
    llm_hub_list_sort(&l);
    REQUIRE(l.n == 3);
    CHECK_STR(l.file[0].version, DIGEST);
    CHECK(l.file[0].size == 5000000000u);
    CHECK_STR(l.file[1].version, "git-0123456789abcdef0123456789abcdef01234567");
    CHECK_STR(l.file[2].version, "");
    CHECK_STR(l.unsafe, "../f.gguf");
    CHECK(llm_hub_list_find(&l, "b.gguf") == &l.file[1] && !llm_hub_list_find(&l, "d.gguf"));
    llm_hub_list_fini(&l);
}

TEST(broken_lists) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "list"},
        {"{\"error\": \"x\"}", "expected a list of files, found an object"},
        {"[{\"type\":\"file\",\"path\":\"a.gguf\"}]", "a.gguf has no valid size"},
        {"[{\"type\":\"file\",\"path\":\"a.gguf\",\"size\":-5}]", "a.gguf has no valid size"},
        {"[{\"type\":\"file\",\"path\":\"a.gguf\",\"size\":1.5}]", "a.gguf has no valid size"},
        {"[{\"type\":\"file\",\"path\":\"a.gguf\",\"size\":9223372036854775808}]", "size"},
        {"[{\"type\":\"file\",\"path\":\"a.gguf\",\"size\":5,\"lfs\":{\"oid\":\"AB\"}}]",
         "SHA-256"},
        {"[{\"type\":\"file\",\"path\":\"a.gguf\",\"size\":5,\"lfs\":{}}]", "SHA-256"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hub_list l = {0};
        ggl_error err = {0};
        CHECK(llm_hub_list_add_json(&l, cases[i].text, strlen(cases[i].text), "list", &err) !=
              GGL_OK);
        CHECK_HAS(err.msg, cases[i].words);
        llm_hub_list_fini(&l);
    }
}

TEST(folders) {
    char path[400];
    hub_list l = {0};
    ggl_error err = {0};
    static const char *const names[] = {"b.gguf", "b.gguf.version", "a/c.gguf",
                                        "a/c.gguf.0123.part", ".hidden.gguf"};
    snprintf(path, sizeof path, "%s/a", test_folder());
    REQUIRE(ggl_os_make_folder(path, false));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", test_folder(), names[i]);
        const int fd = open(path, O_CREAT | O_WRONLY, 0666);
        REQUIRE(fd >= 0 && write(fd, "12345", 5) == 5);
        close(fd);
    }
    REQUIRE_OK(llm_hub_list_add_folder(&l, test_folder(), &err), &err);
    llm_hub_list_sort(&l);
    REQUIRE(l.n == 2);
    CHECK_STR(l.file[0].path, "a/c.gguf");
    CHECK_STR(l.file[1].path, "b.gguf");
    CHECK_INT(l.file[1].size, 5);
    llm_hub_list_fini(&l);
    REQUIRE_OK(llm_hub_list_add_folder(&l, "/no/such/folder", &err), &err);
    CHECK_INT(l.n, 0);
    llm_hub_list_fini(&l);
}

TEST(kinds) {
    static const struct {
        const char *path;
        hub_kind kind;
    } cases[] = {{"a/b.GGUF", HUB_GGUF},
                 {"model.safetensors", HUB_WEIGHTS},
                 {"a/model.safetensors", HUB_WEIGHTS},
                 {"a/.model.safetensors", HUB_OTHER},
                 {".a/model.safetensors", HUB_OTHER},
                 {"a/b/model.safetensors", HUB_OTHER},
                 {"a/pytorch_model.bin", HUB_OTHER},
                 {"../model.safetensors", HUB_OTHER},
                 {".safetensors", HUB_OTHER},
                 {"._model.safetensors", HUB_OTHER}, /* macOS writes such files beside others */
                 {"config.json", HUB_TEXT},
                 {"Config.json", HUB_OTHER},
                 {"a/config.json", HUB_TEXT},
                 {"a/b/config.json", HUB_OTHER},
                 {"model.safetensors.index.json", HUB_TEXT},
                 {"tokenizer.model", HUB_TEXT},
                 {"chat_template.jinja", HUB_TEXT},
                 {"pytorch_model-00001-of-00002.bin", HUB_PICKLE},
                 {"stories.bin", HUB_OTHER},
                 {"ggml-base.bin", HUB_GGUF},
                 {"a/ggml-base-q5_1.bin", HUB_GGUF},
                 {"ggml-base.bin.part", HUB_OTHER},
                 {"ggml-base-encoder.mlmodelc.zip", HUB_OTHER},
                 {"consolidated.00.pth", HUB_PICKLE},
                 {"model.onnx", HUB_OTHER},
                 {"", HUB_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_MSG(llm_hub_kind_of(cases[i].path) == cases[i].kind, "%s", cases[i].path);
        CHECK_MSG(llm_hub_is_path(cases[i].path) ==
                      (cases[i].kind != HUB_OTHER && cases[i].kind != HUB_PICKLE),
                  "%s", cases[i].path);
    }
    CHECK(!llm_hub_is_path("a\n.safetensors") && !llm_hub_is_path(".a.safetensors") &&
          !llm_hub_is_path("a\\b.safetensors"));
}

/* Files of ggml's older format are chosen last, by their sizes or types. */
TEST(older_choice) {
    static const char *const path[] = {"ggml-base-q5_1.bin", "ggml-base-q8_0.bin", "ggml-base.bin",
                                       "ggml-base.en.bin",   "ggml-tiny.bin",      NULL};
    static const char *const mixed[] = {"config.json", "model.safetensors", "ggml-model.bin", NULL};
    hub_list l = list_of(path);
    CHECK_STR(chosen(&l, NULL, NULL, 0), "ggml-base-q8_0.bin");
    CHECK_STR(chosen(&l, "base", NULL, 3), "ggml-base.bin");
    CHECK_STR(chosen(&l, "base-q5_1", NULL, 0), "ggml-base-q5_1.bin");
    CHECK_STR(chosen(&l, "base.en", NULL, 0), "ggml-base.en.bin");
    CHECK_STR(chosen(&l, NULL, "ggml-tiny.bin", 0), "ggml-tiny.bin");
    llm_hub_list_fini(&l);
    l = list_of(mixed);
    CHECK_STR(chosen(&l, NULL, NULL, 0), "config.json");
    CHECK_STR(chosen(&l, NULL, "ggml-model.bin", 0), "ggml-model.bin");
    llm_hub_list_fini(&l);
}

/* A folder is chosen without a GGUF file that fits, and by the name of any of its files. */
TEST(folder_choice) {
    static const char *const path[] = {"config.json", "model.safetensors", "mmproj-f16.gguf",
                                       "tokenizer.json", NULL};
    hub_list l = list_of(path);
    CHECK_STR(chosen(&l, NULL, NULL, 0), "config.json");
    CHECK_STR(chosen(&l, NULL, "tokenizer.json", 0), "config.json");
    CHECK_STR(chosen(&l, NULL, "mmproj-f16.gguf", 0), "mmproj-f16.gguf");
    CHECK_STR(chosen(&l, "Q4_0", NULL, 0), "none");
    CHECK_STR(chosen(&l, NULL, "vocab.json", 0), "none");
    CHECK_INT(llm_hub_list_n_gguf(&l), 1);
    llm_hub_list_fini(&l);
    l = list_of(path + 1); /* no config.json */
    CHECK(!llm_hub_list_folder(&l));
    CHECK_STR(chosen(&l, NULL, "model.safetensors", 0), "none");
    llm_hub_list_fini(&l);
    static const char *const within[] = {"config.json", "modules.json",
                                         "0_Static/model.safetensors", NULL};
    l = list_of(
        within); /* weights in a folder are those of a model at the top only without a config.json there */
    CHECK(!llm_hub_list_folder(&l) && !llm_hub_list_has_weights(&l));
    llm_hub_list_fini(&l);
    l = list_of(within + 1);
    CHECK_STR(chosen(&l, NULL, NULL, 0), "modules.json");
    llm_hub_list_fini(&l);
    static const char *const mixed[] = {"config.json", "0_Static/model.safetensors", "modules.json",
                                        NULL};
    l = unsorted(mixed);
    CHECK(!llm_hub_list_has_weights(&l));
    llm_hub_list_fini(&l);
}
