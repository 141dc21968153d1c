/* The descriptors that come with the library: each builds with every variant of made-up values, and
 * none of their lines, and hardly any of their dimensions, can be changed without an error (of nine
 * at a time). */
#include "arch_test.h"
#include "ggl/alloc.h"
#include "sample.h"
#include "test.h"

static bool builtin(int k, char **text, size_t *n, const char **name) {
    const char *s;
    if (!llm_arch_builtin(k, name, &s, n))
        return false;
    *text = calloc(*n + 1, 1);
    memcpy(*text, s, *n);
    return true;
}

TEST(checks) {
    char *text;
    const char *name;
    size_t n;
    for (int k = 0; builtin(k, &text, &n, &name); k++, free(text)) {
        ggl_error err = {0};
        llm_arch *a;
        char *notes = NULL;
        if (TEST_SANITIZED && !sampled(k, 20))
            continue;
        if (!CHECK_OK(llm_arch_parse(&a, text, n, name, &err), &err))
            continue;
        CHECK_OK(llm_arch_check(a, &notes, &err), &err);
        CHECK_MSG(!notes, "%s", notes); /* every statement is taken by some variant */
        ggl_free(notes);
        printf("%-12s %2d variants\n", name, llm_arch_toy_n_variants(a));
        llm_arch_free(a);
    }
}

TEST(open_finds_every_family) {
    char *text;
    const char *name, *family;
    size_t n;
    for (int k = 0; builtin(k, &text, &n, &name); k++, free(text)) {
        ggl_error err = {0};
        llm_arch *a, *b;
        REQUIRE_OK(llm_arch_parse(&a, text, n, name, &err), &err);
        for (int i = 0; (family = llm_arch_family(a, i)); i++) {
            REQUIRE_OK(llm_arch_open(&b, family, &err), &err);
            CHECK_STR(llm_arch_name(b), name);
            llm_arch_free(b);
        }
        llm_arch_free(a);
    }
}

/* Also the output that is made only if it is asked for. */
static llm_arch_params all_of(const llm_arch *a) {
    return (llm_arch_params){.size = sizeof(llm_arch_params),
                             .alignment = llm_arch_has_output(a, "alignment")};
}

/* A frozen toy is like a file: another descriptor must know all of it. */
static ggl_status build(const char *text, size_t n, const char *name, const llm_arch_toy *toy,
                        const llm_arch_params *params, ggl_error *err) {
    llm_arch *a;
    ggl_status s = llm_arch_parse(&a, text, n, name, err);
    if (s != GGL_OK)
        return s;
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = 64;
    ggl_graph *g = ggl_graph_new(&p);
    s = llm_arch_build(a, llm_arch_toy_source(toy), params, g, NULL, err);
    if (s == GGL_OK)
        s = ggl_graph_finish(g, err);
    ggl_graph_free(g);
    llm_arch_free(a);
    return s;
}

typedef struct files { /* a toy of every variant, frozen, and the lines it takes */
    llm_arch *arch;
    llm_arch_toy **toy;
    uint8_t **ran;
    int n;
} files;

static bool files_new(files *f, const char *text, size_t n, const char *name) {
    ggl_error err = {0};
    *f = (files){0};
    if (!CHECK_OK(llm_arch_parse(&f->arch, text, n, name, &err), &err))
        return false;
    f->n = llm_arch_toy_n_variants(f->arch);
    f->toy = calloc((size_t)f->n, sizeof *f->toy);
    f->ran = calloc((size_t)f->n, sizeof *f->ran);
    for (int v = 0; v < f->n; v++) {
        llm_arch_result r;
        ggl_graph *g = ggl_graph_new(NULL);
        f->toy[v] = llm_arch_toy_new(f->arch, v, &err);
        if (!CHECK_MSG(f->toy[v], "%s", err.msg))
            return false;
        llm_arch_toy_freeze(f->toy[v]);
        ggl_graph_params p = ggl_graph_default();
        p.n_pos = 64;
        ggl_graph_free(g);
        g = ggl_graph_new(&p);
        const llm_arch_params all = all_of(f->arch);
        if (!CHECK_OK(llm_arch_build(f->arch, llm_arch_toy_source(f->toy[v]), &all, g, &r, &err),
                      &err))
            return false;
        f->ran[v] = r.line_ran;
        r.line_ran = NULL;
        llm_arch_result_fini(&r);
        ggl_graph_free(g);
    }
    return true;
}

static void files_free(files *f) {
    for (int v = 0; v < f->n; v++) {
        llm_arch_toy_free(f->toy[v]);
        ggl_free(f->ran[v]);
    }
    free(f->toy);
    free(f->ran);
    llm_arch_free(f->arch);
}

static bool refused(const files *f, const char *text, size_t n, const char *name) {
    const llm_arch_params all = all_of(f->arch);
    for (int v = 0; v < f->n; v++) {
        ggl_error err = {0};
        if (build(text, n, name, f->toy[v], &all, &err) != GGL_OK)
            return true;
    }
    return false;
}

static bool is_code(const char *line, size_t n) {
    size_t i = 0;
    while (i < n && line[i] == ' ')
        i++;
    return i < n && line[i] != '#';
}

/* True for an indented line of a function that only the sections of conversion call, which are not run here. */
static bool is_for_conversion(const char *text, const char *line) {
    const char *def = NULL, *section = strstr(text, "\nconvert ");
    for (const char *at = text; (at = strstr(at, "\ndef ")) && at < line; at++)
        def = at + 5;
    if (!def || !section || section < line || (line > text && line[0] != ' '))
        return false;
    char name[64];
    if (sscanf(def, "%60[a-z_0-9](", name) != 1)
        return false;
    strcat(name, "(");
    const char *first = strstr(text, name);
    return first == def && (first = strstr(def + 1, name)) && first > section;
}

/* Lines in which no made-up model differs: a `require`, an `ignore` of tensors or keys that none has, also
 * in a loop of one line, and one of a key that is refused for values of its own, which a twin of
 * ../numpy/twins has; names of parts, which ../numpy/fused.py and twins run. */
static bool may_go(const char *text, const char *line) {
    static const char *const begin[] = {"require ",
                                        "ignore \"",
                                        "else: ignore \"",
                                        "else: ignore .",
                                        "ignore .rope.dimension_sections ",
                                        "embedding = "}; /* of a model that has another output */
    if (is_for_conversion(text, line))
        return true;
    line += strspn(line, " ");
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(line, begin[i], strlen(begin[i])) == 0)
            return true;
    char name[32], check[64];
    /* NAME = 0, which stays 0 only for files that a later `require` refuses */
    if (sscanf(line, "%31[a-z_] = 0", name) == 1) {
        snprintf(check, sizeof check, "%s > 0", name);
        const char *found = strstr(text, check);
        while (found && found > text && *found != '\n')
            found--;
        if (found && strncmp(found, "\nrequire ", 9) == 0)
            return true;
    }
    /* NAME = .., which only a convert section needs, for names of tensors */
    if (sscanf(line, "%31[a-z_] =", name) == 1) {
        snprintf(check, sizeof check, "{%s}", name);
        if (strstr(text, check))
            return true;
    }
    const char *end = line + strcspn(line, "\n"), *loop = strstr(line, ": ignore \"blk."),
               *demand = strstr(line, ": require "), *parts = strstr(line, " from \""),
               *count = strstr(line, " + (1 if ");
    /* a count, by which a row is chosen, or a name in folders: recorded rows tell (../numpy/late_senses.py) */
    if (strncmp(line, "for ", 4) == 0 && count && count < end)
        return true;
    if ((strncmp(line, "if ", 3) == 0 || strncmp(line, "for ", 4) == 0) && demand && demand < end)
        return true;
    if (parts && parts < end && line[strcspn(line, ",[\n")] == ',') /* NAME, NAME from "" */
        return true;
    return strncmp(line, "layer ", 6) == 0 && loop && loop < end;
}

TEST(each_line_counts) {
    char *text;
    const char *name;
    size_t n;
    for (int k = 0; builtin(k, &text, &n, &name); k++, free(text)) {
        if (!sampled(k, TEST_SANITIZED ? 3 : 9)) /* the same errors in all */
            continue;
        files f;
        int lines = 0, found = 0, number = 0;
        char left[512] = "";
        if (!files_new(&f, text, n, name))
            return;
        char *changed = malloc(n + 1);
        for (size_t at = 0, end; at < n; at = end) {
            end = at;
            while (end < n && text[end] != '\n')
                end++;
            end += end < n;
            number++;
            if (end - at > 8 &&
                (strncmp(text + at, "convert ", 8) == 0 || strncmp(text + at, "speech", 6) == 0))
                break; /* conversions and requests for speech are not run here */
            if (!is_code(text + at, end - at - 1))
                continue;
            memcpy(changed, text, at);
            memcpy(changed + at, text + end, n - end);
            lines++;
            if (refused(&f, changed, n - (end - at), name))
                found++;
            else if (strlen(left) < 480)
                sprintf(left + strlen(left), " %d", number);
        }
        printf("%-12s %3d of %3d lines, deleted, are errors; not:%s\n", name, found, lines, left);
        for (char *s = strtok(left, " "); s; s = strtok(NULL, " ")) {
            const char *line = text;
            for (int i = atoi(s); i > 1; i--)
                line = strchr(line, '\n') + 1;
            CHECK_MSG(may_go(text, line), "%s:%s can be deleted", name, s);
        }
        free(changed);
        files_free(&f);
    }
}

/* Weights' dimensions: each replaced by each of the descriptor's other ones, checked with fresh
 * made-up values, which take any shape: only the formulas can tell. */
static size_t dimension_size(const char *s) {
    size_t n = 0;
    for (int depth = 0; s[n] && s[n] != ']' && (depth > 0 || s[n] != ','); n++)
        depth += (s[n] == '(') - (s[n] == ')');
    return n;
}

static int dimensions(const char *text, const char **at, size_t *len, int max) {
    int n = 0;
    bool in_convert = false, begin = true;
    for (const char *s = text; *s && n < max; s++) {
        if (begin) {
            in_convert |= strncmp(s, "convert ", 8) == 0;
            const char *name = s + strspn(s, " "),
                       *end = name + strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789");
            const char *open = end + strspn(end, " ");
            if (!in_convert && end > name && *open == '[' && open > end) {
                for (s = open + 1; *s != ']' && n < max;) {
                    size_t size = dimension_size(s);
                    at[n] = s;
                    len[n++] = size;
                    s += size + (s[size] == ',');
                    s += strspn(s, " ");
                }
            }
        }
        begin = *s == '\n';
    }
    return n;
}

static bool seen_before(const char *const *at, const size_t *len, int i) {
    for (int k = 0; k < i; k++)
        if (len[k] == len[i] && memcmp(at[k], at[i], len[i]) == 0)
            return true;
    return false;
}

static bool is(const char *s, size_t n, const char *word) {
    return n == strlen(word) && memcmp(s, word, n) == 0;
}

/* The number of rows of a table that rows are looked up in: any number fits. */
static bool is_row_count(const char *at) {
    const char *line = at;
    bool second = at[-1] == ' ' && at[-2] == ',';
    while (line[-1] != '\n')
        line--;
    line += strspn(line, " ");
    return second &&
           (strncmp(line, "token_embd ", 11) == 0 || strncmp(line, "position_embd ", 14) == 0 ||
            strncmp(line, "token_types ", 12) == 0 || strncmp(line, "attn_rel_b ", 11) == 0 ||
            strncmp(line, "rel_embd ", 9) == 0 || strncmp(line, "markov_w1 ", 10) == 0 ||
            strncmp(line, "value_embd ", 11) == 0 || strncmp(line, "token_weight ", 13) == 0 ||
            strncmp(line, "selector_predecessor ", 21) == 0 ||
            strncmp(line, "selector_successor ", 19) == 0 ||
            strstr(line, "ffn_gate_tid2eid ") == line ||
            strstr(line, "per_layer_token_embd ") == line);
}

/* Of one descriptor: two names of one number, made-up numbers that are equal, and a number of things of which the first ones are read. */
static const struct {
    const char *name, *from, *to; /* to: NULL, any */
} free_here[] = {
    {"bert.arch", "n_labels", NULL}, /* any number of scores fits */
    {"bert.arch", "n_first", "n_embd"},
    {"bert.arch", "n_embd", "n_first"},
    {"clip-glm4v.arch", "n", NULL}, /* the file's tensor says it */
    {"clip-glm4v.arch", "n_embd", "n"},
    /* tables, and rows of them, of which the first are read */
    {"clip-mimoaudio.arch", "n_books", NULL},
    {"clip-mimoaudio.arch", "n_bins", NULL},
    {"clip-mimoaudio.arch", "n_codes", NULL},
    {"clip-mimoaudio.arch", "n_mel", "2"}, /* the made-up number */
    {"clip-mimoaudio.arch", "2", "n_mel"},
    {"dflash.arch", "2", NULL}, /* the first is before a part, the second behind it */
    {"dflash.arch", "n_pair", "n_embd"},
    {"kimi-k3.arch", "n_low", "n_row"}, /* where n_low is not 0 */
    {"mistral-large4.arch", "n_head", "rot/2"},
    {"mistral-large4.arch", "rot/2", "n_head"},
};

/* Wrong ones that no check can find: a length that any number fits (taps of a convolution), a
 * written 1, which broadcasts as any number does in its place, and two names of one number (where
 * the head size is n_embd / n_head, and where the made-up number happens to be the written one, or two made-up ones are equal). */
static bool is_free(const char *name, const char *from, size_t n_from, const char *to,
                    size_t n_to) {
    for (size_t i = 0; i < sizeof free_here / sizeof *free_here; i++)
        if (strcmp(name, free_here[i].name) == 0 && is(from, n_from, free_here[i].from) &&
            (!free_here[i].to || is(to, n_to, free_here[i].to)))
            return true;
    bool by_division = strcmp(name, "lfm2.arch") == 0 || strcmp(name, "lfm2-encoder.arch") == 0 ||
                       strcmp(name, "phi3.arch") == 0;
    bool equal = (is(from, n_from, "n_embd") && is(to, n_to, "n_head*d")) ||
                 (is(from, n_from, "n_head*d") && is(to, n_to, "n_embd"));
    bool all_heads = strcmp(name, "rwkv6.arch") == 0 && is(to, n_to, "n_kv*d");
    bool three =
        strcmp(name, "deepseek4.arch") == 0 && is(from, n_from, "every") && is(to, n_to, "3");
    bool shorter = is(from, n_from, "short") && is(to, n_to, "wide");
    /* made-up models have as many buckets as heads */
    bool buckets = is(from, n_from, "n_head") &&
                   (is(to, n_to, "n_rel") || is(to, n_to, ".attention.relative_buckets_count"));
    /* any number is the size of an embedding; made-up models give dense_2 the same one */
    bool last = is(from, n_from, ".dense_3_feat_out ?? n_embd") ||
                is(to, n_to, ".dense_3_feat_out ?? n_embd");
    /* a draft may know fewer tokens than its target */
    bool drafts = (is(from, n_from, "n_draft") && is(to, n_to, "n_vocab")) ||
                  (is(from, n_from, "n_vocab") && is(to, n_to, "n_draft"));
    bool order = strcmp(name, "gemma4-assistant.arch") == 0 && is(from, n_from, "n_vocab");
    bool states = strcmp(name, "qwen3next.arch") == 0 &&
                  (is(from, n_from, "2*n_embd") || is(to, n_to, "2*n_embd"));
    bool heard = strcmp(name, "whisper.arch") == 0 && is(from, n_from, "3");
    /* what a file says of a tensor's size is true of it */
    bool read = strncmp(from, "size(", 5) == 0 || strncmp(to, "size(", 5) == 0;
    bool written_one = is(from, n_from, "1") || is(to, n_to, "1");
    return written_one || is(from, n_from, "n_taps") || is_row_count(from) || all_heads ||
           shorter || three || buckets || last || drafts || order || states || heard || read ||
           (by_division && equal);
}

TEST(each_dimension_counts) {
    char *text;
    const char *name;
    size_t n;
    int all = 0, found = 0;
    int64_t turn = 0;
    for (int k = 0; builtin(k, &text, &n, &name); k++, free(text)) {
        if (!sampled(k, 9))
            continue;
        const char *at[128];
        size_t len[128];
        int n_dims = dimensions(text, at, len, 128), here = 0, here_found = 0;
        for (int i = 0; i < n_dims; i++)
            for (int j = 0; j < n_dims; j++) {
                bool same = len[i] == len[j] && memcmp(at[i], at[j], len[i]) == 0;
                if (same || seen_before(at, len, j) ||
                    (TEST_SANITIZED && (uint64_t)turn++ % 18 != sample_turn(18)))
                    continue;
                char *changed = malloc(n + len[j] + 1);
                size_t before = (size_t)(at[i] - text);
                memcpy(changed, text, before);
                memcpy(changed + before, at[j], len[j]);
                memcpy(changed + before + len[j], at[i] + len[i], n - before - len[i]);
                ggl_error err = {0};
                llm_arch *a;
                ggl_status s = llm_arch_parse(&a, changed, n + len[j] - len[i], name, &err);
                if (s == GGL_OK) {
                    s = llm_arch_check(a, NULL, &err);
                    llm_arch_free(a);
                }
                here++;
                here_found += s != GGL_OK;
                CHECK_MSG(s != GGL_OK || is_free(name, at[i], len[i], at[j], len[j]),
                          "%s: %.*s in place of %.*s", name, (int)len[j], at[j], (int)len[i],
                          at[i]);
                free(changed);
            }
        printf("%-12s %4d of %4d wrong dimensions found\n", name, here_found, here);
        all += here;
        found += here_found;
    }
    printf("together %d of %d\n", found, all);
    CHECK(all > (TEST_SANITIZED ? 25 : 500));
}

TEST(unknown_key_and_tensor) {
    ggl_error err = {0};
    llm_arch *a;
    REQUIRE_OK(llm_arch_open(&a, "llama", &err), &err);
    llm_arch_toy *toy = llm_arch_toy_new(a, 1, &err);
    REQUIRE(toy);
    llm_arch_toy_freeze(toy);
    static const char text[] =
        "arch llama\nlanguage 1\nn_embd = .embedding_length\ntoken_embd [n_embd, n_vocab]\nlogits "
        "= linear(token_embd[token], token_embd)\n";
    CHECK(build(text, strlen(text), "t.arch", toy, NULL, &err) != GGL_OK);
    CHECK_HAS(err.msg, "of this file are not read by t.arch:");
    llm_arch_toy_free(toy);
    llm_arch_free(a);
}
