/* The table of formats. */
#include "schema_formats.h"

/* RFC 3339, section 5.6; leap seconds only in the last minute of a day in UTC. The offset from UTC may be
 * any number of quarters of an hour, as all are that are in use: at hour h of a day that ends in UTC, it is h
 * hours and some quarters, or the next full hour; or behind UTC, the rest of 23 hours. */
#define LEAP_YEAR "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
#define DATE                                                                                       \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"                                \
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" LEAP_YEAR "-02-29)"
#define ZONE  "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define SPLIT "(\\.\\d+)?"
#define LEAP(h, next, rest)                                                                        \
    "|" h ":(59:60" SPLIT "(\\+" next "|-" rest "):00|14:60" SPLIT "(\\+" h ":15|-" rest           \
    ":45)|29:60" SPLIT "(\\+" h "|-" rest "):30|44:60" SPLIT "(\\+" h ":45|-" rest ":15))"
#define LEAPS_A LEAP("00", "01", "23") LEAP("01", "02", "22") LEAP("02", "03", "21")
#define LEAPS_B LEAP("03", "04", "20") LEAP("04", "05", "19") LEAP("05", "06", "18")
#define LEAPS_C LEAP("06", "07", "17") LEAP("07", "08", "16") LEAP("08", "09", "15")
#define LEAPS_D LEAP("09", "10", "14") LEAP("10", "11", "13") LEAP("11", "12", "12")
#define LEAPS_E LEAP("12", "13", "11") LEAP("13", "14", "10") LEAP("14", "15", "09")
#define LEAPS_F LEAP("15", "16", "08") LEAP("16", "17", "07") LEAP("17", "18", "06")
#define LEAPS_G LEAP("18", "19", "05") LEAP("19", "20", "04") LEAP("20", "21", "03")
#define LEAPS_H LEAP("21", "22", "02") LEAP("22", "23", "01") LEAP("23", "00", "00")
#define LEAPS   LEAPS_A LEAPS_B LEAPS_C LEAPS_D LEAPS_E LEAPS_F LEAPS_G LEAPS_H
#define TIME                                                                                       \
    "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" SPLIT ZONE "|23:59:60" SPLIT "[Zz]" LEAPS ")"

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

/* RFC 5890 to 5893, as far as single characters say it: letters that have no other form (so neither capitals beyond ASCII nor
 * wide, mathematical or joined ones), digits, marks after the first character, the exceptions of RFC 5892. Characters that are
 * permitted only beside certain others (middle dots, joiners) are left out. */
#define DOT       ".\\u3002\\uff0e\\uff61"
#define LETTERS   "A-Za-z0-9\\p{Ll}\\p{Lo}\\p{Lm}\\p{Nd}\\u0f0b\\u3007\\u06fd\\u06fe"
#define DOTTED(l) "^(?:" l ")(?:[" DOT "](?:" l "))*$"
/* A label that is not ASCII begins with xn-- in Punycode, and has a character more there: of 63. */
#define IDN_LABELS DOTTED(LABEL "|[" LETTERS "](?:[" LETTERS "\\p{M}-]{0,56}[" LETTERS "\\p{M}])?")
#define IDN_OTHERS                                                                                 \
    "^[^\\u0488\\u0489\\u0640\\u07fa\\u1abe\\u20dd-\\u20e4\\u2100-\\u214f\\u302e\\u302f\\u3031-"   \
    "\\u3035\\u303b\\ua670-\\ua672\\ufb00-\\ufb1c\\uff00-\\uff0d\\uff0f-\\uff60\\uff62-\\uffef"    \
    "\\u{1d400}-\\u{1d7ff}]*$"
/* RFC 5893: where a label has letters that run from right to left, each label has letters of one direction, begins with one, and
 * has digits of one kind. */
#define RIGHT                                                                                      \
    "\\u05d0-\\u065f\\u066a-\\u06ef\\u06fa-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefe"                  \
    "\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}"
#define ARABIC      "\\u0660-\\u0669"
#define EUROPEAN    "0-9\\u06f0-\\u06f9"
#define LEFT_LABEL  "[^" RIGHT ARABIC EUROPEAN DOT "][^" RIGHT ARABIC DOT "]*"
#define RIGHT_LABEL "[" RIGHT "](?:[" RIGHT "\\p{M}" EUROPEAN "-]*|[" RIGHT ARABIC "\\p{M}-]*)"
#define IDN_SIDES   "(?:^[^" RIGHT ARABIC "]*$)|(?:" DOTTED(LEFT_LABEL "|" RIGHT_LABEL) ")"
/* Only names in Punycode, which are not looked into, have two hyphens after two characters. */
#define IDN_HYPHENS                                                                                \
    DOTTED("[xX][nN]--[A-Za-z0-9-]+|[^" DOT "]{1,3}|[^" DOT "]{2}(?:[^" DOT "-][^" DOT "]|-[^" DOT \
           "-])[^" DOT "]*")

/* RFC 5321, section 4.1.2; the domain has at least two labels, or is an address in brackets. */
#define ATEXT       "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-"
#define QUOTED      "\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\""
#define WIDE        "\\u0080-\\u{10ffff}"
#define WIDE_LABEL  "[A-Za-z0-9" WIDE "](?:[A-Za-z0-9" WIDE "-]*[A-Za-z0-9" WIDE "])?"
#define WIDE_TEXT   "\"(?:[ !#-\\[\\]-~" WIDE "]|\\\\[ -~])*\""
#define MAIL_DOMAIN "(?:" LABEL "(?:\\." LABEL ")+|\\[(?:" IPV4 "|IPv6:" IPV6 ")\\])"

/* RFC 3986; u: more characters, p: more of them in queries; none for URIs, RFC 3987's for IRIs */
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
#define QUERY(u, p)  "(?:\\?(?:" PCHAR(u p) "|[/?])*)?(?:#(?:" PCHAR(u) "|[/?])*)?"
#define HIER(u)      "(?://" AUTHORITY(u) ABEMPTY(u) "|" ROOTED(u) "|" PCHAR(u) "+(?:/" PCHAR(u) "*)*|)"
#define NO_COLON(u)  "(?:[" UNRESERVED SUB "@" u "]|" PCT ")+(?:/" PCHAR(u) "*)*"
#define URI(u, p)    "[A-Za-z][A-Za-z0-9+.-]*:" HIER(u) QUERY(u, p)
#define RELATIVE(u, p)                                                                             \
    "(?://" AUTHORITY(u) ABEMPTY(u) "|" ROOTED(u) "|" NO_COLON(u) "|)" QUERY(u, p)
#define UCS                                                                                        \
    "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef\\u{10000}-\\u{1fffd}\\u{20000}-\\u{2fffd}"      \
    "\\u{30000}-\\u{3fffd}\\u{40000}-\\u{4fffd}\\u{50000}-\\u{5fffd}\\u{60000}-\\u{6fffd}"         \
    "\\u{70000}-\\u{7fffd}\\u{80000}-\\u{8fffd}\\u{90000}-\\u{9fffd}\\u{a0000}-\\u{afffd}"         \
    "\\u{b0000}-\\u{bfffd}\\u{c0000}-\\u{cfffd}\\u{d0000}-\\u{dfffd}\\u{e1000}-\\u{efffd}"
#define PRIVATE "\\ue000-\\uf8ff\\u{f0000}-\\u{ffffd}\\u{100000}-\\u{10fffd}"

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
    {"idn-hostname", {IDN_LABELS, "^.{1,253}$", IDN_OTHERS, IDN_SIDES, IDN_HYPHENS}},
    {"ipv4", {"^" IPV4 "$"}},
    {"ipv6", {"^" IPV6 "$"}},
    {"uri", {"^" URI("", "") "$"}},
    {"uri-reference", {"^(?:" URI("", "") "|" RELATIVE("", "") ")$"}},
    {"iri", {"^" URI(UCS, PRIVATE) "$"}},
    {"iri-reference", {"^(?:" URI(UCS, PRIVATE) "|" RELATIVE(UCS, PRIVATE) ")$"}},
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
