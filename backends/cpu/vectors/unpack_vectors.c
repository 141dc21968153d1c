/* Unpacks quantized weights with the compiler's vectors. */
#include "lanes_gnu.h"
#include "unpack_gnu.h"

#include "../quant/interleave_tmpl.h"
