/* The answers of /v1/responses. Request: api_openai_responses.c; answers: api_openai_events.c. */
#ifndef LLM_SERVER_API_OPENAI_RESPONSES_H
#define LLM_SERVER_API_OPENAI_RESPONSES_H

#include "api_openai.h"
#include "api_pieces.h"

/* The state of an answer, in answer.own. An item of the output is open while parts of its kind come. */
typedef struct responses_state {
    int64_t sequence; /* events so far */
    int n_items;      /* closed ones */
    bool open;
    part_kind kind;          /* of the open item */
    kept_text text;          /* of the open item; of a call: its arguments */
    kept_text name, call_id; /* of the open call */
    kept_text logprobs;      /* of the open item, with commas */
    kept_text output;        /* JSON of the closed items, with commas */
    bool failed;             /* out of memory */
    bool cut;                /* the answer ended before the model's end */
} responses_state;

void openai_responses_put_usage(const answer_counts *n, llm_json_out *out);
void openai_responses_kept(const answer *x, llm_json_out *out);
void openai_responses_whole(const answer *x, llm_json_out *out);
void openai_responses_begin(const answer *x, llm_json_out *out);
void openai_responses_part(const answer *x, const answer_choice *c, const answer_part *p,
                           llm_json_out *out);
void openai_responses_progress(const answer *x, const answer_choice *c, int64_t n_done,
                               llm_json_out *out);
void openai_responses_end_choice(const answer *x, const answer_choice *c, llm_json_out *out);
void openai_responses_end(const answer *x, llm_json_out *out);
void openai_responses_error(const api_error *e, bool in_stream, llm_json_out *out);

#endif
