#include "owner_shares.h"

#include <stdlib.h>

static int compare_owners(const void *a, const void *b) {
    const uint64_t x = ((const owner_share *)a)->owner, y = ((const owner_share *)b)->owner;
    return (x > y) - (x < y);
}

uint64_t owner_of_most(owner_share *one, size_t n, uint64_t own) {
    owner_share most = {own, 0};
    if (n > 0)
        qsort(one, n, sizeof *one, compare_owners);
    for (size_t i = 0; i < n;) {
        owner_share sum = {one[i].owner, 0};
        for (; i < n && one[i].owner == sum.owner; i++)
            sum.n += one[i].n;
        if (sum.n > most.n || (sum.n == most.n && sum.owner == own))
            most = sum;
    }
    return most.owner;
}
