/* Adapters for tasks that a model's own folder has, as jina-embeddings-v3: beside a matrix NAME.original are stacks NAME.0.lora_A
 * and NAME.0.lora_B with a pair for each task, in the order of config.json's "lora_adaptations". The model computes with
 * NAME.original + lora_alpha / lora_rank * B A, and without a task with NAME.original alone.
 *
 *     in numpy's order     lora_A                  lora_B
 *     of a product         [task, rank, in]        [task, out, rank]
 *     of a lookup          [task, out, rank]       [task, rank, in]        for a matrix [out, in]: a row for each token
 *
 * (parametrizations of the authors' LoRA module, in the code that their folder names.) */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lora_impl.h"

static ggl_status wrong(const llm_lora *l, const char *what, ggl_error *err) {
    return ggl_fail(err, GGL_FORMAT, "%s: %s", l->config_path, what);
}

static ggl_status unknown(const llm_lora *l, const json_value *tasks, ggl_error *err) {
    char list[400] = "";
    size_t n = 0;
    for (size_t i = 0; tasks && i < tasks->n && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.*s", i ? ", " : "",
                              (int)(tasks->item[i].n < 60 ? tasks->item[i].n : 60),
                              tasks->item[i].kind == JSON_STRING ? tasks->item[i].s : "");
    if (!tasks)
        return ggl_fail(err, GGL_USAGE,
                        "%s: the model has no adapters for tasks (\"lora_adaptations\")",
                        l->config_path);
    return ggl_fail(err, GGL_USAGE, "%s: there is no task '%.100s'; the model's are %s",
                    l->config_path, l->task, list);
}

/* The beginning that texts of the task want; "": none. */
static const char *prompt_of(llm_lora *l, const json_value *config) {
    static const char *const names[] = {"task_instructions", "lora_prompts"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_value *all = llm_json_get_kind(config, names[i], JSON_OBJECT),
                         *v = all ? llm_json_get_kind(all, l->task, JSON_STRING) : NULL;
        if (v && !memchr(v->s, 0, v->n))
            return ggl_arena_strndup(&l->arena, v->s, v->n);
    }
    return "";
}

ggl_status llm_lora_open_task(llm_lora **out, const char *folder, const json_value *config,
                              const char *task, ggl_error *err) {
    llm_lora *l = *out = ggl_calloc(1, sizeof *l);
    if (!l)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    l->folder = l->file_path = ggl_arena_strndup(&l->arena, folder, strlen(folder));
    l->task = ggl_arena_strndup(&l->arena, task, strlen(task));
    l->config_path = ggl_arena_printf(&l->arena, "%s/config.json", folder);
    l->prompt = l->task ? prompt_of(l, config) : NULL;
    const json_value *tasks = llm_json_get_kind(config, "lora_adaptations", JSON_ARRAY),
                     *rank = llm_json_get_kind(config, "lora_rank", JSON_NUMBER),
                     *alpha = llm_json_get_kind(config, "lora_alpha", JSON_NUMBER);
    ggl_status st = l->folder && l->config_path && l->prompt
                        ? GGL_OK
                        : ggl_fail(err, GGL_NOMEM, "out of memory");
    size_t i = 0;
    while (tasks && i < tasks->n &&
           !(tasks->item[i].kind == JSON_STRING && llm_json_is(&tasks->item[i], task)))
        i++;
    if (st == GGL_OK && (!tasks || i == tasks->n))
        st = unknown(l, tasks, err);
    if (st == GGL_OK &&
        (!rank || !rank->whole || rank->number < 1 || !alpha || !isfinite(alpha->number)))
        st = wrong(l,
                   "\"lora_rank\" must be a whole number of at least 1, and \"lora_alpha\" a "
                   "finite number",
                   err);
    if (st != GGL_OK)
        return st;
    l->i_task = (int64_t)i;
    l->n_tasks = tasks->n;
    l->rank = (int64_t)rank->number;
    l->alpha = alpha->number;
    return GGL_OK;
}

/* Returns the task's matrix of a stack; NULL: out of memory. */
static const st_tensor *slice(llm_lora *l, const st_tensor *stack) {
    st_tensor *t = ggl_arena_alloc(&l->arena, 1, sizeof *t);
    if (!t)
        return NULL;
    *t = *stack;
    t->n_dims = 2;
    t->ne[2] = 1;
    t->size /= (size_t)l->n_tasks;
    t->data = (const char *)stack->data + t->size * (size_t)l->i_task;
    return t;
}

static bool is_stack(const llm_lora *l, const st_tensor *t) {
    return t && t->n_dims == 3 && t->type >= 0 && t->data && t->ne[2] == l->n_tasks;
}

/* Adds the pair whose lora_A is t. */
static ggl_status add_pair(llm_lora *l, const llm_safetensors *model, const st_tensor *t,
                           ggl_error *err) {
    const int n = (int)(t->name.n - strlen(".0.lora_A"));
    const char *other = ggl_arena_printf(&l->arena, "%.*s.0.lora_B", n, t->name.s),
               *own = ggl_arena_printf(&l->arena, "%.*s.original", n, t->name.s);
    if (!other || !own)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const st_tensor *b = llm_safetensors_find(model, other), *w = llm_safetensors_find(model, own);
    if (!w || w->n_dims != 2 || !is_stack(l, t) || !is_stack(l, b))
        return ggl_fail(err, GGL_SHAPE,
                        "%s: %.300s, .lora_B and .original must be stacks of %" PRId64
                        " matrices, one for each task, and a matrix",
                        l->folder, t->name.s, l->n_tasks);
    const bool product = t->ne[1] == l->rank && b->ne[0] == l->rank && t->ne[0] == w->ne[0] &&
                         b->ne[1] == w->ne[1],
               lookup = t->ne[0] == l->rank && b->ne[1] == l->rank && b->ne[0] == w->ne[0] &&
                        t->ne[1] == w->ne[1];
    if (!product && !lookup)
        return ggl_fail(err, GGL_SHAPE,
                        "%s: %.300s and .lora_B do not fit a matrix of %" PRId64 " rows of %" PRId64
                        " with the rank %" PRId64,
                        l->folder, t->name.s, w->ne[1], w->ne[0], l->rank);
    lora_weight *x = &l->weight[l->n++];
    *x = (lora_weight){.name = {own, strlen(own)}, .rank = l->rank, .factor = 1};
    x->a = slice(l, product ? t : b);
    x->b = slice(l, product ? b : t);
    return x->a && x->b ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}

ggl_status llm_lora_find_tasks(llm_lora *l, const llm_safetensors *model, ggl_error *err) {
    static const char end[] = ".0.lora_A";
    l->weight = ggl_calloc(model->n_tensor + 1, sizeof *l->weight);
    if (!l->weight)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < model->n_tensor && st == GGL_OK; i++) {
        const st_tensor *t = &model->tensor[i];
        if (t->name.n > strlen(end) && strcmp(t->name.s + t->name.n - strlen(end), end) == 0)
            st = add_pair(l, model, t, err);
    }
    if (st == GGL_OK && l->n == 0)
        st = ggl_fail(err, GGL_NOT_FOUND, "%s: there are no tensors *%s, of adapters for tasks",
                      l->folder, end);
    return st;
}
