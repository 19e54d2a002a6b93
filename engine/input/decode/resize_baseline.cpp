#define PACELINE_ISA baseline
#include "engine/input/decode/resize_body.h"
