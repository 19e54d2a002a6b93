#define PACELINE_ISA baseline
#include "engine/input/resize_body.h"
