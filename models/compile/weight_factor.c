/* The factor of a weight: NAME.scale beside NAME.weight, in files whose weights have few values (NVFP4, ternary ones). The model
 * computes with the weight times the factor, one number, or one for each matrix of the last dimension (experts). It belongs to the
 * weight's value, as a bias does: a product is multiplied by it before the bias is added, rows that are looked up too.
 *
 * A descriptor that declares NAME.scale itself gets no factor for NAME.weight. */
#include <inttypes.h>
#include <string.h>

#include "compile.h"

/* True if a pattern of `from`, "blk.{l}.ffn_down_exps.scale", is for the name. */
static bool is_pattern_of(const char *pattern, const char *name) {
    for (; *pattern && *pattern != '{'; pattern++, name++)
        if (*pattern != *name)
            return false;
    if (*pattern == 0)
        return *name == 0;
    const char *rest = strchr(pattern, '}');
    const char *after = name;
    while (*after >= '0' && *after <= '9')
        after++;
    return rest && after > name && is_pattern_of(rest + 1, after);
}

/* True if one of the statements, or of those in them, declares a tensor of this name by `from`. */
static bool declares(arch_eval *ev, const arch_stmt *s, const char *name) {
    for (; s && llm_arch_step(ev, s->place, 1); s = s->next) {
        if (s->kind == ST_WEIGHT && ((s->string && is_pattern_of(s->string, name)) ||
                                     (s->second && is_pattern_of(s->second, name))))
            return true;
        for (int k = 0; k < s->n_arm; k++)
            if (declares(ev, s->arm[k].body, name))
                return true;
    }
    return false;
}

static bool is_declared(arch_eval *ev, const char *name) {
    bool found = declares(ev, ev->arch->body, name);
    for (const arch_fn *f = ev->arch->fn; f && !found; f = f->next)
        found = declares(ev, f->body, name);
    return found;
}

/* Makes the factor's node: one number, or one for each of n matrices. */
static ggl_tensor *make_factor(arch_eval *ev, arch_place p, llm_arch_tensor *f, const char *weight,
                               int64_t n) {
    const int64_t n_factor = ggl_extents(f->ne, 0, GGL_MAX_DIMS, 1);
    if (f->type != GGL_F32 || (n_factor != 1 && n_factor != n)) {
        llm_arch_error_hint(ev, GGL_SHAPE, p, NULL,
                            "tensor %s has %" PRId64
                            " numbers of type %s, but the factor of %s is one of f32%s",
                            f->name, n_factor, ggl_type_get(f->type)->name, weight,
                            n > 1 ? ", or one for each of its matrices" : "");
        return NULL;
    }
    const arch_weight *before = llm_arch_find_weight(ev, f->name);
    ggl_tensor *t =
        before ? before->t : ggl_graph_weight(ev->g, f->name, f->type, 1, &n_factor, f->data);
    if (!llm_arch_graph_ok(ev, p) || !t ||
        (!before && !llm_arch_add_weight(ev, f->name, t, p, false)))
        return NULL;
    return t;
}

bool llm_arch_find_factor(arch_eval *ev, arch_place p, const char *weight, const ggl_tensor *t,
                          ggl_tensor **out) {
    static const char end[] = ".weight";
    const size_t n = strlen(weight), m = sizeof end - 1;
    char name[600];
    *out = NULL;
    if (ev->conv || !ev->src->tensor_at || n <= m || n >= sizeof name ||
        strcmp(weight + n - m, end) != 0)
        return true;
    memcpy(name, weight, n - m);
    strcpy(name + n - m, ".scale");
    llm_arch_tensor f = {
        .name = name, .optional = true, .is_extra = true, .n_dims = 1, .ne = {1, 1, 1, 1}};
    if (!ev->src->find_tensor(ev->src->ctx, &f) || is_declared(ev, name))
        return ev->status == GGL_OK;
    f.name = llm_arch_strdup(ev, name);
    *out = f.name ? make_factor(ev, p, &f, weight, t->n_dims > 2 ? t->ne[t->n_dims - 1] : 1) : NULL;
    return *out != NULL;
}
