#define PACELINE_ISA sve
#define PACELINE_ISA_NAME "sve"
#include "engine/device/cpu/kernels_body.h"
