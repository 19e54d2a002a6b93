#define PACELINE_ISA baseline
#define PACELINE_ISA_NAME "baseline"
#include "engine/device/cpu/kernels_body.h"
