/* Whether the pages of the KV cache suffice for a batch that is being put together, and which slots to
 * clear if they do not (pages.h). An estimate ends with the next call that changes or runs slots,
 * unless it clears a slot to which nothing is appended. */
#ifndef LLM_SESSION_ROOM_H
#define LLM_SESSION_ROOM_H

#include "llm/session.h"

/* Begins an estimate. */
void llm_session_estimate(llm_session *s);
/* Adds: n_new tokens are appended to a slot. Undo takes the same back. */
void llm_session_estimate_append(llm_session *s, int slot, int64_t n_new);
void llm_session_undo_append(llm_session *s, int slot, int64_t n_new);
/* Adds: so many pages are taken for something else. */
void llm_session_estimate_pages(llm_session *s, int64_t n_pages);
/* Returns how many pages are lacking; 0 or less: there are enough. */
int64_t llm_session_lacking(const llm_session *s);
/* As llm_pages_lacking_without and llm_pages_choose_to_clear. */
int64_t llm_session_lacking_without(llm_session *s, const int *slot, int n);
int llm_session_choose_to_clear(llm_session *s, int *slot, int n);

#endif
