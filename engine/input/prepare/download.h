// One file over HTTP, in as many attempts as it takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/input/prepare/fetch.h"

namespace paceline {

// Goes on behind the bytes that `partial` has, by an HTTP Range, and leaves `partial` with exactly
// `bytes` bytes. A server that knows no ranges begins again. Proxies are those of the environment
// (https_proxy, no_proxy). Throws input naming the URL and what happened; what came stays.
void download(const std::string& url, const std::filesystem::path& partial, std::uint64_t bytes,
              const FetchOptions& options);

}  // namespace paceline
