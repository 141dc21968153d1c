/* llm-arch doctor: reads a model by its descriptor, and by the descriptor with one choice made otherwise, and prints how well
 * each predicts a text. What families differ in, and what a descriptor gets wrong, shows as a reading that the weights like
 * better. Each other reading is a change of the descriptor's text, so nothing here knows any architecture. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "arch_tool.h"
#include "ggl/show.h"

#define TOOL     "llm-arch doctor"
#define N_ERRORS 3.0 /* standard errors that a better reading is better by */

/* --- changing a text -------------------------------------------------------------------------------------------------- */

typedef struct text {
    char *s;
    size_t n, cap;
    bool failed;
} text;

static void put(text *t, const char *s, size_t n) {
    if (t->n + n + 1 > t->cap) {
        size_t cap = 2 * (t->n + n) + 256;
        char *grown = realloc(t->s, cap);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->s = grown;
        t->cap = cap;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

static void puts_(text *t, const char *s) {
    put(t, s, strlen(s));
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The end of the comment or string that begins at i; i if none does. */
static size_t skip(const char *s, size_t n, size_t i) {
    if (s[i] == '#')
        while (i < n && s[i] != '\n')
            i++;
    else if (s[i] == '"') {
        for (i++; i < n && s[i] != '"' && s[i] != '\n'; i++)
            ;
        i += i < n;
    }
    return i;
}

/* The name or key (".a.b", with its dot) that stands at i; its length, 0 if none begins there. */
static size_t token_at(const char *s, size_t n, size_t i) {
    size_t k = i;
    bool key = s[i] == '.' && i + 1 < n && (isalpha((unsigned char)s[i + 1]) || s[i + 1] == '_');
    if (i > 0 && (is_word(s[i - 1]) || s[i - 1] == '.'))
        return 0;
    if (!key && !isalpha((unsigned char)s[i]) && s[i] != '_')
        return 0;
    for (k++; k < n && (is_word(s[k]) || (key && s[k] == '.')); k++)
        ;
    return k - i;
}

/* The next whole name or key `word` from i on, outside of comments, strings and the convert section; n: none. */
static size_t find_word(const char *s, size_t n, size_t i, const char *word) {
    size_t len = strlen(word);
    while (i < n) {
        size_t over = skip(s, n, i), t;
        if (over > i) {
            i = over;
            continue;
        }
        t = token_at(s, n, i);
        if (t == 7 && memcmp(s + i, "convert", 7) == 0 && (i == 0 || s[i - 1] == '\n'))
            return n;
        if (t == len && memcmp(s + i, word, len) == 0)
            return i;
        i += t ? t : 1;
    }
    return n;
}

/* The end of the argument that begins at i: the ',' or ')' outside of brackets. */
static size_t argument_end(const char *s, size_t n, size_t i) {
    for (int depth = 0; i < n; i++) {
        size_t over = skip(s, n, i);
        if (over > i)
            i = over - 1;
        else if (s[i] == '(' || s[i] == '[')
            depth++;
        else if (depth == 0 && (s[i] == ',' || s[i] == ')'))
            return i;
        else if (s[i] == ')' || s[i] == ']')
            depth--;
    }
    return n;
}

static size_t call_end(const char *s, size_t n, size_t open) { /* the ')' of the '(' at `open` */
    size_t i = open + 1;
    while ((i = argument_end(s, n, i)) < n && s[i] == ',')
        i++;
    return i;
}

/* --- the choices ------------------------------------------------------------------------------------------------------ */

typedef struct flip {
    const char *what;            /* "rope style" */
    char reading[96];            /* "pairs of neighbours" */
    char *s;                     /* the changed text */
    size_t n;
} flip;

typedef struct flips {
    const char *s;
    size_t n;
    flip at[64];
    int n_at;
    bool failed;
} flips;

/* Takes *t over. Nothing was changed: no such choice in this text. */
static void add_flip(flips *f, const char *what, text *t, int n_changes, const char *fmt, ...) GGL_PRINTF(5, 6);
static void add_flip(flips *f, const char *what, text *t, int n_changes, const char *fmt, ...) {
    f->failed |= t->failed;
    if (n_changes == 0 || t->failed || f->n_at == (int)(sizeof f->at / sizeof *f->at)) {
        free(t->s);
        return;
    }
    flip *x = &f->at[f->n_at++];
    va_list args;
    va_start(args, fmt);
    vsnprintf(x->reading, sizeof x->reading, fmt, args);
    va_end(args);
    x->what = what;
    x->s = t->s;
    x->n = t->n;
}

/* Every `from` becomes `to`. */
static int replace(const flips *f, text *t, const char *from, const char *to) {
    size_t i = 0;
    int n = 0;
    for (size_t k; (k = find_word(f->s, f->n, i, from)) < f->n; i = k + strlen(from), n++) {
        put(t, f->s + i, k - i);
        puts_(t, to);
    }
    put(t, f->s + i, f->n - i);
    return n;
}

static void flip_rope_style(flips *f) {
    static const char *const way[2][3] = {{"rope_pair", "rope_half", "element i with i + half"},
                                          {"rope_half", "rope_pair", "neighbours"}};
    for (int k = 0; k < 2; k++) {
        text t = {0};
        int n = replace(f, &t, way[k][0], way[k][1]);
        add_flip(f, "rotated pairs", &t, n, "%s", way[k][2]);
    }
}

/* A key, with the number that serves where it is absent, becomes a number. */
static int replace_key(const flips *f, text *t, const char *key, double value) {
    size_t i = 0;
    int n = 0;
    for (size_t k; (k = find_word(f->s, f->n, i, key)) < f->n; n++) {
        char number[40];
        size_t end = k + strlen(key), after = end;
        put(t, f->s + i, k - i);
        snprintf(number, sizeof number, "%.9g", value);
        puts_(t, number);
        while (after < f->n && f->s[after] == ' ')
            after++;
        if (after + 2 < f->n && f->s[after] == '?' && f->s[after + 1] == '?') {
            for (after += 2; after < f->n && f->s[after] == ' '; after++)
                ;
            size_t digits = after;
            while (digits < f->n && (isdigit((unsigned char)f->s[digits]) || f->s[digits] == '.' || f->s[digits] == 'e' ||
                                     (f->s[digits] == '-' && f->s[digits - 1] == 'e')))
                digits++;
            end = digits > after ? digits : end;
        }
        i = end;
    }
    put(t, f->s + i, f->n - i);
    return n;
}

/* `line` after the header of *t, which is given back changed. */
static void add_statement(text *t, const char *line) {
    text out = {0};
    size_t at = find_word(t->s, t->n, 0, "language");
    while (at < t->n && t->s[at] != '\n')
        at++;
    put(&out, t->s, at);
    puts_(&out, line);
    put(&out, t->s + at, t->n - at);
    out.failed |= t->failed;
    free(t->s);
    *t = out;
}

/* All readings of a key as a number; the key itself is then read by nobody, and has to be known all the same. */
static void flip_key(flips *f, const char *what, const char *key, const double *value, size_t n_values) {
    char line[96];
    snprintf(line, sizeof line, "\nignore %s\n", key);
    for (size_t i = 0; i < n_values; i++) {
        text t = {0};
        int n = replace_key(f, &t, key, value[i]);
        if (n > 0 && !t.failed)
            add_statement(&t, line);
        add_flip(f, what, &t, n, "%.7g", value[i]);
    }
}

static void flip_numbers(flips *f) {
    static const double base[] = {10000, 500000, 1000000}, eps[] = {1e-6, 1e-5, 1e-2};
    flip_key(f, "rope base", ".rope.freq_base", base, 3);
    flip_key(f, "norm epsilon", ".attention.layer_norm_rms_epsilon", eps, 3);
    flip_key(f, "norm epsilon", ".attention.layer_norm_epsilon", eps, 3);
}

static void flip_activations(flips *f) {
    static const char *const name[] = {"silu", "gelu", "gelu_erf", "gelu_quick", "relu"};
    for (size_t from = 0; from < 5; from++)
        for (size_t to = 0; to < 5; to++) {
            text t = {0};
            int n = from == to ? 0 : replace(f, &t, name[from], name[to]);
            add_flip(f, "activation", &t, n, "%s for %s", name[to], name[from]);
        }
}

/* rms_norm and layer_norm with another function, defined after the header. */
static void flip_norm_offset(flips *f, const char *norm, const char *row, const char *sign, const char *reading) {
    text t = {0};
    char name[32], def[256];
    snprintf(name, sizeof name, "doctor_%s", norm);
    snprintf(def, sizeof def, "\ndef %s(x, w, eps) = affine(%s, w) %s (%s if has(w) else 0)\n", name, row, sign, row);
    int n = replace(f, &t, norm, name);
    if (n > 0 && !t.failed)
        add_statement(&t, def);
    add_flip(f, "norm weight", &t, n, "%s (%s)", reading, norm);
}

/* Every call of attend or attention gets `name = value`, in place of what it has. `swap`: instead, where it has "a if c else b",
 * "b if c else a". */
static int set_argument(const flips *f, text *t, const char *name, const char *value, bool only_present, bool swap) {
    char lost[128] = ""; /* an "ignore" of a key that stood in what was replaced */
    size_t i = 0;
    int n = 0;
    for (size_t k = 0; k < f->n;) {
        size_t a = find_word(f->s, f->n, k, "attend"), b = find_word(f->s, f->n, k, "attention"), at = a < b ? a : b;
        size_t open = at + (at == a ? 6 : 9);
        k = open;
        if (at == f->n || open >= f->n || f->s[open] != '(')
            continue;
        size_t close = call_end(f->s, f->n, open), arg = find_word(f->s, f->n, open, name);
        bool has = arg < close;
        if (close == f->n || (only_present && !has))
            continue;
        size_t from = close, to = close;
        if (has) {
            for (from = arg + strlen(name); from < close && (f->s[from] == ' ' || f->s[from] == '='); from++)
                ;
            to = argument_end(f->s, f->n, from);
        }
        size_t c = find_word(f->s, to, from, "if"), e = find_word(f->s, to, from, "else");
        if (swap && !(has && c < to && e < to))
            continue;
        put(t, f->s + i, from - i);
        if (swap) {
            put(t, f->s + e + 4, to - e - 4);
            puts_(t, " ");
            put(t, f->s + c, e - c);
            puts_(t, "else ");
            put(t, f->s + from, c - from);
        } else {
            for (size_t j = from; j < to; j++)
                if (f->s[j] == '.' && token_at(f->s, f->n, j) > 0)
                    snprintf(lost, sizeof lost, "\nignore %.*s\n", (int)(token_at(f->s, f->n, j) % 100), f->s + j);
            puts_(t, has ? "" : ", ");
            puts_(t, has ? "" : name);
            puts_(t, has ? "" : " = ");
            puts_(t, value);
        }
        i = to;
        n++;
    }
    put(t, f->s + i, f->n - i);
    if (lost[0] && !t->failed)
        add_statement(t, lost);
    return n;
}

static void flip_attention(flips *f) {
    text t = {0};
    int n = set_argument(f, &t, "scale", "1", false, false);
    add_flip(f, "attention scale", &t, n, "none: 1");
    t = (text){0};
    n = set_argument(f, &t, "scale", "none", true, false);
    add_flip(f, "attention scale", &t, n, "1 / sqrt of the head's size");
    t = (text){0};
    n = set_argument(f, &t, "window", "none", true, false);
    add_flip(f, "attention window", &t, n, "none");
    t = (text){0};
    n = set_argument(f, &t, "window", "", true, true);
    add_flip(f, "attention window", &t, n, "on the other layers");
    t = (text){0};
    n = set_argument(f, &t, "cap", "none", true, false);
    add_flip(f, "soft cap of scores", &t, n, "none");
}

static void find_flips(flips *f) {
    flip_rope_style(f);
    flip_numbers(f);
    flip_activations(f);
    flip_norm_offset(f, "rms_norm", "rms(x, eps)", "+", "1 + w");
    flip_norm_offset(f, "rms_norm", "rms(x, eps)", "-", "w - 1");
    flip_norm_offset(f, "layer_norm", "rms(center(x), eps)", "+", "1 + w");
    flip_attention(f);
}

/* --- perplexity ------------------------------------------------------------------------------------------------------- */

typedef struct doctor {
    tool_ignore ignore;
    const char *arch, *text_file;
    int64_t n_tokens, n_ctx, n_threads;
    double significant;
    llm_model *model;
    ggl_backend *cpu, *reference;
    llm_tokens tokens;
    int32_t bos;
    bool adds_bos;
    int64_t n_vocab;
    double *nats, *as_described; /* of each predicted token: of this reading, of the descriptor's */
    int64_t n_nats;
} doctor;

static double nats(const float *logits, int64_t n, int32_t id) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) /* not fmax: gcc 12 for ARM fails on a loop of it */
        most = (double)logits[i] > most ? (double)logits[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum) - (double)logits[id];
}

/* One stretch of the text; every token after the first is predicted. */
static ggl_status read_stretch(doctor *d, ggl_sched *s, const int32_t *id, int n, bool bos, ggl_error *err) {
    int32_t *in = calloc(3 * (size_t)(n + 1), sizeof *in), *pos = in + n + 1, *slot = pos + n + 1;
    if (!in)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    int m = 0;
    if (bos)
        in[m++] = d->bos;
    for (int i = 0; i < n; i++)
        in[m++] = id[i];
    for (int i = 0; i < m; i++)
        pos[i] = i;
    ggl_status st = ggl_sched_clear_slot(s, 0, err);
    if (st == GGL_OK)
        st = ggl_sched_set(s, "token", in, m, err);
    if (st == GGL_OK)
        st = ggl_sched_set(s, "pos", pos, m, err);
    if (st == GGL_OK)
        st = ggl_sched_set(s, "slot", slot, m, err);
    if (st == GGL_OK)
        st = ggl_sched_run(s, m, NULL, 0, err);
    const float *logits = ggl_sched_output(s, 0);
    for (int i = bos; i + 1 < m && st == GGL_OK; i++) /* the same tokens are predicted with and without bos */
        d->nats[d->n_nats++] = nats(logits + (size_t)i * (size_t)d->n_vocab, d->n_vocab, in[i + 1]);
    free(in);
    return st;
}

static ggl_status perplexity(doctor *d, const llm_arch *arch, bool bos, double *out, ggl_error *err) {
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(d->model));
    arch_built b = {0};
    ggl_sched *s = NULL;
    ggl_sched_params p = {.backend = &d->cpu, .n_backends = 1};
    double sum = 0;
    d->n_nats = 0;
    ggl_status st = arch_build(&b, arch, &source, &d->ignore, d->n_ctx + 1, d->n_ctx + 1, d->reference, err);
    if (st == GGL_OK)
        st = ggl_sched_new(&s, b.graph, &p, err);
    if (st == GGL_OK)
        st = ggl_sched_alloc(s, err);
    if (d->n_vocab == 0) /* the first reading */
        arch_print_notes(&b);
    d->n_vocab = b.result.n_vocab;
    for (size_t i = 0; i < d->tokens.n && st == GGL_OK; i++)
        if (d->tokens.id[i] >= d->n_vocab)
            st = ggl_fail(err, GGL_FORMAT, "the tokenizer gives token %" PRId32 ", the model has %" PRId64, d->tokens.id[i],
                          d->n_vocab);
    for (size_t i = 0; i + 1 < d->tokens.n && st == GGL_OK; i += (size_t)d->n_ctx) {
        size_t n = d->tokens.n - i < (size_t)d->n_ctx ? d->tokens.n - i : (size_t)d->n_ctx;
        st = read_stretch(d, s, d->tokens.id + i, (int)n, bos, err);
    }
    ggl_sched_free(s);
    arch_built_fini(&b);
    for (int64_t i = 0; i < d->n_nats; i++)
        sum += d->nats[i];
    *out = d->n_nats ? exp(sum / (double)d->n_nats) : NAN;
    return st;
}

/* --- the visit -------------------------------------------------------------------------------------------------------- */

static int open_all(doctor *d, const char *path) {
    ggl_error err = {0};
    const llm_tokenizer *t;
    llm_model_params mp = {.arch_path = d->arch, .ignore = ignore_of(&d->ignore)};
    ggl_backend_params bp = {.n_threads = (int)d->n_threads};
    size_t n;
    char *s = tool_read_file(TOOL, d->text_file, &n);
    if (!s)
        return 1;
    ggl_status st = llm_model_open(&d->model, path, &mp, &err);
    if (st == GGL_OK)
        st = llm_model_tokenizer(d->model, &t, &err);
    if (st == GGL_OK)
        st = llm_tokenize(t, s, n < 1 << 20 ? n : 1 << 20, 0, &d->tokens, &err);
    free(s);
    if (st == GGL_OK)
        st = ggl_backend_open(&d->cpu, "cpu", &bp, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&d->reference, "reference", NULL, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (d->tokens.n > (size_t)d->n_tokens)
        d->tokens.n = (size_t)d->n_tokens;
    if (d->tokens.n < 2)
        return tool_error(TOOL, 2, "%s has %zu tokens; at least 2 are needed", d->text_file, d->tokens.n);
    llm_tokens with = {0};
    d->nats = calloc(d->tokens.n, sizeof *d->nats);
    d->as_described = calloc(d->tokens.n, sizeof *d->as_described);
    if (!d->nats || !d->as_described)
        return tool_error(TOOL, 1, "out of memory");
    d->bos = llm_tokenizer_bos(t);
    d->adds_bos = d->bos >= 0 && llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &with, &err) == GGL_OK && with.n > 0;
    llm_tokens_fini(&with);
    return -1;
}

static void print_reading(const char *what, const char *reading, double ppl, double base, const char *mark) {
    ggl_fprint(stdout, "  %-20s %-32s %12.5g  %+9.2f %%  %s\n", what, reading, ppl, 100 * (ppl / base - 1), mark);
}

/* Better, and not by chance: tokens that become likelier and tokens that become less so are weighed against each other. */
static bool is_better(const doctor *d) {
    double n = (double)d->n_nats, sum = 0, squares = 0;
    for (int64_t i = 0; i < d->n_nats; i++) {
        double x = d->nats[i] - d->as_described[i];
        sum += x;
        squares += x * x;
    }
    double mean = sum / n, spread = sqrt(fmax(0, squares / n - mean * mean) / n); /* standard error of the mean */
    return mean < -d->significant && mean < -N_ERRORS * spread;
}

/* As described there is nothing to compare with; a reading that gives numbers may be the weights'. */
static int report_nan(int n_numbers) {
    return tool_error(TOOL, 1, "as described, the model's logits are NaN: %s",
                      n_numbers > 0 ? "the readings above that have a perplexity make numbers"
                                    : "no other reading makes numbers; llm-arch verify names the first node with a NaN");
}

static bool print_judged(const doctor *d, const char *what, const char *reading, double ppl, double base) {
    bool better = is_better(d);
    double r = log(ppl / base);
    print_reading(what, reading, ppl, base, isnan(r) ? "cannot be told" : better ? "<- the weights agree better with this"
                                            : r < d->significant ? "within what chance does" : "");
    return better;
}

static int visit(doctor *d, const char *path) {
    ggl_error err = {0};
    double base, ppl, lowest;
    flips f = {0};
    f.s = llm_arch_text(llm_model_arch(d->model), &f.n);
    if (perplexity(d, llm_model_arch(d->model), d->adds_bos, &base, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    memcpy(d->as_described, d->nats, (size_t)d->n_nats * sizeof *d->nats);
    find_flips(&f);
    lowest = base;
    ggl_fprint(stdout, "model        %s\ndescriptor   %s\ntext         %s, %zu tokens in stretches of %" PRId64 "\n\n", path,
           llm_model_arch_origin(d->model), d->text_file, d->tokens.n, d->n_ctx);
    printf("  %-20s %-32s %12s  %11s\n", "choice", "read as", "perplexity", "change");
    print_reading("as described", "", base, base, "");
    int n_better = 0, n_numbers = 0, best = -1, code = f.failed ? tool_error(TOOL, 1, "out of memory") : 0;
    if (d->bos >= 0 && perplexity(d, llm_model_arch(d->model), !d->adds_bos, &ppl, &err) == GGL_OK) {
        n_better += print_judged(d, "first token", d->adds_bos ? "no BOS" : "BOS", ppl, base);
        n_numbers += !isnan(ppl);
    }
    for (int i = 0; i < f.n_at; i++) {
        llm_arch *arch = NULL;
        ggl_status st = llm_arch_parse(&arch, f.at[i].s, f.at[i].n, llm_arch_name(llm_model_arch(d->model)), &err);
        if (st == GGL_OK)
            st = perplexity(d, arch, d->adds_bos, &ppl, &err);
        if (st == GGL_OK && ppl != base && !(isnan(ppl) && isnan(base))) { /* equal bits: that is what the model says already */
            bool better = print_judged(d, f.at[i].what, f.at[i].reading, ppl, base);
            n_better += better;
            n_numbers += !isnan(ppl);
            if (better && ppl < lowest) {
                lowest = ppl;
                best = i;
            }
        } else if (st != GGL_OK) {
            ggl_fprint(stdout, "  %-20s %-32s cannot be read so\n", f.at[i].what, f.at[i].reading);
        }
        fflush(stdout);
        llm_arch_free(arch);
        free(f.at[i].s);
    }
    if (isnan(base))
        return report_nan(n_numbers);
    if (base > (double)d->n_vocab)
        printf("\nthe perplexity is above that of a guess among %" PRId64 " tokens: these weights cannot tell\n", d->n_vocab);
    else if (n_better == 0)
        printf("\nno reading is better than the descriptor's\n");
    else if (best < 0)
        printf("\nthe descriptor's readings are the best, but for the first token\n");
    else
        ggl_fprint(stdout, "\nthe best is %s: %s; make this change first, then ask again\n", f.at[best].what, f.at[best].reading);
    return code;
}

int arch_doctor(int argc, char **argv) {
    doctor d = {.n_tokens = 512, .n_ctx = 128, .significant = 0.01};
    arg_list files = {0};
    const arg_option options[] = {
        {"--text", ARG_STRING, &d.text_file, .value = "FILE",
         .help = "a text of the kind that the model was trained on"},
        {"--arch", ARG_STRING, &d.arch, .value = "FILE",
         .help = "an architecture descriptor to read the model by"},
        IGNORE_OPTIONS(d.ignore),
        {"-n", ARG_INT, &d.n_tokens, .value = "N", .help = "tokens of the text (default 512)",
         .min = 2, .max = 1 << 24},
        {"-c --ctx-size", ARG_INT, &d.n_ctx, .value = "N",
         .help = "tokens of a stretch (default 128)", .min = 2, .max = 65536},
        {"-t --threads", ARG_INT, &d.n_threads, .value = "N", .help = "threads", .min = 1,
         .max = TOOL_MAX_THREADS},
        {0}};
    int code = arch_args(TOOL, "MODEL --text FILE [options]",
                         "For each choice of the descriptor that families differ in (which pairs are rotated, rope base, epsilon,\n"
                         "activation, 1 + w, attention scale and window, BOS): makes it otherwise, alone, and prints the perplexity.\n"
                         "A reading with a clearly lower one is the reading of the weights.",
                         options, 1, 1, argc, argv, &files);
    if (code >= 0)
        return code;
    code = d.text_file ? open_all(&d, files.s[0]) : tool_error(TOOL, 2, "a text is needed: --text FILE");
    if (code < 0)
        code = visit(&d, files.s[0]);
    free(d.nats);
    free(d.as_described);
    llm_tokens_fini(&d.tokens);
    ggl_backend_close(d.cpu);
    ggl_backend_close(d.reference);
    llm_model_free(d.model);
    args_list_fini(&files);
    ignore_fini(&d.ignore);
    return code;
}
