#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"

/* --- json ------------------------------------------------------------------------------------- */

/* Returns the share of the time in which device i computed. */
static double busy_share(const bench_profile *p, size_t i) {
    return p->wall_ns > 0 ? p->busy[i].ns / p->wall_ns : 0;
}

static void put_profile(FILE *out, const bench_profile *p) {
    fprintf(out, "{\"wall_ns\": %.0f, \"steps_ns\": %.0f, \"devices\": [", p->wall_ns, p->ns);
    for (size_t i = 0; i < p->n_devices; i++) {
        fputs(i ? ", {\"device\": " : "{\"device\": ", out);
        json_put_string(out, p->busy[i].device, strlen(p->busy[i].device));
        fprintf(out, ", \"steps_ns\": %.0f, \"busy\": %.4f}", p->busy[i].ns, busy_share(p, i));
    }
    fputs("], \"steps\": [", out);
    for (size_t i = 0; i < p->n; i++) {
        const bench_profile_line *l = &p->line[i];
        fputs(i ? ", {\"device\": " : "{\"device\": ", out);
        json_put_string(out, l->device, strlen(l->device));
        fputs(", \"op\": ", out);
        json_put_string(out, l->op, strlen(l->op));
        fputs(", \"weight\": ", out);
        json_put_string(out, l->weight, strlen(l->weight));
        fprintf(out, ", \"type\": \"%s\", \"shape\": ", l->type);
        json_put_string(out, l->shape, strlen(l->shape));
        fprintf(out, ", \"calls\": %.0f, \"ns\": %.0f, \"share\": %.4f", l->calls, l->ns,
                p->ns > 0 ? l->ns / p->ns : 0);
        if (l->bytes > 0 && l->ns > 0)
            fprintf(out, ", \"gb_per_s\": %.3f", l->bytes / l->ns);
        if (l->macs > 0 && l->ns > 0)
            fprintf(out, ", \"gmac_per_s\": %.3f", l->macs / l->ns);
        putc('}', out);
    }
    fputs("]}", out);
}

static void put_object(const bench_report *r, const bench_row *row, const char *begin,
                       const char *between) {
    bench_field f[BENCH_MAX_FIELDS];
    int n = bench_row_fields(row, f);
    putc('{', r->out);
    for (int i = 0; i < n; i++) {
        fprintf(r->out, "%s%s\"%s\": ", i ? "," : "", i ? between : begin, f[i].key);
        bench_put_json(r->out, &f[i]);
    }
    if (r->o->alternation) {
        fprintf(r->out, ",%s\"alternation\": ", between);
        json_put_string(r->out, r->o->alternation, strlen(r->o->alternation));
    }
    static const char *const names[] = {"profile_prompt", "profile_gen"};
    for (int k = 0; k < 2 && row->profile; k++)
        if (row->profile[k].n > 0) {
            fprintf(r->out, ",%s\"%s\": ", between, names[k]);
            put_profile(r->out, &row->profile[k]);
        }
    fprintf(r->out, "%s}", *begin == '\n' ? "\n  " : "");
}

/* --- sql -------------------------------------------------------------------------------------- */

/* Rows with guesses have more columns, so they have a table of their own. */
static const char *sql_table(const bench_report *r) {
    return r->o->guesses ? "llm_bench_guesses" : "llm_bench";
}

static void put_sql_table(FILE *out, const char *table, const bench_field *f, int n) {
    const char *separator = "";
    fprintf(out, "CREATE TABLE IF NOT EXISTS %s (", table);
    for (int i = 0; i < n; i++)
        if (!bench_is_list(&f[i])) {
            fprintf(out, "%s\n  %s %s", separator, f[i].key,
                    f[i].kind == BENCH_TEXT      ? "TEXT"
                    : f[i].kind == BENCH_INTEGER ? "INTEGER"
                                                 : "REAL");
            separator = ",";
        }
    fputs("\n);\n\n", out);
}

static void put_sql(FILE *out, const char *table, const bench_field *f, int n) {
    const char *separator = "";
    fprintf(out, "INSERT INTO %s (", table);
    for (int i = 0; i < n; i++)
        if (!bench_is_list(&f[i])) {
            fprintf(out, "%s%s", separator, f[i].key);
            separator = ", ";
        }
    fputs(") VALUES (", out);
    separator = "";
    for (int i = 0; i < n; i++) {
        if (bench_is_list(&f[i]))
            continue;
        fputs(separator, out);
        separator = ", ";
        if (f[i].kind == BENCH_TEXT)
            bench_put_quoted(out, f[i].text, '\'');
        else if (isnan(f[i].number))
            fputs("NULL", out);
        else
            bench_put_number(out, &f[i], f[i].number);
    }
    fputs(");\n", out);
}

/* --- md --------------------------------------------------------------------------------------- */

typedef struct column {
    const char *title;
    int width; /* negative: aligned to the left */
    bool (*shown)(const bench_options *o);
    void (*text)(const bench_row *r, char *buf, size_t size);
} column;

static bool always(const bench_options *o) {
    (void)o;
    return true;
}

static bool several_models(const bench_options *o) {
    return o->models.n > 1;
}

static bool several_backends(const bench_options *o) {
    return o->n_where > 1;
}

/* True if some placements differ in -ngl. */
static bool several_layers(const bench_options *o) {
    bool differ = false;
    for (size_t i = 1; i < o->n_where; i++)
        differ = differ || o->where[i].n_gpu_layers != o->where[0].n_gpu_layers;
    return differ;
}

static bool several_threads(const bench_options *o) {
    return o->threads.n > 1;
}

static bool several_batches(const bench_options *o) {
    return o->batch.n > 1;
}

static bool several_ubatches(const bench_options *o) {
    return o->ubatch.n > 1;
}

static bool several_types(const bench_options *o) {
    return o->type_k.n > 1 || o->type_v.n > 1;
}

static bool guesses(const bench_options *o) {
    return o->guesses != NULL;
}

static bool guesses_nothing(const bench_options *o) {
    return !o->guesses;
}

static bool has_limits(const bench_options *o) {
    return !o->no_limits;
}

static void text_size(const bench_row *r, char *buf, size_t size) {
    bool large = r->model_size >= 1 << 30;
    snprintf(buf, size, "%.2f %s", r->model_size / (large ? 1 << 30 : 1 << 20),
             large ? "GiB" : "MiB");
}

static void text_params(const bench_row *r, char *buf, size_t size) {
    bool large = r->n_params >= 1e9;
    snprintf(buf, size, "%.2f %s", r->n_params * (large ? 1e-9 : 1e-6), large ? "B" : "M");
}

static void text_backend(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%s", r->backend);
}

/* The number that was typed: devices may have fewer layers, or not be there. */
static void text_layers(const bench_row *r, char *buf, size_t size) {
    if (r->test.where->n_gpu_layers >= 0)
        snprintf(buf, size, "%" PRId64, r->test.where->n_gpu_layers);
}

static void text_threads(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%" PRId64, r->test.n_threads);
}

static void text_batch(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%" PRId64, r->test.n_batch);
}

static void text_ubatch(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%" PRId64, r->test.n_ubatch);
}

static void text_types(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%s %s", r->types[0], r->types[1]);
}

static void text_test(const bench_row *r, char *buf, size_t size) {
    bench_test_text(&r->test, buf, (unsigned)size);
}

static int decimals(const bench_row *r) {
    return r->s_ts.q3 < 1000 ? 2 : r->s_ts.q3 < 10000 ? 1 : 0;
}

static void text_ts(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%.*f", decimals(r), r->s_ts.median);
}

static void text_spread(const bench_row *r, char *buf, size_t size) {
    const int n = decimals(r);
    snprintf(buf, size, "%.*f .. %.*f", n, r->s_ts.q1, n, r->s_ts.q3);
}

static void text_gb(const bench_row *r, char *buf, size_t size) {
    if (r->gb > 0)
        snprintf(buf, size, "%.1f", r->gb);
}

static void text_gmac(const bench_row *r, char *buf, size_t size) {
    if (r->gmac > 0)
        snprintf(buf, size, "%.1f", r->gmac);
}

static void text_percent(const bench_row *r, char *buf, size_t size) {
    if (r->percent > 0)
        snprintf(buf, size, r->percent < 999.5 ? "%.0f %%" : ">999%%", r->percent);
    else if (r->gmac > 0 || r->gb > 0)
        snprintf(buf, size, "?");
}

static void text_of_first(const bench_row *r, char *buf, size_t size) {
    if (r->of_first > 0)
        snprintf(buf, size, r->of_first < 999.5 ? "%.0f %%" : ">999%%", r->of_first);
}

static void text_plain(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%.*f", decimals(r), r->guesses->s_plain.median);
}

static void text_ratio(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%.2f", r->guesses->s_ratio.median);
}

static void text_ratio_spread(const bench_row *r, char *buf, size_t size) {
    const bench_summary *s = &r->guesses->s_ratio;
    snprintf(buf, size, "%.2f .. %.2f", s->q1, s->q3);
}

static void text_per_step(const bench_row *r, char *buf, size_t size) {
    snprintf(buf, size, "%.2f", bench_guesses_per_step(r->guesses));
}

/* Writes a share of 1 as a percentage; nothing if it is not known. */
static void put_share(double share, char *buf, size_t size) {
    if (!isnan(share))
        snprintf(buf, size, "%.0f %%", 100 * share);
}

static void text_right(const bench_row *r, char *buf, size_t size) {
    put_share(bench_guesses_right(r->guesses), buf, size);
}

static void text_declined(const bench_row *r, char *buf, size_t size) {
    put_share(bench_guesses_declined(r->guesses), buf, size);
}

static const column columns[] = {
    {"backend", -7, several_backends, text_backend},
    {"ngl", 3, several_layers, text_layers},
    {"thr", 3, several_threads, text_threads},
    {"bat", 4, several_batches, text_batch},
    {"ubat", 4, several_ubatches, text_ubatch},
    {"cache", -7, several_types, text_types},
    {"test", -11, always, text_test},
    {"plain t/s", 9, guesses, text_plain},
    {"t/s", 7, always, text_ts},
    {"quartiles", 16, guesses_nothing, text_spread},
    {"GB/s", 5, guesses_nothing, text_gb},
    {"GMAC/s", 6, guesses_nothing, text_gmac},
    {"ratio", 5, guesses, text_ratio},
    {"quartiles", 12, guesses, text_ratio_spread},
    {"per step", 8, guesses, text_per_step},
    {"right", 5, guesses, text_right},
    {"unused", 6, guesses, text_declined},
    {"limit", 5, has_limits, text_percent},
    {"of first", 8, several_models, text_of_first},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static int64_t largest(const bench_list *l) {
    int64_t most = 0;
    for (size_t i = 0; i < l->n; i++)
        most = l->v[i] > most ? l->v[i] : most;
    return most;
}

/* Returns the width of the longest name of a test, such as "pp512+tg128 x4 @ d4096". */
static int test_width(const bench_options *o) {
    const int64_t n_seq = largest(&o->sequences), n_depth = largest(&o->depth);
    size_t widest = 11;
    for (size_t i = 0; i <= o->pair.n / 2; i++) {
        const bool plain = i == o->pair.n / 2; /* the prompts, and the generations */
        for (int k = 0; k <= plain; k++) {
            char text[96];
            const bench_test t = {.n_prompt = !plain   ? o->pair.v[2 * i]
                                              : k == 0 ? largest(&o->prompt)
                                                       : 0,
                                  .n_gen = !plain   ? o->pair.v[2 * i + 1]
                                           : k == 1 ? largest(&o->gen)
                                                    : 0,
                                  .n_sequences = n_seq,
                                  .n_depth = n_depth,
                                  .guesses = o->guesses};
            const size_t n = strlen(bench_test_text(&t, text, sizeof text));
            widest = n > widest ? n : widest;
        }
    }
    return (int)widest;
}

/* Returns the width of the longest pair of types of the cache. */
static int types_width(const bench_options *o) {
    const bench_list *list[] = {&o->type_k, &o->type_v};
    size_t longest[2] = {0};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < list[k]->n; i++) {
            const size_t n = strlen(ggl_type_get((int)list[k]->v[i])->name);
            longest[k] = n > longest[k] ? n : longest[k];
        }
    return (int)(longest[0] + 1 + longest[1]);
}

/* Returns a column's width. Splits have long names, which are as on the command line. */
static int width_of(const column *c, const bench_options *o) {
    int width = c->width;
    for (size_t i = 0; c->text == text_backend && i < o->n_where; i++)
        width = -o->where[i].width < width ? -o->where[i].width : width;
    const int n = c->text == text_test ? test_width(o) : c->text == text_types ? types_width(o) : 0;
    return -n < width && n > 0 ? -n : width;
}

/* Prints what all rows of a model have in common above its table, so that the table is narrow. */
static void put_md_head(const bench_report *r, const bench_row *row) {
    char line[256], size[32], params[32];
    text_size(row, size, sizeof size);
    text_params(row, params, sizeof params);
    fprintf(r->out, "%s%s, %s, %s parameters", r->n ? "\n" : "", row->model_type, size, params);
    if (!several_backends(r->o))
        fprintf(r->out, ", %s", row->backend);
    if (!several_threads(r->o))
        fprintf(r->out, ", %" PRId64 " thread%s", row->test.n_threads,
                row->test.n_threads == 1 ? "" : "s");
    if (!several_batches(r->o) && row->test.n_batch != 2048)
        fprintf(r->out, ", batch %" PRId64, row->test.n_batch);
    if (!several_ubatches(r->o) && row->test.n_ubatch != 512)
        fprintf(r->out, ", ubatch %" PRId64, row->test.n_ubatch);
    if (!several_types(r->o) && (row->test.type_k != GGL_F16 || row->test.type_v != GGL_F16))
        fprintf(r->out, ", cache %s %s", row->types[0], row->types[1]);
    fputs("\n\n", r->out);
    for (int rule = 0; rule < 2; rule++) {
        for (int i = 0; i < N_COLUMNS; i++) {
            const int field = width_of(&columns[i], r->o), width = abs(field);
            if (!columns[i].shown(r->o))
                continue;
            memset(line, '-', sizeof line);
            if (rule)
                fprintf(r->out, "| %.*s%c ", width - 1, line, field < 0 ? '-' : ':');
            else
                fprintf(r->out, "| %*s ", field, columns[i].title);
        }
        fputs("|\n", r->out);
    }
}

static void put_md(bench_report *r, const bench_row *row) {
    if (!r->model || strcmp(r->model, row->test.model) != 0)
        put_md_head(r, row);
    r->model = row->test.model;
    for (int i = 0; i < N_COLUMNS; i++) {
        char text[128] = "";
        if (!columns[i].shown(r->o))
            continue;
        columns[i].text(row, text, sizeof text);
        fprintf(r->out, "| %*s ", width_of(&columns[i], r->o), text);
    }
    fputs("|\n", r->out);
}

static void put_md_limits(FILE *out, const bench_row *r) {
    const bench_limits *l = &r->limit;
    char memory[32] = "unknown", int8[32] = "unknown", f32[32] = "unknown", bf16[40] = "";
    if (l->read_gb > 0)
        snprintf(memory, sizeof memory, "%.1f GB/s", l->read_gb);
    if (l->int8_gmac > 0)
        snprintf(int8, sizeof int8, "%.1f GMAC/s", l->int8_gmac);
    if (l->f32_gmac > 0)
        snprintf(f32, sizeof f32, "%.1f GMAC/s", l->f32_gmac);
    if (l->bf16_gmac > l->f32_gmac)
        snprintf(bf16, sizeof bf16, ", bf16 %.1f GMAC/s", l->bf16_gmac);
    fprintf(out, "limits of %s: memory %s,\n  int8 %s, f32 %s%s\n", r->limit_of, memory, int8, f32,
            bf16);
}

/* A model that fits the processor's cache is read from there, and the limits are those of memory. */
static void put_md_above(FILE *out, bench_row *const *rows, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (rows[i]->percent > 100.5) {
            fputs("Above 100 %: what is read lies in the processor's cache, which is faster than\n"
                  "memory; or the machine was busy while its limits were measured.\n",
                  out);
            return;
        }
}

static int larger(int width, const char *text) {
    const int n = (int)strlen(text);
    return n <= width ? width : n < 64 ? n : 64;
}

static void put_md_profile(FILE *out, const bench_row *r, const bench_profile *p, const char *of) {
    char test[96];
    if (p->n == 0)
        return;
    fprintf(out, "\n%s, %s (%s), %" PRId64 " thread%s: %.2f ms in steps of %.2f ms\n",
            r->model_type, bench_test_text(&r->test, test, sizeof test), of, r->test.n_threads,
            r->test.n_threads == 1 ? "" : "s", p->ns * 1e-6, p->wall_ns * 1e-6);
    for (size_t i = 0; i < p->n_devices; i++)
        fprintf(out, "%s%s %.1f %%", i ? ", " : "busy: ", p->busy[i].device,
                100 * busy_share(p, i));
    fputs("\n\n", out);
    int device = 6, op = 2, weight = 6, shape = 5;
    for (size_t i = 0; i < p->n; i++) {
        device = larger(device, p->line[i].device);
        op = larger(op, p->line[i].op);
        weight = larger(weight, p->line[i].weight);
        shape = larger(shape, p->line[i].shape);
    }
    const char *rule = "----------------------------------------------------------------";
    if (p->n_devices > 1)
        fprintf(out, "| %-*s ", device, "device");
    fprintf(out, "| %-*s | %-*s | %-5s | %-*s | %5s | %8s | %6s | %5s | %6s |\n", op, "op", weight,
            "weight", "type", shape, "shape", "calls", "ms", "share", "GB/s", "GMAC/s");
    if (p->n_devices > 1)
        fprintf(out, "| %.*s ", device, rule);
    fprintf(out, "| %.*s | %.*s | ----- | %.*s | ----: | -------: | -----: | ----: | -----: |\n",
            op, rule, weight, rule, shape, rule);
    for (size_t i = 0; i < p->n; i++) {
        const bench_profile_line *l = &p->line[i];
        char gb[32] = "", gmac[32] = "";
        if (l->bytes > 0 && l->ns > 0)
            snprintf(gb, sizeof gb, "%.1f", l->bytes / l->ns);
        if (l->macs > 0 && l->ns > 0)
            snprintf(gmac, sizeof gmac, "%.1f", l->macs / l->ns);
        if (p->n_devices > 1)
            fprintf(out, "| %-*s ", device, l->device);
        fprintf(out, "| %-*s | %-*s | %-5s | %-*s | %5.0f | %8.3f | %4.1f %% | %5s | %6s |\n", op,
                l->op, weight, l->weight, l->type, shape, l->shape, l->calls, l->ns * 1e-6,
                p->ns > 0 ? 100 * l->ns / p->ns : 0, gb, gmac);
    }
}

/* Says what the columns about guesses count, and whether the texts were the same. */
static void put_md_guesses(FILE *out, bench_row *const *rows, size_t n) {
    int n_texts = 0, n_differ = 0;
    for (size_t i = 0; i < n; i++) {
        n_texts += rows[i]->guesses ? rows[i]->guesses->n_texts : 0;
        n_differ += rows[i]->guesses ? rows[i]->guesses->n_differ : 0;
    }
    if (n_texts > 0)
        fprintf(out,
                "%d of %d texts are the same with guesses as without\n"
                "per step: tokens; right: share of guesses that were; unused: steps without\n"
                "guesses, as they would not have paid (--guess-always)\n",
                n_texts - n_differ, n_texts);
}

static void put_md_end(const bench_report *r, bench_row *const *rows, size_t n) {
    fprintf(r->out, n ? "\n" : "");
    put_md_guesses(r->out, rows, n);
    for (size_t i = 0; i < n; i++) {
        bool told = r->o->no_limits;
        for (size_t k = 0; k < i; k++)
            told = told || strcmp(rows[k]->limit_of, rows[i]->limit_of) == 0;
        if (!told && *rows[i]->limit_of)
            put_md_limits(r->out, rows[i]);
    }
    if (!r->o->no_limits)
        put_md_above(r->out, rows, n);
    if (n > 0)
        fprintf(r->out, "peak memory %.1f MiB, load %.1f ms\n", rows[n - 1]->peak_memory / 1048576,
                rows[0]->load_ns * 1e-6);
    for (size_t i = 0; i < n; i++)
        if (rows[i]->profile) {
            put_md_profile(r->out, rows[i], &rows[i]->profile[0], "prompt");
            put_md_profile(r->out, rows[i], &rows[i]->profile[1], "generation");
        }
}

/* --- entry points ----------------------------------------------------------------------------- */

void bench_report_begin(bench_report *r, FILE *out, bench_format format, const bench_options *o) {
    *r = (bench_report){.out = out, .format = format, .o = o};
    if (format == BENCH_JSON)
        fputs("[", out);
}

void bench_report_row(bench_report *r, const bench_row *row) {
    bench_field f[BENCH_MAX_FIELDS];
    int n = bench_row_fields(row, f);
    switch (r->format) {
    case BENCH_MD:
        put_md(r, row);
        break;
    case BENCH_CSV:
        if (r->n == 0)
            bench_put_csv(r->out, f, n, true);
        bench_put_csv(r->out, f, n, false);
        break;
    case BENCH_JSON:
        fputs(r->n ? ",\n  " : "\n  ", r->out);
        put_object(r, row, "\n    ", "\n    ");
        break;
    case BENCH_JSONL:
        put_object(r, row, "", " ");
        putc('\n', r->out);
        break;
    case BENCH_SQL:
        if (r->n == 0)
            put_sql_table(r->out, sql_table(r), f, n);
        put_sql(r->out, sql_table(r), f, n);
        break;
    case BENCH_NONE:
        break;
    }
    r->n++;
    fflush(r->out);
}

void bench_report_end(bench_report *r, bench_row *const *rows, size_t n) {
    if (r->format == BENCH_JSON)
        fputs("\n]\n", r->out);
    else if (r->format == BENCH_MD)
        put_md_end(r, rows, n);
}
