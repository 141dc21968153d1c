/* Templates: the texts that Jinja2 gives (tests/data/templates.json), published templates with their
 * conversations (../shared/chat), messages, and limits. */
#include "llm/internal/chat.h"

#include <dirent.h>

#include "ggl/internal/gguf.h"
#include "alloc_fail.h"
#include "common/json.h"
#include "test.h"

static ggl_error err;

/* Renders a template with the text of a JSON object; NULL: it failed, see err. */
static char *render_with(const char *text, size_t n, ggl_str vars, size_t max_steps) {
    llm_template *t;
    char *out;
    size_t size;
    err = (ggl_error){0};
    const llm_template_params p = {.size = sizeof p,
                                   .vars = &vars,
                                   .n_vars = vars.s ? 1 : 0,
                                   .max_steps = max_steps,
                                   .max_memory = 64 << 20};
    if (llm_template_new(&t, text, n, "t", &err) != GGL_OK)
        return NULL;
    if (llm_template_render(t, &p, &out, &size, &err) != GGL_OK)
        out = NULL;
    CHECK(!out || strlen(out) == size);
    llm_template_free(t);
    return out;
}

static char *render(const char *text) {
    return render_with(text, strlen(text), (ggl_str){NULL, 0}, 0);
}

/* Makes a prompt of a conversation of JSON. */
static ggl_status prompt_of(const llm_chat *chat, ggl_str json, char **text, size_t *n) {
    llm_talk *talk = NULL;
    *text = NULL;
    ggl_status st = llm_talk_read(&talk, json, NULL, NULL, &err);
    if (st == GGL_OK)
        st = llm_chat_prompt(chat, talk, NULL, text, n, &err);
    llm_talk_free(talk);
    return st;
}

static ggl_status json_of(llm_json **doc, const char *path) {
    return llm_json_read(doc, path, 1 << 24, &err);
}

/* A copy of the text, which may hold NULs, with one behind it. */
static char *copy_of(const json_value *v) {
    char *s = calloc((size_t)v->n + 1, 1);
    if (s && v->n)
        memcpy(s, v->s, v->n);
    return s;
}

/* --- as Jinja2 does it ------------------------------------------------------------------------ */

/* A value as JSON text, for the variables of a template. */
static void put(FILE *f, const json_value *v) {
    switch ((json_kind)v->kind) {
    case JSON_NULL:
        fputs("null", f);
        break;
    case JSON_BOOL:
        fputs(v->flag ? "true" : "false", f);
        break;
    case JSON_NUMBER:
        fprintf(f, v->whole ? "%.0f" : "%.17g", v->number);
        break;
    case JSON_STRING:
        fputc('"', f);
        for (uint32_t i = 0; i < v->n; i++)
            if ((unsigned char)v->s[i] < 0x20 || v->s[i] == '"' || v->s[i] == '\\')
                fprintf(f, "\\u%04x", (unsigned)(unsigned char)v->s[i]);
            else
                fputc(v->s[i], f);
        fputc('"', f);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        fputc(v->kind == JSON_ARRAY ? '[' : '{', f);
        for (uint32_t i = 0; i < v->n; i++) {
            const json_value name = {.kind = JSON_STRING,
                                     .n = v->kind == JSON_OBJECT ? (uint32_t)json_name(v, i).n : 0,
                                     .s = v->kind == JSON_OBJECT ? json_name(v, i).s : ""};
            fputs(i ? "," : "", f);
            if (v->kind == JSON_OBJECT) {
                put(f, &name);
                fputc(':', f);
            }
            put(f, &v->item[i]);
        }
        fputc(v->kind == JSON_ARRAY ? ']' : '}', f);
        break;
    }
}

static void check_case(const json_value *text, ggl_str vars, const json_value *want) {
    char *got = render_with(text->s, text->n, vars, 0), *expected = copy_of(want);
    if (want->kind == JSON_NULL)
        CHECK_MSG(!got && strncmp(err.msg, "t:", 2) == 0, "%.*s: '%s', not an error", (int)text->n,
                  text->s, got ? got : err.msg);
    else
        CHECK_MSG(got && expected && strcmp(got, expected) == 0, "%.*s: '%s', not '%s'",
                  (int)text->n, text->s, got ? got : err.msg, expected);
    ggl_free(got);
    free(expected);
}

TEST(as_jinja_renders) {
    llm_json *doc;
    char *vars;
    size_t n;
    REQUIRE_OK(json_of(&doc, TEMPLATES), &err);
    FILE *f = open_memstream(&vars, &n);
    put(f, llm_json_get(&doc->root, "variables"));
    fclose(f);
    const json_value *cases = llm_json_get(&doc->root, "cases");
    CHECK(cases->n > 400);
    for (uint32_t i = 0; i < cases->n; i++)
        check_case(llm_json_get(&cases->item[i], "template"), (ggl_str){vars, n},
                   llm_json_get(&cases->item[i], "expected"));
    free(vars);
    llm_json_free(doc);
}

/* --- published templates ---------------------------------------------------------------------- */

/* Writes the variables of a case: its own, and those of its file. */
static void put_variables(FILE *f, const json_value *file, const json_value *c) {
    static const char *const of_case[] = {"messages", "tools", "add_generation_prompt"};
    static const char *const of_file[] = {"bos_token", "eos_token", "now"};
    const json_value *extra = llm_json_get_kind(c, "extra", JSON_OBJECT);
    fputs("{\"documents\": null", f);
    for (int i = 0; i < 3; i++) {
        const json_value *token = llm_json_get(file, of_file[i]);
        fprintf(f, ", \"%s\": ", of_case[i]);
        put(f, llm_json_get(c, of_case[i]));
        if (token && token->kind != JSON_NULL) {
            fprintf(f, ", \"%s\": ", of_file[i]);
            put(f, token);
        }
    }
    for (uint32_t i = 0; extra && i < extra->n; i++) {
        fprintf(f, ", \"%.*s\": ", (int)json_name(extra, i).n, json_name(extra, i).s);
        put(f, &extra->item[i]);
    }
    fputs("}", f);
}

static int check_published(const char *path) {
    llm_json *doc;
    if (!CHECK_OK(json_of(&doc, path), &err))
        return 0;
    const json_value *text = llm_json_get(&doc->root, "template"),
                     *cases = llm_json_get(&doc->root, "cases");
    for (uint32_t i = 0; i < cases->n; i++) {
        const json_value *c = &cases->item[i], *error = llm_json_get_kind(c, "error", JSON_STRING);
        char *vars;
        size_t n;
        FILE *f = open_memstream(&vars, &n);
        put_variables(f, &doc->root, c);
        fclose(f);
        check_case(text, (ggl_str){vars, n}, llm_json_get(c, "expected"));
        char *words = error ? copy_of(error) : NULL;
        CHECK_MSG(!words || strstr(err.msg, words), "%s: '%s', not '%s'", path, err.msg, words);
        free(words);
        free(vars);
    }
    const int n_cases = (int)cases->n;
    llm_json_free(doc);
    return n_cases;
}

TEST(published_templates) {
    const char *shared = getenv("GGL_SHARED");
    char path[4096];
    int n = 0;
    snprintf(path, sizeof path, "%s/chat", shared ? shared : "");
    DIR *d = shared ? opendir(path) : NULL;
    if (!d)
        SKIP_NOT_SHIPPED("published chat templates");
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".json")) {
            snprintf(path, sizeof path, "%s/chat/%s", shared, e->d_name);
            n += check_published(path);
        }
    closedir(d);
    CHECK_MSG(n >= 416, "only %d conversations", n);
}

/* Built-in templates and the published ones that they stand for. */
static const struct {
    const char *name, *file;
    /* System messages from this index on are ignored, moved or refused by the published one. */
    uint32_t n_system;
} named[] = {
    {"chatml", "chatml", 99},
    {"deepseek3", "deepseek-r1-distill", 1},
    {"gemma", "gemma-2", 0},
    {"granite", "granite-3.1", 99},
    {"llama2", "llama-2", 1},
    {"llama3", "llama-3", 99},
    {"mistral-v1", "mistral-7b-v0.1", 0},
    {"mistral-v3", "mistral-7b-v0.3", 0},
    {"phi3", "phi-3", 99},
    {"phi4", "phi-4", 99},
    {"zephyr", "zephyr", 99},
};

static bool has_role(const json_value *messages, const char *role, uint32_t from) {
    for (uint32_t i = from; i < messages->n; i++)
        if (llm_json_is(llm_json_get(&messages->item[i], "role"), role))
            return true;
    return false;
}

/* True if the case is what built-in templates are for: messages with texts, nothing else. Granite's
 * own adds a system message, if there is none. */
static bool is_plain(size_t k, const json_value *c) {
    const json_value *messages = llm_json_get(c, "messages"), *extra = llm_json_get(c, "extra");
    bool plain = llm_json_get(c, "expected")->kind == JSON_STRING && !(extra && extra->n) &&
                 llm_json_get(c, "tools")->kind == JSON_NULL && !has_role(messages, "tool", 0);
    for (uint32_t i = 0; i < messages->n; i++)
        plain = plain && messages->item[i].n == 2 &&
                llm_json_get_kind(&messages->item[i], "content", JSON_STRING);
    const bool starts_with_system =
        messages->n > 0 && llm_json_is(llm_json_get(&messages->item[0], "role"), "system");
    if (strcmp(named[k].name, "granite") == 0 && !starts_with_system)
        return false;
    return plain && !has_role(messages, "system", named[k].n_system);
}

static int check_named(size_t k, const char *path) {
    llm_json *doc;
    llm_chat *chat;
    int n_plain = 0;
    const llm_chat_template with = {.name = named[k].name};
    if (!CHECK_OK(json_of(&doc, path), &err))
        return 0;
    const json_value *cases = llm_json_get(&doc->root, "cases");
    if (!CHECK_OK(llm_chat_new(&chat, NULL, NULL, &with, &err), &err))
        return 0;
    for (uint32_t i = 0; i < cases->n; i++) {
        const json_value *c = &cases->item[i];
        char *vars, *got = NULL, *want;
        size_t n;
        if (!is_plain(k, c))
            continue;
        n_plain++;
        FILE *f = open_memstream(&vars, &n);
        put_variables(f, &doc->root, c);
        fclose(f);
        want = copy_of(llm_json_get(c, "expected"));
        const ggl_str all = {vars, n};
        CHECK_OK(prompt_of(chat, all, &got, &n), &err);
        CHECK_MSG(got && strcmp(got, want) == 0, "%s, %.*s: '%s', not '%s'", named[k].name,
                  (int)llm_json_get(c, "name")->n, llm_json_get(c, "name")->s, got, want);
        ggl_free(got);
        free(want);
        free(vars);
    }
    llm_chat_free(chat);
    llm_json_free(doc);
    return n_plain;
}

/* What each makes of a conversation: the system says S, the user U, the assistant A, the user V; with the published marks
 * of the families. */
static const struct {
    const char *name, *prompt;
} prompts[] = {
    {"bailing", "<role>SYSTEM</role>S<role>HUMAN</role>U<role>ASSISTANT</role>A<role>HUMAN</"
                "role>V<role>ASSISTANT</role>"},
    {"chatglm3", "[gMASK]sop<|system|>\n S<|user|>\n U<|assistant|>\n A<|user|>\n V<|assistant|>"},
    {"chatglm4", "[gMASK]<sop><|system|>\nS<|user|>\nU<|assistant|>\nA<|user|>\nV<|assistant|>"},
    {"chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>"
               "assistant\nA<|im_end|>\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"},
    {"command-r", "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_"
                  "TOKEN|><|USER_TOKEN|>U<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_"
                  "TOKEN|>A<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>V<|END_OF_"
                  "TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"deepseek",
     "<s>S### Instruction:\nU\n### Response:\nA\n<|EOT|>\n### Instruction:\nV\n### Response:\n"},
    {"deepseek2", "<s>S\n\nUser: U\n\nAssistant: A</s>User: V\n\nAssistant:"},
    {"deepseek3",
     "<s>S<｜User｜>U<｜Assistant｜>A<｜end▁of▁sentence｜><｜User｜>V<｜Assistant｜><think>\n"},
    {"exaone3",
     "[|system|]S[|endofturn|]\n[|user|]U\n[|assistant|]A[|endofturn|]\n[|user|]V\n[|assistant|]"},
    {"exaone4",
     "[|system|]S[|endofturn|]\n[|user|]U\n[|assistant|]A[|endofturn|]\n[|user|]V\n[|assistant|]"},
    {"falcon3", "<|system|>\nS\n<|user|>\nU\n<|assistant|>\nA</s>\n<|user|>\nV\n<|assistant|>\n"},
    {"gemma", "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<"
              "start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n"},
    {"gigachat",
     "<s>S<|message_sep|>user<|role_sep|>U<|message_sep|>available "
     "functions<|role_sep|>[]<|message_sep|>assistant<|role_sep|>A<|message_sep|>user<|role_sep|>V<"
     "|message_sep|>available functions<|role_sep|>[]<|message_sep|>assistant<|role_sep|>"},
    {"glmedge", "<|system|>\nS<|user|>\nU<|assistant|>\nA<|user|>\nV<|assistant|>"},
    {"granite",
     "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>"
     "U<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>A<|end_of_text|>\n<|start_of_role|"
     ">user<|end_of_role|>V<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"},
    {"hunyuan-dense", "<｜hy_begin▁of▁sentence｜>S<｜hy_place▁holder▁no▁3｜><｜hy_User｜>U<｜hy_"
                      "Assistant｜>A<｜hy_place▁holder▁no▁2｜><｜hy_User｜>V<｜hy_Assistant｜>"},
    {"hunyuan-moe",
     "<|startoftext|>S<|extra_4|><|startoftext|>U<|extra_0|>A<|eos|><|startoftext|>V<|extra_0|>"},
    {"kimi-k2", "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>U<|im_end|>"
                "<|im_assistant|>assistant<|im_middle|>A<|im_end|><|im_user|>user<|im_middle|>V<|"
                "im_end|><|im_assistant|>assistant<|im_middle|>"},
    {"llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]"},
    {"llama2-sys", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A</s>[INST] V [/INST]"},
    {"llama2-sys-bos", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A</s><s>[INST] V [/INST]"},
    {"llama2-sys-strip", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A</s>[INST] V [/INST]"},
    {"llama3", "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>"
               "user<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>"
               "\n\nA<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|><|start_"
               "header_id|>assistant<|end_header_id|>\n\n"},
    {"llama4", "<s><|header_start|>system<|header_end|>\n\nS<|eot|><|header_start|>user<|header_"
               "end|>\n\nU<|eot|><|header_start|>assistant<|header_end|>\n\nA<|eot|><|header_start|"
               ">user<|header_end|>\n\nV<|eot|><|header_start|>assistant<|header_end|>\n\n"},
    {"megrez", "<|role_start|>system<|role_end|>S<|turn_end|><|role_start|>user<|role_end|>U<|turn_"
               "end|><|role_start|>assistant<|role_end|>A<|turn_end|><|role_start|>user<|role_end|>"
               "V<|turn_end|><|role_start|>assistant<|role_end|>"},
    {"minicpm", "<用户>S\n\nU<AI>A<用户>V<AI>"},
    {"mistral-v1", "<s>[INST] S\n\nU [/INST]A</s> [INST] V [/INST]"},
    {"mistral-v3", "<s> [INST] S\n\nU [/INST] A </s> [INST] V [/INST]"},
    {"mistral-v3-tekken", "<s>[INST]S\n\nU[/INST]A</s>[INST]V[/INST]"},
    {"mistral-v7", "<s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] U[/INST] A</s>[INST] V[/INST]"},
    {"mistral-v7-tekken", "<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]U[/INST]A</s>[INST]V[/INST]"},
    {"monarch",
     "<s>system\nS</s>\n<s>user\nU</s>\n<s>assistant\nA</s>\n<s>user\nV</s>\n<s>assistant\n"},
    {"openchat", "<s>S<|end_of_turn|>GPT4 Correct User: U<|end_of_turn|>GPT4 Correct Assistant: "
                 "A<|end_of_turn|>GPT4 Correct User: V<|end_of_turn|>GPT4 Correct Assistant:"},
    {"orion", "<s>Human: S\n\nU\n\nAssistant: </s>A</s>Human: V\n\nAssistant: </s>"},
    {"phi3", "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>"
             "\n<|assistant|>\n"},
    {"phi4", "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>U<|im_end|><|im_"
             "start|>assistant<|im_sep|>A<|im_end|><|im_start|>user<|im_sep|>V<|im_end|><|im_start|"
             ">assistant<|im_sep|>"},
    {"rwkv-world", "System: S\n\nUser: U\n\nAssistant: A\n\nUser: V\n\nAssistant:"},
    {"smolvlm", "<|im_start|>System: S<end_of_utterance>\nUser: U<end_of_utterance>\nAssistant: "
                "A<end_of_utterance>\nUser: V<end_of_utterance>\nAssistant:"},
    {"vicuna", "S\n\nUSER: U\nASSISTANT: A</s>\nUSER: V\nASSISTANT:"},
    {"vicuna-orca", "SYSTEM: S\nUSER: U\nASSISTANT: A</s>\nUSER: V\nASSISTANT:"},
    {"yandex", "<s> Пользователь: S\n\nU\n\n Ассистент: A\n\n Пользователь: V\n\n Ассистент:[SEP]"},
    {"zephyr",
     "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA</s>\n<|user|>\nV</s>\n<|assistant|>\n"},
};

TEST(prompts_of_built_in_templates) {
    static const char vars[] =
        "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"user\", "
        "\"content\": "
        "\"U\"}, {\"role\": \"assistant\", \"content\": \"A\"}, {\"role\": \"user\", \"content\": "
        "\"V\"}], "
        "\"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}";
    const ggl_str all = {vars, sizeof vars - 1};
    ggl_str name, text;
    size_t n, k = 0;
    for (; llm_chat_named((int)k, &name, &text); k++) {
        if (!CHECK(k < sizeof prompts / sizeof *prompts && ggl_str_is(name, prompts[k].name)))
            return;
        const llm_chat_template with = {.name = prompts[k].name};
        llm_chat *chat;
        char *got = NULL;
        if (!CHECK_OK(llm_chat_new(&chat, NULL, NULL, &with, &err), &err))
            return;
        CHECK_OK(prompt_of(chat, all, &got, &n), &err);
        CHECK_MSG(got && strcmp(got, prompts[k].prompt) == 0, "%s: '%s', not '%s'", prompts[k].name,
                  got, prompts[k].prompt);
        ggl_free(got);
        llm_chat_free(chat);
    }
    CHECK_INT((int)k, (int)(sizeof prompts / sizeof *prompts));
}

TEST(built_in_templates) {
    char path[4096];
    const char *shared = getenv("GGL_SHARED");
    for (size_t k = 0; k < sizeof named / sizeof *named; k++) {
        snprintf(path, sizeof path, "%s/chat/%s.json", shared ? shared : "", named[k].file);
        if (!shared || access(path, R_OK) != 0)
            SKIP_NOT_SHIPPED("published chat templates");
        const int n = check_named(k, path);
        CHECK_MSG(n >= 6, "%s: only %d conversations", named[k].name, n);
    }
}

TEST(names_that_no_template_has) {
    llm_chat *chat;
    const llm_chat_template none = {.name = "no-such"}, near = {.name = "chatm"},
                            text = {.name = "just a text"};
    CHECK_INT(llm_chat_new(&chat, NULL, NULL, &none, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "there is no chat template 'no-such': no file");
    CHECK_HAS(err.msg, "the built-in ones are bailing, chatglm3, chatglm4, chatml");
    CHECK_INT(llm_chat_new(&chat, NULL, NULL, &near, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "there is no chat template 'chatm'; did you mean 'chatml'?");
    CHECK_INT(llm_chat_new(&chat, NULL, NULL, &text, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg,
              "'just a text' is no chat template: the text of one has {{ .. }} or {% .. %}");
}

/* --- messages --------------------------------------------------------------------------------- */

/* The message names the template's line, the construct, and what is wrong. */
TEST(messages) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a\n{{ x.y }}", "t:2: 'x' is undefined, so it has no 'y'"},
        {"{{ 'a' + 1 }}", "t:1: + does not work with a string and an integer"},
        {"{{ 1 + x }}", "t:1: 'x' is undefined, and + needs a value"},
        {"\n\n{% include 'x' %}", "t:3: {% include %} is not supported"},
        {"{{ x|frobnicate }}", "t:1: there is no filter 'frobnicate'"},
        {"{{ x is odder }}", "t:1: there is no test 'odder'"},
        {"{% if x %}\na", "t:1: there is no {% endif %} for what begins here"},
        {"{% for x in y %}", "t:1: there is no {% endfor %} for what begins here"},
        {"{{ x ", "t:1: {{ has no }}"},
        {"{# x", "t:1: a comment {# has no #}"},
        {"{% frob %}", "t:1: there is no statement 'frob'"},
        {"{{ 'a }}", "t:1: a string that begins with ' has no end"},
        {"{{ 1 2 }}", "t:1: }} was expected, not a number"},
        {"{% break %}", "t:1: 'break' stands outside of a loop"},
        {"{{ f() }}", "t:1: 'f' is undefined, and cannot be called"},
        {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "t:1: f takes 1 arguments, not 2"},
        {"{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "t:1: f has no parameter 'b'"},
        {"{{ 'x'.replace('a') }}", "t:1: method replace needs its argument 'new'"},
        {"{{ raise_exception('no system') }}",
         "t:1: the template refuses this conversation: no system"},
        {"{{ [2, 1].sort() }}", "t:1: a method that changes a list is not supported"},
        {"{{ [].pop() }}", "t:1: pop: the list has 0 elements, none at -1"},
        {"{{ [1].pop(1) }}", "t:1: pop: the list has 1 elements, none at 1"},
        {"{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
         "t:1: values, expressions or calls are nested more than 500 deep"},
        {"{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}",
         "t:1: the template needs more than 64 MiB of memory"},
        {"{{ [1]|map('string')|length }}",
         "t:1: an iterator (|list makes a list of it) has no length"},
        {"{% if true %}\n{{ x|frobnicate }}{% endif %}", "t:2: there is no filter 'frobnicate'"},
        {"{{ 9223372036854775807 + 1 }}", "t:1: the result is not an integer of 64 bits"},
        {"{% for x in y recursive %}{% endfor %}", "t:1: 'recursive' loops are not supported"},
        {"{{ 'abc'.removeprefix(('a',)) }}", "t:1: what is removed must be a string, not a tuple"},
        {"{{ 'abc'.removesuffix(('c', 'x')) }}",
         "t:1: what is removed must be a string, not a tuple"},
        {"{{ 'a'.startswith(('b', ('a',))) }}",
         "t:1: what a string begins or ends with must be a string, not a tuple"},
        {"{{ 'a'.ljust(9000000000000000000, '') }}", "t:1: the fill must be one character, not 0"},
        {"{{ 'a'.center(1, 'bc') }}", "t:1: the fill must be one character, not 2"},
        {"{{ 9223372036854775807|round(-19) }}", "t:1: the result is not an integer of 64 bits"},
        {"{{ '9223372036854775808'|int }}", "t:1: the result is not an integer of 64 bits"},
        {"{{ '1e30'|int }}", "t:1: the result is not an integer of 64 bits"},
        {"{{ '10000000000000000'|int(base=16) }}", "t:1: the result is not an integer of 64 bits"},
        {"{% for x in [1] %}{% call f() %}{% break %}{% endcall %}{% endfor %}",
         "t:1: 'break' stands outside of a loop"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = render(cases[i].text);
        CHECK_MSG(!got && strcmp(err.msg, cases[i].message) == 0, "%s: '%s', not '%s'",
                  cases[i].text, got ? got : err.msg, cases[i].message);
        ggl_free(got);
    }
}

/* A prompt that is collected in a variable takes memory for its length, not for the square of it. */
TEST(long_texts) {
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"{% set n = namespace(s='') %}{% for i in range(20000) %}{% set n.s = n.s ~ ('a' ~ i) ~ "
         "'x' * 40 %}{% endfor %}{{ n.s|length }} {{ n.s[-42:-38] }}",
         "908890 99xx"},
        {"{% set n = namespace(s='') %}{% for i in range(20000) %}{% set n.s = n.s + 'x' * 50 %}"
         "{% endfor %}{{ n.s|length }}",
         "1000000"},
        {"{% set a = 'x' * 2000 ~ 'y' %}{% set b = a ~ '1' %}{% set c = a ~ '2' %}{% set d = b ~ b "
         "%}{% set e = b ~ '3' %}{{ a[-1:] }} {{ b[-2:] }} {{ c[-2:] }} {{ d|length }} {{ d[-2:] "
         "}} {{ e[-3:] }}",
         "y y1 y2 4004 y1 y13"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = render(cases[i].text);
        CHECK_STR(got ? got : err.msg, cases[i].shown);
        ggl_free(got);
    }
}

/* What transformers' environment refuses, and templates of published models need: they change lists, as Python does, and write generators as JSON. */
TEST(beyond_transformers) {
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"{% set q = namespace(ids=[]) %}{% for x in ['a', 'b', 'c'] %}"
         "{% set _ = q.ids.append(x) %}{% endfor %}{{ q.ids.pop(0) }}{{ q.ids.pop() }}{{ q.ids }}",
         "ac['b']"},
        {"{% set l = [1, 2] %}{{ l.extend(l) }}{{ l.extend('xy') }}{{ l }}",
         "NoneNone[1, 2, 1, 2, 'x', 'y']"},
        {"{% set l = [1] %}{{ l.insert(0, 0) }}{{ l.insert(-1, 'a') }}{{ l.insert(99, 9) }}"
         "{{ l.insert(-99, 'b') }}{{ l }}",
         "NoneNoneNoneNone['b', 0, 'a', 1, 9]"},
        {"{% set l = [3, 1, 2, 1] %}{{ l.remove(1) }}{{ l.reverse() }}{{ l }}{{ l.clear() }}{{ l "
         "}}",
         "NoneNone[1, 2, 3]None[]"},
        {"{% set l = [1, 2, 3] %}{% for x in l %}{{ x }}{% if x == 1 %}{% set _ = l.pop(0) %}"
         "{% endif %}{% endfor %}",
         "13"},
        {"{% set l = [1] %}{% for x in l %}{{ x }}{{ l.clear() }}{% else %}none{% endfor %}",
         "1None"},
        {"{{ [3, 1]|map('string')|tojson }}{{ {'a': 1}|items|tojson }}",
         "[\"3\", \"1\"][[\"a\", 1]]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = render(cases[i].text);
        CHECK_STR(got ? got : err.msg, cases[i].shown);
        ggl_free(got);
    }
}

TEST(wrong_variables) {
    static const char *const vars[] = {"", "[1]", "{\"a\": }", "{\"now\": \"tomorrow\"}"};
    for (size_t i = 0; i < sizeof vars / sizeof *vars; i++)
        CHECK(!render_with("x", 1, (ggl_str){vars[i], strlen(vars[i])}, 0) &&
              err.status == GGL_FORMAT);
}

/* As in Python, a number with a point or an exponent is a float, and others are exact. */
TEST(integers_of_64_bits) {
    static const char text[] = "{{ x }} {{ x|tojson }}";
    static const char *const exact[] = {"9007199254740993", "-9007199254740993",
                                        "9223372036854775807", "-9223372036854775808", "0"};
    static const char *const others[][2] = {{"9007199254740992.0", "9007199254740992.0"},
                                            {"1e2", "100.0"},
                                            {"-1E22", "-1e+22"},
                                            {"-0", "0"}};
    static const char *const odd[][2] = {
        {"NaN", "nan NaN"}, {"Infinity", "inf Infinity"}, {"-Infinity", "-inf -Infinity"}};
    static const char *const wide[] = {"9223372036854775808", "-9223372036854775809",
                                       "100000000000000000000000000"};
    char vars[80], wanted[80];
    for (size_t i = 0; i < 9; i++) {
        const char *number = i < 5 ? exact[i] : others[i - 5][0],
                   *shown = i < 5 ? exact[i] : others[i - 5][1];
        snprintf(vars, sizeof vars, "{ \"x\": %s}", number);
        snprintf(wanted, sizeof wanted, "%s %s", shown, shown);
        char *got = render_with(text, strlen(text), (ggl_str){vars, strlen(vars)}, 0);
        CHECK_STR(got ? got : err.msg, wanted);
        ggl_free(got);
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(vars, sizeof vars, "{\"y\": 7, \"x\": %s}", odd[i][0]);
        char *got = render_with(text, strlen(text), (ggl_str){vars, strlen(vars)}, 0);
        CHECK_STR(got ? got : err.msg, odd[i][1]);
        ggl_free(got);
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(vars, sizeof vars, "{\"x\": [%s]}", wide[i]);
        char *got = render_with(text, strlen(text), (ggl_str){vars, strlen(vars)}, 0);
        snprintf(wanted, sizeof wanted, "[%s] [%s]", wide[i], wide[i]);
        CHECK_STR(got ? got : err.msg, wanted);
        ggl_free(got);
    }
}

/* Numbers that no integer of 64 bits and no double holds keep their digits. */
TEST(numbers_of_any_size) {
    static const char *const rows[][3] = {
        {"{{ x }} {{ x|tojson }} {{ x is integer }} {{ x is float }} {{ x is number }}",
         "12345678901234567890123",
         "12345678901234567890123 12345678901234567890123 True False True"},
        {"{{ x }} {{ [x]|string }} {{ x is integer }}", "-98765432109876543210",
         "-98765432109876543210 [-98765432109876543210] True"},
        {"{% for k, v in {'a': x}|items %}{{ k }}={{ v }}{% endfor %}", "18446744073709551616",
         "a=18446744073709551616"},
        {"{{ x|int }} {{ x|string|length }} {{ x ~ '' }} {{ '%d' % x }} {{ '%22d' % x }}",
         "18446744073709551616",
         "18446744073709551616 20 18446744073709551616 18446744073709551616   "
         "18446744073709551616"},
        {"{{ x == 9223372036854775807 }} {{ x > 9223372036854775807 }} {{ x == x }} {{ -1 > x }}",
         "9223372036854775808", "False True True False"},
        {"{{ y[0] == y[1] }} {{ y[0] < y[1] }} {{ y[0] == y[0] }} {{ y|sort }}",
         "[100000000000000000000001, 100000000000000000000002, -100000000000000000000003]",
         "False True True [-100000000000000000000003, 100000000000000000000001, "
         "100000000000000000000002]"},
        {"{{ x }} {{ x|tojson }} {{ x is float }} {{ x is integer }}", "3.14159265358979323846",
         "3.14159265358979323846 3.14159265358979323846 True False"},
        {"{{ x }}", "9007199254740993.0", "9007199254740993.0"},
        {"{{ x }}", "12345678901234567890.5", "12345678901234567890.5"},
        {"{{ x }} {{ x + 1 }}", "1.50", "1.5 2.5"},
        {"{{ x }}", "100.0", "100.0"},
        {"{{ x }}", "0.000", "0.0"},
        {"{{ x }}", "1.0005000", "1.0005"},
        {"{{ x }}", "-10500e-2", "-105.0"},
        {"{{ x * 2 }}", "18446744073709551616", "3.6893488147419103e+19"},
        {"{{ x }}", "0.1", "0.1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char vars[160];
        snprintf(vars, sizeof vars, "{\"%s\": %s}", strstr(rows[i][0], "y[0]") ? "y" : "x",
                 rows[i][1]);
        char *got = render_with(rows[i][0], strlen(rows[i][0]), (ggl_str){vars, strlen(vars)}, 0);
        CHECK_MSG(got && strcmp(got, rows[i][2]) == 0, "%s of %s: %s, not %s", rows[i][0],
                  rows[i][1], got ? got : err.msg, rows[i][2]);
        ggl_free(got);
    }
}

/* --- limits ----------------------------------------------------------------------------------- */

static char *repeated(const char *part, size_t n, const char *end) {
    char *s = calloc(n * strlen(part) + strlen(end) + 1, 1);
    for (size_t i = 0; s && i < n; i++)
        memcpy(s + i * strlen(part), part, strlen(part));
    if (s)
        memcpy(s + n * strlen(part), end, strlen(end));
    return s;
}

/* A template that computes a value of long strings 20000 times: fewer steps than the limit, if they
 * counted as one each. */
#define AGAIN(what)                                                                                \
    "{% set a = '1' * 200000 %}{% set b = '1' * 200000 %}{% set w = ' ' * 200000 %}"               \
    "{% set d = {a: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 9} %}{% set e = d.copy() %}"   \
    "{% for i in range(20000) %}{% if " what " %}{% endif %}{% endfor %}"

/* What would take forever, all memory or all of the stack ends with an error. */
TEST(limits) {
    static const char *const hostile[] = {
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{{ 'aaaaaaaaaaaaaaaa' * 1000000000 }}",
        "{% set ns = namespace(s='aaaaaaaa') %}{% for a in range(64) %}{% set ns.s = ns.s + ns.s "
        "%}{% endfor %}",
        "{% set ns = namespace(s=[]) %}{% for a in range(100000) %}{% set ns.s = [ns.s] %}{% "
        "endfor %}{{ ns.s }}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{{ range(1000000000000) }}",
        "{{ 'a'.center(1000000000000) }}",
        "{{ '%2000d' % 1 }}",
        "{{ 'a'|map(*(['map']*20000)) }}",
        /* Work that makes no values, repeated. */
        "{% set a = 'a' * 1000000 %}{{ a|trim('b' * 1000000 ~ 'a') }}",
        "{% set a = 'a' * 100000 %}{{ a.rstrip('b' * 100000 ~ 'a') }}",
        AGAIN("a.rfind('b' ~ a)"),
        AGAIN("a.rpartition('b' ~ a[1:])"),
        AGAIN("a == b"),
        AGAIN("a < b"),
        AGAIN("a.isdigit()"),
        AGAIN("a.islower()"),
        AGAIN("a|wordcount"),
        AGAIN("w.strip()"),
        AGAIN("w|int"),
        AGAIN("w|float"),
        AGAIN("d[a]"),
        AGAIN("a in d"),
        AGAIN("d == e"),
        AGAIN("[d]|map(attribute=a)|list"),
        AGAIN("a.startswith(b)"),
        AGAIN("a.endswith(b)"),
        AGAIN("a.replace('a', '')"),
        AGAIN("a.replace('b', '', 1)"),
        AGAIN("a.splitlines()"),
        AGAIN("a.count('b')"),
        AGAIN("a.find('b')"),
        AGAIN("a is lower"),
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char *got = render_with(hostile[i], strlen(hostile[i]), (ggl_str){NULL, 0}, 3000000);
        CHECK_MSG(!got && err.status == GGL_LIMIT, "%s: %s", hostile[i],
                  got ? "no error" : err.msg);
        ggl_free(got);
    }
    static const char *const nested[][2] = {/* how it begins, and what is repeated */
                                            {"", "{% if a %}"}, {"{{ ", "("},
                                            {"{{ ", "["},       {"{{ ", "-"},
                                            {"{{ ", "not "},    {"{{ ", "a if a else "},
                                            {"{{ ", "{1:"},     {"{% if a %}", "{% elif a %}"},
                                            {"{{ a", "[a"},     {"{{ f", "(f"},
                                            {"{% set ", "("},   {"", "{% macro f() %}"}};
    char *chain = repeated("e|", 100000, "e %}a{% endfilter %}"),
         *filters = repeated("{% filter ", 1, chain);
    CHECK_MSG(!render(filters) && err.status == GGL_LIMIT, "a chain of filters: %s", err.msg);
    free(chain);
    free(filters);
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        char *end = repeated(nested[i][1], 100000, ""), *text = repeated(nested[i][0], 1, end);
        CHECK_MSG(!render(text) && err.status == GGL_LIMIT, "%s..: %s", nested[i][1], err.msg);
        free(end);
        free(text);
    }
}

/* Long expressions are as deep as they are long. */
TEST(long_chains) {
    char *text = repeated("+1", 200, " }}"), *whole = repeated("{{ 1", 1, text),
         *got = render(whole);
    CHECK_STR(got, "201");
    ggl_free(got);
    free(text);
    free(whole);
    text = repeated("+1", 100000, " }}");
    whole = repeated("{{ 1", 1, text);
    CHECK(!render(whole) && err.status == GGL_LIMIT);
    free(text);
    free(whole);
}

/* Literals side by side are one, in time that grows as they do. */
TEST(many_literals) {
    char *text = repeated("'a' ", 200000, "|length }}"), *whole = repeated("{{ ", 1, text),
         *got = render(whole);
    CHECK_STR(got ? got : err.msg, "200000");
    ggl_free(got);
    free(text);
    free(whole);
}

/* A file whose template is no text, and a caller that wants no message. */
TEST(a_template_that_is_no_text) {
    const int32_t number = 1;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    void *data = NULL;
    size_t size = 0;
    ggl_gguf *file;
    llm_chat *chat;
    ggl_gguf_put(w, "tokenizer.chat_template", GGL_GGUF_I32, false, &number, 1);
    REQUIRE_OK(ggl_gguf_writer_write_memory(w, &data, &size, &err), &err);
    REQUIRE_OK(ggl_gguf_open_memory(&file, data, size, "memory", &err), &err);
    CHECK(llm_chat_new(&chat, file, NULL, NULL, NULL) == GGL_FORMAT && !chat);
    ggl_gguf_close(file);
    ggl_gguf_writer_free(w);
    ggl_free(data);
}

/* A file that demands a token before texts. */
static ggl_gguf *file_with_bos(ggl_gguf_writer *w, bool adds, void **data) {
    static const char *const piece[] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "b"};
    enum { N = sizeof piece / sizeof *piece };
    const int32_t kind[N] = {2, 3, 3, 1, 1, 1};
    const float score[N] = {0};
    const uint32_t bos = 1, eos = 2, unknown = 0;
    ggl_str s[N];
    size_t size;
    ggl_gguf *file = NULL;
    for (int i = 0; i < N; i++)
        s[i] = (ggl_str){piece[i], strlen(piece[i])};
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", s, N);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, score, N);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, kind, N);
    ggl_gguf_put(w, "tokenizer.ggml.bos_token_id", GGL_GGUF_U32, false, &bos, 1);
    ggl_gguf_put(w, "tokenizer.ggml.eos_token_id", GGL_GGUF_U32, false, &eos, 1);
    ggl_gguf_put(w, "tokenizer.ggml.unknown_token_id", GGL_GGUF_U32, false, &unknown, 1);
    ggl_gguf_put(w, "tokenizer.ggml.add_bos_token", GGL_GGUF_BOOL, false, &adds, 1);
    CHECK_OK(ggl_gguf_writer_write_memory(w, data, &size, &err), &err);
    CHECK_OK(ggl_gguf_open_memory(&file, *data, size, "memory", &err), &err);
    return file;
}

/* Prompts begin with the token that the file demands, once; unless the caller leaves that to the template. */
TEST(the_first_token) {
    static const struct {
        bool adds;
        const char *text, *with, *without, *added;
    } row[] = {
        {true, "{{ messages[0].content }}", "<s>a", "a", "<s>"},
        {true, "{{ bos_token }}{{ messages[0].content }}", "<s>a", "<s>a", ""},
        {true, "<s>{{ messages[0].content }}", "<s>a", "<s>a", ""},
        {true, "{{ raise_exception('no') if messages|length < 3 else 'x' }}", "<s>x", "x", ""},
        {false, "{{ messages[0].content }}", "a", "a", ""},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        void *data = NULL;
        ggl_gguf *file = file_with_bos(w, row[i].adds, &data);
        llm_tokenizer *t = NULL;
        llm_chat *chat = NULL;
        const llm_chat_template with = {.name = "t", .text = {row[i].text, strlen(row[i].text)}};
        REQUIRE_OK(llm_tokenizer_new(&t, file, &err), &err);
        REQUIRE_OK(llm_chat_new(&chat, file, t, &with, &err), &err);
        CHECK(ggl_str_is(llm_chat_added_bos(chat), row[i].added));
        for (int leave = 0; leave < 2; leave++) {
            const char *vars = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                               "{\"role\": \"assistant\", \"content\": \"b\"}, {\"role\": "
                               "\"user\", \"content\": \"c\"}]}";
            const ggl_str all = {vars, strlen(vars)};
            char *got = NULL;
            size_t n;
            llm_chat_leave_bos_out(chat, leave);
            CHECK_OK(prompt_of(chat, all, &got, &n), &err);
            CHECK_STR(got, leave ? row[i].without : row[i].with);
            CHECK(n == strlen(got) && (!leave || llm_chat_added_bos(chat).n == 0));
            ggl_free(got);
        }
        llm_chat_free(chat);
        llm_tokenizer_free(t);
        ggl_gguf_close(file);
        ggl_gguf_writer_free(w);
        ggl_free(data);
    }
}

/* Renders a conversation by a template of n bytes; *got is the caller's. */
static ggl_status by_template(const char *text, size_t n, const char *talk, char **got,
                              size_t *n_got) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    void *data = NULL;
    ggl_gguf *file = file_with_bos(w, false, &data);
    llm_tokenizer *t = NULL;
    llm_chat *chat = NULL;
    const llm_chat_template with = {.name = "t", .text = {text, n}};
    *got = NULL;
    ggl_status st = llm_tokenizer_new(&t, file, &err);
    if (st == GGL_OK)
        st = llm_chat_new(&chat, file, t, &with, &err);
    if (st == GGL_OK)
        st = prompt_of(chat, (ggl_str){talk, strlen(talk)}, got, n_got);
    llm_chat_free(chat);
    llm_tokenizer_free(t);
    ggl_gguf_close(file);
    ggl_gguf_writer_free(w);
    ggl_free(data);
    return st;
}

#define SAYS_A "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}"

/* A file's template may have bytes that are 0, and a variable that is set before it. */
TEST(bytes_of_zero) {
    static const char text[] = "{% if functions %}f{% endif %}x\0y{{ messages[0].content }}";
    char *got;
    size_t n = 0;
    CHECK_OK(by_template(text, sizeof text - 1, SAYS_A, &got, &n), &err);
    CHECK(n == 4 && memcmp(got, "x\0ya", 4) == 0);
    ggl_free(got);
}

/* A template that tells calls from answers by a content that is none, and shows arguments in a form of its own. */
TEST(calls_beside_no_content) {
    static const char text[] =
        "{% for m in messages %}{% if m.content is none %}CALL {% for k, v in "
        "m.tool_calls[0].function.arguments.items() %}<{{ k }}>{{ v }}{% endfor %}{% else %}[{{ "
        "m.content }}]{% endif %}{% endfor %}";
    static const char *const contents[] = {"null", "\"\""};
    for (int i = 0; i < 2; i++) {
        char talk[512], *got;
        size_t n;
        snprintf(talk, sizeof talk,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": "
                 "\"assistant\", \"content\": %s, \"tool_calls\": [{\"id\": \"a\", \"type\": "
                 "\"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"q\": 1}}}]}]}",
                 contents[i]);
        CHECK_OK(by_template(text, sizeof text - 1, talk, &got, &n), &err);
        CHECK_STR(got, "[hi]CALL <q>1");
        ggl_free(got);
    }
}

/* A tool needs no description, no parameters, and parameters no properties: some templates refuse it without, and get empty ones. */
TEST(tools_that_have_little) {
    static const struct {
        const char *text, *want, *of_null; /* what is shown without a description, and with null */
    } row[] = {
        {"{{ f|tojson }}", "{\"name\": \"f\"}", "{\"name\": \"f\", \"description\": null}"},
        {"{{ f.name + f.description|tojson }}", "f\"\"", "f\"\""},
        {"{{ f.name + f.description }}.", "f.", "f."},
        {"{{ f.name + f.parameters|tojson }} {{ f.description }}",
         "f{\"type\": \"object\", \"properties\": {}} ",
         "f{\"type\": \"object\", \"properties\": {}} None"},
        {"{% for k, v in f.parameters.properties.items() %}{{ k }}{% endfor %}{{ f.name + "
         "f.description }}",
         "f", "f"},
        {"{{ raise_exception('never') }}", "t:1: the template refuses this conversation: never",
         "t:1: the template refuses this conversation: never"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int k = 0; k < 2; k++) {
            char text[512], talk[512], *got;
            size_t n;
            err = (ggl_error){0};
            snprintf(text, sizeof text,
                     "{%% for t in tools or [] %%}{%% set f = t.function %%}%s{%% endfor %%}",
                     row[i].text);
            snprintf(talk, sizeof talk,
                     "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": "
                     "[{\"type\": \"function\", \"function\": {\"name\": \"f\"%s}}]}",
                     k == 0 ? "" : ", \"description\": null");
            (void)by_template(text, strlen(text), talk, &got, &n);
            CHECK_STR(got ? got : err.msg, k == 0 ? row[i].want : row[i].of_null);
            ggl_free(got);
        }
    static const char *const of_schema[][2] = {
        {"{% for t in tools or [] %}{{ t.function.parameters|tojson }}{{ t.function.name }}{% for "
         "k "
         "in t.function.parameters.properties.items() %}{% endfor %}{% endfor %}",
         "{\"type\": \"object\", \"properties\": {}}f"},
        {"{% for t in tools or [] %}{{ t.function.parameters|tojson }}{{ t.function.name }}{% "
         "endfor "
         "%}",
         "{\"type\": \"object\"}f"}};
    for (int i = 0; i < 2; i++) {
        char *got;
        size_t n;
        (void)by_template(of_schema[i][0], strlen(of_schema[i][0]),
                          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": "
                          "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                          "\"parameters\": {\"type\": \"object\"}}}]}",
                          &got, &n);
        CHECK_STR(got ? got : err.msg, of_schema[i][1]);
        ggl_free(got);
    }
}

/* Mistral's templates refuse ids of calls that are not nine letters and digits. */
TEST(ids_of_calls) {
    static const char strict[] =
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ "
        "raise_exception('nine') if c.id|length != 9 }}{{ c.function.arguments|tojson }}{% endfor "
        "%}{% endfor %}";
    static const char usual[] =
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.id }}{{ "
        "c.function.arguments|tojson }}{% endfor %}{% endfor %}";
    const llm_chat_template with[] = {{.name = "t", .text = {strict, sizeof strict - 1}},
                                      {.name = "t", .text = {usual, sizeof usual - 1}},
                                      {.name = "t", .text = {"{{ messages[0].content }}", 25}}};
    for (int i = 0; i < 3; i++) {
        llm_chat *chat = NULL;
        REQUIRE_OK(llm_chat_new(&chat, NULL, NULL, &with[i], &err), &err);
        CHECK(llm_chat_has_short_ids(chat) == (i == 0));
        llm_chat_free(chat);
    }
}

/* An error names a message only if another one in its place would not be refused so. */
TEST(refusals_and_their_messages) {
    static const struct {
        const char *text, *words;
        bool names;
    } row[] = {
        {"{{ raise_exception('set the variable city') if not city }}", "city", false},
        {"{{ raise_exception('no a') if messages[0].content == 'b' }}", "no a", true},
        {"{% for m in messages %}{{ raise_exception('no b') if m.content == 'b' }}{% endfor %}",
         "no b", true},
        {"{% set x = {'content': 'x'} %}{% for i in range(40) %}{% set _ = messages.append(x) %}"
         "{% endfor %}{% for m in messages %}{{ raise_exception('no x') if m.content == 'x' and "
         "loop.last }}{% endfor %}",
         "no x", false}, /* a message of the template's own */
        {"{% set x = {'content': 'x'} %}{% for i in range(40) %}{% set _ = messages.insert(0, x) "
         "%}{% endfor %}{% for m in messages %}{{ raise_exception('no b') if m.content == 'b' }}"
         "{% endfor %}",
         "no b", true},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char *got;
        size_t n;
        err = (ggl_error){0};
        CHECK(by_template(row[i].text, strlen(row[i].text),
                          "{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}", &got,
                          &n) == GGL_USAGE);
        CHECK_HAS(err.msg, row[i].words);
        CHECK((strstr(err.msg, "messages[0]") != NULL) == row[i].names);
    }
}

/* An answer in which nothing was said is named, whatever the template stumbles over. */
TEST(empty_answers) {
    static const struct {
        const char *text, *messages, *words;
    } row[] = {
        {"{{ messages[1].content.x.y }}", "{\"role\": \"assistant\", \"content\": \"\"}",
         "messages[0] (assistant): it is empty, without content, reasoning and calls: t:1: "},
        {"{% for m in messages %}{{ raise_exception('empty') if not m.content }}{% endfor %}",
         "{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"\"}",
         "messages[1] (assistant): it is empty, without content, reasoning and calls: t:1: the "
         "template refuses this conversation: empty"},
        {"{% for m in messages %}{{ raise_exception('empty') if not m.content }}{% endfor %}",
         "{\"role\": \"user\", \"content\": \"\"}", "messages[0]: t:1: the template refuses"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char json[256], *got = NULL;
        size_t n;
        snprintf(json, sizeof json, "{\"messages\": [%s]}", row[i].messages);
        err = (ggl_error){0};
        CHECK(by_template(row[i].text, strlen(row[i].text), json, &got, &n) != GGL_OK);
        CHECK_MSG(strncmp(err.msg, row[i].words, strlen(row[i].words)) == 0, "%s", err.msg);
    }
}

/* Variables that conversations have unless they are set: for all by llm_chat_set, or for one. */
TEST(variables_of_conversations) {
    static const struct {
        const char *text, *set, *vars, *want;
    } row[] = {
        {"{% if not enable_thinking %}</think>{% endif %}", NULL, "{}", ""},
        {"{% if not enable_thinking %}</think>{% endif %}", "{\"enable_thinking\": false}", "{}",
         "</think>"},
        {"{% if not enable_thinking %}</think>{% endif %}", "{\"enable_thinking\": false}",
         "{\"enable_thinking\": true}", ""},
        {"{{ x }}{{ y }}", "{\"x\": 1, \"y\": 2}", "{\"y\": 3}", "13"},
        {"{{ functions }}", NULL, "{}", ""},
        {"{{ functions }}", NULL, "{\"tools\": [1]}", "[\n    1\n]"},
        {"{{ functions }}", NULL, "{\"tools\": [1], \"functions\": \"f\"}", "f"},
        {"{% if functions is defined %}f{% endif %}", NULL, "{}", ""},
        {"{{ datetime }}", NULL, "{\"now\": \"2025-03-09T14:05:06\"}", "Mar 09 2025"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        llm_chat *chat;
        const llm_chat_template with = {.name = "t", .text = {row[i].text, strlen(row[i].text)}};
        llm_talk *talk = NULL;
        char *got = NULL;
        size_t n;
        REQUIRE_OK(llm_chat_new(&chat, NULL, NULL, &with, &err), &err);
        if (row[i].set)
            CHECK_OK(llm_chat_set(chat, (ggl_str){row[i].set, strlen(row[i].set)}, "--x", &err),
                     &err);
        CHECK(llm_chat_set(chat, (ggl_str){"[]", 2}, "--x", &err) == GGL_FORMAT);
        CHECK_HAS(err.msg, "--x: a JSON object is expected");
        REQUIRE_OK(llm_talk_new(&talk, &err), &err);
        CHECK_OK(llm_talk_set(talk, (ggl_str){row[i].vars, strlen(row[i].vars)}, "v", &err), &err);
        CHECK_OK(llm_chat_prompt(chat, talk, NULL, &got, &n, &err), &err);
        CHECK_STR(got, row[i].want);
        ggl_free(got);
        llm_talk_free(talk);
        llm_chat_free(chat);
    }
}

static bool renders(void *arg) {
    const ggl_str vars = {"{\"m\": [{\"a\": 1, \"b\": \"x\\n\"}], \"n\": 2}", 37};
    const char *text = arg;
    char *got = render_with(text, strlen(text), vars, 0);
    const bool ok = got != NULL;
    ggl_free(got);
    return ok;
}

TEST(every_allocation_fails_in_turn) {
    char text[] =
        "{% macro f(x) %}{{ x|tojson }}{% endmacro %}{% for a in m %}{{ f(a) }}{% endfor %}"
        "{% set d = dict(a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=10) %}{{ d.j ~ d }}";
    CHECK(alloc_fail_each(renders, text) > 5);
}
