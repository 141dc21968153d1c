/* How tasks of unlike units are divided among threads. */
#include "share.h"

#include <math.h>

#include "seed.h"
#include "test.h"

/* A product of 14 large units beside a sum of 1600 small ones: no thread takes more than one of the large ones at a time. */
TEST(a_product_beside_a_sum) {
    cpu_share task[] = {{.cost = 1000, .n_units = 14}, {.cost = 1, .n_units = 1600}};
    CHECK_INT(ggl_cpu_divide(task, 2, 15600 / 16.0), 14 + 2);
    CHECK_INT(task[0].chunk, 1);
    CHECK_INT(task[1].chunk, 975);
    CHECK_INT(ggl_cpu_divide(task, 2, 3000), 5 + 1);
    CHECK_INT(ggl_cpu_divide(task, 2, 0), 1614);         /* every unit alone */
    CHECK_INT(ggl_cpu_divide(task, 2, INFINITY), 1 + 1); /* one thread does all */
    CHECK_INT(task[1].chunk, 1600);
}

/* However the chunks are taken, each unit is taken once. */
TEST(each_unit_once) {
    uint64_t seed = sample_seed();
    enum { TASKS = 4, MOST = 300 };
    for (int round = 0; round < 2000 && test_failures == 0; round++) {
        cpu_list l = {.n = TASKS, .spread = {.n_teams = 1 + round % 5}};
        uint8_t n_taken[TASKS][MOST] = {{0}};
        for (int i = 0; i < TASKS; i++)
            l.share[i] = (cpu_share){.cost = (double)(test_random(&seed) % 1000),
                                     .n_units = (int64_t)(test_random(&seed) % MOST)};
        for (int k = 0; k < l.spread.n_teams; k++) /* some teams may have no threads */
            l.spread.before[k + 1] = l.spread.before[k] + (int)(test_random(&seed) % 9);
        l.spread.before[l.spread.n_teams]++;
        const int64_t n = ggl_cpu_divide(l.share, TASKS, (double)(test_random(&seed) % 20000));
        int64_t part_end[CPU_MAX_TEAMS];
        ggl_cpu_list_parts(&l, part_end);
        CHECK_INT(part_end[l.spread.n_teams - 1], n);
        for (int64_t at = 0, taken; at < n; at += taken) {
            taken = 1 + (int64_t)(test_random(&seed) % 7);
            int64_t first = at, last = at + taken < n ? at + taken : n, begin, end;
            for (int team = 0; team < l.spread.n_teams; team++)
                for (int i = 0; i < TASKS; i++) {
                    ggl_cpu_list_take(&l, i, team, &first, &last, &begin, &end);
                    for (int64_t u = begin; u < end; u++)
                        n_taken[i][u]++;
                    if (begin < end)
                        CHECK(at < part_end[team] &&
                              (team == 0 || at + taken > part_end[team - 1]));
                }
        }
        for (int i = 0; i < TASKS; i++)
            for (int64_t u = 0; u < l.share[i].n_units; u++)
                CHECK_INT(n_taken[i][u], 1);
    }
}
