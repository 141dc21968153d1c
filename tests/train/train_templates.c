/* Conversations of random words with each built-in template: what counts is the answers and the marks that end them, and an item is what the
 * template writes. */
#include "training/data.h"

#include "seed.h"
#include <dirent.h>

#include "common/json.h"
#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "test.h"

static ggl_error err;

/* --- a tokenizer that knows the templates' marks ---------------------------------------------- */

static const char *const marks[] = {"<|im_start|>",
                                    "<|im_end|>",
                                    "<|start_header_id|>",
                                    "<|end_header_id|>",
                                    "<|eot_id|>",
                                    "<start_of_turn>",
                                    "<end_of_turn>",
                                    "<|user|>",
                                    "<|assistant|>",
                                    "<|system|>",
                                    "<|end|>",
                                    "<|endoftext|>",
                                    "<|im_sep|>",
                                    "<|eot|>",
                                    "<|header_start|>",
                                    "<|header_end|>",
                                    "<|START_OF_TURN_TOKEN|>",
                                    "<|END_OF_TURN_TOKEN|>",
                                    "<｜User｜>",
                                    "<｜Assistant｜>",
                                    "<｜end▁of▁sentence｜>",
                                    "[|endofturn|]",
                                    "[INST]",
                                    "[/INST]"};
enum {
    N_MARKS = sizeof marks / sizeof *marks,
    LETTERS = 5,
    N_PIECES = 3 + 256 + 2 + LETTERS + 4 + N_MARKS
};

/* Sentence pieces: bytes, letters, some pairs of them, and the marks. space: a space is put before texts. */
static bool make_tokenizer(llm_tokenizer **t, ggl_gguf **file, void **data, bool space) {
    static char text[N_PIECES][40];
    static const char *const pairs[] = {"ab", "▁a", "cd", "▁abc"};
    ggl_str piece[N_PIECES];
    float score[N_PIECES] = {0};
    int32_t type[N_PIECES];
    size_t n = 0, size;
#define ADD(type_, ...) (type[n] = (type_), snprintf(text[n++], sizeof text[0], __VA_ARGS__))
    ADD(2, "<unk>");
    ADD(3, "<s>");
    ADD(3, "</s>");
    for (unsigned b = 0; b < 256; b++)
        ADD(6, "<0x%02X>", b);
    ADD(1, "▁");
    ADD(1, "abc");
    for (int i = 0; i < LETTERS; i++)
        ADD(1, "%c", 'a' + i);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        ADD(1, "%s", pairs[i]);
    for (size_t i = 0; i < N_MARKS; i++)
        ADD(3, "%s", marks[i]);
#undef ADD
    for (size_t i = 0; i < n; i++)
        piece[i] = (ggl_str){text[i], strlen(text[i])};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", piece, n);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, score, n);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, type, n);
    const uint8_t adds = space;
    const uint32_t bos = 1, eos = 2;
    ggl_gguf_put(w, "tokenizer.ggml.add_space_prefix", GGL_GGUF_BOOL, false, &adds, 1);
    ggl_gguf_put(w, "tokenizer.ggml.bos_token_id", GGL_GGUF_U32, false, &bos, 1);
    ggl_gguf_put(w, "tokenizer.ggml.eos_token_id", GGL_GGUF_U32, false, &eos, 1);
    ggl_status st = ggl_gguf_writer_write_memory(w, data, &size, &err);
    ggl_gguf_writer_free(w);
    if (st == GGL_OK)
        st = ggl_gguf_open_memory(file, *data, size, "memory", &err);
    if (st == GGL_OK)
        st = llm_tokenizer_new(t, *file, &err);
    return CHECK_OK(st, &err);
}

/* --- conversations ---------------------------------------------------------------------------- */

enum { MOST = 9, ROOM = 64 };

typedef struct talk {
    const char *role[MOST];
    char content[MOST][ROOM];
    int n;
} talk;

static void words(char *to, uint64_t *random) {
    const int n = 1 + (int)(test_random(random) % 4);
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0)
            to[used++] = test_random(random) % 5 ? ' ' : '\n';
        for (int k = 1 + (int)(test_random(random) % 4); k > 0; k--)
            to[used++] = (char)('a' + test_random(random) % LETTERS);
    }
    to[used] = '\0';
}

static void make_talk(talk *t, uint64_t *random) {
    const int n_turns = 1 + (int)(test_random(random) % 4);
    t->n = 0;
    if (test_random(random) % 2)
        t->role[t->n++] = "system";
    for (int i = 0; i < 2 * n_turns; i++)
        t->role[t->n++] = i % 2 ? "assistant" : "user";
    for (int i = 0; i < t->n; i++)
        words(t->content[i], random);
}

/* The first n messages as JSON, in one line. */
static void put_json(char *to, size_t size, const talk *t, int n) {
    size_t used = (size_t)snprintf(to, size, "{\"messages\": [");
    for (int i = 0; i < n; i++) {
        used += (size_t)snprintf(to + used, size - used, "%s{\"role\": \"%s\", \"content\": \"",
                                 i ? ", " : "", t->role[i]);
        for (const char *c = t->content[i]; *c; c++)
            used += (size_t)snprintf(to + used, size - used, *c == '\n' ? "\\n" : "%c", *c);
        used += (size_t)snprintf(to + used, size - used, "\"}");
    }
    snprintf(to + used, size - used, "]}");
}

/* --- what is expected ------------------------------------------------------------------------- */

typedef struct part {
    char text[4096];
    size_t n;
} part;

static void put(part *p, const llm_tokenizer *t, int32_t id) {
    const ggl_str s = llm_token_text(t, id, true);
    p->n += (size_t)snprintf(p->text + p->n, sizeof p->text - p->n, "%.*s", (int)s.n, s.s);
}

/* The text as it comes back from tokens, in which U+2581 is a space; without any: a tokenizer puts some after marks. */
static void as_decoded(char *s, bool without) {
    char *to = s;
    for (; *s; s++) {
        const bool mark = strncmp(s, "▁", 3) == 0;
        s += mark ? 2 : 0;
        if (!((mark || *s == ' ') && without))
            *to++ = mark ? ' ' : *s;
    }
    *to = '\0';
}

/* Templates whose prompt ends with what they do not show before answers: "<think>", "[SEP]". */
static bool hides(const char *name) {
    return strcmp(name, "deepseek3") == 0 || strcmp(name, "yandex") == 0 ||
           strcmp(name, "deepseek-r1-distill.json") == 0;
}

/* Templates that show reasoning, here an empty one, before the last answer alone. */
static bool drops(const char *name) {
    return strcmp(name, "qwen3.json") == 0;
}

/* What a template puts around answers; the first answer tells. */
typedef struct frame {
    bool known;
    char before[ROOM], after[ROOM];
} frame;

/* Checks what counts of an answer. */
static void check_answer(const char *name, frame *f, const char *counted, const char *content) {
    const char *at = strstr(counted, content);
    if (!CHECK_MSG(at != NULL, "%s: the answer '%s' counts as '%s'", name, content, counted))
        return;
    if (!f->known) {
        f->known = true;
        snprintf(f->before, ROOM, "%.*s", (int)(at - counted), counted);
        snprintf(f->after, ROOM, "%s", at + strlen(content));
        CHECK_MSG(strspn(f->before, drops(name) ? " \n</think>" : " \n") == strlen(f->before),
                  "%s: '%s' counts", name, counted);
    }
    char want[4096];
    snprintf(want, sizeof want, "%s%s%s", f->before, content, f->after);
    CHECK_MSG(strcmp(counted, want) == 0, "%s: '%s' counts, not '%s'", name, counted, want);
}

/* Checks that an item is the beginning of what the template writes for the messages to its last answer. */
static void check_whole(const char *name, const llm_chat *chat, const talk *t, int last, part *item,
                        bool space) {
    char json[8192], *text = NULL;
    size_t n;
    put_json(json, sizeof json, t, last + 1);
    static const char now[] = "{\"now\": \"" TRAIN_NOW "\"}";
    llm_talk *of = NULL;
    REQUIRE_OK(llm_talk_read(&of, (ggl_str){json, strlen(json)}, NULL, NULL, &err), &err);
    CHECK_OK(llm_talk_set(of, (ggl_str){now, sizeof now - 1}, "now", &err), &err);
    CHECK_OK(llm_chat_prompt(chat, of, NULL, &text, &n, &err), &err);
    llm_talk_free(of);
    if (text) {
        as_decoded(text, space);
        as_decoded(item->text, space);
    }
    CHECK_MSG(text && strncmp(text, item->text, strlen(item->text)) == 0,
              "%s: the item '%s' is not the beginning of '%s'", name, item->text, text ? text : "");
    ggl_free(text);
}

/* Checks the items of a conversation. */
static void check_items(const char *name, const llm_chat *chat, const llm_tokenizer *t,
                        const train_data *d, const talk *of, frame *f, bool space) {
    int answer = -1; /* the message */
    for (int64_t k = 0; k < llm_train_data_n(d); k++) {
        int32_t token[2048], target[2048];
        float weight[2048];
        part whole = {.n = 0}, counted = {.n = 0};
        const int64_t n = llm_train_data_length(d, k);
        llm_train_data_get(d, k, token, target, weight);
        put(&whole, t, token[0]);
        for (int64_t i = 0; i < n; i++) {
            put(&whole, t, target[i]);
            if (weight[i] == 1)
                put(&counted, t, target[i]);
            if (weight[i] == 1 && (i + 1 == n || weight[i + 1] == 0)) {
                do
                    answer++;
                while (answer < of->n && strcmp(of->role[answer], "assistant") != 0);
                if (CHECK(answer < of->n))
                    check_answer(name, f, counted.text, of->content[answer]);
                counted.text[counted.n = 0] = '\0';
            }
        }
        if (answer >= 0 && answer < of->n)
            check_whole(name, chat, of, answer, &whole, space);
    }
    CHECK_MSG(answer == of->n - 1, "%s: answers are missing", name);
    CHECK_MSG(llm_train_data_n(d) == 1 || drops(name), "%s: %" PRId64 " items", name,
              llm_train_data_n(d));
}

static void check_template(const char *name, const llm_chat *chat, const llm_tokenizer *t,
                           bool space, uint64_t *random) {
    frame f = {0};
    const train_data_params p = {.tokenizer = t, .chat = chat, .n_ctx = 2000};
    for (int i = 0; i < (TEST_SANITIZED ? 3 : 10); i++) {
        char json[8192];
        talk of;
        train_data *d;
        make_talk(&of, random);
        put_json(json, sizeof json, &of, of.n);
        CHECK(test_write_file(test_path("talk.jsonl"), json, strlen(json)));
        REQUIRE_OK(llm_train_data_new(&d, &p, &err), &err);
        const ggl_status st = llm_train_data_read(d, test_path("talk.jsonl"), &err);
        if (st == GGL_USAGE && strcmp(of.role[0], "system") == 0)
            CHECK_HAS(err.msg, "refuses this conversation"); /* it knows no such role */
        else if (st == GGL_UNSUPPORTED && hides(name))
            CHECK_HAS(err.msg, "the chat template asks for an answer with");
        else if (CHECK_OK(st, &err))
            check_items(name, chat, t, d, &of, &f, space);
        llm_train_data_free(d);
    }
}

/* Checks a template with both tokenizers. */
static void check_text(const char *name, ggl_str text, uint64_t *random) {
    for (int space = 0; space < 2; space++) {
        const llm_chat_template with = {name, text};
        llm_tokenizer *t = NULL;
        ggl_gguf *file = NULL;
        llm_chat *chat = NULL;
        void *data = NULL;
        if (make_tokenizer(&t, &file, &data, space) &&
            CHECK_OK(llm_chat_new(&chat, file, t, &with, &err), &err))
            check_template(name, chat, t, space, random);
        llm_chat_free(chat);
        llm_tokenizer_free(t);
        ggl_gguf_close(file);
        ggl_free(data);
    }
}

TEST(each_built_in_template) {
    uint64_t random = sample_seed();
    ggl_str name, text;
    for (int k = 0; llm_chat_named(k, &name, &text); k++) {
        char copy[64];
        snprintf(copy, sizeof copy, "%.*s", (int)name.n, name.s);
        check_text(copy, text, &random);
    }
}

TEST(published_templates) {
    uint64_t random = sample_seed();
    const char *folder = test_shared("chat");
    DIR *dir = folder ? opendir(folder) : NULL;
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[1024];
        llm_json *doc;
        if (!strstr(e->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, "%s/%s", test_shared("chat"), e->d_name);
        if (!CHECK_OK(llm_json_read(&doc, path, 1 << 24, &err), &err))
            continue;
        const json_value *text = llm_json_get_kind(&doc->root, "template", JSON_STRING);
        if (CHECK(text != NULL))
            check_text(e->d_name, json_str(text), &random);
        llm_json_free(doc);
        n++;
    }
    if (dir)
        closedir(dir);
    if (n == 0)
        SKIP_NOT_SHIPPED("published chat templates");
}
