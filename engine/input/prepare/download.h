// Downloads one file over HTTP, with retries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/input/prepare/fetch.h"

namespace paceline {

// Resumes after the existing bytes of `partial` with an HTTP Range request, and leaves exactly
// `bytes` bytes there. Restarts if the server does not support ranges. Uses the proxies of the
// environment (https_proxy, no_proxy). Throws input naming the URL and the cause; the received data
// is kept.
void download(const std::string& url, const std::filesystem::path& partial, std::uint64_t bytes,
              const FetchOptions& options);

}  // namespace paceline
