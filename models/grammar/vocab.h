/* A vocabulary's tokens as a trie of their bytes. */
#ifndef LLM_GRAMMAR_VOCAB_H
#define LLM_GRAMMAR_VOCAB_H

#include "ggl/str.h"
#include "llm/internal/grammar.h"
#include "translate.h"

enum { LLM_N_SLICES = 8, LLM_N_SLICE_CHARS = 2, LLM_SLICE_CHARS_MOST = 8 };

/* Nodes stand in the order in which a walk by depth enters them: the children of node i begin at
 * i + 1, and what is below it ends at `end`. Texts have the numbers first .. node[i + 1].first if
 * they end at the node, and first .. node[end].first if they end there or below. A node after the
 * last one closes these ranges.
 *
 * A node is pure for set k of characters if all texts at or below it, from its byte on, have only
 * characters of the set. In a vocabulary pure siblings stand together (llm_trie_sort). */
typedef struct llm_trie_node {
    int32_t end, first;
    int32_t run_end[LLM_N_SLICE_CHARS]; /* the end of the pure siblings from this node on */
    uint8_t run[LLM_N_SLICE_CHARS];  /* how many characters they have at most; 0: it is not pure */
    uint8_t tail[LLM_N_SLICE_CHARS]; /* how many it has itself */
    uint16_t depth;
    uint8_t byte;
    uint8_t slices; /* bit k: all texts that end here or below are in slice k of the vocabulary */
} llm_trie_node;

typedef struct llm_trie {
    llm_trie_node *node; /* node 0 is the root */
    int32_t *id;         /* [n_texts] what the texts stand for, in their order */
    int32_t first[256];  /* the root's children by their bytes; 0 if none */
    int32_t n_nodes, n_texts, max_depth;
} llm_trie;

/* A text, and what it stands for. */
typedef struct llm_trie_text {
    ggl_str text;
    uint64_t key; /* of the sort */
    int32_t id;
} llm_trie_text;

enum { LLM_TRIE_MAX_DEPTH = 60000 };

/* Sorts the texts and makes a trie of those of 1 to LLM_TRIE_MAX_DEPTH bytes. Returns false if out of
 * memory. */
bool llm_trie_make(llm_trie *t, llm_trie_text *text, int32_t n);
void llm_trie_fini(llm_trie *t);
/* Puts pure children before others, those of the smaller set first, and finds the runs. The tails must
 * be known. Returns false if out of memory. */
bool llm_trie_sort(llm_trie *t);

/* Tokens of at most `most` characters, all of set `chars`: a state that loops over more than these
 * characters allows all of them, and walks need not enter nodes with nothing else. */
typedef struct llm_slice {
    int chars; /* index of llm_slice_chars */
    int32_t most;
} llm_slice;

/* Slices of the same characters follow each other, the larger one first. */
extern const llm_slice llm_slices[LLM_N_SLICES];
typedef struct llm_slice_set {
    int32_t n;
    llm_char_range range[LLM_SLICE_CHARS_MOST];
} llm_slice_set;
extern const llm_slice_set llm_slice_chars[LLM_N_SLICE_CHARS];

struct llm_vocab {
    int32_t n;      /* ids */
    size_t n_words; /* of a mask */
    llm_trie trie;
    char *blob;      /* the texts */
    ggl_str *text;   /* [n]; empty: the token is never allowed by its text */
    uint32_t *eog;   /* [n_words] */
    uint32_t *slice; /* [LLM_N_SLICES * n_words] the tokens of each */
    bool spells_all; /* every byte of UTF-8 is a token */
    llm_char_range *range;
    llm_spelling spelling; /* the characters that tokens can write, unless spells_all */
};

#endif
