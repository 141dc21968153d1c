/* The tasks of adapters (adapter.lora.task_name), one of which embeddings may choose. */
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "embed_task.h"
#include "ggl/internal/gguf.h"

ggl_status llm_adapter_text(const llm_adapter *a, const char *key, ggl_str *out, ggl_error *err) {
    *out = (ggl_str){"", 0};
    return ggl_gguf_get_string(llm_adapter_file(a), key, out, err) < 0 ? GGL_FORMAT : GGL_OK;
}

/* The adapter of task k, from 1 on; NULL: there is none. */
static const llm_adapter *adapter_of(const llm_context *c, int task) {
    for (size_t i = 0; i < c->n_adapters; i++)
        if (task > 0 && c->adapter[i].task == task && !c->adapter[i].varies)
            return c->adapter[i].adapter;
    return NULL;
}

static ggl_str name_of(const llm_context *c, int task) {
    ggl_str name = {"", 0};
    const llm_adapter *a = adapter_of(c, task);
    return a && llm_adapter_text(a, "adapter.lora.task_name", &name, NULL) == GGL_OK
               ? name
               : (ggl_str){"", 0};
}

const char *llm_context_task(const llm_context *c, size_t k, size_t *n) {
    const ggl_str name = k < LLM_ARCH_MAX_TASKS ? name_of(c, (int)k + 1) : (ggl_str){"", 0};
    *n = name.n;
    return name.n > 0 ? name.s : NULL;
}

static int find_named(const llm_context *c, const char *name) {
    for (int task = 1; adapter_of(c, task); task++)
        if (ggl_str_is(name_of(c, task), name))
            return task;
    return 0;
}

/* The task of a kind of texts; 0: it is no kind, or there is none for it. */
static int find_kind(const llm_context *c, const char *kind) {
    static const char *const of_kind[][2] = {{"query", "retrieval.query"},
                                             {"document", "retrieval.passage"}};
    for (size_t i = 0; i < sizeof of_kind / sizeof *of_kind; i++)
        if (strcmp(kind, of_kind[i][0]) == 0)
            return find_named(c, of_kind[i][1]);
    return 0;
}

int32_t llm_find_task(const llm_context *c, const char *name) {
    if (!name) /* one alone is meant */
        return adapter_of(c, 1) && !adapter_of(c, 2) ? 1 : 0;
    const int task = find_named(c, name);
    return task > 0 ? task : find_kind(c, name);
}

ggl_status llm_task_prompt(const llm_context *c, const char *name, ggl_str *out, ggl_error *err) {
    const llm_adapter *a = adapter_of(c, llm_find_task(c, name));
    *out = (ggl_str){NULL, 0};
    return a ? llm_adapter_text(a, "adapter.lora.prompt_prefix", out, err) : GGL_OK;
}

ggl_status llm_task_choose(const llm_context *c, const char *name, int *task, ggl_error *err) {
    char names[400] = "";
    size_t used = 0;
    *task = llm_find_task(c, name);
    if (*task > 0 || !name || strcmp(name, "query") == 0 || strcmp(name, "document") == 0)
        return GGL_OK;
    for (int k = 1; adapter_of(c, k) && used < sizeof names; k++)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%.*s", k > 1 ? ", " : "",
                             (int)(name_of(c, k).n < 60 ? name_of(c, k).n : 60), name_of(c, k).s);
    return ggl_fail(err, GGL_NOT_FOUND, "there is no adapter for the task '%.100s'%s%s", name,
                    used ? "; those that were opened are for " : " (--lora opens some)", names);
}
