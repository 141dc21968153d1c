/* The latest answers by their ids, so that a later request may name one in place of sending it again: OpenAI's
 * previous_response_id, item_reference and conversations, Anthropic's threads.
 *
 *     store_put(s, &(stored){.id = "resp_1", .owner = client, .sent = items, .answer = body});
 *     const stored *x = store_find(s, id, client);   // NULL: it is gone, or another client's
 *     ..                                             // its texts do not change
 *     store_release(s, x);
 *
 * Memory: of MEMORY_STORE. Where that, or STORE_KEPT, is used up, what was unused for longest is forgotten, of the client that
 * has most. What nobody has used for the store's time is forgotten, too. Any thread. */
#ifndef LLM_SERVER_STORE_H
#define LLM_SERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/str.h"
#include "memory.h"

enum { STORE_ID = 63, STORE_KEPT = 4096 };

typedef struct answer_store answer_store;

/* Texts are JSON. An entry never changes; another one may take its place. */
typedef struct stored {
    char id[STORE_ID + 1]; /* with its kind: "resp_..", "msg_..", "conv_.." */
    char parent[STORE_ID +
                1];  /* the answer that it follows; "": none. An answer in a conversation: that */
    uint64_t owner;  /* only requests of the same owner find it */
    int64_t created; /* seconds since 1970 */
    ggl_str sent;    /* a list: what the request had besides what it named */
    ggl_str fixed;   /* an object: what later requests need not repeat; n 0: nothing */
    ggl_str answer;  /* the answer as an object; n 0: a conversation */
} stored;

/* seconds: how long an entry is kept after its last use. NULL: out of memory. */
answer_store *store_new(memory *m, int64_t seconds);
void store_free(answer_store *s); /* after all were released. NULL is fine. */
/* Forgets what was not used for the time. */
void store_expire(answer_store *s);
/* The most bytes that the texts of an entry may have. */
size_t store_most(const answer_store *s);

/* Keeps a copy, in place of one of the same id and owner. False: there is no room for it. */
bool store_put(answer_store *s, const stored *x);
/* The same in place of an entry that is held, unless another one has taken its place meanwhile: then false. */
bool store_replace(answer_store *s, const stored *held, const stored *x);
/* Finds an entry, which is used now, and holds it until store_release. NULL: there is none for this owner. */
const stored *store_find(answer_store *s, ggl_str id, uint64_t owner);
void store_release(answer_store *s, const stored *x); /* NULL is fine */
/* Adds the elements of two lists to those of an entry. False: it is gone, or there is no room. */
bool store_append(answer_store *s, ggl_str id, uint64_t owner, ggl_str first, ggl_str second);
/* Gives an entry another `fixed`. False: it is gone, or there is no room. */
bool store_set_fixed(answer_store *s, ggl_str id, uint64_t owner, ggl_str fixed);
/* False: there was none. */
bool store_remove(answer_store *s, ggl_str id, uint64_t owner);

#endif
