#include "adapter_list.h"

#include <string.h>

#include "embed_task.h"

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"

static ggl_status open_one(llm_adapter_use *to, const llm_lora *from, const llm_model *m,
                           const llm_model *eye, ggl_error *err) {
    llm_adapter *a;
    llm_adapter_parts parts;
    ggl_status st = llm_adapter_open(&a, from->path, NULL, err);
    if (st != GGL_OK)
        return st;
    st = llm_adapter_check(a, m, eye, &parts, err);
    if (st == GGL_OK)
        *to = (llm_adapter_use){.adapter = a, .scale = from->scale, .beside = parts.n_eye > 0};
    else
        llm_adapter_free(a);
    return st;
}

/* Numbers the task of use[i], which may be that of one before it. */
static ggl_status number_task(llm_adapter_use *use, size_t i, int *n_tasks, ggl_error *err) {
    static const char key[] = "adapter.lora.task_name";
    ggl_str own, other;
    ggl_status st = llm_adapter_text(use[i].adapter, key, &own, err);
    for (size_t k = 0; k < i && st == GGL_OK && own.n > 0 && use[i].task == 0; k++) {
        st = llm_adapter_text(use[k].adapter, key, &other, err);
        if (st == GGL_OK && ggl_str_equal(other, own))
            use[i].task = use[k].task;
    }
    if (st == GGL_OK && own.n > 0 && use[i].task == 0)
        use[i].task = ++*n_tasks;
    if (st == GGL_OK && use[i].task > 0 && use[i].beside)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "%s is for a task (%s), and has pairs for an eye or an ear, which knows no "
                      "tasks",
                      ggl_gguf_name(llm_adapter_file(use[i].adapter)), key);
    return st;
}

ggl_status llm_adapter_list_open(llm_adapter_use **use, size_t *n_use, const llm_lora *from,
                                 size_t n, bool vary, const llm_model *m, const llm_model *eye,
                                 ggl_error *err) {
    *n_use = 0;
    *use = NULL;
    if (n == 0)
        return GGL_OK;
    *use = ggl_calloc(n, sizeof **use);
    if (!*use)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu adapters", n);
    ggl_status st = GGL_OK;
    int n_tasks = 0;
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        st = open_one(&(*use)[i], &from[i], m, eye, err);
        if (st != GGL_OK)
            break;
        st = number_task(*use, i, &n_tasks, err);
        if (st == GGL_OK)
            ++*n_use;
        else
            llm_adapter_free((llm_adapter *)(*use)[i].adapter);
    }
    for (size_t i = 0; i < n && st == GGL_OK && vary && n_tasks < LLM_ARCH_MAX_TASKS; i++) {
        llm_adapter_use *u = &(*use)[i];
        u->varies = u->task == 0 && !u->beside && llm_adapter_can_vary(u->adapter, m);
        u->task = u->varies ? ++n_tasks : u->task;
    }
    return st;
}

void llm_adapter_list_close(llm_adapter_use *use, size_t n) {
    for (size_t i = 0; i < n; i++)
        llm_adapter_free((llm_adapter *)use[i].adapter); /* the list owns them */
    ggl_free(use);
}
