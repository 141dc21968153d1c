/* The table of formats. */
#include "schema_formats.h"

/* RFC 3339, section 5.6; leap seconds only in the last minute of a day in UTC. */
#define LEAP_YEAR "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
#define DATE                                                                                       \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"                                \
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" LEAP_YEAR "-02-29)"
#define ZONE "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define TIME                                                                                       \
    "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?" ZONE                             \
    "|23:59:60(?:\\.[0-9]+)?(?:[Zz]|[+-]00:00))"

/* RFC 3339, appendix A */
#define DURATION                                                                                   \
    "^P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)?"      \
    "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)$"

#define LABEL    "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define HOSTNAME LABEL "(?:\\." LABEL ")*"
#define BYTE     "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4     BYTE "(?:\\." BYTE "){3}"

/* RFC 4291: eight groups, or fewer around one "::"; the last two may be an IPv4 address. */
#define H16  "[0-9A-Fa-f]{1,4}"
#define LS32 "(?:" H16 ":" H16 "|" IPV4 ")"
#define IPV6                                                                                       \
    "(?:(?:" H16 ":){6}" LS32 "|::(?:" H16 ":){5}" LS32 "|(?:" H16 ")?::(?:" H16 ":){4}" LS32      \
    "|(?:(?:" H16 ":){0,1}" H16 ")?::(?:" H16 ":){3}" LS32 "|(?:(?:" H16 ":){0,2}" H16             \
    ")?::(?:" H16 ":){2}" LS32 "|(?:(?:" H16 ":){0,3}" H16 ")?::" H16 ":" LS32 "|(?:(?:" H16       \
    ":){0,4}" H16 ")?::" LS32 "|(?:(?:" H16 ":){0,5}" H16 ")?::" H16 "|(?:(?:" H16 ":){0,6}" H16   \
    ")?::)"

/* RFC 5321, section 4.1.2; the domain has at least two labels, or is an address in brackets. */
#define ATEXT       "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-"
#define QUOTED      "\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\""
#define WIDE        "\\u0080-\\u{10ffff}"
#define WIDE_LABEL  "[A-Za-z0-9" WIDE "](?:[A-Za-z0-9" WIDE "-]*[A-Za-z0-9" WIDE "])?"
#define WIDE_TEXT   "\"(?:[ !#-\\[\\]-~" WIDE "]|\\\\[ -~])*\""
#define MAIL_DOMAIN "(?:" LABEL "(?:\\." LABEL ")+|\\[(?:" IPV4 "|IPv6:" IPV6 ")\\])"

/* RFC 3986; U: more characters, none for URIs, RFC 3987's for IRIs */
#define PCT          "%[0-9A-Fa-f]{2}"
#define UNRESERVED   "A-Za-z0-9._~\\-"
#define SUB          "!$&'()*+,;="
#define PCHAR(u)     "(?:[" UNRESERVED SUB ":@" u "]|" PCT ")"
#define USERINFO(u)  "(?:[" UNRESERVED SUB ":" u "]|" PCT ")*@"
#define REG_NAME(u)  "(?:[" UNRESERVED SUB u "]|" PCT ")*"
#define LITERAL      "\\[(?:" IPV6 "|[vV][0-9A-Fa-f]+\\.[" UNRESERVED SUB ":]+)\\]"
#define AUTHORITY(u) "(?:" USERINFO(u) ")?(?:" LITERAL "|" REG_NAME(u) ")(?::[0-9]*)?"
#define ABEMPTY(u)   "(?:/" PCHAR(u) "*)*"
#define ROOTED(u)    "/(?:" PCHAR(u) "+(?:/" PCHAR(u) "*)*)?"
#define QUERY(u)     "(?:\\?(?:" PCHAR(u) "|[/?])*)?(?:#(?:" PCHAR(u) "|[/?])*)?"
#define HIER(u)      "(?://" AUTHORITY(u) ABEMPTY(u) "|" ROOTED(u) "|" PCHAR(u) "+(?:/" PCHAR(u) "*)*|)"
#define NO_COLON(u)  "(?:[" UNRESERVED SUB "@" u "]|" PCT ")+(?:/" PCHAR(u) "*)*"
#define URI(u)       "[A-Za-z][A-Za-z0-9+.-]*:" HIER(u) QUERY(u)
#define RELATIVE(u)  "(?://" AUTHORITY(u) ABEMPTY(u) "|" ROOTED(u) "|" NO_COLON(u) "|)" QUERY(u)
#define UCS                                                                                        \
    "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef\\u{10000}-\\u{1fffd}\\u{20000}-\\u{2fffd}"      \
    "\\u{30000}-\\u{3fffd}\\u{e1000}-\\u{efffd}"

#define VARCHAR "(?:[A-Za-z0-9_]|" PCT ")"
#define VARSPEC VARCHAR "(?:\\.?" VARCHAR ")*(?::[1-9][0-9]{0,3}|\\*)?"
#define POINTER "(?:/(?:[^~/]|~[01])*)*"

static const schema_format formats[] = {
    {"date", {"^" DATE "$"}},
    {"time", {"^" TIME "$"}},
    {"date-time", {"^" DATE "[Tt]" TIME "$"}},
    {"duration", {DURATION}},
    {"email", {"^(?:" ATEXT "]+(?:\\." ATEXT "]+)*|" QUOTED ")@" MAIL_DOMAIN "$", "^.{0,254}$"}},
    {"idn-email",
     {"^(?:" ATEXT WIDE "]+(?:\\." ATEXT WIDE "]+)*|" WIDE_TEXT ")@" WIDE_LABEL "(?:\\." WIDE_LABEL
      ")+$"}},
    {"hostname", {"^" HOSTNAME "$", "^.{1,253}$"}},
    {"idn-hostname", {0}},
    {"ipv4", {"^" IPV4 "$"}},
    {"ipv6", {"^" IPV6 "$"}},
    {"uri", {"^" URI("") "$"}},
    {"uri-reference", {"^(?:" URI("") "|" RELATIVE("") ")$"}},
    {"iri", {"^" URI(UCS) "$"}},
    {"iri-reference", {"^(?:" URI(UCS) "|" RELATIVE(UCS) ")$"}},
    {"uri-template",
     {"^(?:[^\\u0000-\\u0020\"%<>\\\\^`{|}\\u007f-\\u009f]|" PCT "|\\{[+#./;?&=,!@|]?" VARSPEC
      "(?:," VARSPEC ")*\\})*$"}},
    {"uuid", {"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"}},
    {"json-pointer", {"^" POINTER "$"}},
    {"relative-json-pointer", {"^(?:0|[1-9][0-9]*)(?:#|" POINTER ")$"}},
    {"regex", {0}},
};

const schema_format *llm_schema_format(ggl_str name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (ggl_str_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}
