/* Guesses what a key is for, from its name (the table below) and from the descriptor's text: a
 * default or a comparison shows whether it is a number, a string or a truth value, and which
 * other values to try. */
#include <stdio.h>
#include <string.h>

#include "survey.h"

#define TOY_LAYERS 6 /* enough for all known patterns of layers: every 2nd, 3rd, 4th, 6th */

/* Values of keys by the end of their names, which is the whole name or follows a '.' or '_'. The
 * longest matching end counts. */
static const struct {
    const char *end;
    double value;
} usual[] = {
    {"block_count", TOY_LAYERS},
    {"leading_dense_block_count", 1},
    {"nextn_predict_layers", 1},
    {"context_length", 112},
    {"vocab_size", 58},
    {"embedding_length", 80},
    {"embedding_length_per_layer_input", 12},
    {"word_embedding_length", 60},
    {"sam.embedding_length", 44},
    {"expert_feed_forward_length", 36},
    {"expert_shared_feed_forward_length", 56},
    {"feed_forward_length", 104},
    {"attention.head_count", 4},
    {"attention.head_count_kv", 2},
    {"attention.key_length", 24},
    {"attention.value_length", 22},
    {"attention.key_length_mla", 24},
    {"attention.value_length_mla", 22},
    {"attention.key_length_mla_swa", 20},
    {"attention.value_length_mla_swa", 18},
    {"attention.q_lora_rank", 30},
    {"attention.kv_lora_rank", 20},
    {"attention.decay_lora_rank", 18},
    {"attention.iclr_lora_rank", 14},
    {"attention.value_residual_mix_lora_rank", 12},
    {"attention.gate_lora_rank", 16},
    {"wkv.head_size", 20},
    {"time_mix_extra_dim", 14},
    {"time_decay_extra_dim", 18},
    {"laurel_rank", 14},
    {"attention.sliding_window", 7},
    {"attention.chunk_size", 8192},
    {"attention.temperature_length", 96},
    {"attention.indexer.top_k", 12},
    {"attention.indexer.key_length", 26},
    {"attention.indexer.head_count", 5},
    {"attention.output_group_count", 6},
    {"attention.relative_buckets_count", 10},
    {"attention.output_lora_rank", 14},
    {"attention.compress_ratios", 3},
    {"hyper_connection.count", 7},
    {"conv_group_size", 16},
    {"conv_kernel_size", 3},
    {"selector_rank", 10},
    {"selector_top_k", 6},
    {"hyper_connection.sinkhorn_iterations", 3},
    {"hyper_connection.low_rank", 17},
    {"rope.dimension_count", 8},
    {"rope.freq_base", 5000},
    {"rope.scaling.factor", 4},
    {"rope.scale_linear", 2},
    {"rope.scaling.original_context_length", 16},
    {"rope.scaling.attn_factor", 1.25},
    {"yarn_beta_fast", 32},
    {"yarn_beta_slow", 1},
    {"expert_count", 9},
    {"expert_used_count", 2},
    {"expert_shared_count", 3},
    {"experts_per_group", 3},
    {"expert_group_count", 3},
    {"expert_group_used_count", 2},
    {"full_attention_interval", 3},
    {"ssm.conv_kernel", 3},
    {"ssm.state_size", 10},
    {"ssm.group_count", 2},
    {"ssm.time_step_rank", 6},
    {"ssm.inner_size", 60},
    {"l_cache", 3},
    {"epsilon", 0.01},
    {"softcapping", 20},
    {"scale", 0.75},
    {"base", 5000},
    {"factor", 1.5},
    {"length", 48},
    {"window", 7},
    {"pattern_mode", 0},
    {"rank", 12},
    {"size", 12},
    {"interval", 3},
    {"count", 4},
};

static void out_of_memory(arch_survey *s) {
    s->failed = true;
}

static toy_key *find_key(arch_survey *s, const char *name, bool whole) {
    for (int k = 0; k < s->n_key; k++)
        if (s->key[k].whole == whole && strcmp(s->key[k].name, name) == 0)
            return &s->key[k];
    return NULL;
}

/* True if `name` is `end`, or ends with it after a '.' or '_'. */
static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0 &&
           (n == m || name[n - m - 1] == '.' || name[n - m - 1] == '_');
}

double llm_arch_survey_usual(const char *name) {
    size_t best = 0;
    double value = 2;
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        if (ends_in(name, usual[k].end) && strlen(usual[k].end) > best) {
            best = strlen(usual[k].end);
            value = usual[k].value;
        }
    return value;
}

/* Keys like "expert_.." form one group, by their first word; a key with a dot is a group of its
 * own. */
const char *llm_arch_survey_group(arch_survey *s, const char *name) {
    size_t n = strcspn(name, "_.");
    if (name[n] != '_' || strchr(name, '.'))
        n = strlen(name);
    const char *out = ggl_arena_printf(s->arena, ".%.*s", (int)n, name);
    if (!out)
        out_of_memory(s);
    return out;
}

static void add_group(arch_survey *s, const char *name) {
    for (int k = 0; k < s->n_group; k++)
        if (name && strcmp(s->group[k], name) == 0)
            return;
    if (!name || !ggl_grow(&s->group, &s->cap_group, (size_t)s->n_group + 1, sizeof *s->group))
        out_of_memory(s);
    else
        s->group[s->n_group++] = name;
}

/* --- tracing a value to its keys -------------------------------------------------------------- */

/* The keys that a value comes from: read by the expression itself, through names, or through the
 * arguments of calls if it is a function's parameter. */
typedef struct origin {
    toy_key *key[8];
    int n_key;
    const arch_expr *fallback; /* from the last `key ?? fallback` on the way */
} origin;

typedef struct tracing {
    arch_survey *s;
    origin *out;
    /* trace_call looks for calls of fn in the body of caller; NULL: at top level */
    const arch_fn *fn, *caller;
    int param, depth;
} tracing;

static void trace(tracing *t, const arch_expr *e, const arch_fn *within);

/* Traces the e of `name = e` anywhere in these statements. */
static void trace_binding(tracing *t, const arch_stmt *st, const char *name,
                          const arch_fn *within) {
    for (; st && t->out->n_key == 0 && t->s->work++ < ARCH_MAX_STEPS; st = st->next) {
        if (st->kind == ST_ASSIGN && st->n_target == 1 && strcmp(st->target[0].name, name) == 0)
            trace(t, st->expr[0], within);
        for (int k = 0; k < st->n_arm; k++)
            trace_binding(t, st->arm[k].body, name, within);
    }
}

/* Traces the argument of a call of here.fn that belongs to the parameter. */
static void trace_call(void *ctx, arch_expr *e) {
    const tracing here = *(tracing *)ctx;
    if (here.s->work++ > ARCH_MAX_STEPS || e->kind != EX_CALL || e->callee != CALL_FN ||
        e->fn != here.fn)
        return;
    for (int k = 0; k < e->n_arg; k++)
        if (e->arg[k].name ? strcmp(e->arg[k].name, here.fn->param[here.param].name) == 0
                           : k == here.param)
            trace(ctx, e->arg[k].value, here.caller);
    *(tracing *)ctx = here;
}

/* Traces a function's parameter through the calls of the function. */
static void trace_param(tracing *t, const arch_fn *fn, int param) {
    const arch_fn *list[2] = {t->s->arch->fn, t->s->arch->prelude_fn};
    t->fn = fn;
    t->param = param;
    t->caller = NULL;
    llm_arch_walk_stmts(t->s->arch->body, trace_call, t);
    for (int i = 0; i < 2; i++)
        for (t->caller = list[i]; t->caller; t->caller = t->caller->next)
            if (t->caller->used)
                llm_arch_walk_stmts(t->caller->body, trace_call, t);
}

/* Adds the keys that e may read to t->out. within: the function that contains e; NULL: top
 * level. */
static void trace(tracing *t, const arch_expr *e, const arch_fn *within) {
    toy_key *key;
    if (t->depth++ < 8 && t->out->n_key < (int)(sizeof t->out->key / sizeof *t->out->key)) {
        if (e->kind == EX_KEY && (key = find_key(t->s, e->name, e->whole)) != NULL)
            t->out->key[t->out->n_key++] = key;
        else if (e->kind == EX_INDEX)
            trace(t, e->a, within);
        else if (e->kind == EX_OR_ELSE) {
            t->out->fallback = e->b;
            trace(t, e->a, within);
        } else if (e->kind == EX_NAME && e->local < 0)
            trace_binding(t, t->s->arch->body, e->name, NULL);
        else if (e->kind == EX_NAME && within && e->local < within->n_param)
            trace_param(t, within, e->local);
        else if (e->kind == EX_NAME && within)
            trace_binding(t, within->body, e->name, within);
    }
    t->depth--;
}

static origin origin_of(arch_survey *s, const arch_expr *e) {
    origin out = {0};
    tracing t = {.s = s, .out = &out};
    if (e)
        trace(&t, e, s->within);
    return out;
}

static bool literal(const arch_expr *e, toy_value *v) {
    if (e->kind == EX_NEG && literal(e->a, v) && v->type == LLM_ARCH_NUMBER) {
        v->number = -v->number;
        return true;
    }
    *v = (toy_value){
        .type = LLM_ARCH_NUMBER, .number = e->num, .flag = e->num != 0, .string = e->name};
    if (e->kind == EX_STRING)
        v->type = LLM_ARCH_STRING;
    if (e->kind == EX_BOOL)
        v->type = LLM_ARCH_BOOL;
    return e->kind == EX_STRING || e->kind == EX_BOOL || e->kind == EX_NUMBER;
}

static bool same_value(const toy_value *a, const toy_value *b) {
    if (a->type != b->type)
        return false;
    return a->type == LLM_ARCH_NUMBER ? a->number == b->number
           : a->type == LLM_ARCH_BOOL ? a->flag == b->flag
                                      : strcmp(a->string, b->string) == 0;
}

/* Adds another value that the key may have. The first string or truth value sets the key's type. */
static void add_other(toy_key *k, toy_value v) {
    if (!k)
        return;
    if (v.type != LLM_ARCH_NUMBER && k->value.type == LLM_ARCH_NUMBER) {
        k->value = v;
        k->n_other = 0;
    }
    bool known = v.type != k->value.type || same_value(&k->value, &v);
    for (int i = 0; i < k->n_other; i++)
        known |= same_value(&k->other[i], &v);
    if (!known && k->n_other < (int)(sizeof k->other / sizeof *k->other))
        k->other[k->n_other++] = v;
}

/* Adds the value to all keys that the expression may read. */
static void add_others(arch_survey *s, const arch_expr *e, toy_value v) {
    const origin from = origin_of(s, e);
    for (int k = 0; k < from.n_key; k++)
        add_other(from.key[k], v);
}

static void add_truth(arch_survey *s, const arch_expr *e) {
    add_others(s, e, (toy_value){.type = LLM_ARCH_BOOL, .flag = true});
    add_others(s, e, (toy_value){.type = LLM_ARCH_BOOL, .flag = false});
}

/* Makes the keys of an expression lists, e.g. of the layers that have something. Every 2nd or
 * 3rd element is 0, so that some layers are on the list and some are not. */
static void add_list(arch_survey *s, const arch_expr *e) {
    const origin from = origin_of(s, e);
    for (int k = 0; k < from.n_key; k++)
        if (!from.key[k]->indexed) {
            from.key[k]->indexed = true;
            add_other(from.key[k], (toy_value){.type = LLM_ARCH_NUMBER, .number = 0});
        }
}

/* --- comparisons with a number ---------------------------------------------------------------- */

static bool compares(ggl_op op, double a, double b) {
    switch (op) {
    case GGL_OP_LT:
        return a < b;
    case GGL_OP_LE:
        return a <= b;
    case GGL_OP_GT:
        return a > b;
    default:
        return a >= b;
    }
}

/* True if the key is a group of its own, so that a model without it differs in nothing else. */
static bool goes_alone(arch_survey *s, const toy_key *key) {
    const char *group = llm_arch_survey_group(s, key->name);
    return key->optional && !key->indexed && group && strcmp(group + 1, key->name) == 0;
}

/* Larger numbers may be sizes, which would make a made-up model too large. */
enum { MOST_COMPARED_WITH = 1024 };

/* For `key > number`: adds a value on the other side of the number than the key's usual value,
 * unless the key's absence is on that side. */
static void add_compared(arch_survey *s, const arch_expr *e, ggl_op op, double number) {
    const origin from = origin_of(s, e);
    const bool at = compares(op, number, number); /* the number itself satisfies the comparison */
    for (int k = 0; k < from.n_key; k++) {
        toy_key *key = from.key[k];
        const bool is_so = compares(op, key->value.number, number);
        const bool absence = goes_alone(s, key) && from.fallback &&
                             from.fallback->kind == EX_NUMBER &&
                             compares(op, from.fallback->num, number) != is_so;
        /* towards the side without the number */
        const double step = op == GGL_OP_LT || op == GGL_OP_GE ? -1 : 1;
        const double other = at != is_so ? number : number + step;
        if (key->value.type == LLM_ARCH_NUMBER && !absence && other >= 0 &&
            other <= MOST_COMPARED_WITH)
            add_other(key, (toy_value){.type = LLM_ARCH_NUMBER, .number = other});
    }
}

static void survey_comparison(void *ctx, arch_expr *e) {
    static const ggl_op turned[][2] = {{GGL_OP_LT, GGL_OP_GT}, {GGL_OP_LE, GGL_OP_GE}};
    if (e->kind != EX_BINARY || e->op < GGL_OP_LT || e->op > GGL_OP_GE)
        return;
    const origin second = origin_of(ctx, e->b);
    if (e->b->kind == EX_NUMBER)
        add_compared(ctx, e->a, e->op, e->b->num);
    /* stands for its usual value */
    else if (second.n_key == 1)
        add_compared(ctx, e->a, e->op, second.key[0]->value.number);
    for (int k = 0; e->a->kind == EX_NUMBER && k < 4; k++)
        if (turned[k / 2][k % 2] == e->op)
            add_compared(ctx, e->b, turned[k / 2][1 - k % 2], e->a->num);
}

/* True if an expression always is a truth value. */
static bool is_truth(const arch_expr *e) {
    return e->kind == EX_BOOL || e->kind == EX_NOT || e->kind == EX_AND || e->kind == EX_OR ||
           e->kind == EX_IN || e->kind == EX_HAS ||
           (e->kind == EX_BINARY && e->op >= GGL_OP_EQ && e->op <= GGL_OP_GE);
}

static void survey_expr(void *ctx, arch_expr *e) {
    arch_survey *s = ctx;
    toy_value v;
    if (e->kind == EX_INDEX && e->a->kind == EX_KEY && find_key(s, e->a->name, e->a->whole))
        find_key(s, e->a->name, e->a->whole)->indexed = true;
    if (e->kind == EX_OR_ELSE && is_truth(e->b))
        add_truth(s, e->a);
    else if (e->kind == EX_OR_ELSE && literal(e->b, &v) && v.type == LLM_ARCH_STRING)
        add_others(s, e->a, v);
    if (e->kind == EX_BINARY && (e->op == GGL_OP_EQ || e->op == GGL_OP_NE)) {
        if (literal(e->b, &v))
            add_others(s, e->a, v);
        if (literal(e->a, &v))
            add_others(s, e->b, v);
    }
    if (e->kind == EX_IN && e->b->kind != EX_LIST)
        add_list(s, e->b);
    if (e->kind == EX_OR_ELSE && e->b->kind == EX_LIST)
        add_list(s, e->a);
    if (e->kind == EX_IN && e->b->kind == EX_LIST)
        for (int k = 0; k < e->b->n_arg; k++)
            if (literal(e->b->arg[k].value, &v))
                add_others(s, e->a, v);
    if (e->kind == EX_NOT || e->kind == EX_AND || e->kind == EX_OR)
        add_truth(s, e->a);
    if (e->kind == EX_AND || e->kind == EX_OR)
        add_truth(s, e->b);
    if (e->kind == EX_IF)
        add_truth(s, e->c);
}

static void add_tensor(arch_survey *s, const char *name) {
    if (!name ||
        !ggl_grow(&s->tensor, &s->cap_tensor, (size_t)s->n_tensor + 1, sizeof *s->tensor)) {
        out_of_memory(s);
        return;
    }
    s->tensor[s->n_tensor++].name = name;
    add_group(s, name);
}

/* Returns a tensor's name without "blk.N.", or a pattern's without "blk.{l}.". */
const char *llm_arch_survey_stem(const char *name) {
    if (strncmp(name, "blk.", 4) != 0)
        return name;
    const char *dot = strchr(name + 4, '.');
    return dot ? dot + 1 : name;
}

static void survey_stmts(arch_survey *s, const arch_stmt *st) {
    for (; st; st = st->next) {
        for (int k = 0; k < st->n_arm; k++) {
            const arch_expr *c = st->arm[k].cond;
            if (c && st->kind == ST_IF) {
                add_truth(s, c);
                /* survey_comparison does not change c */
                llm_arch_walk_expr((arch_expr *)c, survey_comparison, s);
            }
            survey_stmts(s, st->arm[k].body);
        }
        if (st->kind == ST_REQUIRE)
            add_truth(s, st->expr[0]);
        for (int k = 0; k < st->n_expr && st->kind != ST_REQUIRE && st->kind != ST_IGNORE; k++)
            llm_arch_walk_expr(st->expr[k], survey_comparison, s);
        if (st->kind != ST_WEIGHT)
            continue;
        const char *name = st->target[0].name;
        const char *from = st->string ? llm_arch_survey_stem(st->string) : NULL;
        if (st->optional || st->other)
            add_tensor(s, from ? from : ggl_arena_printf(s->arena, "%s.weight", name));
        if (st->bias && st->bias_optional)
            add_tensor(s, ggl_arena_printf(s->arena, "%.*s.bias", from ? (int)strlen(from) - 7 : 64,
                                           from ? from : name));
    }
}

static void survey_keys(arch_survey *s) {
    for (const arch_known_key *k = s->arch->key; k; k = k->next) {
        if (!ggl_grow(&s->key, &s->cap_key, (size_t)s->n_key + 1, sizeof *s->key)) {
            out_of_memory(s);
            return;
        }
        toy_key *t = &s->key[s->n_key++];
        *t = (toy_key){.name = k->name, .whole = k->whole, .optional = !k->required};
        t->value = (toy_value){.type = LLM_ARCH_NUMBER, .number = llm_arch_survey_usual(k->name)};
    }
}

static void survey_body(arch_survey *s, arch_stmt *body, const arch_fn *within) {
    s->within = within;
    llm_arch_walk_stmts(body, survey_expr, s);
    survey_stmts(s, body);
}

void llm_arch_survey_run(arch_survey *s) {
    const arch_fn *list[2] = {s->arch->fn, s->arch->prelude_fn};
    survey_keys(s);
    survey_body(s, s->arch->body, NULL);
    for (int i = 0; i < 2; i++)
        for (const arch_fn *f = list[i]; f; f = f->next)
            if (f->used)
                survey_body(s, f->body, f);
    for (int k = 0; k < s->n_key; k++) {
        if (s->key[k].optional && !s->key[k].whole)
            add_group(s, llm_arch_survey_group(s, s->key[k].name));
        s->n_alternatives += s->key[k].n_other;
    }
}

void llm_arch_survey_fini(arch_survey *s) {
    ggl_free(s->key);
    ggl_free(s->tensor);
    ggl_free(s->group);
}
