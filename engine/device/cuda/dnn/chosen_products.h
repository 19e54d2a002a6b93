// Products by cuDNN and cuBLASLt, each computed the way that was chosen for it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/cuda/dnn/choice.h"
#include "engine/device/cuda/dnn/libraries.h"
#include "engine/device/cuda/dnn/tuning.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

struct ProductsOptions {
  // Only ways that give the same bits in every run, and the choice does not depend on the clock:
  // it is read from choices_file, or is the heuristics' first. With a choices_file that has none
  // yet, it is measured once and kept there.
  bool deterministic = false;
  // Bytes a product. Without tensor cores cuDNN's fast kernels copy whole planes: ResNet-50 in fp32
  // wants 279 MB at 300 x 300 and batch 32, 2.3 GB at batch 256; with less, slow ones are left.
  std::size_t workspace_limit = std::size_t{256} << 20;
  std::filesystem::path choices_file;  // see choices_file.h; empty: none
  Tuner* tuner = nullptr;  // outlives the products; null: nothing is tried, measured or kept
  // Of a card that is not there (devices/*.json): plans are built and checked, and do not run.
  // Empty: the calling thread's current card.
  std::string card_description;
  LibraryNames libraries;
  // That compile kernels, none of them the calling one; on each is called first, with its number,
  // what makes the card its current one.
  int threads = 1;
  std::function<void(int)> enter_thread = [](int) {};
};

// For one thread at a time. Plans may outlive it.
class ChosenProducts : public Products {
 public:
  // One a distinct request so far, for the record.
  virtual const std::vector<Choice>& choices() const = 0;
  // Writes what was measured into choices_file. Throws input where it cannot.
  virtual void save_choices() = 0;
};

// Opens the libraries. Throws usage where one of them or the card is missing.
std::unique_ptr<ChosenProducts> make_products(const ProductsOptions& options);

// Cards that descriptions come with: "h200". Throws usage for another.
std::vector<std::string> described_cards();
std::string card_description(const std::string& name);

}  // namespace paceline::cuda
