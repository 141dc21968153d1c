/* Shared by attend_tiles.comp and attend_matrix.comp: which positions the queries of a tile see. */

shared int q_from[TILE], q_last[TILE]; /* positions that queries see; last -1: no query */

/* Sets them for query q of the tile from pair `first` on. */
void set_seen(uint first, uint q) {
    uint token = token_of(min(first + q, n_pairs() - 1));
    int pos = positions[pos_at + token * pos_step], slot = slots[slot_at + token * slot_step];
    q_from[q] = WINDOW ? max(pos - window + 1, 0) : 0;
    q_last[q] = first + q < n_pairs() && slot >= 0 && uint(slot) < n_slots ? pos : -1;
}

bool sees(uint q, int p) {
    return p >= q_from[q] && p <= q_last[q];
}

struct seen {
    int from, to;         /* positions that some query sees */
    int all_from, all_to; /* that all see */
    uint number, last;    /* pages of this span; number > last if none */
};

seen all_seen(uint span) {
    seen s = seen(0x7fffffff, -1, 0, 0x7fffffff, 1, 0);
    for (uint q = 0; q < TILE; q++)
        if (q_last[q] >= 0) {
            s.from = min(s.from, q_from[q]);
            s.to = max(s.to, q_last[q]);
            s.all_from = max(s.all_from, q_from[q]);
            s.all_to = min(s.all_to, q_last[q]);
        }
    if (s.to < 0)
        return s;
    s.number = uint(s.from) / PAGE;
    s.last = uint(s.to) / PAGE;
    if (SPLIT) {
        uint each = (s.last - s.number) / n_spans + 1;
        s.number += span * each;
        s.last = min(s.last, s.number + each - 1);
    }
    return s;
}

/* Whether some query does not see all of the page that begins at this position. */
bool is_edge(seen s, int begin) {
    return begin < s.all_from || begin + int(PAGE) - 1 > s.all_to;
}
