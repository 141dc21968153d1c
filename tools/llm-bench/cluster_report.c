#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cluster.h"
#include "common/amounts.h"
#include "fields.h"
#include "ggl/internal/types.h"

enum { WORK_TEXT = 64 };

/* "tg32 x16 @ d512", as llm-bench names tests. */
static const char *work_text(char buf[WORK_TEXT], const cluster_work *w) {
    int n = w->n_prompt > 0 ? snprintf(buf, WORK_TEXT, "pp%" PRId64, w->n_prompt)
                            : snprintf(buf, WORK_TEXT, "tg%" PRId64, w->n_gen);
    if (w->n_sequences > 1)
        n += snprintf(buf + n, (size_t)(WORK_TEXT - n), " x%" PRId64, w->n_sequences);
    if (w->n_depth > 0)
        snprintf(buf + n, (size_t)(WORK_TEXT - n), " @ d%" PRId64, w->n_depth);
    return buf;
}

/* The speed that a rank has: bytes, and multiply-adds with weights, per second. */
static double rank_gb(const cluster_setup *s) {
    return 1e-9 / s->speed.seconds[0];
}

static double rank_gmac(const cluster_setup *s) {
    const ggl_type_info *t = ggl_type_get((int)s->m->type);
    const cluster_speed fast = cluster_speed_without_memory(&s->speed);
    return (double)t->block / (double)t->size / fast.seconds[0] * 1e-9;
}

static const char *bytes(char buf[AMOUNT_TEXT], double n) {
    return llm_amount_bytes(buf, n < 1e18 ? (uint64_t)(n + 0.5) : (uint64_t)1e18);
}

/* --- tables --------------------------------------------------------------------------------------- */

static bool near(double a, double b) {
    return fabs(a - b) <= 0.005 * a;
}

static bool alike(const cluster_rank *a, const cluster_rank *b) {
    return a->n_layers == b->n_layers && near(a->weights, b->weights) && near(a->cache, b->cache) &&
           near(a->values, b->values);
}

/* Prints which layers the ranks have, and what of it does not fit; neighbors that are alike share a line. */
static void print_ranks(const cluster_setup *s, const cluster_plan *p) {
    printf("\n|    rank |  layers | of each |  weights |    cache |   values |%s\n"
           "| ------: | ------: | ------: | -------: | -------: | -------: |%s\n",
           p->fits ? "" : " too much |", p->fits ? "" : " -------: |");
    for (int r = 0, end; r < p->n_ranks; r = end) {
        char rank[48], layers[64] = "", a[AMOUNT_TEXT], b[AMOUNT_TEXT], c[AMOUNT_TEXT];
        for (end = r + 1; end < p->n_ranks && alike(&p->rank[r], &p->rank[end]);)
            end++;
        const cluster_rank *k = &p->rank[r], *last = &p->rank[end - 1];
        snprintf(rank, sizeof rank, end > r + 1 ? "%d-%d" : "%d", r, end - 1);
        if (k->n_layers > 0)
            snprintf(layers, sizeof layers,
                     last->first + last->n_layers > k->first + 1 ? "%" PRId64 "-%" PRId64
                                                                 : "%" PRId64,
                     k->first, last->first + last->n_layers - 1);
        printf("| %7s | %7s | %7" PRId64 " | %8s | %8s | %8s |", rank, layers, k->n_layers,
               bytes(a, k->weights), bytes(b, k->cache), bytes(c, k->values));
        const double more = k->weights + k->cache + k->values - s->memory;
        if (!p->fits)
            printf(" %8s |", more > 0 ? bytes(a, more) : "");
        puts("");
    }
}

/* Ends the line about the fullest rank. */
static void print_missing(const cluster_setup *s, const cluster_table *t) {
    char more[AMOUNT_TEXT], memory[AMOUNT_TEXT], least[AMOUNT_TEXT];
    printf(":\nit does not fit: that is %s more than the %s of a rank; ",
           bytes(more, t->plan.most - s->memory), bytes(memory, s->memory));
    if (t->n_needed > 0)
        printf("%d ranks would suffice\n", t->n_needed);
    else
        printf("however many there are,\none needs %s\n", bytes(least, t->least_most));
}

static void print_md(const cluster_setup *s, const cluster_table *t, size_t n) {
    char text[AMOUNT_TEXT], work[WORK_TEXT];
    printf("%s: %.1f B parameters, %s, %d layers\n", s->m->name, s->m->n_params * 1e-9,
           bytes(text, s->m->size), s->m->n_layers);
    printf("a rank: %.1f GB/s, %.1f GMAC/s; a link: %.1f us, ", rank_gb(s), rank_gmac(s),
           s->link.latency * 1e6);
    if (isinf(s->link.bandwidth))
        printf("no limit");
    else
        printf("%.3f GB/s", s->link.bandwidth * 1e-9);
    printf(", %.1f us for a message\n", s->link.message * 1e6);
    for (size_t i = 0; i < n; i++) {
        const cluster_plan *p = &t[i].plan;
        printf("\n%d rank%s, %d with layers; at most %s on one", p->n_ranks,
               p->n_ranks == 1 ? "" : "s", p->n_used, bytes(text, p->most));
        if (p->fits)
            puts("");
        else
            print_missing(s, &t[i]);
        print_ranks(s, p);
        puts("\n|             test |        t/s | bytes a token | messages | busy | limit          "
             " |\n"
             "| ---------------: | ---------: | ------------: | -------: | ---: | --------------- "
             "|");
        for (size_t k = 0; k < t[i].n_rows; k++) {
            const cluster_result *r = &t[i].row[k].result;
            printf("| %16s | %10.*f | %13s | %8.*f | %3.0f%% | %-10s %3.0f%% |\n",
                   work_text(work, &t[i].row[k].work), r->tokens_per_second < 10 ? 3 : 1,
                   r->tokens_per_second, bytes(text, r->bytes_per_token),
                   r->messages_per_token < 10 ? 2 : 0, r->messages_per_token, 100 * r->busy,
                   cluster_limit_name[r->limit], 100 * r->share[r->limit]);
        }
    }
}

/* --- json ----------------------------------------------------------------------------------------- */

static void print_object(const cluster_setup *s, const cluster_table *t, const cluster_row *row) {
    enum { MOST = 40 };
    static double list[4][CLUSTER_MOST_RANKS];
    const cluster_plan *p = &t->plan;
    const cluster_result *r = &row->result;
    char work[WORK_TEXT];
    for (int k = 0; k < p->n_ranks; k++) {
        list[0][k] = (double)p->rank[k].n_layers;
        list[1][k] = p->rank[k].weights;
        list[2][k] = p->rank[k].cache;
        list[3][k] = p->rank[k].values;
    }
    const bench_field f[MOST] = {
        bench_text("model", s->m->name),
        bench_whole("model_size", s->m->size),
        bench_whole("model_n_params", s->m->n_params),
        bench_whole("n_ranks", p->n_ranks),
        bench_whole("n_ranks_used", p->n_used),
        bench_whole("n_batches", p->n_lanes),
        bench_whole("n_ubatch", (double)s->n_ubatch),
        bench_whole("n_ctx", (double)s->n_ctx),
        bench_number("rank_gb_per_s", rank_gb(s)),
        bench_number("rank_gmac_per_s", rank_gmac(s)),
        bench_number("link_latency_us", s->link.latency * 1e6),
        bench_number("link_gb_per_s", isinf(s->link.bandwidth) ? NAN : s->link.bandwidth * 1e-9),
        bench_number("message_us", s->link.message * 1e6),
        bench_whole("memory", s->memory > 0 ? s->memory : NAN),
        bench_whole("fits", p->fits),
        bench_whole("missing", p->fits ? 0 : p->most - s->memory),
        bench_whole("n_ranks_needed", p->fits           ? p->n_ranks
                                      : t->n_needed > 0 ? t->n_needed
                                                        : NAN),
        bench_wholes("layers", list[0], p->n_ranks),
        bench_wholes("weights", list[1], p->n_ranks),
        bench_wholes("cache", list[2], p->n_ranks),
        bench_wholes("values", list[3], p->n_ranks),
        bench_text("test", work_text(work, &row->work)),
        bench_whole("n_prompt", (double)row->work.n_prompt),
        bench_whole("n_gen", (double)row->work.n_gen),
        bench_whole("n_sequences", (double)row->work.n_sequences),
        bench_whole("n_depth", (double)row->work.n_depth),
        bench_number("avg_ts", r->tokens_per_second),
        bench_number("bytes_per_token", r->bytes_per_token),
        bench_number("messages_per_token", r->messages_per_token),
        bench_number("busy", r->busy),
        bench_text("limit", cluster_limit_name[r->limit]),
        bench_number("share_memory", r->share[CLUSTER_MEMORY]),
        bench_number("share_arithmetic", r->share[CLUSTER_ARITHMETIC]),
        bench_number("share_latency", r->share[CLUSTER_LATENCY]),
        bench_number("share_bandwidth", r->share[CLUSTER_BANDWIDTH]),
    };
    for (int i = 0; i < MOST && f[i].key; i++) {
        printf("%s\n    \"%s\": ", i ? "," : "  {", f[i].key);
        bench_put_json(stdout, &f[i]);
    }
    printf("\n  }");
}

void cluster_print(const cluster_setup *s, const cluster_table *t, size_t n, int format) {
    if (format == CLUSTER_MD) {
        print_md(s, t, n);
        return;
    }
    bool first = true;
    puts("[");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < t[i].n_rows; k++) {
            fputs(first ? "" : ",\n", stdout);
            print_object(s, &t[i], &t[i].row[k]);
            first = false;
        }
    puts("\n]");
}
