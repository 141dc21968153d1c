/* llm-arch init: a descriptor's declarations, from a model's keys and tensors. What happens to a token is left to write. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch_tensors.h"
#include "arch_tool.h"
#include "ggl/show.h"
#include "ggl/index.h"
#include "ggl/steps.h"

#define TOOL "llm-arch init"
#define MAX_NAMES 256

/* The usual name of each key's value, and whether it may be a dimension. */
static const struct {
    const char *key, *name;
    bool dim;
} usual[] = {
    {"block_count", "n_layer", false},
    {"embedding_length", "n_embd", true},
    {"feed_forward_length", "n_ff", true},
    {"attention.head_count", "n_head", false},
    {"attention.head_count_kv", "n_kv", false},
    {"attention.key_length", "d", true},
    {"attention.value_length", "dv", true},
    {"attention.layer_norm_rms_epsilon", "eps", false},
    {"attention.layer_norm_epsilon", "eps", false},
    {"rope.freq_base", "base", false},
    {"rope.dimension_count", "n_rot", false},
    {"expert_count", "n_expert", true},
    {"expert_used_count", "n_used", false},
    {"expert_feed_forward_length", "n_ff_exp", true},
    {"attention.sliding_window", "window", false},
};

/* Where numbers are equal: which one a dimension of a tensor usually is. The last that fits counts. */
static const struct {
    const char *begin;
    int dim;
    const char *name;
} likely[] = {
    {"token_embd", 1, "n_vocab"}, {"output.", 1, "n_vocab"}, {"attn_q.", 1, "n_head*d"},      {"attn_k.", 1, "n_kv*d"},
    {"attn_v.", 1, "n_kv*d"},     {"attn_output", 0, "n_head*d"}, {"ffn_gate", 1, "n_ff"},    {"ffn_up", 1, "n_ff"},
    {"ffn_down", 0, "n_ff"},      {"ffn_gate_inp", 1, "n_expert"}, {"attn_qkv", 1, "(n_head + 2*n_kv)*d"},
};

typedef struct known { /* a number that a dimension may be */
    char text[96];
    int64_t value;
} known;

typedef struct named { /* all tensors of a name, whose shape or type may differ between layers */
    ggl_str name;
    tensor_row row; /* the first of its rows; which layers: of all of them */
} named;

typedef struct init {
    const ggl_gguf *f;
    char arch[65];
    known dim[MAX_NAMES];
    int n_dims;
    char name[MAX_NAMES][64]; /* of variables, to have each once */
    int n_names;
    named *tensor; /* in the order of the file */
    size_t n_tensors;
    ggl_index by_name;
} init;

static void add_dim(init *in, const char *text, int64_t value) {
    for (int i = 0; i < in->n_dims; i++)
        if (strcmp(in->dim[i].text, text) == 0)
            return;
    if (in->n_dims == MAX_NAMES || value < 2)
        return;
    known *k = &in->dim[in->n_dims++];
    strncpy(k->text, text, sizeof k->text - 1);
    k->value = value;
}

static int64_t number_of(const init *in, const char *key, int64_t fallback) {
    char full[160];
    int64_t n = fallback;
    snprintf(full, sizeof full, "%s.%s", in->arch, key);
    return ggl_gguf_get_integer(in->f, full, &n, NULL) == 1 ? n : fallback;
}

/* --- keys ------------------------------------------------------------------------------------------------------------- */

static bool is_taken(const init *in, const char *name) {
    for (int i = 0; i < in->n_names; i++)
        if (strcmp(in->name[i], name) == 0)
            return true;
    return false;
}

/* The field's name for a key; else its last word, made a name. */
static const char *name_key(init *in, const char *key, bool *dim) {
    *dim = false;
    if (in->n_names == MAX_NAMES)
        return "x";
    char *name = in->name[in->n_names];
    snprintf(name, sizeof in->name[0], "%.60s", strrchr(key, '.') ? strrchr(key, '.') + 1 : key);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(usual[i].key, key) == 0) {
            snprintf(name, sizeof in->name[0], "%s", usual[i].name);
            *dim = usual[i].dim;
        }
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) ? *c : '_';
    for (int k = 2; is_taken(in, name) && k < 10; k++)
        snprintf(name + strlen(name), sizeof in->name[0] - strlen(name), "_%d", k);
    in->n_names++;
    return name;
}

static void print_keys(init *in) {
    size_t n_arch = strlen(in->arch);
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(in->f, i);
        char key[128], value[256];
        if (v->key.n <= n_arch + 1 || memcmp(v->key.s, in->arch, n_arch) != 0 || v->key.s[n_arch] != '.' ||
            v->key.n - n_arch > sizeof key)
            continue;
        snprintf(key, sizeof key, "%.*s", (int)(v->key.n - n_arch - 1), v->key.s + n_arch + 1);
        if (strcmp(key, "context_length") == 0 || strcmp(key, "vocab_size") == 0) /* the engine's */
            continue;
        bool dim;
        const char *name = name_key(in, key, &dim);
        int64_t n = 0;
        if (dim && ggl_gguf_integer(v, 0, &n) && !v->is_array)
            add_dim(in, name, n);
        ggl_fprint(stdout, "%-9s = .%-36s # %s%s\n", name, key, value_text(v, value, sizeof value),
               v->is_array ? ": one for each layer, say: .key[l]" : "");
    }
}

/* Products that matrices have as dimensions. */
static void add_products(init *in) {
    int64_t n_embd = number_of(in, "embedding_length", 0), n_head = number_of(in, "attention.head_count", 0);
    int64_t n_kv = number_of(in, "attention.head_count_kv", n_head), d = number_of(in, "attention.key_length", 0);
    if (n_head > 0 && d == 0 && n_embd % n_head == 0) {
        d = n_embd / n_head;
        printf("%-9s = n_embd / n_head\n", "d");
    }
    add_dim(in, "n_head*d", n_head * d);
    add_dim(in, n_kv == n_head && !is_taken(in, "n_kv") ? "n_head*d" : "n_kv*d", n_kv * d);
    add_dim(in, "d", d);
    add_dim(in, "(n_head + 2*n_kv)*d", (n_head + 2 * n_kv) * d);
    add_dim(in, "2*n_ff", 2 * number_of(in, "feed_forward_length", 0));
    add_dim(in, "3*n_embd", 3 * n_embd);
    const ggl_gguf_value *tokens = ggl_gguf_find(in->f, "tokenizer.ggml.tokens");
    int64_t n_vocab = number_of(in, "vocab_size", tokens ? (int64_t)tokens->n : 0);
    const ggl_gguf_tensor *embd = ggl_gguf_find_tensor(in->f, "token_embd.weight");
    add_dim(in, "n_vocab", n_vocab > 0 ? n_vocab : embd ? embd->ne[1] : 0);
}

/* --- tensors ---------------------------------------------------------------------------------------------------------- */

/* "attn_q" of "blk.{l}.attn_q.weight"; false if the name is another kind, and `from` must say it. */
static bool stem_of(const char *full, char *stem, size_t size) {
    const char *at = strncmp(full, "blk.{l}.", 8) == 0 ? full + 8 : full;
    size_t n = strlen(at);
    bool plain = n > 7 && strcmp(at + n - 7, ".weight") == 0;
    snprintf(stem, size, "%.*s", (int)(plain ? n - 7 : n), at);
    plain = plain && !strchr(stem, '.');
    for (char *c = stem; *c; c++)
        *c = isalnum((unsigned char)*c) ? *c : '_';
    return plain && !isdigit((unsigned char)stem[0]);
}

/* "NAME.weight" as "NAME.bias" or the other way: is there such a tensor? */
static bool has_other(const init *in, const tensor_row *r, const char *end, const char *other) {
    size_t n = strlen(r->key.name), n_end = strlen(end);
    char name[160];
    if (n <= n_end || strcmp(r->key.name + n - n_end, end) != 0)
        return false;
    snprintf(name, sizeof name, "%.*s%s", (int)(n - n_end), r->key.name, other);
    return ggl_index_find(&in->by_name, in->tensor, (ggl_str){name, strlen(name)}) != SIZE_MAX;
}

static const char *likely_name(const init *in, const tensor_row *r, int d) {
    const char *at = strncmp(r->key.name, "blk.{l}.", 8) == 0 ? r->key.name + 8 : r->key.name, *name = NULL;
    for (size_t i = 0; i < sizeof likely / sizeof *likely; i++)
        for (int k = 0; k < in->n_dims; k++)
            if (likely[i].dim == d && strncmp(at, likely[i].begin, strlen(likely[i].begin)) == 0 &&
                strcmp(in->dim[k].text, likely[i].name) == 0 && in->dim[k].value == r->one->ne[d])
                name = in->dim[k].text;
    return name;
}

/* Dimensions by name where a number of the model is it. *guessed: another number of the model would do as well. */
static void print_shape(const init *in, const tensor_row *r, char *buf, size_t size, bool *guessed) {
    size_t n = (size_t)snprintf(buf, size, "[");
    *guessed = false;
    for (int d = 0; d < r->one->n_dims && n < size; d++) {
        const char *name = likely_name(in, r, d);
        char number[24];
        int n_names = 0;
        snprintf(number, sizeof number, "%" PRId64, r->one->ne[d]);
        for (int i = 0; i < in->n_dims; i++)
            if (in->dim[i].value == r->one->ne[d]) {
                name = name ? name : in->dim[i].text;
                n_names++;
            }
        *guessed |= n_names > 1;
        n += (size_t)snprintf(buf + n, size - n, "%s%s", d ? ", " : "", name ? name : number);
    }
    if (n < size)
        snprintf(buf + n, size - n, "]");
}

static void print_tensor(const init *in, const tensor_row *r, int n_layer) {
    char stem[128], shape[160], numbers[128], decl[512];
    bool plain = stem_of(r->key.name, stem, sizeof stem), guessed;
    print_shape(in, r, shape, sizeof shape, &guessed);
    size_t n = (size_t)snprintf(decl, sizeof decl, "%s%s %s", r->in_layers ? "  " : "", stem, shape);
    if (plain && has_other(in, r, ".weight", ".bias"))
        n += (size_t)snprintf(decl + n, sizeof decl - n, " bias");
    else if (!plain)
        n += (size_t)snprintf(decl + n, sizeof decl - n, " from \"%s\"", r->key.name);
    ggl_fprint(stdout, "%-48s # %s %s%s", decl, tensor_type(r->one), tensor_shape(r->one, numbers, sizeof numbers), guessed ? " ?" : "");
    if (r->in_layers && r->n == 1)
        printf("; only in layer %d", r->first);
    else if (r->in_layers && r->n != n_layer)
        printf("; only in %d layers of %d .. %d", r->n, r->first, r->last);
    putchar('\n');
}

/* False: out of memory. */
static bool collect_names(init *in, const tensor_row *rows, size_t n) {
    in->tensor = calloc(n + 1, sizeof *in->tensor);
    if (!in->tensor || ggl_index_init(&in->by_name, n, sizeof *in->tensor, GGL_INDEX_STRINGS, NULL) != GGL_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        const tensor_row *r = &rows[i];
        GGL_STEPS(1);
        in->tensor[in->n_tensors] = (named){{r->key.name, strlen(r->key.name)}, *r};
        size_t first = ggl_index_put(&in->by_name, in->tensor, in->n_tensors);
        tensor_row *whole = &in->tensor[first].row;
        if (first == in->n_tensors) {
            in->n_tensors++;
        } else {
            whole->n += r->n;
            whole->first = r->first < whole->first ? r->first : whole->first;
            whole->last = r->last > whole->last ? r->last : whole->last;
        }
    }
    return true;
}

static void print_tensors(const init *in, bool in_layers) {
    int n_layer = (int)number_of(in, "block_count", 0);
    for (size_t i = 0; i < in->n_tensors; i++) {
        const tensor_row *r = &in->tensor[i].row;
        GGL_STEPS(1);
        if (r->in_layers == in_layers && !has_other(in, r, ".bias", ".weight"))
            print_tensor(in, r, n_layer);
    }
}

static int start(init *in, const char *name) {
    bool word = isalpha((unsigned char)name[0]) || name[0] == '_';
    for (const char *c = name; *c; c++)
        word = word && (isalnum((unsigned char)*c) || *c == '_');
    ggl_fprint(stdout, "# %s: begun by llm-arch init. The graph is left to write. A '?' marks shapes that this model leaves open, as two of its\n"
           "# numbers are equal: say the one that is meant.\narch %s%s%s\nlanguage 1\n\n", name, word ? "" : "\"", name,
           word ? "" : "\"");
    print_keys(in);
    add_products(in);
    putchar('\n');
    print_tensors(in, false);
    printf("\n# x = token_embd[token]\n\nlayer l < n_layer:\n");
    print_tensors(in, true);
    printf("\n  # h = rms_norm(x, attn_norm, eps)\n  # x = x + ..\n\n# logits = linear(.., output)\n");
    return 0;
}

int arch_init(int argc, char **argv) {
    static init in;
    tensor_row *rows = NULL;
    size_t n_rows;
    in = (init){0};
    arg_list files = {0};
    int code = arch_args(TOOL, "NAME MODEL",
                         "Prints the beginning of a descriptor: NAME is its architecture's name (\"-\": as the model says); the\n"
                         "model's keys become names, its tensors declarations. The graph is left to write.",
                         NULL, 2, 2, argc, argv, &files);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    ggl_str family = {"", 0};
    ggl_gguf_params p = {.meta_only = true};
    if (ggl_gguf_open(&f, files.s[1], &p, &err) != GGL_OK || ggl_gguf_get_string(f, "general.architecture", &family, &err) < 0) {
        code = tool_error(TOOL, 1, "%s", err.msg);
    } else {
        in.f = f;
        snprintf(in.arch, sizeof in.arch, "%.*s", (int)(family.n < 64 ? family.n : 64), family.s);
        code = !tensor_rows(f, NULL, &rows, &n_rows) || !collect_names(&in, rows, n_rows)
                   ? tool_error(TOOL, 1, "out of memory")
                   : start(&in, strcmp(files.s[0], "-") == 0 ? in.arch : files.s[0]);
    }
    ggl_index_fini(&in.by_name);
    free(in.tensor);
    free(rows);
    ggl_gguf_close(f);
    args_list_fini(&files);
    return code;
}
