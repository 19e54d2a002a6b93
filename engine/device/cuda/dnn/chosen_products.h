// Products by cuDNN and cuBLASLt, each computed in the way chosen for it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/cuda/dnn/choice.h"
#include "engine/device/cuda/dnn/session.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

struct ProductsOptions {
  // Uses only algorithms that give the same bits in every run, and does not choose by time: the
  // choice comes from choices_file, or is the heuristics' first. If choices_file lacks it, it is
  // measured once and stored there.
  bool deterministic = false;
  // Lets convolutions that cuDNN compiles at run time compete: seconds for each, the first time.
  bool thorough = false;
  // Bytes per product. Without tensor cores, cuDNN's fast kernels copy whole planes: ResNet-50 in
  // fp32 needs 279 MB at 300 x 300 and batch 32, 2.3 GB at batch 256. With less workspace, only
  // slow kernels remain.
  std::size_t workspace_limit = std::size_t{256} << 20;
  std::filesystem::path choices_file;  // see choices_file.h; may be empty
  std::shared_ptr<Tuner> tuner;        // null: no trials, measurements or storage
  // For a card that is absent (cuDNN's device properties as JSON): plans are built and checked, but
  // do not run. Empty: the calling thread's current card.
  std::string card_description;
  LibraryNames libraries;
};

// Writes measured choices to choices_file at its end. Not thread-safe. Plans may outlive it.
class ChosenProducts : public Products {
 public:
  // One for each distinct request so far, for the record.
  virtual const std::vector<Choice>& choices() const = 0;
};

// Opens the libraries. Throws usage if one of them or the card is missing.
std::unique_ptr<ChosenProducts> make_products(const ProductsOptions& options);

// Names of products.

// "forward 32x75x75x64 to 256 bf16", "backward_data 32x75x75x64 to 64, 3x3 / 2 + 1, bf16, adds".
// Unique per request; also used in files.
std::string to_text(const ConvRequest& request);
std::string to_text(const MatmulShape& shape);
const char* to_string(Math math);
const char* to_string(ConvPass pass);
const char* to_string(Epilogue epilogue);  // " + bias"; "" for none

}  // namespace paceline::cuda
