/* Estimates whether the KV cache has enough pages for a batch that is being put together, and chooses
 * slots to clear if not (pages.h). An estimate becomes invalid with the next call that changes or runs
 * slots, except a call that clears a slot to which nothing is appended. */
#ifndef LLM_SESSION_ROOM_H
#define LLM_SESSION_ROOM_H

#include "llm/internal/session.h"

/* Begins an estimate of an empty batch. */
void llm_session_estimate(llm_session *s);
/* Adds n_new tokens of a slot to the batch. llm_session_undo_append takes the same tokens out again. */
void llm_session_estimate_append(llm_session *s, int slot, int64_t n_new);
void llm_session_undo_append(llm_session *s, int slot, int64_t n_new);
/* Counts n_pages more pages as taken for something else. */
void llm_session_estimate_pages(llm_session *s, int64_t n_pages);
/* Returns how many pages are missing for the batch; 0 or less: there are enough. */
int64_t llm_session_lacking(const llm_session *s);
/* Like llm_pages_lacking_without and llm_pages_choose_to_clear. */
int64_t llm_session_lacking_without(llm_session *s, const int *slot, int n);
int llm_session_choose_to_clear(llm_session *s, int *slot, int n);

/* Texts that tokens read have pages of their own. Returns how many of their tokens the KV cache has room for in all. */
int64_t llm_session_room_to_read(const llm_session *s);
/* Chooses which of slot[0 .. n) are to give up what they have read, so that a text of n_text tokens can be read: as
 * llm_pages_choose_to_clear. It is an estimate of its own. */
int llm_session_choose_to_unread(llm_session *s, int64_t n_text, int *slot, int n);

#endif
