/* The golden models' files through descriptor, graph and checks; their logits are compared
 * elsewhere. */
#include <dirent.h>

#include "arch_test.h"
#include "test.h"

static void build(const char *path, const char *name, int *n_built) {
    ggl_gguf *f;
    ggl_error err = {0};
    ggl_str family;
    char buf[80];
    if (ggl_gguf_open(&f, path, NULL, &err) == GGL_UNSUPPORTED) {
        printf("%s: %s\n", name, err.msg);
        return;
    }
    if (!CHECK_MSG(f, "%s", err.msg))
        return;
    CHECK(ggl_gguf_get_string(f, "general.architecture", &family, &err) == 1);
    snprintf(buf, sizeof buf, "%.*s", (int)family.n, family.s);
    llm_arch *a;
    if (CHECK_OK(llm_arch_open(&a, buf, &err), &err)) {
        ggl_graph_params p = ggl_graph_default();
        p.n_pos = 256;
        ggl_graph *g = ggl_graph_new(&p);
        llm_arch_source src = llm_arch_source_gguf(f);
        llm_arch_result r;
        CHECK_OK(llm_arch_build(a, &src, NULL, g, &r, &err), &err);
        CHECK_OK(ggl_graph_finish(g, &err), &err);
        CHECK_MSG(!r.notes, "%s: %s", name, r.notes);
        CHECK_INT(r.n_vocab, 320);
        llm_arch_result_fini(&r);
        ggl_graph_free(g);
        llm_arch_free(a);
        ++*n_built;
    }
    ggl_gguf_close(f);
}

TEST(all_build) {
    const char *shared = getenv("GGL_SHARED");
    char folder[512], path[1024];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/golden", shared ? shared : "");
    DIR *dir = shared && shared[0] ? opendir(folder) : NULL;
    if (!dir)
        SKIP_NOT_SHIPPED("reference models that are files");
    for (struct dirent *e; (e = readdir(dir));) {
        size_t len = strlen(e->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (len > 5 && strcmp(e->d_name + len - 5, ".gguf") == 0)
            build(path, e->d_name, &n);
    }
    closedir(dir);
    CHECK(n >= 15);
    printf("%d models\n", n);
}
