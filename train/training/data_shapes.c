#include "data_shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data_matches.h"
#include "data_members.h"
#include "data_reads.h"
#include "data_speech.h"
#include "data_talk.h"
#include "data_text.h"
#include "ggl/internal/show.h"

/* --- members ---------------------------------------------------------------------------------- */

static bool is_list(const json_value *v) {
    return v && v->kind == JSON_ARRAY;
}

/* Adds the messages of a list. */
static ggl_status add_list(train_talk *t, const json_value *list, const char *name, bool counts,
                           ggl_error *err) {
    ggl_status st = GGL_OK;
    for (uint32_t i = 0; i < list->n && st == GGL_OK; i++) {
        st = llm_train_talk_add(t, &list->item[i], counts, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "%s[%" PRIu32 "]", name, i);
    }
    return st;
}

/* Sets what a template reads besides the messages. */
static ggl_status add_variables(train_talk *t, const json_value *object, ggl_error *err) {
    const json_value *more = llm_train_member(object, "chat_template_kwargs"),
                     *tools = llm_train_member(object, "tools"),
                     *documents = llm_train_member(object, "documents");
    char copy[128];
    ggl_status st = GGL_OK;
    if (more && more->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_FORMAT, "\"chat_template_kwargs\" must be an object, not %s",
                        llm_json_kind_text((json_kind)more->kind));
    if (tools)
        st = llm_train_talk_set(t, "tools", tools, err);
    if (st == GGL_OK && documents)
        st = llm_train_talk_set(t, "documents", documents, err);
    for (uint32_t i = 0; more && i < more->n && st == GGL_OK; i++) {
        const ggl_str name = json_name(more, i);
        if (ggl_str_is(name, "messages") || ggl_str_is(name, "tools") ||
            ggl_str_is(name, "documents") || ggl_str_is(name, "add_generation_prompt") ||
            memchr(name.s, 0, name.n) || name.n >= sizeof copy)
            return ggl_fail(err, GGL_FORMAT, "\"chat_template_kwargs\" cannot set \"%.*s\"",
                            (int)ggl_utf8_cut(name.s, name.n, 60), name.s);
        snprintf(copy, sizeof copy, "%.*s", (int)name.n, name.s);
        st = llm_train_talk_set(t, copy, &more->item[i], err);
    }
    return st;
}

/* --- texts and answers ------------------------------------------------------------------------ */

/* Texts without roles have no place for pictures and sounds. */
static ggl_status check_alone(const json_value *o, ggl_error *err) {
    static const char *const name[] = {"images", "image", "audios", "audio"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const json_value *v = llm_train_member(o, name[i]);
        if (v && !(is_list(v) && v->n == 0))
            return ggl_fail(
                err, GGL_UNSUPPORTED,
                "\"%s\" beside a text without roles: pictures and sounds stand in "
                "\"messages\" or \"conversations\", and a sound with its \"text\" is for "
                "models that write down speech",
                name[i]);
    }
    return GGL_OK;
}

static ggl_status read_text(train_data *d, const json_value *o, ggl_error *err) {
    ggl_str text;
    ggl_status st = check_alone(o, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "text", false, &text, err);
    return st == GGL_OK ? llm_train_text(d, text, err) : st;
}

static ggl_status add_raw(train_data *d, const json_value *o, ggl_str prompt, ggl_str answer,
                          ggl_error *err) {
    train_draft s = {0};
    bool added;
    ggl_status st = check_alone(o, err);
    if (st == GGL_OK)
        st = llm_train_set_kind(d, TRAIN_ANSWERS, err);
    if (st == GGL_OK)
        st = llm_train_text_draft(d, &s, prompt, answer, d->p.all, err);
    if (st == GGL_OK)
        st = llm_train_add(d, &s, true, &added, err);
    llm_train_draft_fini(&s);
    return st;
}

/* Adds the items of a conversation that is complete, and frees it. */
static ggl_status finish_talk(train_data *d, train_talk *t, ggl_status st, ggl_error *err) {
    if (st == GGL_OK)
        st = llm_train_set_kind(d, TRAIN_ANSWERS, err);
    if (st == GGL_OK)
        st = llm_train_talk_items(d, t, err);
    llm_train_talk_fini(t);
    return st;
}

static ggl_status read_completion(train_data *d, const json_value *o, ggl_error *err) {
    const json_value *a = llm_train_member(o, "prompt"), *b = llm_train_member(o, "completion");
    ggl_str prompt, answer;
    ggl_status st;
    if (llm_train_member(o, "label"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "\"label\": single answers that are good or bad are not supported; write "
                        "pairs with \"prompt\", \"chosen\" and \"rejected\", or only the good ones "
                        "without \"label\"");
    if (is_list(a) != is_list(b))
        return ggl_fail(err, GGL_FORMAT,
                        "\"prompt\" and \"completion\" must both be strings, or both lists of "
                        "messages, but \"%s\" is %s",
                        is_list(a) ? "completion" : "prompt",
                        llm_json_kind_text((json_kind)(is_list(a) ? b : a)->kind));
    if (is_list(a)) {
        train_talk t = {0};
        llm_train_talk_files(&t, d, o);
        st = add_list(&t, a, "prompt", false, err);
        if (st == GGL_OK)
            st = add_list(&t, b, "completion", true, err);
        if (st == GGL_OK)
            st = add_variables(&t, o, err);
        return finish_talk(d, &t, st, err);
    }
    st = llm_train_text_of(o, "prompt", false, &prompt, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "completion", false, &answer, err);
    return st == GGL_OK ? add_raw(d, o, prompt, answer, err) : st;
}

static ggl_status read_messages(train_data *d, const json_value *o, ggl_error *err) {
    const json_value *list = llm_train_member(o, "messages");
    train_talk t = {0};
    if (!is_list(list))
        return ggl_fail(err, GGL_FORMAT, "\"messages\" must be a list of messages, not %s",
                        llm_json_kind_text((json_kind)list->kind));
    llm_train_talk_files(&t, d, o);
    ggl_status st = add_list(&t, list, "messages", true, err);
    if (st == GGL_OK)
        st = add_variables(&t, o, err);
    return finish_talk(d, &t, st, err);
}

/* Who speaks, in ShareGPT's words. */
static const struct {
    const char *from, *role;
} speakers[] = {{"human", "user"},          {"user", "user"},        {"gpt", "assistant"},
                {"assistant", "assistant"}, {"model", "assistant"},  {"chatgpt", "assistant"},
                {"bard", "assistant"},      {"bing", "assistant"},   {"system", "system"},
                {"tool", "tool"},           {"observation", "tool"}, {"function_response", "tool"}};

static ggl_status add_turn(train_talk *t, const json_value *turn, ggl_error *err) {
    const json_value *from = llm_json_get_kind(turn, "from", JSON_STRING);
    ggl_str value;
    if (turn->kind == JSON_OBJECT && !from && llm_train_member(turn, "role"))
        return llm_train_talk_add(t, turn, true, err);
    if (!from)
        return ggl_fail(
            err, GGL_FORMAT,
            "a turn must be an object such as {\"from\": \"human\", \"value\": \"Hi\"}");
    ggl_status st = llm_train_text_of(turn, "value", false, &value, err);
    if (st != GGL_OK)
        return st;
    for (size_t i = 0; i < sizeof speakers / sizeof *speakers; i++)
        if (llm_json_is(from, speakers[i].from))
            return llm_train_talk_say(t, speakers[i].role, value, turn, err);
    return ggl_fail(err, GGL_FORMAT,
                    "\"from\" is \"%.*s\"; \"human\", \"gpt\", \"system\" or \"tool\" is expected",
                    (int)ggl_utf8_cut(from->s, from->n, 40), from->s);
}

static ggl_status add_system(train_talk *t, const json_value *o, ggl_error *err) {
    ggl_str system;
    const ggl_status st = llm_train_text_of(o, "system", true, &system, err);
    return st == GGL_OK && system.n > 0 ? llm_train_talk_say(t, "system", system, NULL, err) : st;
}

static ggl_status read_turns(train_data *d, const json_value *o, ggl_error *err) {
    const json_value *list = llm_train_member(o, "conversations");
    train_talk t = {0};
    if (!is_list(list))
        return ggl_fail(err, GGL_FORMAT, "\"conversations\" must be a list of turns, not %s",
                        llm_json_kind_text((json_kind)list->kind));
    llm_train_talk_files(&t, d, o);
    ggl_status st = add_system(&t, o, err);
    for (uint32_t i = 0; i < list->n && st == GGL_OK; i++) {
        st = add_turn(&t, &list->item[i], err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "conversations[%" PRIu32 "]", i);
    }
    if (st == GGL_OK)
        st = add_variables(&t, o, err);
    return finish_talk(d, &t, st, err);
}

/* --- texts that are answered ------------------------------------------------------------------ */

/* The keys of a text and its answer, of models that read the one and write the other. */
static const char *const answered[][2] = {{"prompt", "completion"},  {"source", "target"},
                                          {"instruction", "output"}, {"input", "output"},
                                          {"input", "target"},       {"question", "answer"},
                                          {"document", "summary"}};

static ggl_status read_answered(train_data *d, const json_value *o, ggl_error *err) {
    ggl_str text, answer, input;
    llm_json_out both = {0};
    size_t k = 0;
    while (k < sizeof answered / sizeof *answered &&
           !(llm_train_member(o, answered[k][0]) && llm_train_member(o, answered[k][1])))
        k++;
    if (k == sizeof answered / sizeof *answered)
        return ggl_fail(err, GGL_FORMAT,
                        "the model reads a text and writes another one, and learns from lines with "
                        "both: \"source\" and \"target\", \"prompt\" and \"completion\", or "
                        "\"input\" and \"output\"");
    ggl_status st = check_alone(o, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, answered[k][0], false, &text, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, answered[k][1], false, &answer, err);
    if (st == GGL_OK && strcmp(answered[k][0], "instruction") == 0)
        st = llm_train_text_of(o, "input", true, &input, err);
    else
        input = (ggl_str){"", 0};
    if (st != GGL_OK)
        return st;
    llm_json_put(&both, text.s, text.n);
    llm_json_put_text(&both, input.n > 0 ? "\n\n" : "");
    llm_json_put(&both, input.s, input.n);
    st = both.failed ? ggl_fail(err, GGL_NOMEM, "out of memory for a text")
                     : llm_train_answered(d, (ggl_str){both.s, both.n}, answer, err);
    ggl_free(both.s);
    return st;
}

/* Alpaca's layout of an instruction, for models without a chat template. */
static void put_layout(llm_json_out *out, ggl_str instruction, ggl_str input) {
    llm_json_put_text(out, "Below is an instruction that describes a task");
    llm_json_put_text(out, input.n > 0 ? ", paired with an input that provides further context. "
                                       : ". ");
    llm_json_put_text(out, "Write a response that appropriately completes the request.\n\n"
                           "### Instruction:\n");
    llm_json_put(out, instruction.s, instruction.n);
    if (input.n > 0) {
        llm_json_put_text(out, "\n\n### Input:\n");
        llm_json_put(out, input.s, input.n);
    }
    llm_json_put_text(out, "\n\n### Response:\n");
}

static ggl_status read_instruction(train_data *d, const json_value *o, ggl_error *err) {
    ggl_str instruction, input, answer;
    llm_json_out prompt = {0};
    train_talk t = {0};
    llm_train_talk_files(&t, d, o);
    ggl_status st = llm_train_text_of(o, "instruction", false, &instruction, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "input", true, &input, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "output", false, &answer, err);
    if (st != GGL_OK)
        return st;
    if (d->p.chat) {
        llm_json_put(&prompt, instruction.s, instruction.n);
        llm_json_put_text(&prompt, input.n > 0 ? "\n\n" : "");
        llm_json_put(&prompt, input.s, input.n);
    } else {
        put_layout(&prompt, instruction, input);
    }
    if (prompt.failed)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    else if (!d->p.chat)
        st = add_raw(d, o, (ggl_str){prompt.s, prompt.n}, answer, err);
    else if ((st = add_system(&t, o, err)) == GGL_OK) {
        st = llm_train_talk_say(&t, "user", (ggl_str){prompt.s ? prompt.s : "", prompt.n}, NULL,
                                err);
        if (st == GGL_OK)
            st = llm_train_talk_say(&t, "assistant", answer, NULL, err);
        st = finish_talk(d, &t, st, err);
    }
    llm_train_talk_fini(&t);
    ggl_free(prompt.s);
    return st;
}

/* --- pairs ------------------------------------------------------------------------------------ */

/* How many bytes of both texts are the prompt, where none is given: all that is equal, to the last white space. */
static size_t common_text(ggl_str a, ggl_str b) {
    size_t n = 0;
    while (n < a.n && n < b.n && a.s[n] == b.s[n])
        n++;
    while (n > 0 && !memchr(" \t\r\n", a.s[n - 1], 4))
        n--;
    while (n > 0 && memchr(" \t", a.s[n - 1], 2)) /* a space belongs to the word after it */
        n--;
    return n;
}

static bool same_message(const json_value *a, const json_value *b) {
    llm_json_out x = {0}, y = {0};
    llm_json_put_value(&x, a);
    llm_json_put_value(&y, b);
    const bool same = !x.failed && !y.failed && x.n == y.n && memcmp(x.s, y.s, x.n) == 0;
    ggl_free(x.s);
    ggl_free(y.s);
    return same;
}

/* How many messages of both are the prompt, where none is given; each keeps one of its own. */
static uint32_t common_messages(const json_value *a, const json_value *b) {
    const uint32_t most = a->n < b->n ? a->n : b->n;
    uint32_t n = 0;
    while (n + 1 < most && same_message(&a->item[n], &b->item[n]))
        n++;
    return n;
}

/* True if a list has the whole conversation: there is no prompt, or it begins as the prompt does. */
static bool is_whole(const json_value *o, const json_value *side) {
    const json_value *prompt = llm_train_member(o, "prompt");
    const json_value *role = side->n > 0 ? llm_json_get(&side->item[0], "role") : NULL;
    if (!is_list(prompt))
        return !prompt || llm_json_is(role, "user") || llm_json_is(role, "system");
    return prompt->n > 0 && side->n > 0 && same_message(&prompt->item[0], &side->item[0]);
}

static ggl_status draft_texts(train_data *d, const json_value *o, train_draft side[2],
                              ggl_error *err) {
    ggl_str prompt, answer[2];
    ggl_status st = check_alone(o, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "prompt", true, &prompt, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "chosen", false, &answer[0], err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "rejected", false, &answer[1], err);
    if (st != GGL_OK)
        return st;
    if (!llm_train_member(o, "prompt")) {
        const size_t n = common_text(answer[0], answer[1]);
        const bool same = ggl_str_equal(answer[0], answer[1]);
        if (n == 0 && !same)
            return ggl_fail(err, GGL_FORMAT,
                            "there is no \"prompt\", and \"chosen\" and \"rejected\" do not begin "
                            "alike");
        prompt = (ggl_str){answer[0].s, n};
        for (int i = 0; i < 2; i++)
            answer[i] = (ggl_str){answer[i].s + n, answer[i].n - n};
    }
    for (int i = 0; i < 2 && st == GGL_OK; i++)
        st = llm_train_text_draft(d, &side[i], prompt, answer[i], false, err);
    return st;
}

/* Adds the prompt that is given. */
static ggl_status add_prompt(train_talk *t, const json_value *o, ggl_error *err) {
    const json_value *prompt = llm_train_member(o, "prompt");
    if (is_list(prompt))
        return add_list(t, prompt, "prompt", false, err);
    ggl_str text;
    const ggl_status st = llm_train_text_of(o, "prompt", false, &text, err);
    return st == GGL_OK ? llm_train_talk_say(t, "user", text, NULL, err) : st;
}

/* Makes the draft of a side, of which the first n_common messages do not count. */
static ggl_status draft_talk(train_data *d, const json_value *o, const json_value *side, bool whole,
                             uint32_t n_common, train_draft *s, ggl_error *err) {
    train_talk t = {0};
    llm_train_talk_files(&t, d, o);
    ggl_status st = whole ? GGL_OK : add_prompt(&t, o, err);
    for (uint32_t i = 0; i < side->n && st == GGL_OK; i++) {
        st = llm_train_talk_add(&t, &side->item[i], i >= n_common, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "[%" PRIu32 "]", i);
    }
    if (st == GGL_OK)
        st = add_variables(&t, o, err);
    if (st == GGL_OK)
        st = llm_train_talk_draft(d, &t, s, err);
    llm_train_talk_fini(&t);
    return st;
}

static ggl_status draft_talks(train_data *d, const json_value *o, train_draft side[2],
                              ggl_error *err) {
    static const char *const name[] = {"chosen", "rejected"};
    const json_value *list[] = {llm_train_member(o, name[0]), llm_train_member(o, name[1])};
    const bool whole = is_whole(o, list[0]);
    const uint32_t n = whole ? common_messages(list[0], list[1]) : 0;
    ggl_status st = GGL_OK;
    if (whole && n == 0)
        return ggl_fail(
            err, GGL_FORMAT,
            "\"chosen\" and \"rejected\" are whole conversations, but do not begin with the "
            "same message");
    for (int i = 0; i < 2 && st == GGL_OK; i++) {
        st = draft_talk(d, o, list[i], whole, n, &side[i], err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "%s", name[i]);
    }
    return st;
}

static ggl_status read_pair(train_data *d, const json_value *o, ggl_error *err) {
    const json_value *a = llm_train_member(o, "chosen"), *b = llm_train_member(o, "rejected"),
                     *p = llm_train_member(o, "prompt");
    train_draft side[2] = {0};
    if (is_list(a) != is_list(b) || (p && is_list(p) && !is_list(a)))
        return ggl_fail(
            err, GGL_FORMAT,
            "\"chosen\" and \"rejected\" must both be strings, or both lists of messages, "
            "and a \"prompt\" that is a list goes with lists");
    ggl_status st = llm_train_set_kind(d, TRAIN_PAIRS, err);
    if (st == GGL_OK)
        st = is_list(a) ? draft_talks(d, o, side, err) : draft_texts(d, o, side, err);
    if (st == GGL_OK)
        st = llm_train_add_pair(d, side, err);
    llm_train_draft_fini(&side[0]);
    llm_train_draft_fini(&side[1]);
    return st;
}

/* --- which object it is ----------------------------------------------------------------------- */

/* The first row counts of which an object has all keys. */
static const struct {
    const char *key[2];
    ggl_status (*read)(train_data *d, const json_value *o, ggl_error *err);
} shapes[] = {
    {{"chosen", "rejected"}, read_pair},
    {{"anchor", "positive"}, llm_train_match},
    {{"anchor", "pos"}, llm_train_match},
    {{"query", "positive"}, llm_train_match},
    {{"query", "pos"}, llm_train_match},
    {{"sentence1", "sentence2"}, llm_train_scored},
    {{"messages"}, read_messages},
    {{"conversations"}, read_turns},
    {{"prompt", "completion"}, read_completion},
    {{"instruction", "output"}, read_instruction},
    {{"text"}, read_text},
};

/* The key of a row above that is null, although the object has all the row's keys; NULL: there is none. */
static const char *null_key(const json_value *o) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const char *const *key = shapes[i].key;
        if (llm_json_get(o, key[0]) && (!key[1] || llm_json_get(o, key[1])))
            return key[llm_train_member(o, key[0]) ? 1 : 0];
    }
    return NULL;
}

static ggl_status unknown(const json_value *o, ggl_error *err) {
    char keys[300] = "";
    if (null_key(o))
        return ggl_fail(err, GGL_FORMAT, "\"%s\" is null: give it a value, or leave the object out",
                        null_key(o));
    for (uint32_t i = 0; i < o->n; i++) {
        const ggl_str name = json_name(o, i);
        const size_t used = strlen(keys);
        if (used > 200) {
            snprintf(keys + used, sizeof keys - used, ", ..");
            break;
        }
        snprintf(keys + used, sizeof keys - used, "%s\"%.*s\"", i > 0 ? ", " : "",
                 (int)ggl_utf8_cut(name.s, name.n, 60), name.s);
    }
    return ggl_fail(
        err, GGL_FORMAT,
        "the object has %s%s; expected is one with \"text\"; \"messages\"; "
        "\"conversations\"; \"prompt\" and \"completion\"; \"instruction\" and "
        "\"output\"; \"prompt\", \"chosen\" and \"rejected\"; or, of an embedding model, "
        "\"query\" and \"positive\", or \"sentence1\", \"sentence2\" and \"score\"",
        o->n > 0 ? "the keys " : "no keys", keys);
}

static ggl_status read_object(train_data *d, const json_value *object, ggl_error *err) {
    const llm_file_senses *s = d->p.senses;
    if (s && s->speech)
        return llm_train_speech(d, object, err);
    if (s && s->text)
        return read_answered(d, object, err);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (llm_train_member(object, shapes[i].key[0]) &&
            (!shapes[i].key[1] || llm_train_member(object, shapes[i].key[1])))
            return shapes[i].read(d, object, err);
    return unknown(object, err);
}

ggl_status llm_train_object(train_data *d, const json_value *object, ggl_error *err) {
    const ggl_status st = read_object(d, object, err);
    llm_train_reads_let_go(d);
    return st;
}
