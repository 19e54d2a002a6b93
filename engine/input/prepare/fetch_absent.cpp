// For a build without the libraries that downloads need.
#include "engine/core/error.h"
#include "engine/input/prepare/fetch.h"

namespace paceline {

std::string fetch_set(const PublishedSet& set, const FetchOptions& options) {
  throw usage_error("this build cannot download: " PACELINE_FETCH_LACKS
                    " not found when it was built",
                    "data fetch " + set.name,
                    "build with them, or download " + make_url(set.files[0], options) + " by hand");
}

}  // namespace paceline
