/* Parts of the engine: how the room of a step is divided, which slots are cleared for others, whose turn it
 * is, tables. */
#include <math.h>

#include "ggl/alloc.h"
#include "ggl/graph.h"
#include "run/pages.h"
#include "seed.h"
#include "serve/client_queue.h"
#include "serve/room.h"
#include "test.h"

static int below(uint64_t *seed, int n) {
    return (int)(test_random(seed) % (uint64_t)n);
}

/* --- rooms ------------------------------------------------------------------------------------ */

/* The tokens that a prompt gets which wants n_most from a position on. */
static int64_t n_for(const room *r, int64_t pos, int64_t n_most, int64_t n_generating) {
    room_share s = {.want = n_most, .left = 1000000, .token_ns = llm_room_token_ns(r, (double)pos)};
    llm_room_for_prompts(r, &s, 1, n_most, n_generating);
    return s.get;
}

TEST(steps_become_as_long_as_they_should) {
    room r = {.step_ns = 1000000};
    CHECK_INT(n_for(&r, 0, 512, 0), 512);
    CHECK_INT(n_for(&r, 0, 512, 3), 64);
    CHECK_INT(n_for(&r, 0, 10, 3), 10);
    for (int i = 0; i < 100; i++) { /* 200 us, and 4 us for each token of a prompt */
        const int64_t n = i % 3 ? n_for(&r, 0, 512, 3) : 0;
        llm_room_learn(&r, 200000 + 4000 * n, n, 0, 3);
    }
    const int64_t n = n_for(&r, 0, 512, 3);
    CHECK_MSG(n >= 195 && n <= 205, "%d tokens", (int)n);
    CHECK_INT(n_for(&r, 0, 100, 3), 100);
    CHECK_INT(n_for(&r, 0, 512, 0), 512);
    for (int i = 0; i < 100; i++) /* longer than it should be, without any prompt */
        llm_room_learn(&r, 1200000, 0, 0, 3);
    const int64_t n_half = n_for(&r, 0, 512, 3);
    CHECK_MSG(n_half >= 145 && n_half <= 155, "%d tokens", (int)n_half);
    for (int i = 0; i < 100; i++) /* tokens that take very long */
        llm_room_learn(&r, 1200000 + 900000000, 1, 0, 3);
    CHECK_INT(n_for(&r, 0, 512, 3), 8);
}

/* A model whose attention takes as long at position 8000 as everything else. */
static int64_t model_ns(int64_t pos, int64_t n) {
    return n * 4000 + (pos + n / 2) * n / 2;
}

/* Reads a prompt from a position to another one beside others. Returns the longest step, in units of
 * what it should be. */
static double longest_step(room *r, int64_t from, int64_t to) {
    double most = 0;
    for (int64_t pos = from, n; pos < to; pos += n) {
        n = n_for(r, pos, to - pos < 512 ? to - pos : 512, 3);
        const int64_t ns = 200000 + model_ns(pos, n);
        llm_room_learn(r, ns, n, (double)(pos + n / 2) * (double)n, 3);
        most = fmax(most, (double)ns / (double)r->step_ns);
    }
    return most;
}

/* Also when a prompt goes on deep in its sequence, after others at the beginnings of theirs. */
TEST(steps_stay_as_long_at_any_depth) {
    room r = {.step_ns = 1000000};
    llm_room_learn(&r, 200000, 0, 0, 3);
    (void)longest_step(&r, 0, 2000);
    for (int round = 0; round < 3; round++) {
        const double first = longest_step(&r, 0, 30000);
        CHECK_MSG(first < 1.15, "a long prompt: %g", first);
        for (int i = 0; i < 30; i++) {
            const double begins = longest_step(&r, 0, 500);
            CHECK_MSG(begins < 1.3, "short prompt %d: %g", i, begins);
        }
        const double goes_on = longest_step(&r, 29000, 30000);
        CHECK_MSG(goes_on < 1.3, "the next turn: %g", goes_on);
    }
    const int64_t n = n_for(&r, 100, 512, 3);
    CHECK_MSG(n > 150 && n < 250, "%d tokens at the beginning", (int)n);
}

/* Beside a deep prompt, one that begins gets the tokens that its part of the time is worth. */
TEST(time_is_divided_fairly) {
    room_share s[2] = {{1, 500, 5000, 40, 0, 0}, {2, 500, 600, 10, 0, 0}};
    llm_room_divide(s, 2, 512, 4000);
    CHECK_INT(s[0].get, 25);        /* a quarter */
    CHECK_INT(s[1].get, 100 + 200); /* a quarter, and the half that is not divided evenly */
    s[0].token_ns = 1e9;
    llm_room_divide(s, 2, 512, 4000);
    CHECK_INT(s[0].get, 1); /* the first goes on in any case */
}

TEST(room_is_divided_fairly) {
    room_share s[4] = {{1, 100, 1000, 0, 0, 0},
                       {1, 100, 200, 0, 0, 0},
                       {2, 100, 5000, 0, 0, 0},
                       {1, 100, 100, 0, 0, 0}};
    llm_room_divide(s, 4, 120,
                    INFINITY); /* half is for two clients, of whom one has three prompts */
    CHECK_INT(s[0].get, 10);
    CHECK_INT(s[1].get, 10);
    CHECK_INT(s[2].get, 30);
    CHECK_INT(s[3].get, 70);
    llm_room_divide(s, 4, 1, INFINITY);
    CHECK_INT(s[0].get, 1);
    llm_room_divide(s, 4, 1000, INFINITY);
    for (int i = 0; i < 4; i++)
        CHECK_INT(s[i].get, 100);
    llm_room_divide(s, 0, 10, INFINITY);
}

TEST(room_is_divided_at_random) {
    uint64_t seed = sample_seed();
    for (int round = 0; round < 20000; round++) {
        room_share s[12];
        const int n = below(&seed, 13);
        const int64_t n_room = below(&seed, 2) ? below(&seed, 20) : below(&seed, 500);
        int64_t wanted = 0, got = 0;
        for (int i = 0; i < n; i++) {
            s[i] = (room_share){.client = (uint64_t)below(&seed, 4), .want = below(&seed, 100)};
            s[i].left = s[i].want + below(&seed, 1000);
            s[i].token_ns = 1 + below(&seed, 9);
            wanted += s[i].want;
        }
        const bool is_timed = below(&seed, 2);
        const double ns = is_timed ? 10 + below(&seed, 500) : INFINITY;
        double left = ns;
        llm_room_divide(s, n, n_room, ns);
        for (int i = 0; i < n; i++) {
            CHECK(s[i].get >= 0 && s[i].get <= s[i].want);
            CHECK(i > 0 || n_room == 0 || s[i].want == 0 || s[i].get > 0);
            got += s[i].get;
            left -= (double)s[i].get * s[i].token_ns;
        }
        /* the first prompt gets a token also if the others' parts have left less than its time */
        CHECK(left >= 0 || (s[0].get == 1 && left > -s[0].token_ns));
        for (int i = 0; i < n; i++) /* what is left is not enough for another token */
            CHECK(s[i].get == s[i].want || got == n_room || left < s[i].token_ns);
        if (!is_timed && !CHECK_INT(got, wanted < n_room ? wanted : n_room))
            return;
    }
}

/* Thousands of prompts take no longer for each than a few. */
TEST(many_prompts_share_the_room) {
    enum { MANY = 4096 };
    static room_share s[MANY];
    int64_t n_got = 0;
    for (int i = 0; i < MANY; i++)
        s[i] = (room_share){.client = (uint64_t)(i % 2000), .want = 3, .left = MANY - i};
    llm_room_divide(s, MANY, 1000, INFINITY);
    for (int i = 0; i < MANY; i++)
        n_got += s[i].get;
    CHECK_INT(n_got, 1000);
    CHECK_INT(s[0].get, 1);
    CHECK_INT(s[MANY - 1].get, 3);
}

/* --- pages ------------------------------------------------------------------------------------ */

enum { SLOTS = 8, PAGES = 30, EACH = 10 };

/* Slots with tokens, of which some begin alike. */
static void fill_pages(page_pool *p, int64_t *n_past, uint64_t *seed) {
    for (int step = 0; step < 40; step++) {
        const int k = below(seed, SLOTS), from = below(seed, SLOTS);
        if (below(seed, 2) && k != from) {
            n_past[k] = n_past[from] > 0 ? below(seed, (int)n_past[from] + 1) : 0;
            llm_pages_share(p, k, from, llm_pages_for(p, n_past[k]));
            continue;
        }
        const int64_t n = below(seed, 4 * GGL_PAGE);
        if (llm_pages_needed(p, k, n_past[k], n) > p->n_unused || n_past[k] + n > EACH * GGL_PAGE)
            continue;
        if (n > 0 && llm_pages_is_shared(p, k, n_past[k]))
            llm_pages_replace(p, k, n_past[k] / GGL_PAGE);
        n_past[k] += n;
        llm_pages_resize(p, k, llm_pages_for(p, n_past[k]));
    }
}

/* The pages that are lacking if the slots in `cleared` are cleared first: counted page by page. */
static int64_t count_lacking(const page_pool *p, const int64_t *n_past, const int64_t *n_new,
                             unsigned cleared) {
    int64_t n_users[PAGES] = {0}, n_needed = 0, n_unused = PAGES;
    for (int k = 0; k < SLOTS; k++)
        for (int64_t i = 0; i < p->n_held[k] && !(cleared >> k & 1); i++)
            n_users[p->table[k * EACH + i]]++;
    for (int i = 0; i < PAGES; i++)
        n_unused -= n_users[i] > 0;
    for (int k = 0; k < SLOTS; k++) {
        const int64_t last = n_past[k] / GGL_PAGE;
        if (n_new[k] == 0)
            continue;
        n_needed += llm_pages_for(p, n_past[k] + n_new[k]) - p->n_held[k];
        if (last < p->n_held[k] && n_users[p->table[k * EACH + last]] > 1) {
            n_users[p->table[k * EACH + last]]--;
            n_needed++;
        }
    }
    return n_needed - n_unused;
}

static void check_choice(page_pool *p, const int64_t *n_past, const int64_t *n_new,
                         uint64_t *seed) {
    int slot[SLOTS], n = 0;
    unsigned all = 0, chosen = 0;
    llm_pages_estimate(p);
    for (int k = 0; k < SLOTS; k++)
        llm_pages_estimate_append(p, k, n_past[k], n_new[k]);
    CHECK_INT(llm_pages_lacking(p), count_lacking(p, n_past, n_new, 0));
    for (int k = below(seed, SLOTS), i = 0; i < SLOTS; i++, k = (k + 3) % SLOTS)
        if (n_new[k] == 0) {
            slot[n++] = k;
            all |= 1u << k;
        }
    const int64_t without = count_lacking(p, n_past, n_new, all);
    CHECK_INT(llm_pages_lacking_without(p, slot, n), without);
    n = llm_pages_choose_to_clear(p, slot, n);
    CHECK_INT(n<0, without> 0);
    for (int i = 0; i < n; i++)
        chosen |= 1u << slot[i];
    for (int i = 0; i < n; i++) /* none of them could stay */
        CHECK(count_lacking(p, n_past, n_new, chosen & ~(1u << slot[i])) > 0);
    for (int i = 0; i < n; i++)
        llm_pages_resize(p, slot[i], 0);
    if (n >= 0) {
        CHECK(llm_pages_lacking(p) <= 0);
        CHECK_INT(llm_pages_lacking(p), count_lacking(p, n_past, n_new, chosen));
    }
    for (int k = 0; k < SLOTS; k++) /* a page that was shared before needs no copy any more */
        llm_pages_undo_append(p, k, n_past[k], n_new[k]);
    CHECK_INT(llm_pages_lacking(p), -p->n_unused);
}

TEST(slots_to_clear_are_chosen) {
    uint64_t seed = sample_seed();
    for (int round = 0; round < 3000 && test_failures == 0; round++) {
        page_pool p;
        int64_t n_past[SLOTS] = {0}, n_new[SLOTS] = {0};
        int32_t row[SLOTS * EACH] = {0};
        CHECK(llm_pages_init(&p, row, PAGES, SLOTS, EACH));
        fill_pages(&p, n_past, &seed);
        for (int k = 0; k < SLOTS; k++) {
            const int64_t rest = EACH * GGL_PAGE - n_past[k];
            const int64_t n = below(&seed, 2) ? 0 : 1 + below(&seed, below(&seed, 2) ? 3 : 400);
            n_new[k] = n < rest ? n : rest;
        }
        check_choice(&p, n_past, n_new, &seed);
        llm_pages_fini(&p);
    }
}

/* --- queues ----------------------------------------------------------------------------------- */

enum { TASKS = 200, CLIENTS = 7 };

/* Against a list in which the client that was served longest ago, or never, comes first. */
typedef struct model {
    int task[CLIENTS][TASKS], n[CLIENTS];
    int ring[CLIENTS], n_ring;
} model;

static void model_leave(model *m, int at) {
    for (m->n_ring--; at < m->n_ring; at++)
        m->ring[at] = m->ring[at + 1];
}

static void model_add(model *m, int c, int id) {
    if (m->n[c] == 0)
        m->ring[m->n_ring++] = c;
    m->task[c][m->n[c]++] = id;
}

/* The first of the client at the front leaves, and the client goes to the end. */
static int model_take(model *m) {
    const int c = m->ring[0], id = m->task[c][0];
    memmove(m->task[c], m->task[c] + 1, (size_t)--m->n[c] * sizeof(int));
    model_leave(m, 0);
    if (m->n[c] > 0)
        m->ring[m->n_ring++] = c;
    return id;
}

static void check_turns(uint64_t *seed) {
    static task t[TASKS];
    static model m;
    queue q = {0};
    int n_added = 0, n_taken = 0;
    memset(t, 0, sizeof t);
    m = (model){0};
    while (n_taken < TASKS) {
        if (n_added < TASKS && (n_added == n_taken || below(seed, 3))) {
            const int c = below(seed, below(seed, 2) ? CLIENTS : 2);
            t[n_added].p.client = (uint64_t)c;
            CHECK(llm_queue_add(&q, &t[n_added]));
            model_add(&m, c, n_added++);
        } else {
            const task *first = llm_queue_first(&q);
            if (!CHECK(first == &t[model_take(&m)]) || !CHECK(first == llm_queue_take(&q)))
                break;
            n_taken++;
        }
        CHECK_INT(q.n, n_added - n_taken);
    }
    CHECK(!llm_queue_first(&q));
    llm_queue_fini(&q);
}

TEST(clients_take_turns) {
    uint64_t seed = sample_seed();
    for (int i = 0; i < 50; i++)
        check_turns(&seed);
}

static void remove_odd(void *ctx, task *t) {
    if (t->node.key % 2)
        llm_queue_remove(ctx, t);
}

static void count(void *ctx, task *t) {
    CHECK_INT(t->node.key % 2, 0);
    ++*(int *)ctx;
}

TEST(tasks_leave_while_others_wait) {
    static task t[TASKS];
    queue q = {0};
    uint64_t seed = 3;
    int n = 0;
    for (int i = 0; i < TASKS; i++) {
        t[i] = (task){.node.key = (uint64_t)i, .turn = (uint64_t)below(&seed, 1000)};
        t[i].p.client = (uint64_t)below(&seed, 60);
        if (i % 5 == 0)
            llm_queue_put_back(&q, &t[i]);
        else
            CHECK(llm_queue_add(&q, &t[i]));
    }
    llm_queue_each(&q, remove_odd, &q);
    llm_queue_each(&q, count, &n);
    CHECK_INT(n, TASKS / 2);
    uint64_t turn = 0;
    for (task *first; (first = llm_queue_first(&q)); llm_queue_remove(&q, first), n--)
        if (n >
            TASKS / 2 - TASKS / 10) { /* those that were put back, in the order of their turns */
            CHECK(first->node.key % 5 == 0 && first->turn >= turn);
            turn = first->turn;
        }
    CHECK_INT(n, 0);
    CHECK_INT(q.n, 0);
    llm_queue_fini(&q);
}

/* --- tables ----------------------------------------------------------------------------------- */

TEST(tables_find_what_is_in_them) {
    static table_node x[1000];
    static bool is_in[1000];
    table t = {0};
    uint64_t seed = sample_seed();
    CHECK(!llm_table_find(&t, 1));
    for (int step = 0; step < 20000; step++) {
        const int i = below(&seed, 1000);
        /* keys that differ in their upper or lower bits alone */
        const uint64_t key = i % 2 ? (uint64_t)i << 50 : (uint64_t)i;
        if (!CHECK(llm_table_find(&t, key) == (is_in[i] ? &x[i] : NULL)))
            break;
        x[i].key = key;
        if (is_in[i])
            llm_table_remove(&t, &x[i]);
        else if (CHECK(llm_table_reserve(&t)))
            llm_table_put(&t, &x[i]);
        is_in[i] = !is_in[i];
    }
    llm_table_fini(&t);
}
