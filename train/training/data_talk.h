/* Conversations as items: rendered by the model's chat template, of which the answers count. */
#ifndef TRAIN_DATA_TALK_H
#define TRAIN_DATA_TALK_H

#include "common/json_write.h"
#include "data_impl.h"
#include "data_reads.h"
#include "llm/internal/talk.h"

/* A conversation while it is put together. Zero it first; free it with llm_train_talk_fini. */
typedef struct train_talk {
    llm_talk *talk;    /* NULL: it has neither messages nor variables yet */
    ggl_arena arena;   /* messages and names that the talk reads */
    llm_json *tools;   /* that were a text; NULL: none */
    llm_json_out text; /* of a content, with marks */
    json_value now;    /* a variable of the template */
    size_t n;          /* messages */
    float *
        weight; /* [n]: how much each token of the message counts, if it is an answer; 0: not at all */
    size_t cap;
    bool has_tools;
    int64_t n_empty; /* answers that count, and that are empty */
    train_data *d;   /* that shows its files; NULL: it has none */
    /* The files that stand beside the messages: a list or one, which "<image>" and "<audio>" in texts, and parts without an address, name one after the other; and
     * how many were named. */
    const json_value *file[TRAIN_FILE_KINDS];
    uint32_t n_named[TRAIN_FILE_KINDS];
} train_talk;

void llm_train_talk_fini(train_talk *t);
/* Lets the messages name the files of the object, before they are added. */
void llm_train_talk_files(train_talk *t, train_data *d, const json_value *object);
/* Adds a message. counts: an answer counts, unless the message says otherwise. name: for messages. GGL_FORMAT: it is no message. */
GGL_NODISCARD ggl_status llm_train_talk_add(train_talk *t, const json_value *message, bool counts,
                                            ggl_error *err);
/* Adds a message that is a text. An answer counts, unless `of` (may be NULL) says otherwise. */
GGL_NODISCARD ggl_status llm_train_talk_say(train_talk *t, const char *role, ggl_str content,
                                            const json_value *of, ggl_error *err);
/* Sets a variable of the template; tools are checked. */
GGL_NODISCARD ggl_status llm_train_talk_set(train_talk *t, const char *name,
                                            const json_value *value, ggl_error *err);

/* Adds the conversation's items: one, or, if the template shows earlier turns in another way later, one for each stretch of answers that it
 * shows alike. GGL_UNSUPPORTED: there is no template, or an answer cannot be found in what it writes. */
GGL_NODISCARD ggl_status llm_train_talk_items(train_data *d, train_talk *t, ggl_error *err);
/* Makes a draft of it: the item with its last answers. */
GGL_NODISCARD ggl_status llm_train_talk_draft(train_data *d, train_talk *t, train_draft *s,
                                              ggl_error *err);

#endif
