/* Aho and Corasick's automaton (1975): finds all tokens in a text while each byte is read once,
 * whatever the tokens are.
 *
 * The text is read in one direction, and so are the spellings when the automaton is built. After
 * each byte its state is the longest stretch that was just read and with which some token begins.
 * Read from the end to the beginning, the tokens found at a state are those that start at the byte
 * just read; read forward, those that end with it.
 *
 *     automaton x;
 *     llm_automaton_init(&x, err); llm_automaton_add(&x, spelling, id, backward, &added, err) ..;
 *     llm_automaton_finish(&x, err);
 *     state = 0;
 *     for each byte:
 *         state = llm_automaton_step(&x, state, byte);
 *         for (int32_t i = x.node[state].found; i != 0; i = llm_automaton_next(&x, i))
 *             .. token x.node[i].id, of x.node[i].depth bytes; the longest first */
#ifndef LLM_AUTOMATON_H
#define LLM_AUTOMATON_H

#include "ggl/index.h"

typedef struct automaton_node {
    int32_t parent, byte; /* the key: the parent's spelling and one byte more in reading order */
    int32_t shorter;      /* the node of the longest proper suffix, in reading order */
    int32_t found;        /* the first node with a token from here on along `shorter`; 0: none */
    int32_t id;           /* the token that is spelled so; -1: none */
    uint32_t depth;       /* bytes */
} automaton_node;

typedef struct automaton {
    automaton_node *node; /* node[0] is the root: nothing */
    size_t n, cap;
    ggl_index child;     /* nodes by parent and byte */
    uint32_t most_found; /* at one state; found_most: the token of these that is the longest */
    int32_t found_most;
    int32_t child_of_root[256];
} automaton;

GGL_NODISCARD ggl_status llm_automaton_init(automaton *x, ggl_error *err);
/* Adds a token; `backward`: the text will be read from its end. An empty spelling is not added; of
 * equal ones the first counts. *added (which may be NULL) says whether it was. GGL_NOMEM; GGL_LIMIT:
 * there are more bytes than any vocabulary has. */
GGL_NODISCARD ggl_status llm_automaton_add(automaton *x, ggl_str spelling, int32_t id,
                                           bool backward, bool *added, ggl_error *err);
/* After all tokens were added. */
GGL_NODISCARD ggl_status llm_automaton_finish(automaton *x, ggl_error *err);
void llm_automaton_fini(automaton *x);

/* The node of a node's spelling and one byte more; 0: there is none. (0 as `node`: of that byte.) */
int32_t llm_automaton_child(const automaton *x, int32_t node, unsigned char byte);
/* The state after one more byte. All steps over a text take time linear in its length. */
int32_t llm_automaton_step(const automaton *x, int32_t state, unsigned char byte);
/* The next shorter token that is found where the one of node i is; 0: there is none. */
static inline int32_t llm_automaton_next(const automaton *x, int32_t i) {
    return x->node[x->node[i].shorter].found;
}

#endif
