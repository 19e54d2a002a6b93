#define PACELINE_ISA avx2
#include "engine/input/decode/resize_body.h"
