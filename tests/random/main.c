/* Random graphs on every backend, held against the judge:
 *
 *     random-graphs [--seed S] [--count N] [--only VARIANT] [--verbose] [--threads] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "gen.h"
#include "mutants.h"
#include "run.h"
#include "shrink.h"

typedef struct options {
    uint64_t seed;
    long count;
    const char *only;
    bool verbose, all, apart, mutants, operators, threads;
} options;

typedef struct totals {
    long graphs, failed, open, numbers, unknown, loose, tokens, actions, nodes[R_OP_COUNT];
} totals;

static int usage(void) {
    fprintf(stderr,
            "usage: random-graphs [--seed S] [--count N] [--only VARIANT] [--verbose] [--all] "
            "[--apart] [--threads] [--avoid FORM]...\n"
            "       random-graphs --mutants [--only MUTANT]\n"
            "       random-graphs --operators [--seed S] [--count N]\n"
            "  --all        goes on after a failure\n"
            "  --apart      a process for each graph, so that a crash is found and cut down, too\n"
            "  --threads    only the ways with threads, against the first way's bits, without the "
            "judge\n"
            "  --avoid      leaves out a form\n"
            "  --mutants    runs wrong programs, each of which the judge has to find\n"
            "  --operators  only looks whether each operator of the library is made often enough\n"
            "  variants:");
    for (int k = 0; k < r_n_variants; k++)
        fprintf(stderr, " '%s'", r_variants[k].name);
    fprintf(stderr, "\n  forms:");
    for (int k = 0; r_avoidable(k); k++)
        fprintf(stderr, " %s", r_avoidable(k));
    fprintf(stderr, "\n");
    return 2;
}

static bool avoid(const char *name) {
    for (int k = 0; r_avoidable(k); k++)
        if (strcmp(name, r_avoidable(k)) == 0) {
            r_avoid |= 1u << k;
            return true;
        }
    return false;
}

static bool parse(int argc, char **argv, options *o) {
    *o = (options){.seed = 1, .count = 100};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--mutants") == 0)
            o->mutants = true;
        else if (strcmp(argv[i], "--operators") == 0)
            o->operators = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            o->verbose = true;
        else if (strcmp(argv[i], "--apart") == 0)
            o->apart = true;
        else if (strcmp(argv[i], "--threads") == 0)
            o->threads = true;
        else if (strcmp(argv[i], "--all") == 0)
            o->all = true;
        else if (!value)
            return false;
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--count") == 0)
            o->count = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            o->only = argv[++i];
        else if (strcmp(argv[i], "--avoid") != 0 || !avoid(argv[++i]))
            return false;
    }
    return true;
}

static void summary(const totals *t) {
    printf("%ld graphs, %ld tokens, %ld actions: %ld wrong, %ld not judged\n", t->graphs, t->tokens,
           t->actions, t->failed, t->open);
    printf("%ld numbers, %.3f%% left open, %.3f%% with a wide bound\n", t->numbers,
           100.0 * (double)t->unknown / (double)(t->numbers + !t->numbers),
           100.0 * (double)t->loose / (double)(t->numbers + !t->numbers));
    for (int k = 0; k < R_OP_COUNT; k++)
        printf("%s%s %ld", k ? ", " : "nodes: ", r_op_name[k], t->nodes[k]);
    printf("\n");
}

static void count(const r_program *p, totals *t) {
    bool needed[R_MOST_NODES];
    r_needed(p, needed);
    for (int i = 0; i < p->n; i++)
        t->nodes[p->node[i].op] += needed[i];
}

static void one(r_bench *b, const options *o, uint64_t seed, totals *t) {
    static r_program p;
    r_source s = {.state = r_mix(seed, 7)};
    r_result r;
    r_generate(&p, seed, &s);
    if (o->verbose)
        r_print(&p, stdout), fflush(stdout);
    bool ok = o->apart ? r_check_apart(&p, o->only, &r) : r_check(b, &p, o->only, &r);
    t->graphs++;
    t->failed += !ok;
    t->numbers += r.n_numbers;
    t->unknown += r.n_unknown;
    t->loose += r.n_loose;
    t->open += ok && r.n_unknown == r.n_numbers;
    t->tokens += p.n_tokens;
    t->actions += p.n_actions;
    count(&p, t);
    if (ok)
        return;
    printf("seed %llu: %s\n", (unsigned long long)seed, r.text);
    fflush(stdout);
    r_shrink(&p, &r);
    printf("the least that is wrong in this way: %s\n", r.text);
    r_print(&p, stdout);
    printf("\n");
}

/* Every operator of the library is known here, and made often enough. */
static bool operators(const options *o) {
    static r_program p;
    totals t = {0};
    bool all = true;
    for (long k = 0; k < o->count; k++) {
        r_source s = {.state = r_mix(o->seed + (uint64_t)k, 7)};
        r_generate(&p, o->seed + (uint64_t)k, &s);
        count(&p, &t);
    }
    for (int op = 0; op < GGL_OP_COUNT; op++) {
        const char *name = ggl_op_get((ggl_op)op).name;
        int k = 0;
        while (k < R_OP_COUNT && strcmp(r_op_name[k], name) != 0)
            k++;
        if (k == R_OP_COUNT)
            printf("'%s' of ops.def has no row in R_OPS (tests/random/program.h): add it there, a "
                   "maker in gen_ops.c, its "
                   "meaning in judge_ops.c and a fault in mutants.c\n",
                   name);
        else if (t.nodes[k] * 50 < o->count)
            printf(
                "'%s' is in %ld of %ld graphs' nodes: its maker in gen_ops.c wants more weight\n",
                name, t.nodes[k], o->count);
        all = all && k < R_OP_COUNT && t.nodes[k] * 50 >= o->count;
    }
    return all;
}

int main(int argc, char **argv) {
    options o;
    r_bench b;
    totals t = {0};
    ggl_error err = {0};
    if (!parse(argc, argv, &o))
        return usage();
    if (o.operators)
        return !operators(&o);
    if (!r_bench_open(&b, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    if (o.mutants) {
        bool caught = r_mutants(&b, o.only, stdout);
        r_bench_close(&b);
        return !caught;
    }
    b.only_threads = o.threads;
    for (long k = 0; k < o.count && (o.all || t.failed == 0); k++)
        one(&b, &o, o.seed + (uint64_t)k, &t);
    summary(&t);
    r_bench_close(&b);
    return t.failed > 0;
}
