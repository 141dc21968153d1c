/* The knapsack's choices against all choices of small problems, which are made from seeds. */
#include "llm-quantize/knapsack.h"

#include <math.h>

#include "seed.h"
#include "test.h"

enum { ITEMS = 6, OPTIONS = 4 };

static uint64_t state;

static uint64_t below(uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

typedef struct problem {
    knapsack_option option[ITEMS][OPTIONS];
    knapsack_item item[ITEMS];
    size_t n;
    uint64_t least, most;
} problem;

/* unit: of which sizes are multiples. One of 1 with sizes up to 2^40 makes the table too large. */
static void make(problem *p, uint64_t unit, uint64_t most) {
    p->n = 1 + below(ITEMS);
    for (size_t i = 0; i < p->n; i++) {
        p->item[i] = (knapsack_item){p->option[i], 1 + (int)below(OPTIONS)};
        for (int k = 0; k < p->item[i].n; k++)
            p->option[i][k] = (knapsack_option){unit * (1 + below(most)), (double)below(1000) / 8};
    }
    knapsack_range(p->item, p->n, &p->least, &p->most);
}

/* The least loss of all choices within the budget; INFINITY: there is none. */
static double of_all(const problem *p, uint64_t budget) {
    int choice[ITEMS] = {0};
    double best = INFINITY;
    for (;;) {
        uint64_t size = 0;
        double loss = 0;
        for (size_t i = 0; i < p->n; i++) {
            size += p->option[i][choice[i]].size;
            loss += p->option[i][choice[i]].loss;
        }
        best = size <= budget && loss < best ? loss : best;
        size_t i = 0;
        while (i < p->n && ++choice[i] == p->item[i].n)
            choice[i++] = 0;
        if (i == p->n)
            return best;
    }
}

/* Returns the loss, after checks that hold for any choice. */
static double solve(const problem *p, uint64_t budget, knapsack_result *r) {
    int choice[ITEMS];
    ggl_error err = {0};
    uint64_t size = 0;
    double loss = 0;
    if (!CHECK_OK(knapsack_solve(p->item, p->n, budget, choice, r, &err), &err))
        return NAN;
    for (size_t i = 0; i < p->n; i++) {
        CHECK(choice[i] >= 0 && choice[i] < p->item[i].n);
        size += p->option[i][choice[i]].size;
        loss += p->option[i][choice[i]].loss;
    }
    CHECK(size == r->size && size <= budget);
    CHECK(fabs(loss - r->loss) < 1e-9);
    CHECK_MSG(r->bound <= loss + 1e-9, "bound %g, loss %g", r->bound, loss);
    return loss;
}

TEST(against_all_choices) {
    state = sample_seed();
    for (int turn = 0; turn < 3000; turn++) {
        problem p;
        knapsack_result r;
        make(&p, 1 + below(1000), 40);
        const uint64_t budget = p.least + below(p.most - p.least + 2);
        const double want = of_all(&p, budget), got = solve(&p, budget, &r);
        if (!CHECK(r.exact) ||
            !CHECK_MSG(got <= want + 1e-9, "turn %d: %g, possible is %g", turn, got, want))
            return;
    }
}

/* Where the table would be too large: nearly always the best, always within the bound. */
TEST(exchanges) {
    int n_best = 0, n = 0;
    state = sample_seed();
    for (int turn = 0; turn < 300; turn++) {
        problem p;
        knapsack_result r;
        make(&p, 1, (uint64_t)1 << 31);
        const uint64_t budget =
            p.least + (uint64_t)((double)(p.most - p.least) * (double)below(1001) / 1000);
        const double want = of_all(&p, budget), got = solve(&p, budget, &r);
        double step = 0; /* the most that one item can save */
        for (size_t i = 0; i < p.n; i++)
            for (int k = 0; k < p.item[i].n * p.item[i].n; k++)
                step = fmax(step,
                            p.option[i][k / p.item[i].n].loss - p.option[i][k % p.item[i].n].loss);
        if (!CHECK_MSG(got >= want - 1e-9 && r.bound <= want + 1e-9 && got <= r.bound + step + 1e-9,
                       "turn %d: %g, possible is %g, bound %g, step %g", turn, got, want, r.bound,
                       step))
            return;
        n++;
        n_best += got <= want + 1e-9;
    }
    CHECK_MSG(n_best > n * 9 / 10, "%d of %d are the best", n_best, n);
}

TEST(ends) {
    problem p;
    knapsack_result r;
    ggl_error err = {0};
    int choice[ITEMS];
    state = sample_seed();
    for (int turn = 0; turn < 200; turn++) {
        make(&p, 7, 40);
        solve(&p, p.least, &r);
        CHECK(r.size == p.least);
        const double all = solve(&p, p.most, &r);
        CHECK(fabs(all - of_all(&p, UINT64_MAX)) < 1e-9);
        CHECK(fabs(solve(&p, UINT64_MAX / 2, &r) - all) < 1e-9);
        CHECK(knapsack_solve(p.item, p.n, p.least - 1, choice, &r, &err) == GGL_LIMIT);
        CHECK_HAS(err.msg, "the smallest choice has");
    }
    CHECK_OK(knapsack_solve(NULL, 0, 0, NULL, &r, &err), &err);
    CHECK(r.size == 0 && r.exact);
}

/* Losses from a file may be anything. The largest that are allowed are solved by both methods; a unit of 1
 * with large sizes makes the table too large. */
TEST(absurd_losses) {
    static const double bad[] = {INFINITY, NAN, 1.7e308, 2 * KNAPSACK_MAX_LOSS, -1};
    problem p;
    knapsack_result r;
    ggl_error err = {0};
    int choice[ITEMS];
    state = sample_seed();
    for (int turn = 0; turn < 60; turn++) {
        make(&p, 1, turn % 2 ? 40 : (uint64_t)1 << 31);
        for (size_t i = 0; i < p.n; i++)
            for (int k = 0; k < p.item[i].n; k++)
                p.option[i][k].loss = below(2) ? KNAPSACK_MAX_LOSS : KNAPSACK_MAX_LOSS / 2;
        const uint64_t budget = p.least + below(p.most - p.least + 2);
        CHECK_OK(knapsack_solve(p.item, p.n, budget, choice, &r, &err), &err);
        for (size_t i = 0; i < p.n; i++)
            CHECK(choice[i] >= 0 && choice[i] < p.item[i].n);
        CHECK(r.size <= budget && isfinite(r.loss) && isfinite(r.bound));
        p.option[p.n - 1][0].loss = bad[turn % 5];
        CHECK(knapsack_solve(p.item, p.n, budget, choice, &r, &err) == GGL_USAGE);
        CHECK_HAS(err.msg, "has a loss of");
    }
}
