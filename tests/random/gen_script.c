/* Which tokens pass, and what happens to the sequences in between: only what docs allow. */
#include "gen_impl.h"

typedef struct sequence {
    int next, high; /* the next position; one more than the highest that was ever written */
    int version;    /* changes when what it holds is replaced */
} sequence;

typedef struct script {
    gen *g;
    const r_program *p;
    bool has_states, has_windows;
    sequence slot[R_MOST_SLOTS];
    sequence saved[R_MOST_SAVES];
    int saved_of[R_MOST_SAVES], n_saved, n_versions;
} script;

static void push(script *s, r_action_kind kind, int slot, int other, int n_pos) {
    r_program *p = s->g->p;
    p->action[p->n_actions++] = (r_action){kind, p->n_tokens, slot, other, n_pos};
}

/* The first position that a sequence may go back to: with windows a batch may be written over older
 * rows. */
static int earliest(const script *s, int high) {
    int limit = s->p->n_batch - 1;
    return !s->has_windows ? 0 : high > limit ? high - limit : 0;
}

static void cut(script *s, int i) {
    sequence *q = &s->slot[i];
    int first = earliest(s, q->high);
    if (s->has_states || first >= q->next)
        return;
    q->next = first + choose(s->g, q->next - first);
    push(s, R_CUT, i, 0, q->next);
}

static void save(script *s, int i) {
    if (s->n_saved == R_MOST_SAVES)
        return;
    s->saved_of[s->n_saved] = i;
    s->saved[s->n_saved] = s->slot[i];
    push(s, R_SAVE, i, s->n_saved++, s->slot[i].next);
}

static void restore(script *s, int i) {
    if (s->n_saved == 0)
        return;
    int k = choose(s->g, s->n_saved);
    const sequence *from = &s->saved[k];
    sequence *q = &s->slot[i];
    bool same = s->saved_of[k] == i && from->version == q->version &&
                from->next >= earliest(s, q->high) && from->next <= q->next;
    if (same && s->has_states && chance(s->g, 2)) {
        q->next = from->next;
        push(s, R_RESTORE_STATES, i, k, from->next);
        return;
    }
    *q = *from;
    q->version = ++s->n_versions;
    push(s, R_RESTORE, i, k, from->next);
}

static void act(script *s) {
    r_program *p = s->g->p;
    if (p->n_actions == R_MOST_ACTIONS)
        return;
    int i = choose(s->g, p->n_slots), other = choose(s->g, p->n_slots);
    switch (choose(s->g, 6)) {
    case 0:
        s->slot[i] = (sequence){.version = ++s->n_versions};
        push(s, R_CLEAR, i, 0, 0);
        return;
    case 1:
        if (i == other)
            return;
        s->slot[i] = s->slot[other];
        s->slot[i].version = ++s->n_versions;
        push(s, R_COPY, i, other, 0);
        return;
    case 2:
        cut(s, i);
        return;
    case 3:
        save(s, i);
        return;
    case 4:
        restore(s, i);
        return;
    default:
        push(s, R_CHANGE, 0, 0, 0);
    }
}

static script begin(gen *g, const r_program *p) {
    script s = {.g = g, .p = p};
    for (int i = 0; i < p->n; i++) {
        s.has_states |= p->node[i].op == R_STATE;
        s.has_windows |= p->node[i].op == R_ATTEND && !isnan(p->node[i].num[1]);
    }
    return s;
}

static void advance(sequence *q) {
    q->next++;
    q->high = q->next > q->high ? q->next : q->high;
}

void make_script(gen *g) {
    r_program *p = g->p;
    script s = begin(g, p);
    int n = s.has_windows && chance(g, 4) ? 80 + choose(g, R_MOST_TOKENS - 80) : 4 + choose(g, 24),
        slot = 0;
    while (p->n_tokens < n) {
        if (chance(g, 8) && p->n_tokens > 0)
            act(&s);
        if (chance(g, 3))
            slot = choose(g, p->n_slots);
        sequence *q = &s.slot[slot];
        if (q->next >= p->n_pos)
            break;
        p->token[p->n_tokens] =
            (r_token){slot, q->next, r_mix(p->seed, 0x10000 + (uint64_t)p->n_tokens)};
        p->n_tokens++;
        advance(q);
    }
}

/* --- a script that was changed ---------------------------------------------------------------- */

static bool follows(script *s, const r_action *a) {
    sequence *q = &s->slot[a->slot];
    const sequence *from = &s->saved[a->other];
    switch (a->kind) {
    case R_CLEAR:
        *q = (sequence){.version = ++s->n_versions};
        return true;
    case R_COPY:
        *q = s->slot[a->other];
        q->version = ++s->n_versions;
        return true;
    case R_CUT:
        if (s->has_states || a->n_pos > q->next || a->n_pos < earliest(s, q->high))
            return false;
        q->next = a->n_pos;
        return true;
    case R_SAVE:
        s->saved[a->other] = *q;
        s->saved_of[a->other] = a->slot;
        s->n_saved |= 1 << a->other;
        return a->n_pos == q->next;
    case R_RESTORE:
        *q = *from;
        q->version = ++s->n_versions;
        return s->n_saved >> a->other & 1 && a->n_pos == from->next;
    case R_RESTORE_STATES: {
        bool same = s->saved_of[a->other] == a->slot && from->version == q->version;
        bool there = from->next >= earliest(s, q->high) && from->next <= q->next;
        q->next = from->next;
        return s->n_saved >> a->other & 1 && same && there && a->n_pos == from->next;
    }
    case R_CHANGE:
        return true;
    }
    return false;
}

bool r_is_legal(const r_program *p) {
    script s = begin(NULL, p);
    for (int k = 0, a = 0; k < p->n_tokens; k++) {
        for (; a < p->n_actions && p->action[a].before <= k; a++)
            if (!follows(&s, &p->action[a]))
                return false;
        sequence *q = &s.slot[p->token[k].slot];
        if (p->token[k].pos != q->next)
            return false;
        advance(q);
    }
    return true;
}
