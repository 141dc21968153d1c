#include "arch_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/graph.h"

static char *joined(const char *const *part, int n) {
    size_t size = 1;
    for (int k = 0; k < n; k++)
        size += strlen(part[k]);
    char *out = calloc(size, 1);
    for (int k = 0; k < n && out; k++)
        strcat(out, part[k]);
    return out;
}

char *arch_text(const char *top, const char *body) {
    return joined(
        (const char *[]){"arch t\nlanguage 2\n", top,
                         "n_embd = .n_embd\ntoken_embd [n_embd, n_vocab]\nx = token_embd[token]\n",
                         body, "logits = linear(x, token_embd)\n"},
        5);
}

/* --- models ----------------------------------------------------------------------------------- */

static float zeros[1 << 16];

static void put_tensor(ggl_gguf_writer *w, const char *name, const char *s) {
    int64_t ne[GGL_MAX_DIMS] = {0};
    int n = 0;
    while (*s && *s != ']' && n < GGL_MAX_DIMS) {
        char *end;
        ne[n++] = strtoll(s + 1, &end, 10);
        s = end;
    }
    ggl_gguf_put_tensor(w, name, GGL_F32, n, ne, zeros);
}

static void put_bools(ggl_gguf_writer *w, const char *key, const char *s) {
    uint8_t item[64];
    uint64_t n = 0;
    for (; n < 64 && (s[1] == ' ' || s[1] == 't' || s[1] == 'f'); s += strcspn(s + 1, ",]") + 1) {
        s += s[1] == ' ';
        item[n++] = s[1] == 't';
    }
    ggl_gguf_put(w, key, GGL_GGUF_BOOL, true, item, n);
}

static void put_value(ggl_gguf_writer *w, const char *key, const char *s) {
    if (*s == '"') {
        ggl_gguf_put_string(w, key, s + 1, strcspn(s + 1, "\""));
    } else if (*s == '[' && (s[1] == 't' || s[1] == 'f')) {
        put_bools(w, key, s);
    } else if (*s == '[') {
        double item[64];
        uint64_t n = 0;
        for (char *end; *s && *s != ']' && n < 64; s = end)
            item[n++] = strtod(s + 1, &end);
        ggl_gguf_put(w, key, GGL_GGUF_F64, true, item, n);
    } else if (*s == 't' || *s == 'f') {
        uint8_t b = *s == 't';
        ggl_gguf_put(w, key, GGL_GGUF_BOOL, false, &b, 1);
    } else {
        double x = strtod(s, NULL);
        ggl_gguf_put(w, key, GGL_GGUF_F64, false, &x, 1);
    }
}

bool model_new(model *m, const char *lines, const char *name) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_error err = {0};
    size_t size;
    char *all = joined((const char *[]){"general.architecture = \"t\"\nt.n_embd = 8\nt.vocab_size "
                                        "= 10\ntoken_embd.weight [8, 10]\n",
                                        lines},
                       2);
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n")) {
        char *eq = strstr(line, " = "), *bracket = strstr(line, " [");
        if (eq) {
            *eq = 0;
            put_value(w, line, eq + 3);
        } else if (bracket) {
            *bracket = 0;
            put_tensor(w, line, bracket + 1);
        }
    }
    free(all);
    ggl_status s = ggl_gguf_writer_write_memory(w, &m->data, &size, &err);
    ggl_gguf_writer_free(w);
    m->file = NULL;
    if (s == GGL_OK)
        s = ggl_gguf_open_memory(&m->file, m->data, size, name, &err);
    if (s != GGL_OK)
        fprintf(stderr, "model: %s\n", err.msg);
    return s == GGL_OK;
}

void model_free(model *m) {
    ggl_gguf_close(m->file);
    ggl_free(m->data);
}

/* --- building --------------------------------------------------------------------------------- */

ggl_status arch_build(const char *text, const model *m, ggl_graph **graph, llm_arch_result *result,
                      ggl_error *err) {
    llm_arch *arch;
    *err = (ggl_error){0};
    if (graph)
        *graph = NULL;
    ggl_status s = llm_arch_parse(&arch, text, strlen(text), "t.arch", err);
    if (s != GGL_OK)
        return s;
    llm_arch_source src = llm_arch_source_gguf(m->file);
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = 32;
    ggl_graph *g = ggl_graph_new(&p);
    s = llm_arch_build(arch, &src, NULL, g, result, err);
    if (s == GGL_OK)
        s = ggl_graph_finish(g, err);
    llm_arch_free(arch);
    if (s == GGL_OK && graph)
        *graph = g;
    else
        ggl_graph_free(g);
    return s;
}

ggl_status arch_try(const char *top, const char *body, const char *lines, ggl_graph **graph,
                    ggl_error *err) {
    model m;
    char *text = arch_text(top, body);
    ggl_status s = GGL_IO;
    if (graph)
        *graph = NULL;
    if (model_new(&m, lines, "model.gguf"))
        s = arch_build(text, &m, graph, NULL, err);
    model_free(&m); /* the graph's weights have lost their data: it can be looked at, not run */
    free(text);
    return s;
}

const ggl_tensor *arch_find(const ggl_graph *g, const char *name) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        if (ggl_graph_node(g, i)->name && strcmp(ggl_graph_node(g, i)->name, name) == 0)
            return ggl_graph_node(g, i);
    return NULL;
}

int arch_count_op(const ggl_graph *g, ggl_op op) {
    int n = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        n += ggl_graph_node(g, i)->op == op;
    return n;
}
