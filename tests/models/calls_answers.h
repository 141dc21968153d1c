/* For tests of calls in answers: answers of each format with their parts, and how they are read. One file of a test program includes this. */
#ifndef TESTS_CALLS_ANSWERS_H
#define TESTS_CALLS_ANSWERS_H

#include "llm/internal/calls.h"
#include "seed.h"
#include "test.h"
#include "value_of.h"

static ggl_error err;

/* The parts as one text: "text", (reasoning), name{..}#id, !broken: why! */
typedef struct parts {
    char s[8192];
    size_t n;
} parts;

static void put(parts *p, const char *format, int n, const char *s) {
    if (p->n < sizeof p->s - 1)
        p->n += (size_t)snprintf(p->s + p->n, sizeof p->s - p->n, format, n, s);
}

static inline void put_part(parts *p, const llm_calls_part *part, llm_calls_kind *last) {
    const bool text = part->kind == LLM_CALLS_CONTENT || part->kind == LLM_CALLS_REASONING;
    const char *begin = part->kind == LLM_CALLS_CONTENT ? "\"" : "(";
    if (!text || part->begins)
        put(p, "%.*s", (int)strlen(p->n ? " " : ""), p->n ? " " : "");
    if (text && part->begins)
        put(p, "%.*s", 1, begin);
    else if (text)
        CHECK(*last == part->kind ||
              (*last == LLM_CALLS_BROKEN && part->kind == LLM_CALLS_CONTENT));
    *last = part->kind;
    if (text)
        put(p, "%.*s", (int)part->text.n, part->text.s);
    else if (part->kind == LLM_CALLS_CALL) {
        put(p, "%.*s", (int)part->name.n, part->name.s);
        put(p, "%.*s", (int)part->arguments.n, part->arguments.s);
        if (part->id.n > 0)
            put(p, "#%.*s", (int)part->id.n, part->id.s);
    } else {
        put(p, "!%.*s: ", (int)part->text.n, part->text.s);
        put(p, "%.*s!", (int)strlen(part->error), part->error);
    }
}

static inline bool drain(llm_calls *c, parts *p, llm_calls_kind *last) {
    llm_calls_part part;
    while (llm_calls_next(c, &part))
        put_part(p, &part, last);
    return true;
}

typedef struct answer {
    const char *format, *text, *want, *prompt, *tools;
} answer;

static ggl_str str(const char *s) {
    return (ggl_str){s, s ? strlen(s) : 0};
}

/* Reads an answer in pieces of 1 to `most` bytes; most 0: whole. */
static inline bool read_answer(const answer *a, size_t most, uint64_t *state, parts *p) {
    llm_calls *c;
    llm_calls_kind last = LLM_CALLS_CALL;
    const llm_calls_params params = {.size = sizeof params,
                                     .format = str(a->format),
                                     .prompt = str(a->prompt),
                                     .tools = value_of(a->tools)};
    *p = (parts){0};
    err = (ggl_error){0};
    if (llm_calls_new(&c, &params, &err) != GGL_OK)
        return false;
    bool ok = true;
    const size_t n = strlen(a->text);
    for (size_t i = 0; i < n && ok;) {
        size_t k = most ? 1 + test_random(state) % most : n;
        k = k < n - i ? k : n - i;
        ok = llm_calls_add(c, a->text + i, k, &err) == GGL_OK && drain(c, p, &last);
        i += k;
    }
    ok = ok && llm_calls_finish(c, &err) == GGL_OK && drain(c, p, &last);
    llm_calls_free(c);
    return ok;
}

#define WEATHER "{\"city\":\"Oslo\",\"days\":3}"

#define A_STRING                                                                                   \
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": "  \
    "{\"s\": {\"type\": \"string\"}, \"n\": {\"type\": [\"integer\", \"null\"]}, \"b\": "          \
    "{\"anyOf\": "                                                                                 \
    "[{\"type\": \"string\"}, {\"type\": \"boolean\"}]}, \"l\": {\"type\": \"array\", \"items\": " \
    "{\"type\": \"string\"}}, \"o\": {\"type\": \"object\", \"properties\": {\"s\": {\"type\": "   \
    "\"string\"}}}}}}}, {\"name\": \"g\"}]"
#define NS "]<]minimax[>["

static const answer answers[] = {
    /* hermes */
    {"hermes",
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": \"x y\"}}\n</tool_call>",
     "f{\"a\":1,\"b\":\"x y\"}", 0, 0},
    {"hermes",
     "I look it up.\n<tool_call>{\"name\": \"f\", \"arguments\": "
     "{}}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>\n",
     "\"I look it up. f{} g{}", 0, 0},
    {"hermes", "<think>\nWhich one?\n</think>\n\nThe answer is <b>4</b>.\n",
     "(Which one? \"The answer is <b>4</b>.\n", 0, 0},
    {"hermes", "Which one?\n</think>\n\nFour.", "(Which one? \"Four.",
     "<|im_start|>assistant\n<think>\n", 0},
    {"hermes",
     "<tool_call>{\"name\": \"f\", \"arguments\": {\"html\": \"</tool_call> "
     "<think>\"}}</tool_call> done",
     "f{\"html\":\"</tool_call> <think>\"} \"done", 0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
     "f{\"a\":1}", 0, 0},
    {"hermes",
     "<tool_call>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {\"l\": "
     "[1, {\"x\": \"]\"}]}}]</tool_call>",
     "f{} g{\"l\":[1,{\"x\":\"]\"}]}", 0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "f{\"a\":1}", 0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}} and more",
     "f{\"a\":1} \"and more", 0, 0},
    {"hermes", "a < b, <tool, and <tool_cal", "\"a < b, <tool, and <tool_cal", 0, 0},
    {"hermes", "  \n ", "\"  \n ", 0, 0},
    /* broken */
    {"hermes", "<tool_call>hello</tool_call> bye",
     "!<tool_call>hello</tool_call>: no call follows! bye", 0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>x",
     "f{\"a\":1} \"x", 0, 0},
    {"hermes",
     "<tool_call>{\"name\": \"f, \"arguments\": {}}</tool_call> x <tool_call>{\"name\": "
     "\"g\"}</tool_call>",
     "!<tool_call>{\"name\": \"f, \"arguments\": {}}</tool_call>: \"f, \"arguments\": "
     "{}}</tool_call> x <tool_call>{\"name\": \"g\" is no name of a function! x g{}",
     0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
     "!<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>: the arguments of \"f\" are an "
     "array, not an object!",
     0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": NaN}}</tool_call>",
     "f{\"a\":\"NaN\"}", 0, 0},
    {"hermes", "<tool_call>{\"arguments\": {}}</tool_call>",
     "!<tool_call>{\"arguments\": {}}</tool_call>: the JSON has no name of a function!", 0, 0},
    {"hermes", "<tool_call>", "!<tool_call>: no call follows!", 0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\"}{\"x\": 1}</tool_call>",
     "f{} !{\"x\": 1}</tool_call>: the JSON has no name of a function!", 0, 0},
    /* llama */
    {"llama3", "{\"name\": \"f\", \"parameters\": {\"a\": \"1\"}}", "f{\"a\":\"1\"}", 0, 0},
    {"llama3", "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}",
     "f{} g{}", 0, 0},
    {"llama3",
     "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}<|eom_id|>", "f{}",
     0, 0},
    {"llama3", "<|python_tag|>brave_search.call(query=\"Menlo Park\", n=2)",
     "brave_search{\"query\":\"Menlo Park\",\"n\":2}", 0, 0},
    {"llama3", "<function=f>{\"a\": 1}</function>", "f{\"a\":1}", 0, 0},
    {"llama3", "{\"key\": \"value\"} is JSON; {\"name\": \"f\"}",
     "\"{\"key\": \"value\"} is JSON; {\"name\": \"f\"}", 0, 0},
    {"llama3", "Yes {\"name\": \"f\", \"parameters\": {}}",
     "\"Yes {\"name\": \"f\", \"parameters\": {}}", 0, 0},
    {"llama3", "{\"name\": \"f\", \"parameters\": {", "\"{\"name\": \"f\", \"parameters\": {", 0,
     0},
    {"llama4", "[get_weather(city='Oslo', days=3), g()]", "get_weather" WEATHER " g{}", 0, 0},
    {"llama4", "<|python_start|>[f(a=[1, 2.5], b={'x': True, 'y': None})]<|python_end|>",
     "f{\"a\":[1,2.5],\"b\":{\"x\":true,\"y\":null}}", 0, 0},
    {"llama4", "[1] A note.", "\"[1] A note.", 0, 0},
    /* mistral */
    {"mistral",
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"abcdefghi\"}]",
     "f{\"a\":1}#abcdefghi", 0, 0},
    {"mistral", "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}",
     "f{\"a\":1} g{}#123456789", 0, 0},
    {"mistral", "[THINK]Hm.[/THINK]Yes.", "(Hm. \"Yes.", 0, 0},
    {"mistral", "[TOOL_CALLS]f[ARGS]no", "![TOOL_CALLS]f[ARGS]: there is no JSON!no", 0, 0},
    /* functionary */
    {"functionary-v3.2", ">>>all\nHello.>>>f\n{\"a\": 1}", "\"Hello. f{\"a\":1}", 0, 0},
    {"functionary-v3.2", "f\n{\"a\": 1}>>>g\n{}", "f{\"a\":1} g{}", "<|end_header_id|>\n\n>>>", 0},
    {"functionary-v2", "<|from|>assistant\n<|recipient|>f\n<|content|>{\"a\": 1}", "f{\"a\":1}", 0,
     0},
    {"functionary-v3.1", "<function=f>{\"a\": 1}</function><function=g>{}</function>",
     "f{\"a\":1} g{}", 0, 0},
    /* others with JSON */
    {"command-r",
     "Action: ```json\n[\n    {\n        \"tool_name\": \"f\",\n        \"parameters\": {\"a\": "
     "1}\n    }\n]```",
     "f{\"a\":1}", 0, 0},
    {"command-r7b",
     "<|START_THINKING|>I search.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
     "\"tool_name\": "
     "\"f\", \"parameters\": {\"a\": 1}}\n]<|END_ACTION|>",
     "(I search. f{\"a\":1}#0", 0, 0},
    {"command-r7b", "<|START_RESPONSE|>Good day.<|END_RESPONSE|>", "\"Good day.", 0, 0},
    {"granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", "f{\"a\":1}", 0, 0},
    {"granite-20b",
     "<function_call> {\"name\": \"f\", \"arguments\": {}}\n<function_call> {\"name\": \"g\", "
     "\"arguments\": {}}",
     "f{} g{}", 0, 0},
    {"phi4-mini",
     "<|tool_call|>[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": "
     "{\"a\": 1}}}]<|/tool_call|>",
     "f{\"a\":1}", 0, 0},
    {"functools", "functools[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", "f{\"a\":1}", 0, 0},
    {"nemotron", "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}]</TOOLCALL>", "f{}", 0, 0},
    {"tool-calls",
     "<think>Well.</think>\n<tool_calls>\n{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", "
     "\"arguments\": {}}\n</tool_calls>",
     "(Well. f{} g{}", 0, 0},
    {"internlm2",
     "Sure.<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|action_end|>",
     "\"Sure. f{\"a\":1}", 0, 0},
    {"longcat", "<longcat_tool_call>{\"name\": \"f\", \"arguments\": {}}</longcat_tool_call>",
     "f{}", 0, 0},
    {"gigachat3", "function call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {}}", "f{}", 0, 0},
    {"apertus",
     "<|inner_prefix|>So.<|inner_suffix|><|tools_prefix|>[{\"f\": {\"a\": 1}}, {\"g\": "
     "{}}]<|tools_suffix|>",
     "(So. f{\"a\":1} g{}", 0, 0},
    {"json", "[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", "f{\"a\":1}", 0, 0},
    /* names between marks */
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
     "1}\n```<｜tool▁call▁end｜>\n"
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><"
     "｜tool▁calls▁end｜>",
     "f{\"a\":1} g{}", 0, 0},
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": "
     "1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "f{\"a\":1}", 0, 0},
    {"kimi-k2",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"
     "\"a\": 1}<|tool_call_end|>"
     "<|tool_calls_section_end|>",
     "f{\"a\":1}#functions.f:0", 0, 0},
    {"harmony",
     "<|channel|>analysis<|message|>I need it.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.f "
     "<|constrain|>json<|message|>{\"a\": 1}<|call|>",
     "(I need it. f{\"a\":1}", "<|start|>assistant", 0},
    {"harmony", "<|channel|>final<|message|>Four.<|return|>", "\"Four.", "<|start|>assistant", 0},
    {"harmony", " to=functions.f<|channel|>commentary json<|message|>{\"a\": 1}", "f{\"a\":1}",
     "<|start|>assistant", 0},
    /* Python */
    {"lfm2", "<|tool_call_start|>[f(a=\"x\\n\", b=-1)]<|tool_call_end|>Checking.",
     "f{\"a\":\"x\\n\",\"b\":-1} \"Checking.", 0, 0},
    {"lfm2", "<|tool_call_start|>[{\"name\": \"f\", \"arguments\": {}}]<|tool_call_end|>", "f{}", 0,
     0},
    {"olmo3", "<function_calls>\nf(a=1)\ng(b='it\\'s', c=[])\n</function_calls>",
     "f{\"a\":1} g{\"b\":\"it's\",\"c\":[]}", 0, 0},
    {"pythonic", "[f(1)]", "\"[f(1)]", 0, 0},
    {"olmo3", "<function_calls>f(1)</function_calls>",
     "!<function_calls>f(1)</function_calls>: an argument has no name!", 0, 0},
    {"olmo3", "<function_calls>f(a=01x)</function_calls>",
     "!<function_calls>f(a=01x)</function_calls>: the arguments of \"f\" are not JSON: JSON:1:6: a "
     "number has no leading zeros!",
     0, 0},
    /* arguments between marks */
    {"qwen3-coder",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</"
     "parameter>\n<parameter=days>\n3\n</parameter>\n"
     "</function>\n</tool_call>",
     "get_weather" WEATHER, 0, 0},
    {"qwen3-coder",
     "<tool_call>\n<function=f>\n<parameter=code>\nif a < b:\n    "
     "print(\"\\n\")\n</parameter>\n</function>\n</tool_call>",
     "f{\"code\":\"if a < b:\\n    print(\\\"\\\\n\\\")\"}", 0, 0},
    {"qwen3-coder",
     "<tool_call><function=f><parameter=n>5</parameter><parameter=s>5</parameter></function></"
     "tool_call>",
     "f{\"n\":5,\"s\":\"5\"}", 0,
     "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": "
     "{\"n\": {\"type\": \"integer\"}, "
     "\"s\": {\"type\": \"string\"}}}}}]"},
    {"qwen3-coder", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "f{}", 0, 0},
    {"qwen3-coder", "<tool_call><function=f></function></tool_call>", "f{}", 0, 0},
    {"qwen3-coder",
     "<tool_call><function=f><parameter=a>NaN</parameter><parameter=b> null "
     "</parameter><parameter=c></parameter></function></tool_call>",
     "f{\"a\":\"NaN\",\"b\":null,\"c\":\"\"}", 0, 0},
    {"qwen3-coder", "<tool_call><function=f>a<parameter=x>1</parameter></function></tool_call>.",
     "!<tool_call>: neither an argument nor the end of the call follows! "
     "!<function=f>a<parameter=x>1</parameter></function>: "
     "neither an argument nor the end of the call follows! \".",
     0, 0},
    {"glm",
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</"
     "arg_key>\n"
     "<arg_value>3</arg_value>\n</tool_call>",
     "get_weather" WEATHER, 0, 0},
    {"minimax-m2",
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
     "name=\"city\">Oslo</parameter>\n<parameter "
     "name=\"days\">3</parameter>\n</invoke>\n</minimax:tool_call>",
     "get_weather" WEATHER, 0, 0},
    {"seed-oss",
     "<seed:think>Hm.</seed:think><seed:tool_call>\n<function=f>\n<parameter=a>[1, "
     "2]</parameter>\n</function>\n</seed:tool_call>",
     "(Hm. f{\"a\":[1,2]}", 0, 0},
    {"deepseek-v3.2",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" "
     "string=\"true\">5"
     "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"b\" "
     "string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
     "</｜DSML｜function_calls>",
     "f{\"a\":\"5\",\"b\":5}", 0, 0},
    {"step3",
     "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
     "name=\"f\"><steptml:parameter "
     "name=\"a\">x</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
     "f{\"a\":\"x\"}", 0, 0},
    /* other quotes */
    {"gemma4",
     "<|channel>thought\nLet me "
     "see.<channel|><|tool_call>call:get_weather{city:<|\"|>Oslo<|\"|>,days:3}<tool_call|>",
     "(Let me see. get_weather" WEATHER, 0, 0},
    {"gemma4", "<|tool_call>call:f{a:[<|\"|>x \"}\" y<|\"|>,true],b:{c:null}}<tool_call|>",
     "f{\"a\":[\"x \\\"}\\\" y\",true],\"b\":{\"c\":null}}", 0, 0},
    {"functiongemma", "<start_function_call>call:f{a:<escape>x<escape>}<end_function_call>",
     "f{\"a\":\"x\"}", 0, 0},
    /* line breaks at the ends of strings */
    {"seed-oss",
     "<seed:tool_call><function=f><parameter=s>a\n</parameter><parameter=b>  c\n\n</parameter>"
     "</function></seed:tool_call>",
     "f{\"s\":\"a\\n\",\"b\":\"  c\\n\\n\"}", 0, A_STRING},
    {"minimax-m2",
     "<minimax:tool_call><invoke name=\"f\"><parameter name=\"s\">\na</parameter><parameter "
     "name=\"b\">\nc\n</parameter></invoke></minimax:tool_call>",
     "f{\"s\":\"\\na\",\"b\":\"c\"}", 0, A_STRING},
    {"qwen3-coder",
     "<tool_call><function=f><parameter=s>\na\n\n</parameter><parameter=b>\n\n c\n</parameter>"
     "</function></tool_call>",
     "f{\"s\":\"a\\n\",\"b\":\"\\n c\"}", 0, A_STRING},
    {"qwen3-coder",
     "<tool_call><function=f><parameter=s>5</parameter><parameter=n>null</parameter>"
     "<parameter=b>5</parameter></function></tool_call>"
     "<tool_call><function=f><parameter=b>true</parameter></function></tool_call>",
     "f{\"s\":\"5\",\"n\":null,\"b\":\"5\"} f{\"b\":true}", 0, A_STRING},
    /* elements */
    {"minimax-m3",
     "<mm:think>Two.</mm:think>Now:" NS "<tool_call>\n" NS "<invoke name=\"f\">" NS "<s>12\n" NS
     "</s>" NS "<n>-14" NS "</n>" NS "</invoke>\n" NS "<invoke name=\"g\">" NS "</invoke>\n" NS
     "</tool_call>",
     "(Two. \"Now: f{\"s\":\"12\\n\",\"n\":-14} g{}", 0, A_STRING},
    {"minimax-m3",
     "</mm:think>" NS "<tool_call>" NS "<invoke name=\"f\">\n" NS "<l>" NS "<item>1" NS "</item>" NS
     "<item>" NS "</item>" NS "</l>" NS "<o>" NS "<s>" NS "<x>1" NS "</x>" NS "</s>" NS "<k>" NS
     "<item>" NS "<y>1.5" NS "</y>" NS "</item>" NS "</k>" NS "</o>" NS "</invoke>",
     "f{\"l\":[\"1\",\"\"],\"o\":{\"s\":\"" NS "<x>1" NS "</x>\",\"k\":[{\"y\":1.5}]}}", 0,
     A_STRING},
    {"minimax-m3", NS "<invoke name=\"f\">" NS "<s>a" NS "</t>" NS "</invoke>.",
     "!" NS "<invoke name=\"f\">" NS "<s>a" NS "</t>" NS "</invoke>: an element does not end!.", 0,
     A_STRING},
    {"minicpm5",
     "Hm.</think><function name=\"f\"><param name=\"s\"><![CDATA[<a>\n</param>]]></param>"
     "<param name=\"n\">5</param></function>\n<function name=\"g\"></function>",
     "(Hm. f{\"s\":\"<a>\\n</param>\",\"n\":5} g{}", "<think>\n", A_STRING},
    {"lfm2.5", "Let me see [1].[f(s=\"x\", n=2), g()]",
     "\"Let me see [1]. f{\"s\":\"x\",\"n\":2} g{}", 0, A_STRING},
    {"lfm2.5", "<think>So.</think>[g()]", "(So. g{}", 0, A_STRING},
    {"lfm2.5", "So.<|tool_call_start|>[f(s=\"x\"), h.i(n=1)]<|tool_call_end|> Yes.",
     "\"So. f{\"s\":\"x\"} h.i{\"n\":1} \"Yes.", 0, A_STRING},
    {"lfm2.5", "[h(1)] [g(] [g()]", "\"[h(1)] [g(] [g()]", 0, A_STRING},
    {"gigachat3.1", "So.<|function_call|>{\"name\": \"f\", \"arguments\": {\"n\": 1}}",
     "\"So. f{\"n\":1}", 0, 0},
    {"gigachat3",
     "So.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {}}",
     "\"So. f{}", 0, 0},
    {"apriel", "I think.\n[BEGIN FINAL RESPONSE]\nFour.\n[END FINAL RESPONSE]<|end|>",
     "(I think. \"Four.", "<|assistant|>\nHere are my reasoning steps:\n", 0},
    {"apriel",
     "So.\n[BEGIN FINAL RESPONSE]\n<tool_calls>[{\"name\": \"f\", \"arguments\": "
     "{}}]</tool_calls>",
     "(So. f{}", "Here are my reasoning steps:\n", 0},
    /* stray marks */
    {"gemma4", "<|channel>thought\n<channel|>Four.<|channel>thought\n<channel|><channel|>",
     "\"Four.", 0, 0},
    {"gemma4", "<|channel><|channel>thought\nHm.<channel|>Four.<channel|>", "(Hm. \"Four.", 0, 0},
    {"command-r",
     "<|CHATBOT_TOKEN|>Action:\n```json\n[{\"tool_name\": \"f\", \"parameters\": {}}]\n```"
     "<|END_OF_TURN_TOKEN|>",
     "f{}", 0, 0},
    /* calls in reasoning that is not closed */
    {"hermes", "I call.\n<tool_call>{\"name\": \"f\"}</tool_call>\n<tool_call>{\"name\": \"g\"}",
     "(I call. f{} g{}", "<think>\n", 0},
    {"hermes",
     "I could <tool_call>{\"name\": \"f\"}</tool_call> here, or <tool_call> there.</think>No.",
     "(I could <tool_call>{\"name\": \"f\"}</tool_call> here, or <tool_call> there. \"No.",
     "<think>\n", 0},
    {"hermes", "So <tool_call>{\"name\": \"f\"}</tool_call>\n</think> Yes.",
     "(So <tool_call>{\"name\": \"f\"}</tool_call> \"Yes.", "<think>", 0},
    {"hermes", "So <tool_call>{\"name\": {\"</think><tool_call>{\"name\": \"f\"}</tool_call>",
     "(So <tool_call>{\"name\": {\" f{}", "<think>", 0},
    {"hermes", "So <tool_call>{\"name\"", "(So <tool_call>{\"name\"", "<think>", 0},
    {"kimi-k2",
     "Two.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
     "{}<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_calls_section_end|>",
     "(Two. f{}#functions.f:0 g{}#functions.g:1", "<think>", 0},
    /* forms of 2026 */
    {"muse",
     " to=self<|message|>Which city?<|eom|><|start|>assistant to=user<|message|>Let me look.<|eom|>"
     "<|start|>assistant to=w.get_weather<|message|><atem:function_calls>\n<atem:invoke "
     "name=\"get_weather\">\n<atem:parameter name=\"city\">Oslo</atem:parameter>\n<atem:parameter "
     "name=\"days\">3</atem:parameter>\n</atem:invoke>\n<atem:invoke name=\"g\">\n</atem:invoke>\n"
     "</atem:function_calls><|eom|><|start|>assistant to=user<|message|>Done.<|eot|>",
     "(Which city? \"Let me look. get_weather" WEATHER " g{} \"Done.", "<|start|>assistant", 0},
    {"muse", " to=user<|message|>a to=b<|eot|>", "\"a to=b", "<|start|>assistant", 0},
    {"muse", " to=commentary<|message|>So.<|eom|><|start|>assistant<|message|>Yes.", "\"So. \"Yes.",
     "<|start|>assistant", 0},
    {"kimi-k3",
     "So.<|close|>think<|sep|><|open|>response<|sep|>On "
     "it.<|close|>response<|sep|><|open|>tools<|sep|>"
     "<|open|>call tool=\"get_weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" "
     "type=\"string\"<|sep|>Oslo<|close|>argument<|sep|><|open|>argument key=\"days\" "
     "type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool=\"f\" "
     "index=\"2\"<|sep|><|open|>json type=\"object\"<|sep|>{\"a\": 1}<|close|>json<|sep|>"
     "<|close|>call<|sep|><|open|>call tool=\"g\" index=\"3\"<|sep|><|close|>call<|sep|>"
     "<|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
     "(So. \"On it. get_weather" WEATHER " f{\"a\":1} g{}", "<|open|>think<|sep|>", 0},
    {"kimi-k3", "So.<|open|>response<|sep|>a <|open|>b", "(So. \"a <|open|>b",
     "<|open|>think<|sep|>", 0},
    {"kimi-k3",
     "<|open|>call tool=\"f\"<|sep|><|open|>argument key=\"s\" "
     "type=\"string\"<|sep|>5<|close|>argument"
     "<|sep|><|close|>call<|sep|>",
     "f{\"s\":\"5\"}", "<|open|>response<|sep|>", 0},
    {"k2-horizon",
     "Hm.</ifm|think>\n<ifm|tool_calls>\n<ifm|tool_call>get_weather\n<ifm|arg_key>city</"
     "ifm|arg_key>\n"
     "<ifm|arg_value>Oslo</ifm|arg_value>\n<ifm|arg_key>days</ifm|arg_key>\n<ifm|arg_type>integer"
     "</ifm|arg_type>\n<ifm|arg_value>3</ifm|arg_value>\n</"
     "ifm|tool_call>\n<ifm|tool_call>{\"name\": "
     "\"f\", \"arguments\": {}}</ifm|tool_call>\n</ifm|tool_calls>",
     "(Hm. get_weather" WEATHER " f{}", "<ifm|think_fast>\n", 0},
    {"k2-horizon", "<ifm|think_faster>So</ifm|think_faster>Yes.", "(So \"Yes.", 0, 0},
    {"harmony-xml",
     "<|channel|>analysis<|message|>So<|end|><|start|>assistant "
     "to=w.get_weather<|channel|>analysis "
     "<|constrain|>xml<|message|><rfl:parameter name=\"city\">Oslo</rfl:parameter><rfl:parameter "
     "name=\"days\">3</rfl:parameter><|call|>",
     "(So w.get_weather" WEATHER, "<|start|>assistant", 0},
    {"harmony-xml",
     " to=g<|channel|>analysis<|message|><|end|><|start|>assistant<|channel|>final<|message|>Yes.<|"
     "return|>",
     "g{} \"Yes.", "<|start|>assistant", 0},
    {"llm-jp-harmony",
     "<|channel|> analysis<|message|> I need it.<|end|><|start|> assistant<|channel|> commentary "
     "to=functions.f <|constrain|> json<|message|> {\"a\": 1}<|end|><|start|> assistant "
     "to=functions.g<|channel|> commentary json<|message|> {}<|call|>",
     "(I need it. f{\"a\":1} g{}", "<|start|>assistant", 0},
    {"llm-jp-harmony", "<|channel|> final<|message|> Four.<|return|>", "\"Four.",
     "<|start|>assistant", 0},
    {"ling3",
     "Hm.</think>So.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>"
     "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call><|role_end|>",
     "(Hm. \"So. get_weather" WEATHER, "<role>ASSISTANT</role>\n<think>", 0},
    {"ling3", "Hm.<tool_call>g\n</tool_call>", "(Hm. g{}", "<think>", 0},
    /* reasoning alone */
    {"reasoning", "Two and two.\n</think>\nFour.", "(Two and two. \"Four.", "<think>", 0},
    {"reasoning-tags", "<reasoning>So</reasoning>Four.", "(So \"Four.", 0, 0},
    {"plain", "<think> <tool_call> are only text", "\"<think> <tool_call> are only text", 0, 0},
};

enum { N_ANSWERS = sizeof answers / sizeof *answers };

#endif
