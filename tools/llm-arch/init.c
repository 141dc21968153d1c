/* llm-arch init: writes a descriptor's declarations from a model's keys and tensors, as stages where it has parts. The author adds what
 * happens to a token. */
#include <inttypes.h>
#include <string.h>

#include "common/load.h"
#include "ggl/internal/show.h"
#include "init.h"
#include "tool.h"

#define TOOL "llm-arch init"

/* True if the file says that its tokens see later ones, too. */
static bool sees_all(const init *in) {
    char key[128];
    bool causal = true;
    snprintf(key, sizeof key, "%s.attention.causal", in->arch);
    return ggl_gguf_get_bool(in->f, key, &causal, NULL) == 1 && !causal;
}

/* Returns the part that has one token after the other; NULL: all are stages. */
static const init *causal_part(const init *part) {
    for (int k = 1; k < part->n_parts; k++)
        if (strcmp(part[k].prefix, "dec.") == 0)
            return &part[k];
    if (part->n_parts > 1)
        return part->n_layer > 0 ? part : NULL;
    return sees_all(part) || (init_reads_rows(part) && !part->whole) ? NULL : part;
}

/* True if the part becomes a stage. What is outside of stages has layers only if it has one token after the other, or is the only part. */
static bool is_stage(const init *in, const init *causal) {
    return in != causal && (in != in->part || in->n_parts == 1 || in->n_layer > 0);
}

/* Finds out which parts are stages over rows: those of which no embedding makes tokens, and all of several, as a descriptor has at most
 * one stage of a text, and then no other. */
static void find_stages(init *in, const init *causal) {
    int n = 0;
    for (int k = 0; k < in->n_parts; k++) {
        n += is_stage(&in[k], causal);
        in[k].has_stages = causal != in;
        init_keep_words(&in[k]);
    }
    for (int k = 0; k < in->n_parts; k++) {
        const bool stage = is_stage(&in[k], causal);
        in[k].over_rows = stage && (n > 1 || !in[k].whole);
        in[k].indent = stage ? 2 : 0;
        if (stage)
            init_name_stage(&in[k]);
    }
}

/* Writes the line `layer`, with the name of the number of layers; as a comment if nothing of the layers is known. */
static void print_layer_line(const init *in) {
    const char *off = init_has_layer_lines(in) ? "" : "# ";
    const arch_name *n = arch_names_find(in->names, "n_layer");
    double x = 0;
    if (in->n_parts > 1 && n && !(arch_names_value(in->names, n->name, -1, &x) && x == in->n_layer))
        n = NULL;
    const char *name = n ? n->name : NULL;
    for (int i = 0; in->n_parts > 1 && !name && i < in->names->n; i++) {
        const arch_name *a = &in->names->at[i];
        if (a->used && a->value && !a->varies && arch_names_value(in->names, a->name, -1, &x) &&
            x == in->n_layer && strstr(a->name, "block"))
            name = a->name;
    }
    if (name)
        printf("%*s%slayer l < %s:\n", in->indent, "", off, name);
    else
        printf("%*s%slayer l < %d:\n", in->indent, "", off, in->n_layer);
}

/* Writes the graph of a part as far as it is known: what enters the layers, and these. */
static void print_part(init *in, const char *n_rot) {
    const arch_name *of = n_rot ? arch_names_find(in->names, n_rot) : NULL;
    const int by = in->indent;
    printf("%*s", by, "");
    if (in->over_rows)
        init_print_x(in);
    else
        printf("%sx = %s[token]", in->whole ? "" : "# ", init_called(in, in->embedding));
    printf("\n\n");
    print_layer_line(in);
    init_print_names(in, true);
    init_print_groups(in, false);
    init_print_kinds(in, NONE, by + 2);
    if (of && of->varies)
        printf("%*s  freq, mag = rope_scaled(%s, .rope.freq_base ?? 10000)\n", by, "", n_rot);
    printf("\n%*s  # h = %s(x, attn_norm, eps)\n%*s  # x = x + ..\n\n", by, "", init_norm_of(in),
           by, "");
}

/* Writes a stage, and what it returns. */
static void print_stage(init *in, const char *n_rot) {
    if (in->over_rows)
        init_print_input(in);
    const char *quote = in->prefix[0] ? "\"" : "";
    printf("stage %s%s%s%s%s%s%s:\n", in->stage, in->over_rows ? " over " : "", in->rows,
           in->prefix[0] ? " " : "", quote, in->prefix, quote);
    if (in != in->part)
        init_print_groups(in, true);
    print_part(in, n_rot);
    printf("%*sreturn ", in->indent, "");
    if (in->normed)
        init_print_normed(in, "x");
    else
        printf("x");
    printf("\n\n");
}

/* Writes what a model of stages alone gives, or what is read of one beside its tokens. Returns whether there is anything. */
static bool print_results(const init *part, const init *causal) {
    bool any = false;
    for (int k = 0; k < part->n_parts; k++) {
        const char *name = part[k].stage;
        if (!is_stage(&part[k], causal))
            continue;
        if (part[k].over_rows && !causal)
            printf("rows = %-53s # a projector that follows it: a stage over %s\n", name, name);
        else if (!causal && init_find_own(part, "output.weight"))
            init_print_logits(part, name, false);
        else if (!part[k].over_rows)
            printf("embedding = %-48s # of each token; a reranker or classifier: score = "
                   "linear(%s[0], ..)\n",
                   name, name);
        any |= !causal || !part[k].over_rows;
    }
    return any;
}

/* Writes the part with one token after the other. */
static void print_causal(init *in, const char *n_rot) {
    if (in->prefix[0]) {
        printf("prefix \"%s\"\n", in->prefix);
        init_print_groups(in, true);
    }
    for (int k = 0; k < in->n_parts; k++)
        if (is_stage(&in->part[k], in))
            printf("# its attention to %s: attend(.., cache(.., ..)), whose keys and values are "
                   "made of the rows %s\n",
                   in->part[k].prefix[0] ? in->part[k].prefix : "it", in->part[k].stage);
    print_part(in, n_rot);
    init_print_logits(init_find_own(in, "output.weight") ? in : in->part, "x", in->normed);
}

/* True if a descriptor can be for an architecture of that name. What follows a ':' would be a kind of projector. */
static bool can_be_named(const char *name) {
    const size_t n = strlen(name);
    return n > 0 && n <= MOST_NAME && init_fits_string(name) && !strchr(name, ':');
}

/* Writes the head: what this is, its name, and the number of the language. */
static void print_head(const init *in, const char *name) {
    char key[128], word[MOST_NAME + 1], plain[MOST_NAME + 1];
    ggl_str kind = {"", 0};
    const bool fits = can_be_named(name);
    snprintf(plain, sizeof plain, "%.*s", MOST_NAME, name);
    const bool is_word = init_word_of(plain, "", word, sizeof word);
    snprintf(key, sizeof key, "%s.projector_type", in->arch);
    if (fits && strcmp(name, in->arch) == 0) /* which a descriptor has for each kind of projector */
        (void)ggl_gguf_get_string(in->f, key, &kind, NULL);
    if (strlen(name) + 1 + kind.n > MOST_NAME || !init_is_plain(kind.s, kind.n))
        kind.n = 0;
    ggl_fprint(stdout,
               "# %s: started by llm-arch init. The contents of a layer are left to write. A '?' "
               "in a comment marks a shape that this model leaves open: another of\n# its numbers "
               "is equal, or none is. `if l ..` lists this model's layers: replace it by the rule "
               "that decides.\n",
               name);
    if (!fits)
        printf("# A descriptor cannot name this architecture: a name has 1 to %d characters, no "
               "quotes,\n# colons or control characters.\n",
               MOST_NAME);
    if (!fits || (is_word && kind.n == 0))
        printf("arch %s\n", word);
    else
        ggl_fprint(stdout, "arch \"%s%s%.*s\"\n", name, kind.n ? ":" : "", (int)kind.n, kind.s);
    printf("language 2\n\n");
}

static void start(init *in, const char *name) {
    print_head(in, name);
    const char *n_rot = init_has_rope(in) ? init_rotated(in) : NULL;
    arch_names_use(in->names, n_rot);
    for (int k = 0; k < in->n_parts; k++)
        init_find_ends(&in[k]);
    const init *causal = causal_part(in);
    find_stages(in, causal);
    for (int k = 0; k < in->n_parts; k++)
        init_name_weights(&in[k]);
    init_print_names(in, false);
    for (int k = 0; k < in->n_parts; k++)
        if (in[k].order[0])
            printf("require %s\n", in[k].order);
    if (init_n_scores(in) > 0)
        printf("require n_vocab > %" PRId64 "\n", init_n_scores(in));
    init_print_rest(in, n_rot != NULL);
    putchar('\n');
    const int indent = in->indent;
    in->indent = 0; /* what is outside of layers is outside of stages, too */
    init_print_groups(in, true);
    in->indent = indent;
    if (causal)
        init_print_tied(in);
    const arch_name *of = n_rot ? arch_names_find(in->names, n_rot) : NULL;
    if (of && !of->varies)
        init_print_rope(in, n_rot);
    else if (!init_has_rope(in) && arch_names_find(in->names, "n_head"))
        printf("# freq, mag = rope_scaled(d, .rope.freq_base ?? 10000), should it rotate without a "
               "key\n");
    putchar('\n');
    for (int k = 0; k < in->n_parts; k++)
        if (is_stage(&in[k], causal))
            print_stage(&in[k], n_rot);
    if (print_results(in, causal) && causal)
        putchar('\n');
    if (causal)
        print_causal(&in[causal - in], n_rot);
}

int arch_init(int argc, char **argv) {
    static init in[MOST_PARTS];
    static arch_names names;
    char arch[MOST_NAME + 2] = ""; /* of one that is too long, enough to see that */
    memset(in, 0, sizeof in);
    arg_list files = {0};
    static const args_example examples[] = {
        {"llm-arch init - model.gguf", "starts a descriptor for a model of a new family"}, {0}};
    const args_spec spec = {TOOL,
                            "NAME MODEL",
                            "Prints the beginning of a descriptor: NAME is its architecture's name "
                            "(\"-\": the model's own); the\nmodel's keys become names, its tensors "
                            "declarations. The graph is left to write.",
                            NULL,
                            &files,
                            NULL,
                            .examples = examples};
    int code = arch_args(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    ggl_str family = {"", 0};
    ggl_gguf_params p = {.size = sizeof p, .meta_only = true};
    if (tool_open_gguf(&f, files.s[1], &p, &err) != GGL_OK ||
        ggl_gguf_get_string(f, "general.architecture", &family, &err) < 0) {
        code = tool_error(TOOL, 1, "%s", err.msg);
    } else {
        snprintf(arch, sizeof arch, "%.*s", (int)ggl_utf8_cut(family.s, family.n, sizeof arch - 1),
                 family.s);
        arch_names_init(&names, f, arch);
        in[0] = (init){.f = f, .arch = arch, .names = &names, .part = in, .n_parts = 1};
        init_find_parts(in);
        for (int k = 0; k < in->n_parts && code < 0; k++)
            code = init_collect(&in[k]) ? -1 : tool_error(TOOL, 1, "out of memory");
        for (int k = 0; k < in->n_parts && code < 0; k++)
            init_name_shapes(&in[k]);
        if (code < 0) {
            const bool is_other = strcmp(files.s[0], "-") != 0 && strcmp(files.s[0], arch) != 0;
            start(in, is_other ? files.s[0] : arch);
            if (is_other && *arch)
                tool_note(TOOL,
                          "%s has the architecture '%s': llm-arch check and the tools need a "
                          "descriptor of that name (or init - %s)",
                          files.s[1], arch, files.s[1]);
            if (*arch && !init_has_own_keys(in))
                tool_note(TOOL,
                          "%s has no key that begins with '%s.', the name of its architecture, so "
                          "the sizes are numbers, and fit this model alone",
                          files.s[1], arch);
            code = 0;
        }
    }
    for (int k = 0; k < MOST_PARTS; k++)
        init_finish(&in[k]);
    ggl_gguf_close(f);
    args_list_fini(&files);
    return code;
}
