#!/usr/bin/env python3
"""Writes tests/data/templates.json: small templates and what Jinja2 renders them to, set up as Hugging Face's apply_chat_template does.
tests/models/template.c compares llm/internal/template.h with it.

    gen_template_cases.py >tests/data/templates.json      needs the package jinja2 (written with 3.1.6)"""
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


VARIABLES = {'s':'Hello, Wörld  x ','e':'','n':5,'f':2.5,'neg':-3,'b':True,'z':None,'l':[3,1,2],'words':['b','A','c','a'],'d':{'name':'x','items':[1,2],'age':3,'k':None},'m':[{'role':'user','content':'hi','n':2}, {'role':'assistant','content':'yo','n':1,'tool_calls':[{'function':{'name':'f','arguments':{'a':1,'b':[1,2.5,True,None,'"q"']}}}]}, {'role':'user','content':'','n':2}],'big':12345678901234,'t':'a<b>&"\'','ml':'one\ntwo\n\nthree\n','u':'日本語 ÀÉ ß'}

# One expression between each two " ; ".
EXPRESSIONS = r'''
'9007199254740993'|int ; '-9223372036854775808'|int ; '+12'|int ; ' 12 '|int ; '1_000'|int ; '1__0'|int(7) ; '_1'|int(7) ; '1_'|int(7) ; '0xff'|int(base=16) ; '-0xFf'|int(base=16) ; '0x'|int(3,16) ; '0b101'|int(base=2) ; '0o17'|int(base=8) ; '0x1f'|int(base=0) ; '017'|int(4,0) ; '1.5'|int(base=16) ; 'zz'|int(base=36) ; '12'|int(5,1) ; '1e3'|int ; 'inf'|int(4) ; ''|int(4) ; '-'|int(4) ; '7fffffffffffffff'|int(base=16) ; '- 5'|int(3) ; '0x10'|int(3)
1250|round(-2) ; 1350|round(-2) ; (-1250)|round(-2) ; 9223372036854775807|round(-18) ; 5|round(-1) ; 15|round(-1) ; 7|round(-30) ; 1234|round(-3)
'abc'.removeprefix('ab') ; 'abc'.removesuffix('bc') ; 'abc'.removeprefix('x') ; 'abc'.removeprefix(('a',)) ; 'a'.startswith(('b','a')) ; 'a'.startswith(('b',('a',))) ; 'a'.startswith((1,)) ; 'a'.endswith(()) ; 'a'.ljust(3,'') ; 'a'.ljust(3,'é') ; 'a'.center(4,'xy') ; 'x'.zfill(-3) ; '-1'.zfill(-9223372036854775807-1) ; '-1'.zfill(4) ; '-'.zfill(1)
'aXbXc'.rfind('X') ; 'aaaa'.rfind('aa') ; 'aaaa'.rpartition('aa') ; 'abab'.rfind('ba') ; 'abc'.rfind('abc') ; 'abc'.rfind('abcd') ; 'abc'.rfind('') ; 'xéyéz'.rfind('é') ; 'abcabc'.rfind('abc',0,5) ; 'abc'.rindex('c') ; ('ab'*40 ~ 'c' ~ 'ab'*40).rfind('c') ; 'a'.rfind('b') ; ''.rfind('a')
'xxabxx'.strip('x') ; 'éèaé'.strip('éè') ; 'aaa'.strip('a') ; 'aba'.lstrip('ab') ; 'a' 'b' "c" ; 'a' 'b'.upper()
[{'a':1},{'b':2},{'a':0}]|groupby('a',default=0)|map(attribute=0)|list ; [{'b':1},{'a':'zz'}]|groupby('a',default='zz')|map(attribute=1)|list ; [{'a':{'b':1}},{}]|groupby('a.b',default=0)|map(attribute=0)|list ; [{'a':'X'},{'a':'x'},{}]|groupby('a',default='X')|map('first')|list ; [{'a':{}},{}]|map(attribute='a.b',default=7)|list ; [{}]|map(attribute='a.b')|list
s|upper ; s|lower ; s|title ; s|capitalize ; s|trim ; s|length ; s.strip() ; s.split() ; s.split(',') ; s.split('l',1) ; s.rsplit('l',1) ; s[0] ; s[-1] ; s[1:4] ; s[::-1] ; s[::2] ; s[-4:-1] ; s[10:2:-2] ; u ; u|upper ; u|lower ; u|length ; u[1] ; u.title() ; u[::-1]
n+f ; n-7 ; n*3 ; n/2 ; n//2 ; n%3 ; neg//2 ; neg%2 ; 2**10 ; 2**-1 ; -n ; n/5 ; 1/3 ; 1e20 ; 1.0 ; 0.1+0.2 ; 1e-5 ; 123456789.125 ; 1e16 ; 1e15 ; 7.0//2 ; -7.5%2 ; 2.5*2 ; big*10 ; +n ; - -n ; 1_000 ; 0x1f ; 5.0|int ; '7'|int ; 'x'|int ; 'x'|int(9) ; '1.5'|float ; '3.7'|int ; 'ff'|int(0,16) ; 3.7|int ; (-3.7)|int ; n|abs ; neg|abs ; 2.567|round(2) ; 2.5|round ; 3.5|round ; 2.1|round(0,'ceil') ; 2.9|round(0,'floor') ; true+1
b ; not b ; z ; z is none ; nope ; nope is defined ; nope is undefined ; nope|default('x') ; e|default('x') ; e|default('x',true) ; nope or 'y' ; n and s ; 'a' if n else 'b' ; 'a' if not n ; n==5 ; n!=5 ; n==5.0 ; 1<n<10 ; 1<n<3 ; 'a'<'b' ; 'x' in s ; 'H' in s ; 3 in l ; 9 not in l ; 'name' in d ; 'q' in d ; [1,2]==[1,2] ; (1,2)==(1,2) ; [1]<[2] ; {'a':1}=={'a':1} ; true==1 ; none==none ; '1'==1
l ; l|sort ; l|sort(reverse=true) ; l|reverse|list ; l|first ; l|last ; l|min ; l|max ; l|sum ; l|join(', ') ; l|join ; words|sort ; words|sort(case_sensitive=true) ; words|unique|list ; words|join('-')|upper ; l|length ; l[0] ; l[-1] ; l[1:] ; l+[4] ; l*2 ; [] ; [1,'a',none,true,2.5,'it\'s'] ; (1,) ; (1,2) ; {} ; {'a':1,'b':[1]} ; l|list ; l|batch(2)|list ; l|batch(2,0)|list ; 'abc'|list ; range(3)|list ; range(1,7,2)|list ; range(5,0,-2)|list ; l|select('odd')|list ; l|reject('odd')|list ; l|select('gt',1)|list ; l|select('==',1)|list ; l|map('string')|join('+') ; words|map('upper')|list
d ; d.name ; d['name'] ; d['items'] ; d.age ; d.nope ; d.k ; d|length ; d|list ; d.keys()|list ; d.values()|list ; d.items()|list ; d|items|list ; d|dictsort ; d.get('name') ; d.get('zz') ; d.get('zz',7) ; d|tojson ; d|tojson(indent=2) ; m|tojson ; m[1]|tojson(indent=4) ; m|map(attribute='role')|list ; m|map(attribute='role')|join(',') ; m|selectattr('role','equalto','user')|list|length ; m|rejectattr('role','equalto','user')|list|length ; m|selectattr('content')|list|length ; m|sum(attribute='n') ; m|groupby('role')|list|length ; (m|groupby('role'))[1][0] ; m|sort(attribute='n')|map(attribute='n')|list ; m|sort(attribute='role,n')|list|length ; m[1].tool_calls[0].function.arguments.b ; m[1]['tool_calls'][0]['function']['arguments']|tojson ; m|map(attribute='tool_calls.0.function.name')|list|length ; m|map(attribute='nope',default='q')|list ; m|last ; (m|first).content ; t|e ; t|escape ; t|tojson ; ml|indent(2) ; ml|indent(2,true) ; ml|indent(2,true,true) ; ml|indent ; ml.splitlines() ; ml|wordcount ; t|urlencode ; '%s-%d'|format('a',3) ; '%5.2f|%-4s|%04d'%(2.5,'x',7) ; '%r'%'q' ; 'a%%b'%() ; '{} {}'.format(1,'b') ; '{1}{0}'.format('a','b') ; '{x}'.format(x=3)
'a' 'b' ; 'a'~1~none~true~1.5 ; 'a\nb\tc\\d\'e' ; "\u00e9\x41" ; 'abc'.replace('b','XX') ; 'aaa'.replace('a','b',2) ; 'abc'.replace('','-') ; 'abc'|replace('b','d') ; 'abc'.startswith('ab') ; 'abc'.endswith(('x','c')) ; 'abc'.find('c') ; 'abc'.find('z') ; 'abcabc'.rfind('b') ; 'abcabc'.count('b') ; 'abc'.index('b') ; 'a-b-c'.partition('-') ; 'a-b-c'.rpartition('-') ; 'abc'.partition('x') ; 'abc'.rpartition('x') ; '12'.isdigit() ; 'ab1'.isalnum() ; 'ab'.isalpha() ; ' '.isspace() ; '7'.zfill(3) ; '-7'.zfill(4) ; 'a'.ljust(3) ; 'a'.rjust(3,'*') ; 'ab'.center(5) ; 'abc'.center(6,'-') ; 'abc'|center(7) ; 'abc'.title() ; "they're bill's".title() ; "they're bill's"|title ; 'x'.join(['a','b']) ; '  a b '.split(' ') ; ' a  b '.split(none,1) ; ' a  b c '.rsplit(none,1) ; 'xxabxx'.strip('x') ; 'abc'.removeprefix('a') ; 'abc'.removesuffix('bc') ; 'ABC'.lower() ; 'abc'.upper() ; 'aBC'.capitalize() ; 'a'*3 ; 'abc'|first ; 'abc'|last ; 'abc'|reverse
n is number ; n is integer ; f is float ; s is string ; d is mapping ; l is iterable ; l is sequence ; s is iterable ; b is boolean ; b is true ; b is false ; n is odd ; n is even ; n is divisibleby 5 ; n is divisibleby(2) ; n is eq 5 ; n is gt 3 ; n is in [5] ; n is not none ; not n is none ; nope is not defined ; 'A' is upper ; 'a' is lower ; range is callable ; 'upper' is filter ; 'zz' is filter ; 'odd' is test ; n is sameas 5 ; b is sameas true ; d is sequence ; (1,2) is sequence ; none is none and true ; n is defined and n is number ; namespace(a=1).a ; dict(a=1,b=2) ; dict(a=1)['a'] ; [1,2,3][1] ; {'a':{'b':1}}.a.b ; (l|length)-1 ; l|length-1 ; -l|length ; n if n is defined else 0 ; (n,s)[0] ; 'a' in ['a'] and 'b' not in ['a'] ; 1 if true else 2 if false else 3 ; (1 if false else 2 if false else 3) ; 1 == 1 == 1 ; 2 > 1 != 0 ; l.index(1) ; l.count(1) ; l == none ; 3 - 2 - 1 ; 2 ** 3 ** 2 ; 10 // 3 * 3 + 10 % 3 ; 1 + 2 ~ 3 ; 'a' ~ 1 + 2 ; not 1 == 2 ; z.foo ; s.foo ; n.foo ; nope.foo ; nope['x'] ; nope + 1 ; z + 'a' ; 'a' + 1 ; d.update({}) ; 1/0 ; l|nofilter ; n is notest ; nope() ; s() ; l['a'] ; l[9] ; d[0] ; s.split('') ; 'a' < 1 ; [1]|join(1) ; 5|length ; none|list ; n|tojson ; f|tojson ; z|tojson ; 'é"\\/'|tojson ; {'b':1,'a':2}|tojson(sort_keys=true) ; [1,2]|tojson(separators=(',',':')) ; {'é':1}|tojson(ensure_ascii=true) ; {1:2,true:3,none:4}|tojson ; {1:2}[1] ; {1:2}[1.0] ; nope|tojson ; []|first ; [[1,2],[3]]|sum(start=[]) ; [1.5,2]|sum ; 1000000*1000000 ; 9223372036854775807+0 ; '%s'%nope ; nope|length ; nope|list ; nope|upper ; nope ~ 'x' ; nope == nope ; nope == none ; 'x' in nope ; nope in l
z|selectattr('role')|list ; 0|map('upper')|list ; false|reject('odd')|list ; nope|map('nofilter')|list ; []|select and 'yes' ; l|map('string')|length ; l|reverse|last ; (l|select)[0] is defined ; (l|select) is iterable ; (l|select) is sequence ; l|select == l|select ; l|select|first ; words|unique|length ; l|batch(2)|length ; 1 if true else n|nofilter ; n|nofilter if true else 1 ; 1 if true else n is notest ; nope in d ; d.get(nope,4) ; {nope:1}|length ; d[[1]] ; l[b] ; n|round ; 15|round(-1) ; b|round ; 1.115|round(2) ; 1.005|round(2) ; 2.5|round(1,'near') ; f is odd ; 4.0 is even ; 7.5 is divisibleby 2.5 ; s is divisibleby 2 ; n is filter ; z is test ; 'x'%l ; 'x'%nope ; 'x'%d ; +b ; nope|int ; nope|float ; t|wordcount ; u|wordcount ; 'É' is upper ; 'ß' is lower ; 'É'.isupper() ; 'aé1'.islower() ; 'Aé'.islower() ; '1'.islower() ; '٣'.isdecimal() ; '½'.isnumeric() ; '½'.isdecimal() ; ''.isnumeric()
s.find('l',3) ; s.find('l',4,5) ; u.find('É',-4) ; s.find('',99) ; s.rfind('l',0,3) ; s.index('l',9) ; s.rindex('l') ; s.rindex('q') ; s.count('l',3) ; s.count('',3) ; s.startswith('l',2) ; s.startswith('',99) ; s.endswith('l',0,3) ; s.endswith(('l','x'),none,4) ; l.copy() ; (1,).copy() ; nope is callable ; d|attr('name') is defined ; d|attr('get') is callable ; e|indent(1,true) ; t|safe + t ; t + t|e ; t ~ t|e ; ('<'|safe + '>') + '"' ; t|e|e ; t|e|forceescape ; d|safe|tojson ; z|safe + '<' ; nope|safe + '<' ; '<'|upper|safe + '<' ; '<{i:d}>'.format(i=3) ; '{:5d}|{:05d}|{0:x}'.format(3) ; '{0:5d}|{0:05d}|{0:x}|{0:}'.format(30) ; '{:.2f}|{:8.3f}|{:e}'.format(2.5,n,f) ; '{:5s}|{:.2s}|{:7.3s}|'.format('abc','abc','abc') ; '{:d}'.format(2.5) ; '{:s}'.format(2) ; '{:d}'.format('a') ; '{x:q}'.format(x=1) ; '{:d.}'.format(1)
'''

TEMPLATES = [
    r'''{% for x in l %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ x }},{% endfor %}''',
'''{% for x in l if x > 1 %}{{ loop.length }}:{{ x }} {% else %}none{% endfor %}''',
'''{% for x in [] %}a{% else %}empty{% endfor %}''',
'''{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}''',
'''{% for a,b in [(1,2),(3,4)] %}{{ a+b }} {% endfor %}''',
'''{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}|{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}''',
'''{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}''',
'''{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}''',
'''{% set a, b = 1, 2 %}{{ a }}{{ b }}''','''{% set x %}abc{{ n }}{% endset %}{{ x|upper }}''','''{% set x | upper %}abc{% endset %}{{ x }}''',
'''{% macro f(a, b=2) %}[{{ a }}-{{ b }}]{% endmacro %}{{ f(1) }}{{ f(1,b=3) }}{{ f(b=1,a=0) }}{{ f() }}''',
'''{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(3) }}''',
'''{% set g = 7 %}{% macro f() %}{{ g }}{{ i }}{% endmacro %}{% for i in l %}{{ f() }}{% endfor %}''',
'''{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1,2,a=3) }}''',
'''{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}in{{ n }}{% endcall %}''',
'''{% macro w() %}<{{ caller(4) }}>{% endmacro %}{% call(x) w() %}in{{ x }}{% endcall %}''',
'''{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}''','''{% filter upper %}abc{{ s }}{% endfilter %}''',
'''{% generation %}abc{{ n }}{% endgeneration %}x''','''{% raw %}{{ n }}{% if %}{% endraw %}x''','''  {% raw %}
 a {% endraw %}
b''',
'''a {# comment #} b''','''a {#- c -#} b''','''{# c #}
x''','''  {# c #}
x''','''a
  {% if b %}
  yes
  {% else %}
  no
  {% endif %}
z
''','''a
  {%- if b -%}
  yes
  {%- endif -%}
z''','''a  {%+ if b %}x{% endif +%}
z''','''{{ n }}
{{ n }}
''','''{{- n -}}  x  {{- n }}''','''x {{ "}}" }} {{ {"a":{"b":1}}["a"]["b"] }} {{ {'a':{}} }}''','''{% if n == 5 %}a{% elif n == 6 %}b{% else %}c{% endif %}''',
'''{% if nope %}a{% endif %}b''','''{{ loop }}''','''{% for x in l %}{% for y in l %}{{ loop.depth }}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}''',
'''{% for x in l %}{{ loop.cycle('a','b') }}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}''','''{% for x in l %}{{ loop.changed(x>1) }}{% endfor %}''',
'''{% for c in 'abc' %}{{ c }}.{% endfor %}''','''{% for k in d %}{{ k }},{% endfor %}''','''{% for x in nope %}a{% endfor %}b''','''{% for x in n %}a{% endfor %}b''',
'''{% do l %}''','''{% include "x" %}''','''{% nope %}''','''{{ n ''','''{% if n %}a''','''{{ n n }}''','''{{ ) }}''','''{% endif %}''','''{% else %}''','''{{ 'a }}''','''{# a''','''{% raw %}a''','''{{ }}''','''{% for x l %}{% endfor %}''','''{% set x %}''','''{% set 1 = 2 %}''','''{% set true = 2 %}''','''{% break %}''','''{{ raise_exception("no: " ~ n) }}''',
'''{{ [1,2,] }}{{ (1,2,) }}{{ {'a':1,} }}''','''{{ f(1,) }}''','''{% set x = [] %}{% if x %}a{% endif %}{% set y = x + [1] %}{{ y }}''','''a\r\nb\r{{ n }}\r\n''','''{%- set x = 1 -%}
  {{ x }}
{%- if true %}
  a
{%- endif %}

''','''{{ '\n' }}{{ "a" if b }}{{ 1 if false }}''','''{% if b %}{% set q = 1 %}{% endif %}{{ q }}''','''{% for x in l %}{% if loop.first %}{% set q = x %}{% endif %}{{ q }}{% endfor %}{{ q }}''','''{% set m2 = m %}{% for x in m2[1:] %}{{ x.role }}{% endfor %}''','''{% for x in m %}{% set role = x.role %}{% for y in l %}{{ role[0] }}{% endfor %}{% endfor %}''','''{{ m[0]['content'] + 'x' if m[0]['content'] is string else '' }}''','''{%if b%}x{%endif%}''','''{{n}}{{s}}''','''   {{ n }}''','''\n\n{% if b %}\n\nx{% endif %}\n\n\n''','''{{ {"a": 1}.items()|list }}''','''{%- for message in m -%}{{ '<|' ~ message['role'] ~ '|>\\n' ~ message.content | trim ~ '\\n' }}{%- endfor -%}''','''{{ m | selectattr("role", "in", ["user","x"]) | map(attribute="content") | list }}''','''{% macro a(x) -%}
  {{ x }}
{%- endmacro %}
{{ a(1) }}
{{ a(2) }}''','''{% if "x" in d.name and (d.age > 2 or not d.k) %}ok{% endif %}''', '''{% set d2 = dict(d, z=1) %}{{ d2.z }}{{ d2.name }}''','''{{ "a,b".split(",")[1] }}{{ "x"|upper|lower|upper }}''','''{% for i in range(0, 3) %}{% for j in range(i) %}{{ j }}{% endfor %};{% endfor %}''',
'''{% set x = l|map('string') %}{{ x|list }}{{ x|list }}''','''{% set x = l|sort|reverse %}{{ x|first }}{{ x|list }}{{ x|first is defined }}''','''{% set x = l|select %}{% for a in x %}{{ a }}{{ loop.last }}{% endfor %}{% for a in x %}{{ a }}{% else %}gone{% endfor %}''','''{% if m|selectattr('role','eq','nobody') %}yes{% endif %}{% if not m|selectattr('role','eq','nobody')|list %}no{% endif %}''',
'''{% if e %}{{ n|nofilter }}{% elif n is notest %}{% endif %}''','''{% if e %}{{ n|nofilter }}{% elif e is nope or 1 %}x{% endif %}''','''{% if e %}{{ n|nofilter(n is notest) }}{% else %}x{% endif %}y''','''{% if e %}{% for x in l|nofilter %}{% endfor %}{% endif %}y''','''{% if e %}{% for x in l %}{{ x|nofilter }}{% endfor %}{% endif %}y''','''{% if e %}{% set x %}{{ n|nofilter }}{% endset %}{% endif %}y''','''{% macro f() %}{% if e %}{{ n|nofilter }}{% endif %}y{% endmacro %}{{ f() }}''','''{% if e %}a{% endif %}{{ e|nofilter }}''',
'''{% with x = 1, y = x %}[{{ x }}{{ y }}]{% endwith %}''','''{% set x = 5 %}{% with x = 1, y = x + 1 %}{{ x }}{{ y }}{% endwith %}{{ x }}''',
'''{% macro w() %}{% set x = 2 %}{{ caller() }}{% endmacro %}{% set x = 1 %}{% call w() %}{{ x }}{% endcall %}''','''{% macro w() %}{% set x = 2 %}{{ caller() }}{% endmacro %}{% for x in l %}{% call w() %}{{ x }}{{ loop.index }}{% endcall %}{% endfor %}''',
'''{% for x in l %}{% macro f(n) %}{{ x }}{{ loop.index }}{% if n %}{{ f(n-1) }}{% endif %}{% endmacro %}{% for x in [7] %}{{ f(2) }}{% endfor %};{% endfor %}''','''{% macro a(x) %}{% macro b(y) %}{{ x }}{{ y }}{% endmacro %}{{ b(1) }}{{ b(2) }}{% endmacro %}{{ a(5) }}''',
'''a\u00a0{{- n -}}\u3000{{- n }}\u2003{%- if b -%}\u3000 x{% endif %}''','''a
\u3000{% if b\u00a0%}\u3000
y{% endif %}''','''a\u00a0{# c #}
\u00a0{# c #}x{{ n\u00a0}}''','''{{ ['a\u00a0\u3000', '\u200d\ufeff\u00ad', '\U0001f642\U000e0001', '\u0085\x7f\x1f', '\u0301\u20ac\u00bd\ufffd', '\ue000', 'it\u2019s'] }}''',
'''{% for x in l %}{% call w() %}{% break %}{% endcall %}{% endfor %}''','''{% macro w() %}{{ caller() }}{% endmacro %}{% for x in l %}{% call w() %}{% for y in l %}{% break %}{% endfor %}{{ x }}{% endcall %}{% endfor %}''']


def main():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    cases = []
    for line in EXPRESSIONS.strip().split("\n"):
        for text in line.split(" ; "):
            TEMPLATES.append("{{ " + text.strip() + " }}")
    for text in TEMPLATES:
        try:
            expected = env.from_string(text).render(**VARIABLES)
        except Exception:  # of any kind: it is no template, or its values do not suit it
            expected = None
        cases.append({"template": text, "expected": expected})
    json.dump({"variables": VARIABLES, "cases": cases}, sys.stdout, ensure_ascii=False, indent=0)
    print()


main()
