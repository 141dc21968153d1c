/* Hints for messages: words of other languages and engines, and what to write instead. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "language.h"

typedef struct word {
    const char *written;
    const char *meant; /* a function's name, or a hint */
    const char *other; /* a second function, or NULL */
} word;

static const word functions[] = {
    {"rope", "rope_half", "rope_pair"},
    {"rotary", "rope_half", "rope_pair"},
    {"apply_rope", "rope_half", "rope_pair"},
    {"rope_norm", "rope_pair", NULL},
    {"rope_neox", "rope_half", NULL},
    {"swish", "silu", NULL},
    {"gelu_tanh", "gelu", NULL},
    {"gelu_new", "gelu", NULL},
    {"quick_gelu", "gelu_quick", NULL},
    {"norm", "rms_norm", "layer_norm"},
    {"matmul", "linear", NULL},
    {"mul_mat", "linear", NULL},
    {"dense", "linear", NULL},
    {"sdpa", "attention", NULL},
    {"scaled_dot_product_attention", "attention", NULL},
    {"flash_attention", "attention", NULL},
    {"cat", "concat", NULL},
    {"chunk", "split", NULL},
    {"view", "reshape", NULL},
    {"permute", "transpose", NULL},
    {"tile", "repeat", NULL},
    {"expand", "repeat", NULL},
    {"len", "size", NULL},
    {"arange", "iota", NULL},
    {"range", "iota", NULL},
    {"conv1d", "conv", NULL},
    {"top_k", "topk", NULL},
    {"swiglu", "write the gate and up as two lines: silu(gate) * up", NULL},
    {"geglu", "write the gate and up as two lines: gelu(gate) * up", NULL},
    {"pow", "write a power as a ** b", NULL},
    {"square", "write a square as x * x", NULL},
    {"rsqrt", "write 1 / sqrt(x)", NULL},
    {"embedding", "pick a row of a weight: token_embd[token]", NULL},
    {"get_rows", "pick a row of a weight: token_embd[token]", NULL},
    {"gather", "pick elements along the last dimension: t[i]", NULL},
};

static const word names[] = {
    {"True", "true", NULL}, {"False", "false", NULL}, {"None", "none", NULL},
    {"null", "none", NULL}, {"nil", "none", NULL},    {"NULL", "none", NULL},
};

static const word statements[] = {
    {"elseif", "write 'elif' instead of 'elseif'", NULL},
    {"elsif", "write 'elif' instead of 'elsif'", NULL},
    {"for", "write the loop over layers as 'layer l < n_layer:', any other as 'for i < n:'", NULL},
    {"while", "write the loop over layers as 'layer l < n_layer:', any other as 'for i < n:'",
     NULL},
    {"fn", "write a function as 'def NAME(x): ..'", NULL},
    {"func", "write a function as 'def NAME(x): ..'", NULL},
    {"function", "write a function as 'def NAME(x): ..'", NULL},
    {"let", "write NAME = .. without 'let'", NULL},
    {"var", "write NAME = .. without 'var'", NULL},
    {"assert", "write 'require c, \"message\"' instead of 'assert'", NULL},
};

/* Longer ones come first. */
static const word symbols[] = {
    {"&&", "write 'and' instead of '&&'", NULL},
    {"||", "write 'or' instead of '||'", NULL},
    {"//",
     "'//' has no meaning here: a comment begins with '#', and a rounded quotient is floor(a / b)",
     NULL},
    {"!", "write 'not' instead of '!'", NULL},
    {"~", "write 'not' instead of '~'", NULL},
    {"^", "write '**' instead of '^'", NULL},
    {"'", "a string must be in double quotes: \"text\"", NULL},
    {";", "';' has no meaning here: a statement ends with its line", NULL},
    {"{", "'{' has no meaning here: a block is indented after ':'", NULL},
    {"}", "'}' has no meaning here: a block is indented after ':'", NULL},
    {"@", "'@' has no meaning here: a product with a matrix is linear(x, w)", NULL},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const word *find(const word *list, size_t n, const char *written) {
    for (size_t k = 0; k < n; k++)
        if (strcmp(list[k].written, written) == 0)
            return &list[k];
    return NULL;
}

const char *llm_arch_signature(const llm_arch *arch, const arch_text *text, const char *name,
                               char *buf, size_t size) {
    const arch_fn *fn = llm_arch_find_fn(arch, text, name);
    const int builtin = llm_arch_find_builtin(name);
    const ggl_op op = ggl_op_find(name);
    if (fn)
        return llm_arch_fn_signature(fn, buf, size);
    if (builtin == FN_BUILTIN_COUNT && op == GGL_OP_COUNT)
        return NULL;
    const arch_sig s =
        builtin < FN_BUILTIN_COUNT ? llm_arch_sig_of_builtin(builtin) : llm_arch_sig_of_op(op);
    return llm_arch_sig_text(&s, buf, size);
}

const char *llm_arch_meant_function(const llm_arch *arch, const arch_text *text,
                                    const char *written, char *buf, size_t size) {
    char first[200], second[200] = "";
    const word *w = find(functions, COUNT(functions), written);
    if (!w)
        return NULL;
    if (!llm_arch_signature(arch, text, w->meant, first, sizeof first))
        return w->meant;
    if (w->other)
        llm_arch_signature(arch, text, w->other, second, sizeof second);
    snprintf(buf, size, "did you mean %s%s%s?", first, second[0] ? " or " : "", second);
    return buf;
}

const char *llm_arch_meant_name(const char *written) {
    const word *w = find(names, COUNT(names), written);
    return w ? w->meant : NULL;
}

const char *llm_arch_meant_statement(const char *written) {
    const word *w = find(statements, COUNT(statements), written);
    return w ? w->meant : NULL;
}

const char *llm_arch_meant_symbol(const char *s, size_t n, size_t *length) {
    for (size_t k = 0; k < COUNT(symbols); k++) {
        *length = strlen(symbols[k].written);
        if (*length <= n && memcmp(s, symbols[k].written, *length) == 0)
            return symbols[k].meant;
    }
    return NULL;
}
