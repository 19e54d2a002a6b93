#pragma once

namespace paceline {

// Binds the calling thread to one CPU. Where that is not allowed it runs anywhere, only slower.
void bind_to(int cpu);

}  // namespace paceline
