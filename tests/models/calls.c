/* Calls in answers (llm/internal/calls.h): what is found in answers of each format, whole and cut
 * anywhere; what is broken is never lost; hostile answers take linear time. */
#include "llm/internal/calls.h"

#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "seed.h"
#include "steps.h"
#include "test.h"

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

static void put_part(parts *p, const llm_calls_part *part, llm_calls_kind *last) {
    const bool text = part->kind == LLM_CALLS_CONTENT || part->kind == LLM_CALLS_REASONING;
    const char *begin = part->kind == LLM_CALLS_CONTENT ? "\"" : "(";
    if (!text || part->begins)
        put(p, "%.*s", (int)strlen(p->n ? " " : ""), p->n ? " " : "");
    if (text && part->begins)
        put(p, "%.*s", 1, begin);
    else if (text)
        CHECK(*last == part->kind);
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

static bool drain(llm_calls *c, parts *p, llm_calls_kind *last) {
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
static bool read_answer(const answer *a, size_t most, uint64_t *state, parts *p) {
    llm_calls *c;
    llm_calls_kind last = LLM_CALLS_CALL;
    const llm_calls_params params = {.size = sizeof params,
                                     .format = str(a->format),
                                     .prompt = str(a->prompt),
                                     .tools = str(a->tools)};
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
     "(Which one? \"The answer is <b>4</b>.", 0, 0},
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
    {"hermes", "  \n ", "", 0, 0},
    /* broken */
    {"hermes", "<tool_call>hello</tool_call> bye",
     "!<tool_call>hello</tool_call>: no call follows! \"bye", 0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>x",
     "!<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>: the call is not JSON: "
     "JSON:1:35: ',' or '}' is expected here! \"x",
     0, 0},
    {"hermes",
     "<tool_call>{\"name\": \"f, \"arguments\": {}}</tool_call> x <tool_call>{\"name\": "
     "\"g\"}</tool_call>",
     "!<tool_call>{\"name\": \"f, \"arguments\": {}}</tool_call>: the call is not complete! \"x "
     "g{}",
     0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
     "!<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>: the arguments of \"f\" are an "
     "array, not an object!",
     0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": NaN}}</tool_call>",
     "!<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": NaN}}</tool_call>: the arguments of "
     "\"f\" have a number that is not JSON!",
     0, 0},
    {"hermes", "<tool_call>{\"arguments\": {}}</tool_call>",
     "!<tool_call>{\"arguments\": {}}</tool_call>: the JSON has no name of a function!", 0, 0},
    {"hermes", "<tool_call>", "!<tool_call>: no call follows!", 0, 0},
    {"hermes", "<tool_call>{\"name\": \"f\"}{\"x\": 1}</tool_call>",
     "!<tool_call>{\"name\": \"f\"}{\"x\": 1}</tool_call>: the JSON has no name of a function!", 0,
     0},
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
    {"mistral", "[TOOL_CALLS]f[ARGS]no", "![TOOL_CALLS]f[ARGS]: there is no JSON! \"no", 0, 0},
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
     "!" NS "<invoke name=\"f\">" NS "<s>a" NS "</t>" NS "</invoke>: an element does not end! \".",
     0, A_STRING},
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
    /* reasoning alone */
    {"reasoning", "Two and two.\n</think>\nFour.", "(Two and two. \"Four.", "<think>", 0},
    {"reasoning-tags", "<reasoning>So</reasoning>Four.", "(So \"Four.", 0, 0},
    {"plain", "<think> <tool_call> are only text", "\"<think> <tool_call> are only text", 0, 0},
};

enum { N_ANSWERS = sizeof answers / sizeof *answers };

TEST(answers_of_all_formats) {
    for (int i = 0; i < N_ANSWERS; i++) {
        parts p;
        REQUIRE(
            CHECK_MSG(read_answer(&answers[i], 0, NULL, &p), "%s: %s", answers[i].format, err.msg));
        if (!CHECK_STR(p.s, answers[i].want))
            fprintf(stderr, "  %s\n", answers[i].text);
    }
}

TEST(every_format_has_an_answer) {
    ggl_str name;
    int n = 0;
    for (; (name = llm_calls_format_name(n)).n > 0; n++) {
        bool found = false;
        for (int i = 0; i < N_ANSWERS && !found; i++)
            found = ggl_str_is(name, answers[i].format);
        CHECK_MSG(found, "no answer for %.*s", (int)name.n, name.s);
    }
    CHECK(n > 30);
}

/* However an answer is cut, its parts are the same. */
TEST(pieces_do_not_matter) {
    uint64_t state = sample_seed();
    for (int i = 0; i < N_ANSWERS; i++)
        for (int k = 0; k < 60; k++) {
            parts p;
            const size_t most = k == 0 ? 1 : k % 2 ? 3 : 20;
            REQUIRE(read_answer(&answers[i], most, &state, &p));
            if (!CHECK_STR(p.s, answers[i].want))
                return;
        }
}

typedef struct begun {
    char name[2048], id[2048], args[2048];
} begun;

/* Reads an answer with partial calls: their pieces, joined, are the beginning of the arguments, and without BEGINS and PIECE
 * the parts are the same. *n_early: bytes of arguments that came before the call. */
static bool read_partial(const answer *a, size_t most, uint64_t *state, parts *p, size_t *n_early) {
    static begun b[64];
    int n_begun = 0, n_called = 0;
    llm_calls *c;
    llm_calls_kind last = LLM_CALLS_CALL;
    llm_calls_part part;
    const llm_calls_params params = {.size = sizeof params,
                                     .format = str(a->format),
                                     .prompt = str(a->prompt),
                                     .tools = str(a->tools),
                                     .partial = true};
    *p = (parts){0};
    *n_early = 0;
    if (llm_calls_new(&c, &params, &err) != GGL_OK)
        return false;
    const size_t n = strlen(a->text);
    bool ok = true;
    for (size_t i = 0, k; ok && i <= n; i += k) {
        k = i == n ? 1 : 1 + test_random(state) % most;
        k = i < n && k > n - i ? n - i : k;
        ok = (i < n ? llm_calls_add(c, a->text + i, k, &err) : llm_calls_finish(c, &err)) == GGL_OK;
        while (ok && llm_calls_next(c, &part)) {
            if (part.kind == LLM_CALLS_BEGINS) {
                if (!CHECK(n_begun < 64))
                    return false;
                b[n_begun] = (begun){0};
                snprintf(b[n_begun].name, sizeof b->name, "%.*s", (int)part.name.n, part.name.s);
                snprintf(b[n_begun++].id, sizeof b->id, "%.*s", (int)part.id.n, part.id.s);
                continue;
            }
            if (part.kind == LLM_CALLS_PIECE) {
                if (!CHECK(n_begun > 0))
                    return false;
                strncat(b[n_begun - 1].args, part.arguments.s, part.arguments.n);
                *n_early += part.arguments.n;
                continue;
            }
            if (part.kind == LLM_CALLS_CALL && part.has_begun) {
                const begun *x = &b[n_called++];
                if (!CHECK(n_called <= n_begun))
                    return false;
                /* an id may come after the arguments */
                CHECK_MSG(ggl_str_is(part.name, x->name), "%s: %s: %.*s, begun as %s", a->format,
                          a->text, (int)part.name.n, part.name.s, x->name);
                CHECK_MSG(!x->id[0] || ggl_str_is(part.id, x->id), "%s: id %s", a->text, x->id);
                CHECK_MSG(strncmp(part.arguments.s, x->args, strlen(x->args)) == 0,
                          "%s: '%s' does not begin %.*s", a->text, x->args, (int)part.arguments.n,
                          part.arguments.s);
            } else if (part.kind == LLM_CALLS_BROKEN || part.kind == LLM_CALLS_CALL)
                n_called = n_begun; /* what was begun before has no call */
            put_part(p, &part, &last);
        }
    }
    llm_calls_free(c);
    return ok;
}

TEST(calls_while_they_are_written) {
    uint64_t state = sample_seed() + 2;
    for (int i = 0; i < N_ANSWERS; i++)
        for (int k = 0; k < 20; k++) {
            parts p;
            size_t n;
            REQUIRE(read_partial(&answers[i], k == 0 ? 1 : 7, &state, &p, &n));
            if (!CHECK_STR(p.s, answers[i].want))
                return;
        }
}

/* The same with pieces of answers removed, doubled and exchanged. */
TEST(broken_calls_while_they_are_written) {
    uint64_t state = sample_seed() + 3;
    for (int k = 0; k < 4000; k++) {
        char text[2048];
        answer a = answers[test_random(&state) % N_ANSWERS];
        const char *other = answers[test_random(&state) % N_ANSWERS].text;
        const size_t n = strlen(a.text), m = strlen(other), at = test_random(&state) % (n + 1),
                     from = test_random(&state) % (m + 1);
        snprintf(text, sizeof text, "%.*s%s%s", (int)at, a.text, other + from,
                 a.text + at + test_random(&state) % (n - at + 1));
        a.text = text;
        parts whole, cut;
        size_t early;
        REQUIRE(read_answer(&a, 0, NULL, &whole) &&
                read_partial(&a, 1 + k % 9, &state, &cut, &early));
        if (!CHECK_STR(cut.s, whole.s)) {
            fprintf(stderr, "  %s: %s\n", a.format, text);
            return;
        }
    }
}

/* Byte by byte, almost all of the arguments comes before the call, in the formats whose arguments can be given early. */
TEST(arguments_come_early) {
    static const answer long_calls[] = {
        {"hermes",
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a long text\", \"n\": [1, "
         "2]}}</tool_call>",
         "", 0, A_STRING},
        {"hermes",
         "<tool_call>[{\"name\": \"f\", \"arguments\": {\"s\": \"a long text\"}}, {\"name\": "
         "\"g\", \"arguments\": {}}]</tool_call>",
         "", 0, 0},
        {"llama3", "{\"name\": \"f\", \"parameters\": {\"s\": \"a \\\"long\\\" text\"}}", "", 0,
         A_STRING},
        {"kimi-k2",
         "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"s\": \"a long "
         "text\"}<|tool_call_end|>",
         "", 0, 0},
        {"qwen3-coder",
         "<tool_call><function=f><parameter=s>\na "
         "long\ntext\n</parameter><parameter=n>\n5\n</parameter></function></tool_call>",
         "", 0, A_STRING},
        {"deepseek-v3.2",
         "<｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"x\" string=\"true\">a long "
         "text</｜DSML｜parameter></｜DSML｜invoke>",
         "", 0, 0},
        {"minicpm5",
         "<function name=\"f\"><param name=\"s\"><![CDATA[a <long> text]]></param></function>", "",
         0, 0},
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof long_calls / sizeof *long_calls; i++) {
        parts p;
        size_t early;
        REQUIRE(read_partial(&long_calls[i], 1, &state, &p, &early));
        CHECK_MSG(early >= 15 && early + 10 > strlen(p.s) - 10, "%s: %zu of '%s' came early",
                  long_calls[i].format, early, p.s);
    }
}

/* Answers with a piece removed, doubled or replaced by one of another: also then pieces do not
 * matter, and whatever is not a mark or white space is in some part. */
TEST(broken_answers_in_pieces) {
    uint64_t state = sample_seed() + 1;
    for (int k = 0; k < 4000; k++) {
        char text[2048];
        answer a = answers[test_random(&state) % N_ANSWERS];
        const char *other = answers[test_random(&state) % N_ANSWERS].text;
        const size_t n = strlen(a.text), m = strlen(other), at = test_random(&state) % (n + 1),
                     from = test_random(&state) % (m + 1);
        const size_t gone = test_random(&state) % (n - at + 1),
                     more = test_random(&state) % (m - from + 1);
        snprintf(text, sizeof text, "%.*s%.*s%s", (int)at, a.text, (int)more, other + from,
                 a.text + at + gone);
        a.text = text;
        parts whole, cut;
        REQUIRE(read_answer(&a, 0, NULL, &whole) && read_answer(&a, 1 + k % 9, &state, &cut));
        if (!CHECK_STR(cut.s, whole.s)) {
            fprintf(stderr, "  %s: %s\n", a.format, text);
            return;
        }
    }
}

/* What the prompt has begun of an answer, and how the answer goes on. */
TEST(answers_that_go_on) {
    static const struct {
        const char *format, *prompt, *begun, *text, *want;
    } row[] = {
        {"hermes", "assistant\n<think>\n", "I'm", " thinking\n</think>\n\nHello",
         "( thinking \"Hello"},
        {"hermes", "assistant\n", "<think>\nI'm ", "thinking</think>Hello", "(thinking \"Hello"},
        {"hermes", "assistant\n", "<think>\nSo\n</think>\n\nHello, ", "world </think>",
         "\"world </think>"},
        {"hermes", "<think>", "\n\n</think>\n\nHello", ", <b>", "\", <b>"},
        {"hermes", "assistant\n<think>\n", "", "So</think>Hello", "(So \"Hello"},
        {"harmony", "<|start|>assistant", "<|channel|>analysis<|message|>I'm",
         " thinking<|end|><|start|>assistant<|channel|>final<|message|>Hello",
         "( thinking \"Hello"},
        {"gemma4", "<|turn>model\n", "<|channel>thought\nI'm", " here<channel|>Hello",
         "( here \"Hello"},
        {"hermes", "assistant\n", "So<tool_call>{\"name\": \"f\", ", "\"arguments\": {}}", "f{}"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (size_t most = 1; most < 200; most += 150) {
            llm_calls *c;
            llm_calls_kind last = LLM_CALLS_CALL;
            char prompt[256];
            parts p = {0};
            snprintf(prompt, sizeof prompt, "%s%s", row[i].prompt, row[i].begun);
            const llm_calls_params params = {.size = sizeof params,
                                             .format = str(row[i].format),
                                             .prompt = str(prompt),
                                             .n_begun = strlen(row[i].begun)};
            REQUIRE_OK(llm_calls_new(&c, &params, &err), &err);
            const size_t n = strlen(row[i].text);
            for (size_t k = 0; k < n; k += most) {
                CHECK_OK(llm_calls_add(c, row[i].text + k, most < n - k ? most : n - k, &err),
                         &err);
                drain(c, &p, &last);
            }
            CHECK_OK(llm_calls_finish(c, &err), &err);
            drain(c, &p, &last);
            llm_calls_free(c);
            CHECK_STR(p.s, row[i].want);
        }
}

static void check_format(const char *template_text, const char *want) {
    const ggl_str got = llm_calls_format(str(template_text));
    CHECK_MSG(ggl_str_is(got, want), "%s: %.*s, expected %s", template_text, (int)got.n, got.s,
              want);
}

TEST(the_format_follows_from_the_template) {
    check_format("", "plain");
    check_format("{{ messages }}", "plain");
    check_format("<think> </think>", "reasoning");
    check_format("return {\"name\": ..} within <tool_call></tool_call>", "hermes");
    check_format("<tool_call>\n<function=example>\n<parameter=x>", "qwen3-coder");
    check_format("<tool_call>{name}\n<arg_key>{key}</arg_key>", "glm");
    check_format("'<|python_tag|>' + x", "llama3");
    check_format("Respond in the format {\"name\": function name, \"parameters\": dictionary}",
                 "llama3");
    check_format("[AVAILABLE_TOOLS] [TOOL_CALLS]", "mistral");
    check_format("<|start|>assistant<|channel|>final<|message|>", "harmony");
    check_format("<|tool_call|>", "granite");
    check_format("<|tool_call|>[]<|/tool_call|>", "phi4-mini");
    check_format("<｜tool▁call▁begin｜>function", "deepseek");
    check_format("{%- set ns_token = ']<]minimax[>[' %}<mm:think><tool_call>", "minimax-m3");
    check_format("List of tools: [<|tool_call_start|>", "lfm2");
    check_format("\"List of tools: [\" <think>", "lfm2.5");
    check_format("<function name=\"' ~ f ~ '\"><param name=\"", "minicpm5");
    check_format("<|function_call|> <|role_sep|> function call <|message_sep|>", "gigachat3.1");
    check_format("'role': 'function call' <|role_sep|>\n <|message_sep|>", "gigachat3");
    check_format("Here are my reasoning steps:\n [BEGIN FINAL RESPONSE] <tool_calls>", "apriel");
}

TEST(wrong_parameters) {
    llm_calls *c;
    llm_calls_params p = {.size = sizeof p, .format = str("nothing")};
    CHECK(llm_calls_new(&c, &p, &err) == GGL_NOT_FOUND && !c);
    CHECK_HAS(err.msg, "there is no call format \"nothing\"; there are minimax-m3, harmony, ");
    p = (llm_calls_params){.size = sizeof(llm_calls_params), .tools = str("{}")};
    CHECK(llm_calls_new(&c, &p, &err) == GGL_FORMAT && !c);
    CHECK_HAS(err.msg, "tools: an object, expected an array");
    p.tools = str("[");
    CHECK(llm_calls_new(&c, &p, &err) == GGL_FORMAT && !c);
    p = (llm_calls_params){.size = sizeof(llm_calls_params), .max_size = 4};
    REQUIRE_OK(llm_calls_new(&c, &p, &err), &err);
    CHECK_OK(llm_calls_add(c, "abcd", 4, &err), &err);
    CHECK(llm_calls_add(c, "e", 1, &err) == GGL_LIMIT);
    llm_calls_free(c);
    llm_calls_free(NULL);
}

/* What may be shown while a call is being written. */
TEST(a_call_in_progress) {
    llm_calls *c;
    llm_calls_part part;
    const llm_calls_params p = {.size = sizeof p, .format = str("hermes")};
    REQUIRE_OK(llm_calls_new(&c, &p, &err), &err);
    CHECK_OK(llm_calls_add(c, "Let me see. <too", 16, &err), &err);
    REQUIRE(llm_calls_next(c, &part) && part.kind == LLM_CALLS_CONTENT && part.begins);
    CHECK(ggl_str_is(part.text, "Let me see.") && !llm_calls_next(c, &part));
    CHECK(llm_calls_now(c) == LLM_CALLS_CONTENT);
    CHECK_OK(llm_calls_add(c, "l_call>{\"na", 11, &err), &err);
    CHECK(llm_calls_now(c) == LLM_CALLS_CALL && !llm_calls_next(c, &part));
    CHECK_OK(llm_calls_add(c, "me\": \"f\"}</tool_call>", 21, &err), &err);
    REQUIRE(llm_calls_next(c, &part) && part.kind == LLM_CALLS_CALL);
    CHECK(ggl_str_is(part.text, "<tool_call>{\"name\": \"f\"}</tool_call>"));
    CHECK(llm_calls_now(c) == LLM_CALLS_CONTENT);
    llm_calls_free(c);
}

/* Reads the first n bytes of an answer as one that was cut off. Writes its calls, one in a line, and without them
 * how the rest begins. */
static void read_cut(const answer *a, size_t n, bool demanded, char *calls, char *rest,
                     size_t size) {
    llm_calls *c;
    llm_calls_part part;
    const llm_calls_params params = {.size = sizeof params,
                                     .format = str(a->format),
                                     .prompt = str(a->prompt),
                                     .tools = str(a->tools),
                                     .demanded = demanded};
    calls[0] = rest[0] = '\0';
    if (!CHECK_OK(llm_calls_new(&c, &params, &err), &err))
        return;
    CHECK_OK(llm_calls_add(c, a->text, n, &err), &err);
    CHECK_OK(llm_calls_cut(c, &err), &err);
    while (llm_calls_next(c, &part)) {
        const bool is_call = part.kind == LLM_CALLS_CALL;
        char *to = is_call ? calls : rest;
        const size_t at = strlen(to);
        if (is_call)
            snprintf(to + at, size - at, "%.*s%.*s\n", (int)part.name.n, part.name.s,
                     (int)part.arguments.n, part.arguments.s);
        else
            snprintf(to + at, size - at, "%.*s", (int)part.text.n, part.text.s);
    }
    llm_calls_free(c);
}

/* Wherever an answer is cut off, its calls are those with which the whole one begins. */
TEST(cut_answers_have_no_other_calls) {
    static char whole[1 << 14], calls[1 << 14], rest[1 << 14];
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const size_t n = strlen(answers[i].text);
        if (n > 2000)
            continue;
        read_cut(&answers[i], n, false, whole, rest, sizeof whole);
        for (size_t k = 0; k < n && whole[0]; k++) { /* not of those that break off after a call */
            read_cut(&answers[i], k, k % 2, calls, rest, sizeof calls);
            CHECK_MSG(strncmp(calls, whole, strlen(calls)) == 0, "%s: '%.*s' has the calls\n%s",
                      answers[i].format, (int)k, answers[i].text, calls);
        }
    }
}

/* No mark and no part of a call becomes content. */
TEST(cut_answers_show_no_marks) {
    static const struct {
        answer a;
        const char *rest;
    } cut[] = {
        {{"hermes", "I look.\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "", 0,
          0},
         "I look."},
        {{"mistral", "So.[TOOL_CALLS]f[ARGS]{\"a\": [1, 2]}", "", 0, 0}, "So."},
        {{"qwen3-coder",
          "Hm.<tool_call><function=f><parameter=a>1</parameter></function></tool_call>", "", 0, 0},
         "Hm."},
        {{"kimi-k2",
          "A.<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>", "",
          0, 0},
         "A."},
    };
    char calls[256], rest[256];
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        const size_t n = strlen(cut[i].a.text);
        for (size_t k = 0; k <= n; k++) {
            read_cut(&cut[i].a, k, false, calls, rest, sizeof calls);
            CHECK_MSG(strncmp(rest, cut[i].rest, strlen(rest)) == 0, "'%.*s' shows '%s'", (int)k,
                      cut[i].a.text, rest);
        }
        CHECK_MSG(calls[0], "'%s' has no call", cut[i].a.text);
    }
}

/* Answers that repeat a piece; the steps grow like their length, whether they come whole or byte
 * by byte. */
static uint64_t steps_of(const char *format, const char *piece, size_t times, bool bytes) {
    llm_calls *c;
    llm_calls_part part;
    const llm_calls_params p = {.size = sizeof p, .format = str(format), .tools = str(A_STRING)};
    const size_t n = strlen(piece);
    if (!CHECK_OK(llm_calls_new(&c, &p, &err), &err))
        return 0;
    ggl_n_steps = 0;
    for (size_t i = 0; i < times; i++)
        for (size_t k = 0; k < n; k += bytes ? 1 : n)
            if (!CHECK_OK(llm_calls_add(c, piece + k, bytes ? 1 : n, &err), &err))
                return 0;
    CHECK_OK(llm_calls_finish(c, &err), &err);
    while (llm_calls_next(c, &part))
        ;
    llm_calls_free(c);
    return ggl_n_steps;
}

TEST(hostile_answers_take_linear_time) {
    static const char *const hostile[][2] = {
        {"hermes", "<tool_call>{\""},
        {"hermes", "<tool_call>{\"a"},
        {"hermes", "<tool_call>"},
        {"hermes", "<tool_call> {"},
        {"hermes", "<tool_call>{\"name\":\"f\"}"},
        {"hermes", " "},
        {"hermes", "<"},
        {"hermes", "<tool_call"},
        {"llama3", "{<|python_tag|>"},
        {"llama3", "{\"a\":1};"},
        {"llama3", ";{"},
        {"llama3", "["},
        {"llama3", "<|eot_id|>{\""},
        {"json", "<think></think>{\""},
        {"mistral", "[TOOL_CALLS]"},
        {"mistral", "[TOOL_CALLS]f[ARGS]{"},
        {"mistral", "[TOOL_CALLS]f"},
        {"qwen3-coder", "<tool_call><function=f><parameter=a>"},
        {"qwen3-coder", "<tool_call><function=f>"},
        {"glm", "<tool_call>f<arg_key>"},
        {"llama4", "[f("},
        {"llama4", "[ f"},
        {"olmo3", "<function_calls>f(a='"},
        {"harmony", "<|start|>assistant to=f "},
        {"gemma4", "<|tool_call>call:f{<|\"|>"},
        {"command-r7b", "<|START_ACTION|>[[[["},
        {"minimax-m3", NS "<invoke name=\"f\">" NS "<o>"},
        {"minimax-m3", NS "<invoke name=\"f\">" NS "<s>" NS "</invoke>"},
        {"minicpm5", "<function name=\"f\"><param name=\"s\"><![CDATA["},
        {"lfm2.5", "[f("},
        {"lfm2.5", "[f(s=\"x\")]"},
        {"hermes", "<think><tool_call>{\""},
        {"hermes", "<think><tool_call>{\"name\":\"f\"}</tool_call>"},
        {"hermes", "<think><tool_call>{\"name\":\"f\"}</tool_call>x"},
        {"kimi-k2", "<think><|tool_calls_section_begin|>"},
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        for (int bytes = 0; bytes < 2; bytes++) {
            const uint64_t small = steps_of(hostile[i][0], hostile[i][1], 500, bytes);
            test_linear(hostile[i][1], small, steps_of(hostile[i][0], hostile[i][1], 4000, bytes),
                        8);
        }
}

/* Many calls in one object: {"f0": {}, "f1": {}, ..}. */
static uint64_t steps_of_map(int n_calls) {
    char *text = malloc((size_t)n_calls * 20 + 100), *end = text;
    end += sprintf(end, "<|tools_prefix|>{");
    for (int i = 0; i < n_calls; i++)
        end += sprintf(end, "%s\"f%d\": {}", i ? ", " : "", i);
    sprintf(end, "}<|tools_suffix|>");
    const uint64_t n = steps_of("apertus", text, 1, false);
    free(text);
    return n;
}

TEST(maps_of_calls_take_linear_time) {
    const uint64_t small = steps_of_map(200);
    test_linear("a map of calls", small, steps_of_map(1600), 10);
}

static bool reads(void *arg) {
    parts p;
    return read_answer(arg, 0, NULL, &p);
}

/* Each failing allocation is reported as such. */
TEST(no_memory_for_formats) {
    for (int k = 1;; k++) {
        llm_calls *c;
        const llm_calls_params p = {.size = sizeof p, .format = {"hermes", 6}};
        alloc_fail_at(k);
        const ggl_status st = llm_calls_new(&c, &p, &err);
        const bool failed = alloc_has_failed();
        alloc_fail_at(0);
        llm_calls_free(c);
        CHECK_INT(st, failed ? GGL_NOMEM : GGL_OK);
        if (!failed)
            break;
    }
}

TEST(every_allocation_fails_in_turn) {
    long failed = 0;
    for (int i = 0; i < N_ANSWERS; i++) {
        answer a = answers[i];
        const long n = alloc_fail_each(reads, &a);
        if (!CHECK_MSG(n > 0, "%s: %ld", a.text, n))
            return;
        failed += n;
    }
    CHECK(failed > 4 * N_ANSWERS);
}

/* The same for calls without marks, if calls were demanded; otherwise they may be content. */
TEST(cut_answers_show_no_demanded_call) {
    static const answer cut[] = {
        {"llama3",
         "{\"name\": \"f\", \"parameters\": {\"a\": [1]}}; {\"name\": \"g\", \"parameters\": {}}",
         "", 0, 0},
        {"json", "<think>Hm.</think>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]", "",
         0, 0},
        {"llama4", "[f(a=1), g()]", "", 0, 0},
        {"lfm2.5", "[f(a=1), g()]", "", 0, "[{\"name\": \"f\"}, {\"name\": \"g\"}]"},
    };
    char calls[256], rest[256];
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        const size_t n = strlen(cut[i].text);
        for (size_t k = 0; k <= n; k++) {
            read_cut(&cut[i], k, true, calls, rest, sizeof calls);
            CHECK_MSG(strncmp(rest, "Hm.", strlen(rest)) == 0, "'%.*s' shows '%s'", (int)k,
                      cut[i].text, rest);
        }
        CHECK_MSG(calls[0], "'%s' has no call", cut[i].text);
        read_cut(&cut[i], n - 2, false, calls, rest, sizeof calls);
        CHECK_MSG(rest[0], "'%s' shows nothing", cut[i].text);
    }
}
