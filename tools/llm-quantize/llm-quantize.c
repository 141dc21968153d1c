/* llm-quantize: converts the matrices of a GGUF file to smaller types. See docs/tools.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "budget.h"
#include "common/args.h"
#include "common/hints.h"
#include "common/paths.h"
#include "common/pattern.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/work_threads.h"
#include "ggl/file.h"
#include "ggl/nearest.h"
#include "ggl/show.h"
#include "quant/encode.h"
#include "quant/plan.h"
#include "report_svg.h"

static const char TOOL[] = "llm-quantize", COPY[] = "COPY";

enum { QUANTIZATION_VERSION = 2 }; /* of the block formats, as in general.quantization_version */

typedef struct options {
    const char *in, *out, *output_type, *embedding_type, *report;
    arg_list args, tensor_types;
    bool pure, requantize, merge_experts, dry_run, verbose;
    int64_t n_threads;
    budget_options budget;
} options;

typedef struct job {
    options o;
    quant_choice choice;
    ggl_gguf *file;
    quant_plan plan;
    budget *budget; /* NULL: TYPE says what the tensors get */
    quant_encoder *encoder;
    quant_error *error;  /* [plan.n] */
    struct turn *turn;   /* [plan.n]: contexts of the writer's callbacks */
    size_t done;         /* bytes of the source */
    ggl_error bad_input; /* what is wrong with a tensor of IN; "": nothing */
} job;

typedef struct turn {
    job *j;
    size_t i;
} turn;

/* --- names ------------------------------------------------------------------------------------ */

static void nearest(const char *name, const char *known, const char **best, size_t *distance) {
    char a[64], b[64];
    size_t n = 0, m = 0;
    for (; name[n] && n < 63; n++)
        a[n] = (char)(name[n] | 0x20); /* ignores case */
    for (; known[m] && m < 63; m++)
        b[m] = (char)(known[m] | 0x20);
    size_t d = ggl_same_letters(a, n, b, m) ? 0 : args_distance(a, n, b, m);
    if (d < *distance) {
        *distance = d;
        *best = known;
    }
}

/* Reports "--x: 'q8_9' is no type; did you mean 'q8_0'?". */
static int unknown_type(const char *flag, const char *name, bool mixes) {
    const char *best = NULL;
    size_t distance = strlen(name) / 3 + 2;
    for (int k = 0; mixes && quant_mix_at(k); k++)
        nearest(name, quant_mix_at(k)->name, &best, &distance);
    for (int k = 0; ggl_type_at(k); k++)
        if (quant_type_usable(ggl_type_at(k)))
            nearest(name, ggl_type_at(k)->name, &best, &distance);
    if (best)
        return tool_error(TOOL, 2, "%s: '%s' is not a type; did you mean '%s'?", flag, name, best);
    return tool_error(TOOL, 2, "%s: '%s' is not a type; --help lists them", flag, name);
}

/* Mixes of llama.cpp of which most tensors have types that can only be read. */
static bool needs_importance(const char *name) {
    static const char *const mixes[] = {"IQ2_M", "IQ3_XS", "IQ3_M"};
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (strcasecmp(mixes[i], name) == 0)
            return true;
    return false;
}

/* Reads the name of a type. Returns -1, or an exit code. mixes: the name of a mix is also
 * suggested. */
static int read_type(const char *flag, const char *name, bool mixes, const ggl_type_info **out) {
    ggl_error err = {0};
    *out = quant_type_find(name, &err);
    if (*out)
        return -1;
    for (int k = 0; ggl_type_at(k); k++)
        if (strcasecmp(ggl_type_at(k)->name, name) == 0)
            return tool_error(TOOL, 1, "%s: %s", flag, err.msg);
    for (int id = 0; id < 256; id++)
        if (ggl_type_foreign_name(id) && strcasecmp(ggl_type_foreign_name(id), name) == 0)
            return tool_error(TOOL, 1, "%s: %s", flag, err.msg);
    if (needs_importance(name))
        return tool_error(
            TOOL, 1,
            "%s: files of the mix %s can only be read: the encoders of its types need "
            "an importance matrix",
            flag, name);
    return unknown_type(flag, name, mixes);
}

/* Prints the names after a heading. */
static void list_names(const char *heading, const char *(*name_at)(int k)) {
    char text[1024] = "";
    size_t n = 0;
    const char *name;
    putchar('\n');
    tool_print_wrapped(heading, 0, 0);
    fputs("  ", stdout);
    for (int k = 0; n < sizeof text && (name = name_at(k)); k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n && *name ? " " : "", name);
    tool_print_wrapped(text, 2, 2);
}

static const char *mix_at(int k) {
    return quant_mix_at(k) ? quant_mix_at(k)->name : NULL;
}

/* "" stands for a type that weights cannot have. */
static const char *type_at(int k) {
    const ggl_type_info *t = ggl_type_at(k);
    return !t ? NULL : quant_type_usable(t) ? t->name : "";
}

static void list_types(void) {
    list_names("mixes (most of a file in one type, more important tensors in others)", mix_at);
    list_names("types", type_at);
    putchar('\n');
    tool_print_wrapped("COPY: each tensor keeps its type, except those that flags name", 0, 0);
}

/* Returns the names of mixes and types, for completion; ends with NULL. */
static const char *const *all_types(void) {
    enum { MOST = 128 };
    static const char *name[MOST + 1];
    int n = 0;
    for (int k = 0; n < MOST && mix_at(k); k++)
        name[n++] = mix_at(k);
    for (int k = 0; n < MOST && type_at(k); k++)
        if (*type_at(k))
            name[n++] = type_at(k);
    if (n < MOST)
        name[n++] = COPY;
    name[n] = NULL;
    return name;
}

/* --- the command line ------------------------------------------------------------------------- */

static int read_override(quant_override *o, const char *text) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return tool_error(TOOL, 2, "--tensor-type: '%s' is not PATTERN=TYPE", text);
    o->text = text;
    int code = read_type("--tensor-type", equals + 1, false, &o->type);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    const ggl_status st = tool_pattern(&o->pattern, text, (size_t)(equals - text), &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 2, "--tensor-type: %s", err.msg);
}

static int read_choice(quant_choice *c, const options *o, const char *type) {
    const ggl_type_info *t = NULL;
    c->pure = o->pure;
    c->requantize = o->requantize;
    c->merge_experts = o->merge_experts;
    c->mix = quant_mix_find(type);
    int code = c->mix || strcasecmp(type, COPY) == 0 ? -1 : read_type("TYPE", type, true, &t);
    c->type = t ? t->name : NULL;
    if (code < 0 && o->output_type &&
        (code = read_type("--output-tensor-type", o->output_type, false, &t)) < 0)
        c->output = t->name;
    if (code < 0 && o->embedding_type &&
        (code = read_type("--token-embedding-type", o->embedding_type, false, &t)) < 0)
        c->embedding = t->name;
    if (code >= 0 || o->tensor_types.n == 0)
        return code;
    c->override = calloc(o->tensor_types.n, sizeof *c->override);
    if (!c->override)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; code < 0 && i < o->tensor_types.n; i++) {
        code = read_override(&c->override[i], o->tensor_types.s[i]);
        c->n_override += code < 0;
    }
    return code;
}

/* Refuses what only has a meaning with --budget or --bpw. */
static int no_budget(const budget_options *b) {
    const char *flag = b->text      ? "--calibration"
                       : b->types   ? "--types"
                       : b->file    ? "--loss"
                       : b->n_ctx   ? "-c"
                       : b->n_chunk ? "--chunks"
                       : b->n_pass  ? "--passes"
                                    : NULL;
    if (!flag)
        return -1;
    return tool_error(TOOL, 2, "%s is for choosing types under a limit: --budget SIZE or --bpw N",
                      flag);
}

static int read_options(job *j, int argc, char **argv) {
    options *o = &j->o;
    const arg_option table[] = {
        {"--dry-run", ARG_FLAG, &o->dry_run,
         .help =
             "print the type that each tensor would get, and write nothing; OUT may be left out"},
        {"--pure", ARG_FLAG, &o->pure,
         .help = "no mix: one type for all tensors that are quantized"},
        {"--output-tensor-type", ARG_STRING, &o->output_type, .value = "T",
         .help = "the type of output.weight"},
        {"--token-embedding-type", ARG_STRING, &o->embedding_type, .value = "T",
         .help = "the type of token_embd.weight"},
        {"--tensor-type", ARG_LIST, &o->tensor_types, .value = "PATTERN=T",
         .help = "the type of tensors whose name matches this regular expression; repeatable, the "
                 "first match counts"},
        {"--merge-experts", ARG_FLAG, &o->merge_experts,
         .help = "join tensors of single experts (blk.0.ffn_up.0.weight, in files of 2023) to one "
                 "for all (blk.0.ffn_up_exps.weight)"},
        {"--allow-requantize", ARG_FLAG, &o->requantize,
         .help = "also quantize tensors that are quantized already, which loses more accuracy"},
        {"-t --threads", ARG_INT, &o->n_threads, .value = "N",
         .help = "threads (default: the number of processors); the file is the same for any number",
         .min = 1, .max = TOOL_MAX_THREADS},
        {"-v --verbose", ARG_FLAG, &o->verbose, .help = "print each tensor's error"},
        {"--report", ARG_STRING, &o->report, .value = "FILE",
         .help = "draw the types, sizes and errors of all tensors as an SVG file"},
        BUDGET_OPTIONS(o->budget),
        {0}};
    static const args_example examples[] = {
        {"llm-quantize model.gguf model-q4.gguf Q4_K_M", "a mix of about 4.8 bits a weight"},
        {"llm-quantize --dry-run model.gguf Q4_K_M", "prints the type that each tensor would get"},
        {"llm-quantize --output-tensor-type q8_0 model.gguf out.gguf Q4_K_M",
         "the same mix, but the output in q8_0"},
        {"llm-quantize --budget 4.2G --calibration text.txt --loss model.loss model.gguf out.gguf",
         "the types that predict the text best in a file of at most 4.2 GB"},
        {0}};
    const args_operand operands[] = {{"TYPE", all_types()}, {0}};
    const args_spec spec = {
        TOOL,
        "[options] IN OUT TYPE | --budget SIZE [options] IN OUT",
        "Makes a GGUF file smaller: writes IN (for a split model, its first "
        "part) as OUT, with its matrices in TYPE, a mix such as Q4_K_M, or a "
        "type. Small tensors and vectors keep their type. Prints the resulting error.",
        table,
        &o->args,
        quantize_hints,
        .examples = examples,
        .operands = operands,
        .print_more = list_types};
    int code = args_parse(&spec, argc, argv);
    if (code >= 0)
        return code;
    const bool by_size = budget_wanted(&o->budget);
    size_t n = o->args.n;
    code = by_size ? -1 : no_budget(&o->budget);
    if (code >= 0)
        return code;
    if (by_size && n != 2 && !(n == 1 && o->dry_run))
        return tool_error(TOOL, 2,
                          n < 2 ? "IN and OUT are needed, as in: llm-quantize --budget "
                                  "4.2G model.gguf small.gguf"
                                : "only IN and OUT are accepted: --budget and --bpw choose "
                                  "the types, instead of TYPE");
    if (!by_size && n != 3 && !(n == 2 && o->dry_run))
        return tool_error(
            TOOL, 2,
            n < 3
                ? "IN, OUT and TYPE are needed, as in: llm-quantize model.gguf model-q4.gguf Q4_K_M"
                : "only IN, OUT and TYPE are accepted; -t N sets the number of threads");
    o->in = o->args.s[0];
    o->out = n == (by_size ? 2 : 3) ? o->args.s[1] : NULL;
    if (!o->n_threads)
        o->n_threads = work_threads();
    code = read_choice(&j->choice, o, by_size ? COPY : o->args.s[n - 1]);
    if (code < 0 && by_size)
        code = budget_new(&j->budget, TOOL, &o->budget, (int)o->n_threads, &j->choice);
    return code;
}

/* --- what is printed -------------------------------------------------------------------------- */

static const char *shape_of(const ggl_gguf_tensor *t, char *s, size_t size) {
    size_t n = 0;
    s[0] = '\0';
    for (int d = 0; d < t->n_dims && n < size; d++)
        n += (size_t)snprintf(s + n, size - n, "%s%lld", d ? " x " : "", (long long)t->ne[d]);
    return s;
}

static void print_tensor(const job *j, const quant_tensor *t, const quant_error *e) {
    char shape[96];
    const char *old = ggl_type_get((int)t->from->type)->name;
    bool kept = t->type->type == t->from->type;
    ggl_fprint(stdout, "%-36s %-22s %6s %2s %-6s", t->shown, shape_of(t->from, shape, sizeof shape),
               old, kept ? "" : "->", kept ? "" : t->type->name);
    if (j->o.dry_run)
        printf(" %12zu %12zu", t->from->size, t->size);
    else if (e->n > 0)
        printf(" rmse %.3e max %.3e relative %.3e", quant_error_rms(e), e->max,
               quant_error_relative(e));
    if (t->wanted)
        printf(" (rows of %lld are not whole blocks of %s)", (long long)t->from->ne[0], t->wanted);
    putchar('\n');
}

static double bits(const ggl_type_info *t) {
    return 8 * (double)t->size / (double)t->block;
}

/* Prints a note on tensors that could not get the intended type, and what that costs. */
static void print_narrow(const quant_plan *p) {
    size_t n = 0;
    double size = 0, wanted = 0;
    for (size_t i = 0; i < p->n; i++) {
        const quant_tensor *t = &p->tensor[i];
        const ggl_type_info *type = t->wanted ? ggl_type_find(t->wanted) : NULL;
        if (!t->wanted)
            continue;
        n++;
        size += (double)t->size;
        wanted += (double)t->size / bits(t->type) * bits(type ? type : t->type);
    }
    if (n > 0)
        printf("narrow rows  %zu tensor%s a larger type, because the rows are not whole blocks of "
               "the intended one: %.2f MiB instead of %.2f (-v and --dry-run name them)\n",
               n, n == 1 ? " has" : "s have", size / 0x1p20, wanted / 0x1p20);
}

static void print_summary(const job *j) {
    const quant_plan *p = &j->plan;
    quant_error all = {0};
    size_t n_changed = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->tensor[i].type->type != p->tensor[i].from->type) {
            n_changed++;
            if (j->error)
                quant_error_add(&all, &j->error[i]);
        }
    printf("tensors      %zu, %zu of them in another type\n", p->n, n_changed);
    for (int k = 0; ggl_type_at(k); k++) {
        size_t n = 0, size = 0;
        for (size_t i = 0; i < p->n; i++)
            if (p->tensor[i].type == ggl_type_at(k)) {
                n++;
                size += p->tensor[i].size;
            }
        if (n > 0)
            printf("  %-10s %zu tensor%s, %.2f MiB\n", ggl_type_at(k)->name, n, n == 1 ? "" : "s",
                   (double)size / 0x1p20);
    }
    print_narrow(p);
    printf("size         %.2f -> %.2f MiB, %.2f -> %.2f bits per weight\n",
           (double)p->size_before / 0x1p20, (double)p->size_after / 0x1p20,
           8 * (double)p->size_before / (p->n_elements > 0 ? p->n_elements : 1),
           8 * (double)p->size_after / (p->n_elements > 0 ? p->n_elements : 1));
    if (!j->o.dry_run && all.n > 0)
        printf("error        rmse %.4e max %.4e relative %.4e, of the changed tensors\n",
               quant_error_rms(&all), all.max, quant_error_relative(&all));
}

/* Draws --report. A tensor that keeps its type has no error; in a dry run, errors are not known. */
static int draw_report(const job *j) {
    ggl_error err = {0};
    ggl_new_file *f = NULL;
    char title[256];
    const quant_plan *p = &j->plan;
    report_tensor *t = calloc(p->n + 1, sizeof *t);
    size_t n = 0;
    for (size_t i = 0; t && i < p->n; i++) {
        const quant_tensor *x = &p->tensor[i];
        const bool kept = x->type->type == x->from->type;
        if (x->from->n_dims < 2) /* vectors would be most of the rows and none of the bytes */
            continue;
        t[n] = (report_tensor){x->shown, x->type, (double)x->size, 1, 0};
        for (int d = 0; d < x->from->n_dims; d++)
            t[n].elements *= (double)x->from->ne[d];
        t[n++].error = kept ? 0 : j->error ? quant_error_relative(&j->error[i]) : -1;
    }
    const char *name = strrchr(j->o.in, '/');
    snprintf(title, sizeof title, "%.120s: %.2f -> %.2f bits per weight", name ? name + 1 : j->o.in,
             8 * (double)p->size_before / (p->n_elements > 0 ? p->n_elements : 1),
             8 * (double)p->size_after / (p->n_elements > 0 ? p->n_elements : 1));
    ggl_status s =
        t ? ggl_new_file_open(&f, j->o.report, &err) : ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK && (s = report_draw(ggl_new_file_stream(f), title, t, n, &err)) == GGL_OK)
        s = ggl_new_file_commit(f, &err);
    else
        ggl_new_file_discard(f);
    free(t);
    return s == GGL_OK ? -1 : tool_error(TOOL, 1, "--report: %s", err.msg);
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool more(void *ctx, size_t n) {
    job *j = ctx;
    j->done += n;
    progress_set((double)j->done);
    return !process_stopped;
}

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const turn *t = ctx;
    job *j = t->j;
    const quant_tensor *x = &j->plan.tensor[t->i];
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < x->n_part && s == GGL_OK; k++) {
        quant_error error = {0};
        if (x->type->type == x->from->type)
            s = quant_copy(x->part[k], to, more, j, err);
        else
            s = quant_encode(j->encoder, x->part[k], x->type, to, &error, more, j, err);
        quant_error_add(&j->error[t->i], &error);
    }
    if (s == GGL_FORMAT || s == GGL_LIMIT) /* the writer's message would name OUT */
        ggl_fail(&j->bad_input, s, "%s: tensor '%s': %s", j->o.in, x->shown, err->msg);
    return s;
}

/* Writes the keys in order. The two that describe the types are changed in place, or added at
 * the end. */
static void put_keys(ggl_gguf_writer *w, const job *j) {
    static const char version_key[] = "general.quantization_version",
                      type_key[] = "general.file_type";
    const quant_mix *mix = j->choice.mix;
    const bool copy = !mix && !j->choice.type && !j->choice.pick;
    uint32_t version = QUANTIZATION_VERSION, file_type = mix ? (uint32_t)mix->file_type : 0;
    /* a type without a number gets no key, rather than a wrong one */
    bool version_put = false, type_put = !mix;
    for (size_t i = 0; i < ggl_gguf_n_values(j->file); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(j->file, i);
        if (v->key.n > 6 && memcmp(v->key.s, "split.", 6) == 0)
            continue;
        if (copy) { /* what the file says of its types is still true of most tensors */
            ggl_gguf_put_value(w, v);
        } else if (ggl_str_is(v->key, version_key)) {
            ggl_gguf_put(w, version_key, GGL_GGUF_U32, false, &version, 1);
            version_put = true;
        } else if (ggl_str_is(v->key, type_key)) {
            if (mix)
                ggl_gguf_put(w, type_key, GGL_GGUF_U32, false, &file_type, 1);
            type_put = true;
        } else {
            ggl_gguf_put_value(w, v);
        }
    }
    if (!version_put && !copy)
        ggl_gguf_put(w, version_key, GGL_GGUF_U32, false, &version, 1);
    if (!type_put)
        ggl_gguf_put(w, type_key, GGL_GGUF_U32, false, &file_type, 1);
}

/* Sets *head to the bytes of OUT besides its tensors', and *alignment to theirs. */
static ggl_status measure_head(const job *j, uint64_t *head, uint64_t *alignment, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    int64_t given = 32; /* the format's default */
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    put_keys(w, j);
    (void)ggl_gguf_get_integer(j->file, "general.alignment", &given, NULL);
    *alignment = given > 0 ? (uint64_t)given : 32;
    for (size_t i = 0; i < j->plan.n; i++) {
        const quant_tensor *t = &j->plan.tensor[i];
        ggl_gguf_put_tensor_later(w, t->name, t->type->type, t->from->n_dims, t->from->ne, fill,
                                  NULL);
    }
    *head = ggl_gguf_writer_size(w);
    for (size_t i = 0; i < j->plan.n; i++)
        *head -= (j->plan.tensor[i].size + *alignment - 1) / *alignment * *alignment;
    ggl_gguf_writer_free(w);
    return GGL_OK;
}

/* Chooses the types under a limit, and plans the file with them. */
static int choose_types(job *j) {
    ggl_error err = {0};
    budget_source s = {.path = j->o.in, .file = j->file, .plan = &j->plan};
    if (measure_head(j, &s.head, &s.alignment, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    int code = budget_solve(j->budget, &s);
    if (code >= 0)
        return code;
    quant_plan_fini(&j->plan);
    if (quant_plan_make(&j->plan, j->file, &j->choice, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s: %s", j->o.in, err.msg);
    return -1;
}

static ggl_status write_model(job *j, ggl_error *err) {
    const quant_plan *p = &j->plan;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    j->encoder = quant_encoder_new((int)j->o.n_threads);
    j->error = calloc(p->n + 1, sizeof *j->error);
    j->turn = calloc(p->n + 1, sizeof *j->turn);
    ggl_status s =
        w && j->encoder && j->error && j->turn ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK)
        put_keys(w, j);
    for (size_t i = 0; s == GGL_OK && i < p->n; i++) {
        const quant_tensor *t = &p->tensor[i];
        j->turn[i] = (turn){j, i};
        ggl_gguf_put_tensor_later(w, t->name, t->type->type, t->from->n_dims, t->from->ne, fill,
                                  &j->turn[i]);
    }
    if (s == GGL_OK)
        s = ggl_gguf_writer_write(w, j->o.out, err);
    ggl_gguf_writer_free(w);
    return s;
}

static int quantize(job *j) {
    ggl_error err = {0};
    const tool_path paths[] = {{"IN", j->o.in, .model = true},
                               {"OUT", j->o.dry_run ? NULL : j->o.out, .written = true},
                               {"--calibration", j->o.budget.text, .needed = true},
                               {"--loss", j->o.budget.file, .written = true},
                               {"--report", j->o.report, .written = true}};
    int code = tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
    if (code >= 0)
        return code;
    if (ggl_gguf_open(&j->file, j->o.in, NULL, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    ggl_status s = quant_plan_make(&j->plan, j->file, &j->choice, &err);
    if (s != GGL_OK)
        return tool_error(TOOL, s == GGL_NOT_FOUND ? 2 : 1, "%s: %s", j->o.in, err.msg);
    if (j->budget && (code = choose_types(j)) >= 0)
        return code;
    if (!j->o.dry_run) {
        progress_begin(PROGRESS_BYTES, (double)j->plan.size_before, "quantizing");
        s = write_model(j, &err);
        progress_end();
        if (s != GGL_OK && process_stopped)
            return tool_error(TOOL, process_stop_code(), "interrupted; %s was not written",
                              j->o.out);
        if (s != GGL_OK)
            return tool_error(TOOL, 1, "%s", *j->bad_input.msg ? j->bad_input.msg : err.msg);
    }
    for (size_t i = 0; i < j->plan.n && (j->o.verbose || j->o.dry_run); i++)
        print_tensor(j, &j->plan.tensor[i], j->error ? &j->error[i] : &(quant_error){0});
    if (j->budget)
        budget_print(j->budget);
    print_summary(j);
    if (j->o.report && (code = draw_report(j)) >= 0)
        return code;
    return 0;
}

int main(int argc, char **argv) {
    process_begin();
    job j = {0};
    int code = read_options(&j, argc, argv);
    if (code < 0) {
        process_wait_for_stop();
        code = quantize(&j);
    }
    quant_plan_fini(&j.plan);
    budget_free(j.budget);
    quant_encoder_free(j.encoder);
    free(j.error);
    free(j.turn);
    for (size_t k = 0; k < j.choice.n_override; k++)
        regfree(&j.choice.override[k].pattern);
    free(j.choice.override);
    ggl_gguf_close(j.file);
    args_list_fini(&j.o.args);
    args_list_fini(&j.o.tensor_types);
    return tool_finish(TOOL, code);
}
