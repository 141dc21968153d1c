#include "server_adapters.h"

#include <string.h>

#include "api_scales.h"
#include "ggl/internal/gguf.h"
#include "models.h"
#include "server_impl.h"

size_t server_n_adapters(const server *s) {
    return llm_opened_n_adapters(s->ctx);
}

/* The shares of requests that choose no scales: those that were set, or those of the start. */
static size_t shares_of_all(const server *s, float *share) {
    const llm_session *session = llm_opened_session(s->ctx);
    const size_t n = (size_t)llm_session_n_tasks(session);
    memcpy(share, llm_session_shares(session), n * sizeof *share);
    model_get_shares(s->model_row, share, n);
    return n;
}

server_adapter server_adapter_at(const server *s, size_t i) {
    const llm_adapter_use *u = &llm_opened_adapter(s->ctx)[i];
    float share[LLM_ARCH_MAX_TASKS];
    server_adapter out = {.path = ggl_gguf_name(llm_adapter_file(u->adapter)),
                          .scale = u->scale,
                          .varies = u->varies};
    const ggl_gguf *f = llm_adapter_file(u->adapter);
    out.task = out.prefix = (ggl_str){"", 0};
    (void)ggl_gguf_get_string(f, "adapter.lora.task_name", &out.task, NULL);
    (void)ggl_gguf_get_string(f, "adapter.lora.prompt_prefix", &out.prefix, NULL);
    if (u->varies) {
        (void)shares_of_all(s, share);
        out.scale = (double)share[u->task - 1];
    }
    return out;
}

/* --- lists of scales -------------------------------------------------------------------------- */

/* Why the scale of an adapter cannot vary. */
static const char *why_fixed(const llm_adapter_use *u, const server_adapter *a) {
    return a->task.n > 0 ? "requests choose it by its task"
           : u->beside ? "it changes the model's eye or ear, which looks and hears for all requests"
                       : "of this model, or beside so many others, none can vary";
}

/* Sets scale[n], of all adapters, by a list; those that it lacks get 0. */
static ggl_status read_list(const json_value *list, double *scale, size_t n, ggl_error *err) {
    for (uint32_t k = 0; k < list->n; k++) {
        double id, given;
        api_read_scale(&list->item[k], &id, &given);
        if (id >= (double)n)
            return ggl_fail(err, GGL_USAGE, "[%u]: there is no adapter %.17g; the server has %zu%s",
                            k, id, n, n > 0 ? ", counted from 0" : " (--lora opens some)");
        scale[(size_t)id] = given;
    }
    return GGL_OK;
}

/* Sets the shares by a list. */
static ggl_status take_list(const server *s, const json_value *list, float *share, ggl_error *err) {
    const size_t n = server_n_adapters(s);
    double *scale = ggl_calloc(n, sizeof *scale);
    ggl_status st = scale ? read_list(list, scale, n, err)
                          : ggl_fail(err, GGL_NOMEM, "out of memory for scales");
    for (size_t i = 0; st == GGL_OK && i < n; i++) {
        const llm_adapter_use *u = &llm_opened_adapter(s->ctx)[i];
        const server_adapter a = server_adapter_at(s, i);
        const bool is_same = scale[i] == a.scale || (a.task.n > 0 && scale[i] == 0);
        if (u->varies)
            share[u->task - 1] = (float)scale[i];
        else if (!is_same)
            st = ggl_fail(err, GGL_USAGE,
                          "adapter %zu (%.200s) has the scale %g for all requests, not %g: %s", i,
                          a.path, a.scale, scale[i], why_fixed(u, &a));
    }
    ggl_free(scale);
    return st;
}

ggl_status server_set_scales(server *s, const json_value *list, ggl_error *err) {
    float share[LLM_ARCH_MAX_TASKS];
    const size_t n = shares_of_all(s, share);
    const ggl_status st = take_list(s, list, share, err);
    return st == GGL_OK ? model_set_shares(s->model_row, share, n, err) : st;
}

ggl_status server_shares(const server *s, const json_value *list, float *share, size_t *n,
                         ggl_error *err) {
    *n = shares_of_all(s, share);
    const ggl_status st = list && list->n > 0 ? take_list(s, list, share, err) : GGL_OK;
    return st == GGL_OK ? st : ggl_within(err, st, "\"lora\"");
}
