#include "cluster_speed.h"

#include <math.h>

#include "ggl/internal/types.h"

double cluster_speed_at(const cluster_speed *s, double columns) {
    const int last = s->n_points - 1;
    if (columns <= s->columns[0])
        return s->seconds[0];
    for (int i = 1; i <= last; i++)
        if (columns <= s->columns[i])
            return s->seconds[i - 1] + (s->seconds[i] - s->seconds[i - 1]) *
                                           (columns - s->columns[i - 1]) /
                                           (s->columns[i] - s->columns[i - 1]);
    return s->seconds[last] * columns / s->columns[last];
}

cluster_speed cluster_speed_of(double gb, double gmac, double attend_gmac, ggl_type type) {
    const ggl_type_info *t = ggl_type_get((int)type);
    const double read = 1 / (gb * 1e9), column = (double)t->block / (double)t->size / (gmac * 1e9);
    cluster_speed s = {.attend = 1 / (attend_gmac * 1e9)};
    s.columns[s.n_points] = 1;
    s.seconds[s.n_points++] = fmax(read, column);
    if (column > 0 && read > column) {
        s.columns[s.n_points] = read / column;
        s.seconds[s.n_points++] = read;
    } else if (column == 0) { /* more columns take no more time */
        return cluster_speed_without_arithmetic(&s);
    }
    return s;
}

cluster_speed cluster_speed_without_memory(const cluster_speed *s) {
    const int last = s->n_points - 1;
    return (cluster_speed){1, {1}, {s->seconds[last] / s->columns[last]}, s->attend};
}

cluster_speed cluster_speed_without_arithmetic(const cluster_speed *s) {
    return (cluster_speed){2, {1, 1e300}, {s->seconds[0], s->seconds[0]}, 0};
}

double cluster_seconds(const cluster_cost *c, const cluster_speed *s, double n, double n_sequences,
                       double n_past) {
    const double byte = cluster_speed_at(s, 1);
    double sum = c->whole * cluster_speed_at(s, n) + 2 * n * c->states * byte;
    for (int i = 0; i < c->n_picked && n > 0; i++) {
        const double n_total = c->picked[i].n_total,
                     some = n_total * (1 - pow(1 - c->picked[i].n_used / n_total, n));
        if (some > 0)
            sum += some * c->picked[i].bytes * cluster_speed_at(s, n * c->picked[i].n_used / some);
    }
    for (int i = 0; i < c->n_stores; i++) {
        const double kept = fmin(n_past, c->store[i].n_pos);
        sum += fmax(n_sequences * kept * c->store[i].bytes * byte,
                    n * kept * c->store[i].macs * s->attend);
    }
    return n > 0 ? sum : 0;
}

double cluster_weights(const cluster_cost *c) {
    double sum = c->whole;
    for (int i = 0; i < c->n_picked; i++)
        sum += c->picked[i].bytes * c->picked[i].n_total;
    return sum;
}

double cluster_used(const cluster_cost *c) {
    double sum = c->whole;
    for (int i = 0; i < c->n_picked; i++)
        sum += c->picked[i].bytes * c->picked[i].n_used;
    return sum;
}

double cluster_cache(const cluster_cost *c, double n_past) {
    double sum = c->states;
    for (int i = 0; i < c->n_stores; i++)
        sum += c->store[i].bytes * fmin(n_past, c->store[i].n_pos);
    return sum;
}
