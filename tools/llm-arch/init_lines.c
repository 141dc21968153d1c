/* The lines of a descriptor that llm-arch init writes for keys, weights and kinds of layers. Declarations for only some layers are put
 * under an `if`. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "init.h"
#include "tensors.h"
#include "tool.h"

/* True if one is what `bias` after the other declares: a number for each row, or for each element of a row. */
static bool is_bias_of(const decl *bias, const decl *weight) {
    const int first = weight->key.n_dims > 1;
    for (int i = 0; i + first < GGL_MAX_DIMS; i++)
        if (bias->key.ne[i] != weight->key.ne[i + first])
            return false;
    return true;
}

/* The declarations of "NAME.bias" for "NAME.weight", or the other way, where they are one with `bias`; NULL: none. */
static const named *partner(const init *in, const decl *d, const char *end, const char *other) {
    const bool is_bias = strcmp(end, ".bias") == 0;
    size_t n = strlen(d->key.name), n_end = strlen(end);
    char name[160];
    if (n <= n_end || strcmp(d->key.name + n - n_end, end) != 0)
        return NULL;
    snprintf(name, sizeof name, "%.*s%s", (int)(n - n_end), d->key.name, other);
    size_t at = ggl_index_find(&in->by_name, in->name, (ggl_str){name, strlen(name)});
    if (at == SIZE_MAX)
        return NULL;
    const decl *o = &in->decl[in->name[at].first];
    return is_bias_of(is_bias ? d : o, is_bias ? o : d) ? &in->name[at] : NULL;
}

static size_t n_tensors_of(const init *in, const named *n) {
    size_t sum = 0;
    for (size_t d = n->first; d != NONE; d = in->decl[d].other)
        sum += in->decl[d].gone ? 0 : in->decl[d].n_tensors;
    return sum;
}

int64_t init_n_scores(const init *in) {
    const ggl_gguf_tensor *e = init_find_own(in, "token_embd.weight"),
                          *out = init_find_own(in, "output.weight");
    return e && out && out->ne[1] < e->ne[1] ? out->ne[1] : 0;
}

/* Writes the options after the shape. */
static void options_of(const init *in, const decl *d, bool from, char *buf, size_t size) {
    const named *bias = partner(in, d, ".weight", ".bias"),
                *self = bias ? partner(in, &in->decl[bias->first], ".bias", ".weight") : NULL;
    buf[0] = '\0';
    if (bias)
        snprintf(buf, size, n_tensors_of(in, bias) == n_tensors_of(in, self) ? " bias" : " bias?");
    if (from)
        snprintf(buf + strlen(buf), size - strlen(buf), " from \"%s%s\"", in->prefix, d->key.name);
    if (strcmp(d->key.name, "output.weight") == 0 && strcmp(in->embedding, "output") != 0 &&
        init_n_scores(in) == 0)
        snprintf(buf + strlen(buf), size - strlen(buf), " ?? %s", init_called(in, "token_embd"));
    if (strncmp(d->key.name, "rope_f", 6) == 0)
        snprintf(buf + strlen(buf), size - strlen(buf), " ?");
}

/* A bias of another shape than `bias` declares, beside its weight. */
static bool is_apart(const init *in, const decl *d) {
    size_t n = strlen(d->key.name);
    char name[160];
    if (n <= 5 || strcmp(d->key.name + n - 5, ".bias") != 0)
        return false;
    snprintf(name, sizeof name, "%.*s.weight", (int)(n - 5), d->key.name);
    return ggl_index_find(&in->by_name, in->name, (ggl_str){name, strlen(name)}) != SIZE_MAX;
}

bool init_word_of(const char *stem, const char *end, char *word, size_t size) {
    const int n = snprintf(word, size, "%s%s%s",
                           isdigit((unsigned char)stem[0]) || !stem[0] ? "_" : "", stem, end);
    for (char *c = word; *c; c++)
        *c = isalnum((unsigned char)*c) ? *c : '_';
    return n >= 0 && (size_t)n < size && strcmp(stem, word) == 0; /* a longer one was cut off */
}

/* Takes a word, which stays where it is, for the part, unless something else is called so. */
static bool take_word(init *in, const char *word) {
    const ggl_str own = {word, strlen(word)};
    const arch_name *number = arch_names_find(in->names, word);
    if (arch_names_is_taken(word) || (number && number->used) ||
        (in != in->part && ggl_index_find(&in->part->by_word, in->part->word, own) != SIZE_MAX))
        return false;
    in->word[in->n_word] = own;
    if (ggl_index_put(&in->by_word, in->word, in->n_word) != in->n_word)
        return false;
    in->n_word++;
    return true;
}

const char *init_called(const init *in, const char *stem) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", stem);
    const named *n = init_find_named(in, name);
    n = n ? n : init_find_named(in->part, name);
    return n ? n->as : stem;
}

void init_own_word(init *in, const char *wanted, char *buf, size_t size) {
    init *outside = in - (in - in->part);
    snprintf(buf, size, "%s", wanted);
    for (int k = 2; !take_word(outside, buf); k++)
        snprintf(buf, size, "%.48s_%d", wanted, k);
}

/* Chooses what a declaration is called: its stem, or something like it if that is taken. */
static void name_weight(init *in, named *n) {
    const decl *d = &in->decl[n->first];
    char stem[128], word[MOST_NAME - 15]; /* which leaves room for what follows it */
    const bool is_weight = !init_stem_of(d->key.name, stem, sizeof stem);
    (void)init_word_of(stem, is_apart(in, d) ? "_bias" : "", word, sizeof word);
    snprintf(n->as, sizeof n->as, "%s", word);
    if (take_word(in, n->as))
        return;
    snprintf(n->as, sizeof n->as, "%s_%s", word, is_weight ? "weight" : "tensor");
    /* a number of its own for each tensor, so that hostile names make only as many attempts as there are names */
    for (size_t k = (size_t)(n - in->name) + 1; !take_word(in, n->as); k += in->n_name)
        snprintf(n->as, sizeof n->as, "%s_%zu", word, k);
}

/* True if the model's output is its embedding. */
static bool lacks_output(const init *in) {
    return init_find_own(in, "token_embd.weight") && !init_find_own(in, "output.weight");
}

void init_keep_words(init *in) {
    static const char *const own[] = {"output", "rows", "embedding", "score"};
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        if (k == 0 ? lacks_output(in) : in == in->part && in->has_stages)
            (void)take_word(in, own[k]);
}

void init_name_weights(init *in) {
    char stem[128], word[140];
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < in->n_name; i++) {
            const decl *d = &in->decl[in->name[i].first];
            const bool is_name = !init_stem_of(d->key.name, stem, sizeof stem) &&
                                 init_word_of(stem, "", word, sizeof word);
            GGL_STEPS(1);
            if (round == (is_name ? d->in.n > 0 : 2))
                name_weight(in, &in->name[i]);
        }
}

/* True if the declaration gives the tensor's name with `from`. */
static bool has_from(const init *in, const decl *d) {
    char stem[128];
    const size_t n =
        ggl_index_find(&in->by_name, in->name, (ggl_str){d->key.name, strlen(d->key.name)});
    return init_stem_of(d->key.name, stem, sizeof stem) || strcmp(stem, in->name[n].as) != 0;
}

/* True if it can only be a comment: a string of the language cannot hold the name, as braces are places for numbers there. */
static bool is_comment(const init *in, const decl *d) {
    const char *name = d->key.name, *at = strncmp(name, "blk.{l}.", 8) == 0 ? name + 8 : name;
    return (!init_fits_string(at) || strpbrk(at, "{}")) && has_from(in, d);
}

static void print_decl(const init *in, const decl *d, int indent) {
    char text[1024], numbers[128], options[400];
    const ggl_gguf_tensor *one = ggl_gguf_tensor_at(in->f, d->head);
    if (partner(in, d, ".bias", ".weight"))
        return;
    const size_t n =
        ggl_index_find(&in->by_name, in->name, (ggl_str){d->key.name, strlen(d->key.name)});
    options_of(in, d, has_from(in, d), options, sizeof options);
    snprintf(text, sizeof text, "%*s%s%s %s%s", indent, "", is_comment(in, d) ? "# " : "",
             in->name[n].as, d->shape, options);
    ggl_fprint(stdout, "%-60s # %s %s%s\n", text, tensor_type(one),
               tensor_shape(one, numbers, sizeof numbers), d->open ? " ?" : "");
}

static void print_condition(const init *in, const group *g, int indent) {
    bool whole = g->in.n == g->in.last - g->in.first + 1;
    printf("%*s", indent, "");
    if (g->list) {
        printf("if %s %s 0:", g->list->name, g->above ? ">" : "==");
    } else if (g->in.n == 1) {
        printf("if l == %" PRId64 ":", g->in.first);
    } else if (whole && g->in.first == 0) {
        printf("if l < %" PRId64 ":", g->in.last + 1);
    } else if (whole && g->in.last == in->n_layer - 1) {
        printf("if l >= %" PRId64 ":", g->in.first);
    } else {
        const char *between = "";
        printf("if l in [");
        for (size_t t = in->decl[g->head].head; t != NONE; t = in->next[t], between = ", ") {
            ggl_str rest;
            printf("%s%d", between, init_layer_of(in, t, &rest));
        }
        printf("]:");
    }
    printf("  # %" PRId64 " of %d layers\n", g->in.n, in->n_layer);
}

/* True if there is more to print of it than comments and biases, which stand with their weights. */
static bool has_lines(const init *in, const group *g) {
    for (size_t d = g->head; d != NONE; d = in->along[d])
        if (!partner(in, &in->decl[d], ".bias", ".weight") && !is_comment(in, &in->decl[d]))
            return true;
    return false;
}

bool init_has_layer_lines(const init *in) {
    bool any = false;
    for (int i = 0; i < in->names->n; i++)
        any |= in->names->at[i].used && in->names->at[i].varies;
    for (size_t i = 0; i < in->n_group && !any; i++)
        any = in->group[i].in.n > 0 && in->group[i].within == NONE && has_lines(in, &in->group[i]);
    return any;
}

static void print_decls(const init *in, const group *g, int indent) {
    for (size_t d = g->head; d != NONE; d = in->along[d])
        print_decl(in, &in->decl[d], indent);
}

void init_print_groups(const init *in, bool outside) {
    for (size_t i = 0; i < in->n_group; i++)
        if (outside ? in->group[i].in.n == 0
                    : in->group[i].in.n > 0 && in->group[i].in.n == in->n_layer)
            print_decls(in, &in->group[i], in->indent + (outside ? 0 : 2));
}

void init_print_kinds(init *in, size_t within, int indent) {
    for (size_t i = 0; i < in->n_group; i++) {
        group *g = &in->group[i];
        if (g->in.n == 0 || g->in.n == in->n_layer || g->within != within || g->printed ||
            !has_lines(in, g))
            continue;
        print_condition(in, g, indent);
        print_decls(in, g, indent + 2);
        if (g->is_around)
            init_print_kinds(in, i, indent + 2);
        const layers rest = {.n = in->all.n - g->in.n, .mix = in->all.mix ^ g->in.mix};
        size_t k =
            ggl_index_find(&in->by_layers, in->group, (ggl_str){(const char *)&rest, LAYERS_KEY});
        if (within != NONE || k == SIZE_MAX || in->group[k].within != NONE ||
            !has_lines(in, &in->group[k]))
            continue;
        printf("%*selse:  # %" PRId64 " of %d layers\n", indent, "", rest.n, in->n_layer);
        print_decls(in, &in->group[k], indent + 2);
        if (in->group[k].is_around)
            init_print_kinds(in, k, indent + 2);
        in->group[k].printed = true;
    }
}

static void print_name(const arch_names *m, const arch_name *a, int indent, const char *index) {
    char missing[ARCH_EXPR];
    arch_names_expand(m, a->missing ? a->missing : "", missing, sizeof missing);
    char line[512], value[256];
    if (a->value)
        snprintf(line, sizeof line, "%*s%-8s = .%s%s%s%s", indent, "", a->name, a->key, index,
                 missing[0] ? " ?? " : "", missing);
    else
        snprintf(line, sizeof line, "%*s%-8s = %s", indent, "", a->name, missing);
    if (a->value)
        ggl_fprint(stdout, "%-60s # %s\n", line, value_text(a->value, value, sizeof value));
    else
        ggl_fprint(stdout, "%s\n", line);
}

void init_print_names(const init *in, bool in_layers) {
    for (int i = 0; i < in->names->n; i++) {
        const arch_name *a = &in->names->at[i];
        if (a->used && a->varies == in_layers)
            print_name(in->names, a, in_layers ? in->indent + 2 : 0,
                       in_layers && a->value && a->value->is_array ? "[l]" : "");
    }
}

/* True if rope_scaled reads the key. */
static bool is_of_rope(const char *key) {
    return strncmp(key, "rope.scaling.", 13) == 0 || strcmp(key, "rope.scale_linear") == 0 ||
           strcmp(key, "rope.freq_base") == 0;
}

const char *init_rotated(init *in) {
    double x;
    const arch_name *n_rot = arch_names_find(in->names, "n_rot");
    const char *name = n_rot && n_rot->value ? "n_rot" : "d";
    for (int l = in->n_layer > 0 ? 0 : -1; l < in->n_layer; l++)
        if (!arch_names_value(in->names, name, l, &x) || x < 2 || fmod(x, 2) != 0)
            return NULL;
    return name;
}

/* True if the key begins with the architecture's name. */
static bool is_own(const init *in, ggl_str key) {
    const size_t n = strlen(in->arch);
    return key.n > n && memcmp(key.s, in->arch, n) == 0 && key.s[n] == '.';
}

bool init_has_own_keys(const init *in) {
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++)
        if (is_own(in, ggl_gguf_value_at(in->f, i)->key))
            return true;
    return false;
}

/* True if nothing that init writes reads the key. own: it begins with the architecture's name, and `rest` is what follows that. */
static bool is_unplaced(const init *in, const char *full, bool rope, bool own, const char *rest) {
    static const char *const engine[] = {"general.", "tokenizer.", "split.", "quantize."};
    for (size_t k = 0; !own && k < sizeof engine / sizeof *engine; k++)
        if (strncmp(full, engine[k], strlen(engine[k])) == 0)
            return false;
    const arch_name *a = own ? arch_names_of_key(in->names, rest) : NULL;
    return !(own && (strcmp(rest, "context_length") == 0 || strcmp(rest, "vocab_size") == 0)) &&
           !(a && a->used) && !(own && rope && is_of_rope(rest));
}

/* Writes the architecture's own keys that nothing reads as comments, or the others, below the line `about`. */
static void print_unplaced(const init *in, bool rope, bool own_ones, const char *about) {
    const size_t n_arch = strlen(in->arch);
    size_t n = 0;
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(in->f, i);
        char full[192], value[256], key[256];
        snprintf(full, sizeof full, "%.*s", (int)(v->key.n < 180 ? v->key.n : 180), v->key.s);
        const bool own = is_own(in, v->key);
        const char *rest = own ? full + n_arch + 1 : full;
        if (own != own_ones || !is_unplaced(in, full, rope, own, rest))
            continue;
        if (n++ == 0)
            printf("\n%s", about);
        const arch_name *a = own ? arch_names_of_key(in->names, rest) : NULL;
        snprintf(key, sizeof key, own ? "%s%s.%s" : "%s%skey(\"%s\")", a ? a->name : "",
                 a ? " = " : "", rest);
        ggl_fprint(stdout, "#   %-56s # %s\n", key, value_text(v, value, sizeof value));
    }
}

void init_print_rest(const init *in, bool rope) {
    print_unplaced(in, rope, true,
                   "# Keys that nothing above reads. Read those that change the computation, "
                   "or require their values; an error names the\n# remaining ones that may "
                   "matter (docs/architectures.md#keys).\n");
    print_unplaced(in, rope, false,
                   "# Keys that do not begin with the architecture's name. Read those that "
                   "change the computation: no error names\n# the remaining ones.\n");
}

void init_print_rope(const init *in, const char *n_rot) {
    bool two = ggl_gguf_find_tensor(in->f, "rope_factors_long.weight") &&
               ggl_gguf_find_tensor(in->f, "rope_factors_short.weight");
    bool one = ggl_gguf_find_tensor(in->f, "rope_freqs.weight") != NULL;
    char line[128];
    if (two)
        printf(
            "n_orig    = .rope.scaling.original_context_length ?? .context_length\n"
            "factors   = (rope_factors_long if n_ctx > n_orig else rope_factors_short) ?? none\n");
    snprintf(line, sizeof line, "freq, mag = rope_scaled(%s, .rope.freq_base ?? 10000%s)", n_rot,
             two   ? ", factors"
             : one ? ", rope_freqs"
                   : "");
    printf("%-60s # if it rotates: rope_half or rope_pair(q, freq, mag)\n", line);
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(in->f, i);
        char full[192], value[256];
        size_t n = strlen(in->arch);
        snprintf(full, sizeof full, "%.*s", (int)(v->key.n < 180 ? v->key.n : 180), v->key.s);
        if (strncmp(full, in->arch, n) == 0 && full[n] == '.' && is_of_rope(full + n + 1))
            ggl_fprint(stdout, "#   .%-55s # %s\n", full + n + 1,
                       value_text(v, value, sizeof value));
    }
}

bool init_has_rope(const init *in) {
    char prefix[MOST_NAME + 16];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s.rope.", in->arch);
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(in->f, i);
        if (v->key.n > n && memcmp(v->key.s, prefix, n) == 0)
            return true;
    }
    return false;
}

const char *init_norm_of(const init *in) {
    const arch_name *eps = NULL;
    for (int i = 0; i < in->names->n && !eps; i++)
        eps = strcmp(in->names->at[i].name, "eps") == 0 ? &in->names->at[i] : NULL;
    return eps && strstr(eps->key, "attention.layer_norm_epsilon") ? "layer_norm" : "rms_norm";
}

void init_find_ends(init *in) {
    const ggl_gguf_tensor *table = init_find_own(in, "token_embd.weight"),
                          *norm = init_find_own(in, "output_norm.weight");
    const bool apart = table != NULL;
    table = apart ? table : init_find_own(in, "output.weight");
    in->whole = table != NULL;
    in->embedding = apart || !in->whole ? "token_embd" : "output";
    if (!in->whole && in != in->part && in->part->whole &&
        !init_reads_rows(in)) { /* all parts have the same one */
        in->whole = true;
        in->embedding = in->part->embedding;
        table = init_find_own(in->part, in->part->embedding[0] == 't' ? "token_embd.weight"
                                                                      : "output.weight");
    }
    in->normed = norm && (table ? norm->ne[0] == table->ne[0] : in != in->part) &&
                 arch_names_find(in->names, "eps");
    arch_names_use(in->names, "n_layer");
    if (in->normed)
        arch_names_use(in->names, "eps");
}

void init_print_logits(const init *in, const char *of, bool normed) {
    const bool part = init_n_scores(in) > 0;
    const char *output = init_called(in, "output");
    printf("%slogits = ", in->whole ? "" : "# ");
    if (part)
        printf("concat(repeat(-inf, n_vocab - size(%s, 1)), ", output);
    printf("linear(");
    if (normed)
        init_print_normed(in, of);
    else
        printf("%s", of);
    printf(", %s)%s%s\n", output,
           part ? ") # the output has scores for some tokens: the last ones?" : "",
           !normed && !arch_names_find(in->names, "eps") && init_find_own(in, "output_norm.weight")
               ? " # of rms_norm(x, output_norm, EPS)? no key says EPS"
               : "");
}

void init_print_normed(const init *in, const char *of) {
    printf("%s(%s, %s, eps)", init_norm_of(in), of, init_called(in, "output_norm"));
}

void init_print_tied(const init *in) {
    static const ggl_str name = {"token_embd.weight", 17};
    char text[1024];
    const size_t n = ggl_index_find(&in->by_name, in->name, name);
    if (n == SIZE_MAX || !lacks_output(in))
        return;
    snprintf(text, sizeof text, "output %s ?? %s", in->decl[in->name[n].first].shape,
             in->name[n].as);
    ggl_fprint(stdout, "%-60s # not in this model\n", text);
}
