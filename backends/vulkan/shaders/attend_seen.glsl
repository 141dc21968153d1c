/* Shared by attend_tiles.comp and attend_matrix.comp: which positions the queries of a tile see. */

shared int q_from[TILE], q_last[TILE]; /* positions that queries see; last -1: no query */
shared int q_slot[END ? TILE : 1];     /* with END a tile may have several slots, one of which is processed at a time */
int own_slot;                          /* this one */

/* Sets them for query q of the tile from pair `first` on. */
void set_seen(uint first, uint q) {
    uint token = token_of(min(first + q, n_pairs() - 1));
    int slot = slots[slot_at + token * slot_step];
    bool takes = first + q < n_pairs() && slot >= 0 && uint(slot) < n_slots;
    ivec2 rows = seen_by(token);
    q_from[q] = rows.x;
    q_last[q] = takes ? rows.y : -1;
    if (END)
        q_slot[q] = takes ? slot : -1;
}

bool is_own(uint q) {
    return !END || q_slot[q] == own_slot;
}

bool sees(uint q, int p) {
    return is_own(q) && p >= q_from[q] && p <= q_last[q];
}

struct seen {
    int from, to;         /* positions that some query sees */
    int all_from, all_to; /* that all see */
    uint number, last;    /* pages of this span; number > last if none */
};

seen all_seen(uint span) {
    seen s = seen(0x7fffffff, -1, 0, 0x7fffffff, 1, 0);
    for (uint q = 0; q < TILE; q++)
        if (q_last[q] >= 0 && !is_own(q)) {
            s.all_to = -1;
        } else if (q_last[q] >= 0) {
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
