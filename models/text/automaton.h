/* Aho and Corasick's automaton (1975): finds all tokens in a text while reading each byte once,
 * whatever the tokens are. Children of a node are found by their byte among neighbours, so that no hash, and no seed, is needed.
 *
 * Text and spellings are read in the same direction. Its state
 * after each byte is the longest string just read that is the beginning of some token. Reading
 * backward, the tokens found at a state start at the byte just read; reading forward, they end with
 * it.
 *
 *     automaton x;
 *     llm_automaton_init(&x, backward, err); llm_automaton_add(&x, spelling, id, err) ..;
 *     llm_automaton_finish(&x, err);
 *     state = 0;
 *     for each byte:
 *         state = llm_automaton_step(&x, state, byte);
 *         for (int32_t i = x.node[state].found; i != 0; i = llm_automaton_next(&x, i))
 *             .. token x.node[i].id, of x.node[i].depth bytes, the longest first */
#ifndef LLM_AUTOMATON_H
#define LLM_AUTOMATON_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/status.h"
#include "ggl/str.h"

typedef struct automaton_node {
    int32_t
        first; /* its first child: they stand side by side up to the first one of the next node, in the order of their bytes */
    int32_t shorter; /* the node of the longest proper suffix, in reading order */
    int32_t found;   /* this node or the next with a token along `shorter`; 0: none */
    int32_t id;      /* the token with this spelling; -1: none */
    uint32_t depth;  /* bytes of the spelling */
} automaton_node;

typedef struct automaton_key {
    const char *s;
    uint32_t n;
    int32_t id;
} automaton_key;

typedef struct automaton {
    automaton_node *
        node; /* node[0] is the root: the empty string; behind node[n - 1] there is one more, for its `first` */
    unsigned char *label; /* [n], the last byte of each node's spelling, in reading order */
    size_t n, cap;
    uint32_t most_found; /* the most tokens found at one state; found_most: the longest of them */
    int32_t found_most;
    int32_t child_of_root[256];
    bool backward;      /* the text will be read from its end */
    automaton_key *key; /* what was added; NULL once it is finished */
    size_t n_keys, cap_keys;
} automaton;

GGL_NODISCARD ggl_status llm_automaton_init(automaton *x, bool backward, ggl_error *err);
/* Adds a token; its spelling must stay until llm_automaton_finish. An empty one is skipped; of equal ones the first counts. */
GGL_NODISCARD ggl_status llm_automaton_add(automaton *x, ggl_str spelling, int32_t id,
                                           ggl_error *err);
/* Call after all tokens were added, and before anything is looked for. Fails with GGL_NOMEM or GGL_LIMIT (more bytes than any vocabulary has). */
GGL_NODISCARD ggl_status llm_automaton_finish(automaton *x, ggl_error *err);
void llm_automaton_fini(automaton *x);

/* Returns the token with this spelling; -1: none. */
int32_t llm_automaton_id(const automaton *x, ggl_str spelling);
/* Returns the child of a node (0: the root) for a byte; 0: none. */
int32_t llm_automaton_child(const automaton *x, int32_t node, unsigned char byte);
/* Returns the state after another byte. All steps over a text take time linear in its length. */
int32_t llm_automaton_step(const automaton *x, int32_t state, unsigned char byte);
/* Returns the next shorter token found at the same place as that of node i; 0: none. */
static inline int32_t llm_automaton_next(const automaton *x, int32_t i) {
    return x->node[x->node[i].shorter].found;
}

#endif
