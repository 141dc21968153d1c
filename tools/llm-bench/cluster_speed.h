/* How fast a rank computes, and how long it takes for what a layer costs. */
#ifndef TOOLS_BENCH_CLUSTER_SPEED_H
#define TOOLS_BENCH_CLUSTER_SPEED_H

#include "ggl/types.h"

enum { CLUSTER_POINTS = 8, CLUSTER_KINDS = 8 };

/* Seconds for a product, for each byte of its weights, by the number of its columns: with one column, reading the weights takes the
 * time, with many the arithmetic does. Between points it grows evenly, after the last one in proportion. */
typedef struct cluster_speed {
    int n_points;
    double columns[CLUSTER_POINTS], seconds[CLUSTER_POINTS];
    double attend; /* seconds for a multiply-add of attention */
} cluster_speed;

/* Of a rank that reads gb 1e9 bytes per second, and does gmac 1e9 multiply-adds with weights of the type, and attend_gmac for
 * attention, per second. INFINITY: no limit. */
cluster_speed cluster_speed_of(double gb, double gmac, double attend_gmac, ggl_type type);
double cluster_speed_at(const cluster_speed *s, double columns);
/* The same rank if it read memory in no time, or calculated in no time. */
cluster_speed cluster_speed_without_memory(const cluster_speed *s);
cluster_speed cluster_speed_without_arithmetic(const cluster_speed *s);

/* What a part of the graph costs. */
typedef struct cluster_cost {
    double whole; /* bytes of weights that each run reads, whatever the batch */
    struct {
        /* bytes of one from each weight; how many there are; how many a token uses: experts, embeddings */
        double bytes, n_total, n_used;
    } picked[CLUSTER_KINDS];
    int n_picked;
    struct {
        double bytes, macs; /* for a position: kept, and to attend to it */
        double n_pos;       /* most positions kept */
    } store[CLUSTER_KINDS];
    int n_stores;
    double states; /* bytes that each sequence keeps in states */
} cluster_cost;

/* Returns the seconds for n tokens, of n_sequences sequences that have n_past tokens before these. Counts as many experts as
 * random choices select on average. */
double cluster_seconds(const cluster_cost *c, const cluster_speed *s, double n, double n_sequences,
                       double n_past);
double cluster_weights(const cluster_cost *c);              /* bytes */
double cluster_used(const cluster_cost *c);                 /* bytes of those that a token uses */
double cluster_cache(const cluster_cost *c, double n_past); /* bytes of a sequence */

#endif
