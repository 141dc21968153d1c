/* What a model is, where it would run, and which were downloaded, as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/types.h"
#include "context.h"
#include "copies.h"
#include "hub/hub.h"
#include "model_facts.h"
#include "opening.h"

/* --- members ---------------------------------------------------------------------------------- */

static void put_name(llm_json_out *out, const char *name) {
    llm_json_format(out, "%s%s': ", out->n > 1 && out->s[out->n - 1] != '{' ? ", \"" : "\"", name);
}

static void put_count(llm_json_out *out, const char *name, double x) {
    char text[40];
    snprintf(text, sizeof text, "%.0f", x);
    put_name(out, name);
    llm_json_put_text(out, text);
}

static void put_str(llm_json_out *out, const char *name, ggl_str s) {
    put_name(out, name);
    llm_json_put_string(out, s);
}

static void put_text(llm_json_out *out, const char *name, const char *s) {
    put_str(out, name, (ggl_str){s, strlen(s)});
}

/* Hands the text over, and closes the context. */
static ggl_status finish(llm_json_out *out, llm_context *c, char **json, size_t *n,
                         ggl_error *err) {
    llm_close(c);
    if (out->failed) {
        ggl_free(out->s);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    *json = out->s;
    *n = out->n;
    return GGL_OK;
}

/* --- the model -------------------------------------------------------------------------------- */

/* Counts the tensors of each type, in the order in which types appear. */
static void put_types(llm_json_out *out, const ggl_gguf *f) {
    const size_t n = ggl_gguf_n_tensors(f);
    put_name(out, "types");
    llm_json_put_text(out, "{");
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *type = ggl_type_at(k);
        double count = 0, bytes = 0;
        for (size_t i = 0; i < n; i++) {
            const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
            count += t->type == type->type;
            bytes += t->type == type->type ? (double)t->size : 0;
        }
        if (count == 0)
            continue;
        put_name(out, type->name);
        llm_json_put_text(out, "{");
        put_count(out, "tensors", count);
        put_count(out, "bytes", bytes);
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "}");
}

ggl_status llm_describe(const char *path, const llm_open_params *params, char **json, size_t *n,
                        ggl_error *err) {
    llm_context *c;
    llm_json_out out = {0};
    *json = NULL;
    *n = 0;
    const ggl_status st = llm_context_open_path(&c, path, params, LLM_OPENED_MODEL, err);
    if (st != GGL_OK)
        return st;
    const ggl_gguf *f = llm_model_file(c->model);
    const llm_model_facts m = llm_model_facts_of(f);
    llm_json_put_text(&out, "{");
    put_str(&out, "name", m.name);
    put_str(&out, "architecture", m.architecture);
    put_text(&out, "descriptor", llm_model_arch_origin(c->model));
    put_name(&out, "tokenizer");
    if (c->tokenizer) {
        const char *kind = llm_tokenizer_kind_name(c->tokenizer);
        llm_json_put_string(&out, (ggl_str){kind, strlen(kind)});
    } else {
        llm_json_put_text(&out, "null");
    }
    put_name(&out, "has_chat");
    llm_json_put_text(&out, c->chat ? "true" : "false");
    put_count(&out, "n_params", m.n_params);
    put_count(&out, "bytes", m.bytes);
    put_count(&out, "n_layer", (double)m.n_layer);
    put_count(&out, "n_embd", (double)m.n_embd);
    put_count(&out, "n_ctx", (double)llm_model_n_ctx(c->model));
    put_types(&out, f);
    llm_json_put_text(&out, "}");
    return finish(&out, c, json, n, err);
}

/* --- the plan --------------------------------------------------------------------------------- */

static void put_memory(llm_json_out *out, const ggl_memory *m) {
    put_count(out, "weights_mapped", (double)m->weights_mapped);
    put_count(out, "weights_copied", (double)m->weights_copied);
    put_count(out, "weights_repacked", (double)m->weights_repacked);
    put_count(out, "cache", (double)m->stores_rows);
    put_count(out, "states", (double)m->stores_states);
    put_count(out, "scratch", (double)m->arena + (double)m->io);
}

/* name: of what is reserved for something beside the session; NULL: there is nothing. */
static void put_device(llm_json_out *out, const ggl_backend *b, const ggl_memory *m,
                       const char *name, const ggl_memory *reserved) {
    llm_json_put_text(out, "{");
    put_text(out, "name", b->name);
    put_text(out, "description", b->description);
    put_count(out, "memory", (double)b->memory);
    put_memory(out, m);
    if (name) {
        put_name(out, name);
        llm_json_put_text(out, "{");
        put_memory(out, reserved);
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "}");
}

/* Lists the devices of a copy of the model; *n: how many are listed. */
static void put_copy(llm_json_out *out, const llm_context *c, int k, int *n) {
    llm_placement *p = llm_copies_placement(c, k);
    ggl_memory m;
    for (int i = 0; i < llm_placement_n_backends(p); i++)
        if (ggl_sched_memory(llm_session_sched(llm_copies_session(c, k)), i, &m)) {
            llm_json_put_text(out, (*n)++ > 0 ? ", " : "");
            put_device(out, llm_placement_backend(p, i), &m,
                       c->eye                                          ? "mmproj"
                       : llm_arch_reads_rows(llm_model_arch(c->model)) ? "stages"
                                                                       : NULL,
                       llm_placement_reserved(p, i));
        }
}

ggl_status llm_plan(const char *path, const llm_open_params *params, char **json, size_t *n,
                    ggl_error *err) {
    llm_context *c;
    llm_json_out out = {0};
    int n_put = 0;
    *json = NULL;
    *n = 0;
    const ggl_status st = llm_context_open_path(&c, path, params, LLM_OPENED_SESSION, err);
    if (st != GGL_OK)
        return st;
    llm_json_put_text(&out, "{");
    put_count(&out, "n_ctx", (double)llm_session_n_ctx(c->session));
    put_count(&out, "n_ctx_fits", (double)llm_fit_measure(c->placement, c->session, NULL).fits);
    put_text(&out, "placement", llm_context_facts(c)->placement);
    put_name(&out, "devices");
    llm_json_put_text(&out, "[");
    for (int k = 0; k < llm_copies_n(c); k++)
        put_copy(&out, c, k, &n_put);
    llm_json_put_text(&out, "]}");
    return finish(&out, c, json, n, err);
}

/* --- the cache -------------------------------------------------------------------------------- */

typedef struct cached_text {
    llm_json_out models, problems;
} cached_text;

static void put_cached(void *user, const hub_cached *m) {
    cached_text *t = user;
    llm_json_out *out = m->problem ? &t->problems : &t->models;
    llm_json_put_text(out, out->n > 0 ? ", {" : "{");
    put_text(out, "path", m->path);
    if (m->problem) {
        put_text(out, "problem", m->problem);
    } else {
        if (m->repo)
            put_text(out, "repository", m->repo);
        put_text(out, "file", m->file);
        put_count(out, "bytes", (double)m->size);
        put_count(out, "n_files", m->n_files);
        put_name(out, "is_whole");
        llm_json_put_text(out, m->is_whole ? "true" : "false");
    }
    llm_json_put_text(out, "}");
}

static void put_list(llm_json_out *out, const char *name, llm_json_out *items) {
    put_name(out, name);
    llm_json_format(out, "[%s]", items->n > 0 ? items->s : "");
    out->failed = out->failed || items->failed;
    ggl_free(items->s);
}

ggl_status llm_cached_models(char **json, size_t *n, ggl_error *err) {
    cached_text t = {.models.n = 0};
    llm_json_out out = {0};
    char *folder;
    *json = NULL;
    *n = 0;
    const ggl_status st = llm_hub_list_cache(&folder, put_cached, &t, err);
    if (st != GGL_OK) {
        ggl_free(t.models.s);
        ggl_free(t.problems.s);
        return st;
    }
    llm_json_put_text(&out, "{");
    put_text(&out, "folder", folder);
    put_list(&out, "models", &t.models);
    put_list(&out, "problems", &t.problems);
    llm_json_put_text(&out, "}");
    free(folder);
    return finish(&out, NULL, json, n, err);
}
