/* Sums of values of q8_0 and q4_0 by integer dot products (docs/numeric.md, section 6): the weight of a position times the scale
 * of its block is rounded to two signed bytes, and these are multiplied with codes. Included by attend.comp; the values are
 * not a part of the keys (CODED_V), whose words have four dimensions of a position instead of four positions of a dimension.
 *
 * weight ~ (128 high + low) * largest scale / 16256; high is -127 .. 127, low 0 .. 127. */

const uint V_BLOCKS = CODED_V ? E / BLOCK : 1, V_SCALES = CODED_V ? V_BLOCKS * FOURS : 1;
const uint V_TURNS = (V_SCALES + L - 1) / L; /* fours of scales of an invocation */
const float MOST_WEIGHT = 16256;             /* 127 * 128 */
/* A float of this size has units of 1: adding it rounds a number, whose last bits are then a whole number. */
const float ROUNDS = 12582912;

shared vec4 scale_of[V_SCALES];             /* [block][four], of the page's positions */
shared uint scale_most[V_SCALES];           /* bits of the largest magnitude of the four */
shared float inverse[CODED_V ? V_BLOCKS * Q : 1]; /* [block][query]: 16256 by the largest scale of the page */
shared float by_unit[CODED_V ? V_BLOCKS * Q : 1]; /* and what the integer sums are multiplied by */
shared uvec2 weights[CODED_V ? V_BLOCKS * SCORES : 1]; /* [block][query][four]: high and low bytes of four positions */

/* Loads own scales of a page. */
void load_scales(uint page, out uvec2 w[V_TURNS]) {
    [[unroll]] for (uint i = 0; i < V_TURNS; i++) {
        uint o = min(me() + i * L, V_SCALES - 1);
        w[i] = value_scales(page, o / FOURS, o % FOURS);
    }
}

void put_scales(uvec2 w[V_TURNS]) {
    [[unroll]] for (uint i = 0; i < V_TURNS; i++) {
        uint o = me() + i * L;
        vec4 s = four_halves(w[i]);
        uvec4 u = floatBitsToUint(s) & 0x7fffffff;
        if (V_SCALES % L == 0 || o < V_SCALES) {
            scale_of[o] = s;
            scale_most[o] = max(max(u.x, u.y), max(u.z, u.w));
        }
    }
}

/* Returns the bits of the largest scale of a block, among the positions of the page that query q sees. */
uint largest_scale(uint block, uint q, uint takes, int begin, bool edge) {
    uint most = 0;
    if (!edge) {
        [[unroll]] for (uint i = 0; i < FOURS; i++)
            most = max(most, scale_most[block * FOURS + i]);
        return most;
    }
    [[dont_unroll]] for (uint p = 0; p < PAGE; p++)
        if (sees(takes, q, begin + int(p)))
            most = max(most, floatBitsToUint(scale_of[block * FOURS + p / 4][p % 4]) & 0x7fffffff);
    return most;
}

/* Finds the units of the weights of each block and query. */
void set_units(uint takes, int begin, bool edge) {
    [[dont_unroll]] for (uint o = me(); o < V_BLOCKS * Q; o += L) {
        uint most = largest_scale(o / Q, o % Q, takes, begin, edge);
        float t = uintBitsToFloat(most);
        bool finite = most < 0x7f800000;
        inverse[o] = most == 0 || !finite ? 0 : quotient(MOST_WEIGHT, t);
        by_unit[o] = finite ? quotient(t, MOST_WEIGHT) : NAN;
    }
}

/* Rounds the weights e of four positions for query q, in each block. `up`: what the sums of the page are multiplied by. */
void put_weights(uint q, uint four, vec4 e, float up, bool edge) {
    for (uint b = 0; b < V_BLOCKS; b++) {
        vec4 s = scale_of[b * FOURS + four] * inverse[b * Q + q];
        if (edge) /* the scale of a position that is not seen may be anything */
            [[unroll]] for (uint i = 0; i < 4; i++)
                s[i] = e[i] == 0 ? 0 : s[i];
        precise vec4 rounded = fma(e, s, vec4(ROUNDS));
        uvec4 w = floatBitsToUint(rounded), high = w >> 7 & 0xff, low = w & 0x7f;
        weights[b * SCORES + q * FOURS + four] = uvec2(high.x | high.y << 8 | high.z << 16 | high.w << 24,
                                                       low.x | low.y << 8 | low.z << 16 | low.w << 24);
        if (four == 0)
            by_unit[b * Q + q] *= up;
    }
}

/* Returns the codes in a word, as signed bytes, those of q4_0 times 16. */
uvec4 value_codes(uvec4 w, uint half_) {
    return TYPE_V == Q8_0 ? w ^ 0x80808080 : ((half_ == 0 ? w << 4 : w) & 0xf0f0f0f0) ^ 0x80808080;
}

/* Adds the fours of values first, first + TEAMS .. of a page, whose words are w, times their weights. */
void add_codes(uint first, uint unit, uint r, uvec4 w[V_FOURS]) {
    uint block = unit / UNITS_IN_BLOCK;
    [[unroll]] for (uint q = 0; q < Q; q++) {
        uvec2 k[V_FOURS];
        float by = by_unit[block * Q + q] * (TYPE_V == Q8_0 ? 1 : 1.0 / 16);
        [[unroll]] for (uint i = 0; i < V_FOURS; i++) {
            uint four = first + i * TEAMS;
            k[i] = V_WHOLE || four < FOURS ? weights[block * SCORES + q * FOURS + four] : uvec2(0);
        }
        [[unroll]] for (uint h = 0; h < HALF_V; h++) {
            ivec4 high = ivec4(0), low = ivec4(0);
            [[unroll]] for (uint i = 0; i < V_FOURS; i++) {
                uvec4 c = value_codes(w[i], h);
                [[unroll]] for (uint j = 0; j < 4; j++) {
                    high[j] += dot4(c[j], k[i].x);
                    low[j] += dot4(c[j], k[i].y);
                }
            }
            sum[q][r * HALF_V + h] += vec4(high * 128 + low) * by;
        }
    }
}

/* Adds the values of positions lo .. hi of a page, and of others near them, times their weights. */
void add_coded_values(uint page, uint lo, uint hi) {
    uint team = me() / TEAM, step = TEAMS * V_FOURS;
    if (team >= TEAMS)
        return;
    [[unroll]] for (uint r = 0; r < R; r++) {
        uint unit = min(r * L + me() % TEAM, UNITS - 1);
        [[dont_unroll]] for (uint first = lo / 4 / step * step; first <= hi / 4; first += step) {
            uvec4 w[V_FOURS];
            [[unroll]] for (uint i = 0; i < V_FOURS; i++) {
                uint four = first + i * TEAMS + team;
                w[i] = code_words(page, V_WHOLE ? four : min(four, FOURS - 1), unit);
            }
            add_codes(first + team, unit, r, w);
        }
    }
}
