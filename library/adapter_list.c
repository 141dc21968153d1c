#include "adapter_list.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "embed_task.h"

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"

/* --- checks ----------------------------------------------------------------------------------- */

static ggl_status check_files(const char *member, const llm_lora *file, size_t n, ggl_error *err) {
    if (n > 0 && !file)
        return ggl_fail(err, GGL_USAGE, "%s is NULL; n_%ss is %zu", member, member, n);
    for (size_t i = 0; i < n; i++) {
        if (!file[i].path)
            return ggl_fail(err, GGL_USAGE, "%s[%zu].path is NULL", member, i);
        if (!isfinite((float)file[i].scale))
            return ggl_fail(err, GGL_USAGE, "%s[%zu].scale must be finite, but is %g", member, i,
                            file[i].scale);
    }
    return GGL_OK;
}

ggl_status llm_adapter_list_check(const llm_open_params *p, ggl_error *err) {
    ggl_status st = check_files("adapter", p->adapter, p->n_adapters, err);
    if (st == GGL_OK)
        st = check_files("control_vector", p->control_vector, p->n_control_vectors, err);
    if (st == GGL_OK && p->control_last > 0 && p->control_first > p->control_last)
        st = ggl_fail(err, GGL_USAGE,
                      "the range of layers for control vectors begins at layer %" PRId64
                      " and ends at %" PRId64,
                      p->control_first, p->control_last);
    const bool has_range = p->control_first != 0 || p->control_last != 0;
    if (st == GGL_OK && has_range && p->n_control_vectors == 0)
        st = ggl_fail(err, GGL_USAGE,
                      "%s is for control vectors, and there are none (control_vector)",
                      p->control_first != 0 ? "control_first" : "control_last");
    return st;
}

/* --- opening ---------------------------------------------------------------------------------- */

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

static ggl_status open_control(llm_adapter_use *to, const llm_open_params *p, size_t i,
                               const llm_model *m, ggl_error *err) {
    llm_adapter *a;
    ggl_status st = llm_control_open(&a, p->control_vector[i].path, NULL, err);
    if (st != GGL_OK)
        return st;
    *to = (llm_adapter_use){.adapter = a,
                            .scale = p->control_vector[i].scale,
                            .first = p->control_first,
                            .last = p->control_last};
    st = llm_control_check(to, m, err);
    if (st != GGL_OK)
        llm_adapter_free(a);
    return st;
}

/* Lets those of the n adapters vary that can. */
static void vary_all(llm_adapter_use *use, size_t n, int n_tasks, const llm_model *m) {
    for (size_t i = 0; i < n && n_tasks < LLM_ARCH_MAX_TASKS; i++) {
        use[i].varies =
            use[i].task == 0 && !use[i].beside && llm_adapter_can_vary(use[i].adapter, m);
        use[i].task = use[i].varies ? ++n_tasks : use[i].task;
    }
}

ggl_status llm_adapter_list_open(llm_adapter_use **use, size_t *n_use, const llm_open_params *p,
                                 bool vary, const llm_model *m, const llm_model *eye,
                                 ggl_error *err) {
    const size_t n = p->n_adapters + p->n_control_vectors;
    *n_use = 0;
    *use = NULL;
    if (n == 0)
        return GGL_OK;
    *use = ggl_calloc(n, sizeof **use);
    if (!*use)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu adapters", n);
    ggl_status st = GGL_OK;
    int n_tasks = 0;
    for (size_t i = 0; i < p->n_adapters && st == GGL_OK; i++) {
        st = open_one(&(*use)[i], &p->adapter[i], m, eye, err);
        if (st != GGL_OK)
            break;
        st = number_task(*use, i, &n_tasks, err);
        if (st == GGL_OK)
            ++*n_use;
        else
            llm_adapter_free((llm_adapter *)(*use)[i].adapter);
    }
    if (st == GGL_OK && vary)
        vary_all(*use, p->n_adapters, n_tasks, m);
    for (size_t i = 0; i < p->n_control_vectors && st == GGL_OK; i++) {
        st = open_control(&(*use)[*n_use], p, i, m, err);
        *n_use += st == GGL_OK;
    }
    return st;
}

void llm_adapter_list_close(llm_adapter_use *use, size_t n) {
    for (size_t i = 0; i < n; i++)
        llm_adapter_free((llm_adapter *)use[i].adapter); /* the list owns them */
    ggl_free(use);
}
