#define PACELINE_ISA avx2
#include "engine/input/resize_body.h"
