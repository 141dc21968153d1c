#include "server_adapters.h"

#include <string.h>

#include "api_scales.h"
#include "ggl/internal/gguf.h"
#include "models.h"
#include "server_impl.h"

/* Control vectors, whose scales requests cannot choose, are behind them in the list of the context. */
size_t server_n_adapters(const server *s) {
    const llm_adapter_use *use = llm_opened_adapter(s->ctx);
    size_t n = llm_opened_n_adapters(s->ctx);
    while (n > 0 && llm_adapter_describe(use[n - 1].adapter).n_directions > 0)
        n--;
    return n;
}

float *server_scales(const server *s) {
    const size_t n = server_n_adapters(s);
    const llm_adapter_use *use = llm_opened_adapter(s->ctx);
    float *scale = ggl_calloc(n, sizeof *scale);
    const bool is_set = scale && model_get_scales(s->model_row, scale, n);
    for (size_t i = 0; scale && i < n; i++)
        if (!is_set || !use[i].varies)
            scale[i] = (float)use[i].scale + 0.0f;
    return scale;
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for scales");
}

static ggl_str text_of(const llm_adapter_use *u, const char *key) {
    ggl_str text = {"", 0};
    (void)ggl_gguf_get_string(llm_adapter_file(u->adapter), key, &text, NULL);
    return text;
}

server_adapter server_adapter_at(const server *s, size_t i) {
    const llm_adapter_use *u = &llm_opened_adapter(s->ctx)[i];
    return (server_adapter){.path = ggl_gguf_name(llm_adapter_file(u->adapter)),
                            .task = text_of(u, "adapter.lora.task_name"),
                            .prefix = text_of(u, "adapter.lora.prompt_prefix")};
}

/* --- lists of scales -------------------------------------------------------------------------- */

/* Why the scale of an adapter cannot vary. */
static const char *why_fixed(const llm_adapter_use *u, bool is_for_task) {
    return is_for_task ? "requests choose it by its task"
           : u->beside ? "it changes the model's eye or ear, which looks and hears for all requests"
           : llm_adapter_describe(u->adapter).n_magnitudes > 0
               ? "it has magnitudes (DoRA), which are no multiple of the scale"
               : "all requests share it here: the model has an encoder, an adapter replaces whole "
                 "weights, or there are more than 64 adapters";
}

/* Sets scale[n], of all adapters, by a list; those that it lacks get 0. */
static ggl_status read_list(const json_value *list, float *scale, size_t n, ggl_error *err) {
    memset(scale, 0, n * sizeof *scale);
    for (uint32_t k = 0; k < list->n; k++) {
        double id, given;
        api_read_scale(&list->item[k], &id, &given);
        if (id >= (double)n)
            return ggl_fail(err, GGL_USAGE, "[%u]: there is no adapter %.17g; the server has %zu%s",
                            k, id, n, n > 0 ? ", counted from 0" : " (--lora opens some)");
        scale[(size_t)id] = (float)given + 0.0f; /* not -0, of which the cache would know nothing */
    }
    return GGL_OK;
}

/* Sets scale[n] by a list, and checks that it leaves those that cannot vary as they are. */
static ggl_status take_list(const server *s, const json_value *list, float *scale, size_t n,
                            ggl_error *err) {
    const llm_adapter_use *use = llm_opened_adapter(s->ctx);
    const ggl_status st = read_list(list, scale, n, err);
    for (size_t i = 0; st == GGL_OK && i < n; i++) {
        const float fixed = (float)use[i].scale;
        const bool is_for_task = text_of(&use[i], "adapter.lora.task_name").n > 0;
        if (use[i].varies || scale[i] == fixed || (is_for_task && scale[i] == 0))
            continue;
        return ggl_fail(
            err, GGL_USAGE,
            "adapter %zu (%.200s) has the scale %g for all requests, not %g: %s; a list "
            "must have it with that scale",
            i, ggl_gguf_name(llm_adapter_file(use[i].adapter)), (double)fixed, (double)scale[i],
            why_fixed(&use[i], is_for_task));
    }
    return st;
}

ggl_status server_set_scales(server *s, const json_value *list, ggl_error *err) {
    const size_t n = server_n_adapters(s);
    float *scale = ggl_calloc(n, sizeof *scale);
    ggl_status st = scale ? take_list(s, list, scale, n, err) : no_memory(err);
    if (st == GGL_OK)
        st = model_set_scales(s->model_row, scale, n, err);
    ggl_free(scale);
    return st;
}

ggl_status server_request_scales(const server *s, const json_value *list, float **scale,
                                 ggl_error *err) {
    *scale = server_scales(s);
    ggl_status st = *scale ? GGL_OK : no_memory(err);
    if (st == GGL_OK && list && list->n > 0)
        st = take_list(s, list, *scale, server_n_adapters(s), err);
    return st == GGL_OK ? st : ggl_within(err, st, "\"lora\"");
}

size_t server_shares(const server *s, const float *scale, float *share) {
    const llm_adapter_use *use = llm_opened_adapter(s->ctx);
    const llm_session *session = llm_opened_session(s->ctx);
    const size_t n = (size_t)llm_session_n_tasks(session);
    memcpy(share, llm_session_shares(session), n * sizeof *share);
    for (size_t i = 0; i < server_n_adapters(s); i++)
        if (use[i].varies)
            share[use[i].task - 1] = scale[i];
    return n;
}
