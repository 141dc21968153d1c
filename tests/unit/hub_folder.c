/* The index of a repository with many files of weights is read in time linear in its tensors. The repository's small files are in
 * the cache, so nothing is downloaded. */
#include "steps.h"

#include "hub/hub_impl.h"

/* Writes a small file of the cache, which is current: its version, "", is beside it. */
static bool put_small(hub *h, const char *name, const char *text, size_t n) {
    char version[64];
    snprintf(version, sizeof version, "%s.version", name);
    h->list.file[h->list.n++] = (hub_file){HUB_TEXT, name, n, ""};
    return CHECK(test_write_file(test_path(name), text, n)) &&
           CHECK(test_write_file(test_path(version), "\n", 1));
}

/* Returns the steps for an index of 2 n tensors in n files, which are too many. */
static uint64_t steps_of_index(size_t n) {
    enum { NAME = 40, LINE = 128 };
    const hub_wanted wanted = {0};
    hub h = {.w = &wanted, .name = "user/repo", .folder = ".", .mark = -1};
    char cache[256], (*name)[NAME] = calloc(n, NAME), *text = malloc(2 * n * LINE);
    h.list.file = calloc(n + 2, sizeof *h.list.file);
    if (!CHECK(name && text && h.list.file))
        abort();
    snprintf(cache, sizeof cache, "%s", test_folder());
    h.cache = cache;
    size_t used = (size_t)sprintf(text, "{\"weight_map\":{");
    for (size_t i = 0; i < n; i++) {
        snprintf(name[i], NAME, "%07zu.safetensors", i);
        h.list.file[h.list.n++] = (hub_file){HUB_WEIGHTS, name[i], 1, ""};
    }
    for (size_t i = 0; i < 2 * n; i++)
        used += (size_t)snprintf(text + used, LINE, "%s\"t%zu\":\"%s\"", i ? "," : "", i,
                                 name[i * 7 % n]);
    used += (size_t)sprintf(text + used, "}}");
    put_small(&h, HUB_CONFIG, "{}", 2);
    put_small(&h, HUB_INDEX, text, used);
    llm_hub_list_sort(&h.list);
    ggl_n_steps = 0;
    ggl_error err = {0};
    char words[64];
    CHECK_INT(llm_hub_get_folder(&h, &err), GGL_LIMIT);
    snprintf(words, sizeof words, "the model has %zu parts; at most", n);
    CHECK_HAS(err.msg, words);
    free(h.list.file);
    free(name);
    free(text);
    return ggl_n_steps;
}

TEST(an_index_of_many_files) {
    test_linear("files", steps_of_index(5000), steps_of_index(20000), 4);
}
