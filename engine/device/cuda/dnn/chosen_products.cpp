#include "engine/device/cuda/dnn/chosen_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/device/cuda/dnn/blas.h"
#include "engine/device/cuda/dnn/choices_file.h"
#include "engine/device/cuda/dnn/graph.h"

namespace paceline::cuda {

namespace {

// A plan that runs the implementation that was chosen, with its operands in that one's order.
template <typename Plan, typename Given>
class ByChoice : public Plan {
 public:
  using Convert = std::function<Operands(const Given&)>;

  ByChoice(const Chosen& chosen, std::string text, Convert convert)
      : implementation_(chosen.implementation),
        seconds_(chosen.choice.seconds),
        text_(std::move(text)),
        convert_(std::move(convert)) {}

  std::size_t workspace_bytes() const override { return implementation_->workspace_bytes(); }
  void run(const Given& operands, Stream stream) override {
    implementation_->run(convert_(operands), stream);
  }
  std::string implementation() const override { return text_; }
  double seconds() const override { return seconds_; }

 private:
  std::shared_ptr<Implementation> implementation_;
  double seconds_;
  std::string text_;
  Convert convert_;
};

using ConvByChoice = ByChoice<ConvPlan, ConvOperands>;
using MatmulByChoice = ByChoice<MatmulPlan, MatmulOperands>;
using AttentionByChoice = ByChoice<AttentionPlan, AttentionOperands>;

// cuBLASLt reads its factors; only the struct that all implementations share is not const.
Operands make_operands(const MatmulOperands& given) {
  return {{const_cast<float*>(given.left), const_cast<float*>(given.right), given.out, given.bias},
          given.workspace};
}

class OwnWay : public Implementation {
 public:
  OwnWay(const OwnWays& own, std::size_t way) : run_(own.run), way_(way) {}
  std::size_t workspace_bytes() const override { return 0; }
  void run(const Operands& operands, Stream stream) override { run_(way_, operands, stream); }

 private:
  decltype(OwnWays::run) run_;
  std::size_t way_;
};

class ConvApartImplementation : public Implementation {
 public:
  ConvApartImplementation(const ConvRequest& request, ConvApart apart)
      : request_(request), apart_(std::move(apart)) {}
  std::size_t workspace_bytes() const override { return apart_.workspace_bytes; }
  void run(const Operands& operands, Stream stream) override {
    apart_.run(conv_operands(request_, operands), stream);
  }

 private:
  ConvRequest request_;
  ConvApart apart_;
};

std::vector<TensorSize> list_sizes(const ConvRequest& request) {
  const ConvShape& shape = request.shape;
  const DType type = stored_as(shape.math);
  const auto tensor = [&](auto... sides) {
    return TensorSize{(std::size_t{1} * ... * static_cast<std::size_t>(sides)), type};
  };
  const TensorSize x = tensor(shape.batch, shape.height, shape.width, shape.in);
  const TensorSize w = tensor(shape.out, shape.kernel, shape.kernel, shape.in);
  const TensorSize y = tensor(shape.batch, shape.out_height(), shape.out_width(), shape.out);
  std::vector<TensorSize> sizes = request.pass == ConvPass::forward         ? std::vector{x, w, y}
                                  : request.pass == ConvPass::backward_data ? std::vector{y, w, x}
                                                                            : std::vector{y, x, w};
  sizes.back().use = request.accumulates ? TensorSize::Use::added_to : TensorSize::Use::written;
  if (has_vector(request.epilogue)) sizes.push_back(tensor(shape.out));
  if (writes_vector(request.epilogue)) sizes.back().use = TensorSize::Use::written;
  if (has_before(request.epilogue)) sizes.push_back(request.pass == ConvPass::forward ? y : x);
  if (request.epilogue == Epilogue::bias_gelu) sizes.back().use = TensorSize::Use::written;
  return sizes;
}

// Products that are summed into an element of the result.
std::size_t count_terms(const ConvRequest& request) {
  const ConvShape& shape = request.shape;
  const int window = shape.kernel * shape.kernel;
  return request.pass == ConvPass::backward_weights
             ? std::size_t{1} * shape.batch * shape.out_height() * shape.out_width()
             : std::size_t{1} * window * (request.pass == ConvPass::forward ? shape.in : shape.out);
}

class LibraryProducts : public ChosenProducts {
 public:
  explicit LibraryProducts(const ProductsOptions& options)
      : options_(options),
        libraries_(options.libraries),
        session_(std::make_shared<Session>(libraries_.cudnn, options.card_description)),
        blas_(std::make_shared<CublasLt>(libraries_.cublas_lt)),
        file_(options.tuner ? options.choices_file : std::filesystem::path()) {
    if (options.tuner) {
      circumstances_ =
          fmt::format("{}, {}, {} bytes of workspace{}{}", options.tuner->card(), description(),
                      options.workspace_limit, options.deterministic ? ", deterministic" : "",
                      options.thorough ? ", thorough" : "");
    }
  }

  std::unique_ptr<ConvPlan> conv(const ConvRequest& request) override {
    check(request, request.epilogue == Epilogue::left_gradient);
    const EngineRules rules{request.shape.math, options_.deterministic, options_.thorough};
    const std::string name = to_text(request);
    const Chosen& chosen = decide(
        name, list_sizes(request), find_agreement(request.shape.math, count_terms(request)),
        [&] { return conv_offer(request, rules); },
        [&](const Recipe& recipe) {
          const std::optional<MatmulShape> product = find_product(request);
          return product && recipe.library == Recipe::Library::cublas_lt
                     ? build_product(blas_, *product, recipe)
                     : build_convolution(session_, request, rules, recipe);
        });
    return std::make_unique<ConvByChoice>(
        chosen, text(chosen),
        [request](const ConvOperands& given) { return make_operands(request, given); });
  }

  std::unique_ptr<ConvPlan> conv_with(const ConvRequest& request, ConvApart apart) override {
    check(request, true);
    const std::optional<MatmulShape> product = find_product(request);
    const EngineRules rules{request.shape.math, options_.deterministic, true};
    const auto build_apart = [&] {
      return std::make_shared<ConvApartImplementation>(request, apart);
    };
    const auto offer = [&] {
      Offered found;
      if (product && session_->runs()) {
        found = cublas_offer(blas_, *product, options_.workspace_limit);
      }
      if (has_gelu(request.epilogue)) add_engines(found, request, rules);
      ++found.count;
      Candidate& ours = *found.candidates.emplace(found.candidates.begin());
      ours.recipe.library = Recipe::Library::own;
      ours.build = build_apart;
      return found;
    };
    const auto rebuild = [&](const Recipe& recipe) -> std::shared_ptr<Implementation> {
      using enum Recipe::Library;
      if (recipe.library == own) return build_apart();
      if (recipe.library == cudnn) return build_convolution(session_, request, rules, recipe);
      return build_product(blas_, product.value(), recipe);
    };
    const Chosen& chosen =
        decide(with_own_kernels(to_text(request)), list_sizes(request),
               find_agreement(request.shape.math, count_terms(request)), offer, rebuild);
    const bool is_apart = chosen.choice.recipe.library == Recipe::Library::own;
    return std::make_unique<ConvByChoice>(
        chosen,
        is_apart ? apart.product + "; own kernels" : text(chosen) + to_string(request.epilogue),
        [request](const ConvOperands& given) { return make_operands(request, given); });
  }

  std::unique_ptr<MatmulPlan> matmul(const MatmulShape& shape) override {
    if (shape.m < 1 || shape.k < 1 || shape.n < 1 || stored_as(shape.math) != DType::f32 ||
        has_before(shape.epilogue) || shape.epilogue == Epilogue::left_gradient) {
      throw internal_error("not a product of fp32 matrices", to_text(shape));
    }
    if (!session_->runs()) {
      throw usage_error("cuBLASLt cannot check a product without a GPU", to_text(shape),
                        "run where the GPU is");
    }
    const auto matrix = [](int rows, int columns) {
      return TensorSize{static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns),
                        DType::f32};
    };
    using Use = TensorSize::Use;
    std::vector<TensorSize> sizes{matrix(shape.m, shape.k), matrix(shape.k, shape.n),
                                  matrix(shape.m, shape.n)};
    sizes.back().use = shape.accumulates ? Use::added_to : Use::written;
    if (shape.epilogue != Epilogue::none) sizes.push_back(matrix(1, shape.n));
    if (writes_vector(shape.epilogue)) sizes.back().use = Use::written;
    const Chosen& chosen = decide(
        to_text(shape), sizes, find_agreement(shape.math, static_cast<std::size_t>(shape.k)),
        [&] { return cublas_offer(blas_, shape, options_.workspace_limit); },
        [&](const Recipe& recipe) { return build_product(blas_, shape, recipe); });
    return std::make_unique<MatmulByChoice>(
        chosen, text(chosen), [](const MatmulOperands& given) { return make_operands(given); });
  }

  std::unique_ptr<AttentionPlan> attention(const AttentionRequest& request,
                                           AttentionWork own) override {
    const EngineRules rules{request.math, options_.deterministic, true};
    const Chosen& chosen = decide(
        with_own_kernels(to_text(request)), list_sizes(request),
        find_agreement(request.math, static_cast<std::size_t>(request.places)),
        [&] { return attention_offer(session_, request, rules, own); },
        [&](const Recipe& recipe) {
          return build_attention(session_, request, rules, own, recipe);
        });
    return std::make_unique<AttentionByChoice>(
        chosen, text(chosen),
        [request](const AttentionOperands& given) { return make_operands(request, given); });
  }

  std::size_t own_way(const OwnWays& own) override {
    const auto build = [&](std::size_t way) { return std::make_shared<OwnWay>(own, way); };
    const auto offer = [&] {
      Offered found;
      found.count = static_cast<int>(own.ways);
      for (std::size_t way = 0; way < own.ways; ++way) {
        Candidate& one = found.candidates.emplace_back();
        one.recipe.library = Recipe::Library::own;
        one.recipe.engine = static_cast<std::int64_t>(way);
        one.build = [way, build] { return build(way); };
      }
      return found;
    };
    const std::string name = with_own_kernels(own.name);
    try {
      decide(name, own.sizes, find_agreement(own.math, own.terms), offer,
             [&](const Recipe& recipe) -> std::shared_ptr<Implementation> {
               const auto way = static_cast<std::size_t>(recipe.engine);
               if (recipe.library == Recipe::Library::own && way < own.ways) return build(way);
               throw input_error("there is no such way", recipe.text(), "it is chosen again");
             });
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      log::warning("{}: the first way is used, as none can be tried out: {}", own.name,
                   error.what());
      return 0;
    }
    Chosen& chosen = chosen_.at(name);
    chosen.implementation.reset();  // with what it was tried out in
    return static_cast<std::size_t>(chosen.choice.recipe.engine);
  }

  std::string description() const override {
    return fmt::format("cuDNN {}, cuBLASLt {}", session_->version(), blas_->version());
  }

  const std::vector<Choice>& choices() const override { return choices_; }
  ~LibraryProducts() override { save(); }

 private:
  static void check(const ConvRequest& request, bool has_epilogue) {
    const ConvShape& shape = request.shape;
    const bool good = shape.batch > 0 && shape.in > 0 && shape.out > 0 && shape.kernel > 0 &&
                      shape.stride > 0 && shape.padding >= 0 && shape.out_height() > 0 &&
                      shape.out_width() > 0 &&
                      (!request.accumulates || request.pass == ConvPass::backward_data) &&
                      (request.epilogue != Epilogue::none) == has_epilogue &&
                      (!has_epilogue || is_for_epilogue(request));
    if (!good) throw internal_error("not a convolution", to_text(request));
  }

  static bool is_for_epilogue(const ConvRequest& request) {
    if (!is_plain_product(request.shape)) return false;
    switch (request.epilogue) {
      case Epilogue::bias:
      case Epilogue::bias_add:
      case Epilogue::bias_gelu:
        return request.pass == ConvPass::forward;
      case Epilogue::gelu_gradient:
        return request.pass == ConvPass::backward_data && !request.accumulates;
      case Epilogue::left_gradient:
        return request.pass == ConvPass::backward_weights;
      default:
        return false;
    }
  }

  Offered conv_offer(const ConvRequest& request, const EngineRules& rules) {
    Offered found;
    if (request.epilogue == Epilogue::none) found = cudnn_offer(session_, request, rules);
    const std::optional<MatmulShape> product = find_product(request);
    if (!product || !session_->runs()) return found;
    add(found, cublas_offer(blas_, *product, options_.workspace_limit));
    return found;
  }

  static void add(Offered& all, Offered more) {
    all.count += more.count;
    std::move(more.candidates.begin(), more.candidates.end(), std::back_inserter(all.candidates));
  }

  void add_engines(Offered& found, const ConvRequest& request, const EngineRules& rules) const {
    try {
      add(found, cudnn_offer(session_, request, rules));
    } catch (const Error& error) {
      log::debug("{}: cuDNN refuses it: {}", to_text(request), error.what());
    }
  }

  // The same request again gets the same implementation.
  template <typename Offer, typename Rebuild>
  const Chosen& decide(const std::string& name, const std::vector<TensorSize>& sizes,
                       const Agreement& agreement, const Offer& offer, const Rebuild& rebuild) {
    const auto known = chosen_.find(name);
    if (known != chosen_.end()) return known->second;
    std::optional<Chosen> kept = from_file(name, rebuild);
    Chosen chosen;
    if (kept) {
      chosen = std::move(*kept);
    } else {
      ChoiceRules rules{options_.workspace_limit};
      rules.measures =
          options_.tuner && (!options_.deterministic || !options_.choices_file.empty());
      rules.repeats = options_.deterministic;
      rules.agreement = agreement;
      TrialMark mark(keeps() ? options_.choices_file : std::filesystem::path());
      rules.trying = [&](const Recipe& recipe) { mark.set(circumstances_, name, recipe); };
      rules.exclude = [&](const Recipe& recipe, const std::string& because) {
        return exclude(name, {recipe, because});
      };
      chosen = choose(name, without_excluded(offer(), name), sizes, rules, options_.tuner.get());
      if (chosen.choice.origin == Choice::Origin::measured) {
        file_.put(circumstances_, chosen.choice);
        // A run that is ended while it chooses loses what it measured since.
        constexpr double kSeconds = 1;
        if (now_seconds() - saved_at_ > kSeconds) save();
      }
    }
    choices_.push_back(chosen.choice);
    return chosen_.emplace(name, std::move(chosen)).first->second;
  }

  Offered without_excluded(Offered offered, const std::string& name) const {
    for (const auto& [recipe, because] : file_.excluded(circumstances_, name)) {
      if (recipe.is_first_own()) continue;  // the last resort
      const auto removed =
          std::erase_if(offered.candidates,
                        [&recipe = recipe](const Candidate& one) { return one.recipe == recipe; });
      if (removed == 0) continue;
      offered.refused = fmt::format("{} was excluded before: {}", recipe.text(), because);
      log::debug("{}: {}", name, offered.refused);
    }
    return offered;
  }

  // Whether choices outlive this process.
  bool keeps() const {
    return !options_.choices_file.empty() && options_.tuner && file_.problem().empty();
  }

  bool exclude(const std::string& name, const Exclusion& exclusion) {
    file_.exclude(circumstances_, name, exclusion);
    return save() && keeps();
  }

  // What was measured is worth keeping, and not worth failing for.
  bool save() {
    saved_at_ = now_seconds();
    try {
      file_.save();
      return true;
    } catch (const Error& error) {
      if (!std::exchange(warned_, true)) log::warning("{}", error.what());
      return false;
    }
  }

  template <typename Rebuild>
  std::optional<Chosen> from_file(const std::string& name, const Rebuild& rebuild) {
    const std::optional<Choice> kept = file_.find(circumstances_, name);
    if (!kept) return std::nullopt;
    try {
      Chosen chosen{*kept, rebuild(kept->recipe)};
      if (chosen.implementation->workspace_bytes() <= options_.workspace_limit) return chosen;
      log::warning("{}: the stored choice needs too much workspace; choosing again", name);
    } catch (const Error& error) {
      log::warning("{}: the stored choice cannot be used; choosing again: {}", name, error.what());
    }
    return std::nullopt;
  }

  std::string text(const Chosen& chosen) const {
    const Recipe& recipe = chosen.choice.recipe;
    return fmt::format("{}, {:.0f} MB of workspace", recipe.text(),
                       static_cast<double>(chosen.implementation->workspace_bytes()) / 1e6);
  }

  ProductsOptions options_;
  Libraries libraries_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<CublasLt> blas_;
  ChoicesFile file_;
  double saved_at_ = 0;
  bool warned_ = false;
  std::string circumstances_;
  std::map<std::string, Chosen> chosen_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<ChosenProducts> make_products(const ProductsOptions& options) {
  return std::make_unique<LibraryProducts>(options);
}

constexpr EnumName<Math> kMathNames[] = {
    {Math::fp32, "fp32"}, {Math::tf32, "tf32"}, {Math::bf16, "bf16"}, {Math::fp16, "fp16"}};

const char* to_string(Math math) {
  return name_in(kMathNames, math);
}

constexpr EnumName<ConvPass> kConvPassNames[] = {{ConvPass::forward, "forward"},
                                                 {ConvPass::backward_data, "backward_data"},
                                                 {ConvPass::backward_weights, "backward_weights"}};

const char* to_string(ConvPass pass) {
  return name_in(kConvPassNames, pass);
}

constexpr EnumName<Epilogue> kEpilogueNames[] = {{Epilogue::none, ""},
                                                 {Epilogue::bias, " + bias"},
                                                 {Epilogue::bias_relu, " + bias + relu"},
                                                 {Epilogue::bias_gradient, " with bias gradient"},
                                                 {Epilogue::left_gradient, " with bias gradient"},
                                                 {Epilogue::bias_add, " + bias + plane"},
                                                 {Epilogue::bias_gelu, " + bias + gelu"},
                                                 {Epilogue::gelu_gradient, " x gelu's slope"}};

const char* to_string(Epilogue epilogue) {
  return name_in(kEpilogueNames, epilogue);
}

std::string to_text(const ConvRequest& request) {
  const ConvShape& shape = request.shape;
  const std::string window = shape.kernel == 1 && shape.stride == 1 && shape.padding == 0
                                 ? ""
                                 : fmt::format(" {}x{} / {} + {}", shape.kernel, shape.kernel,
                                               shape.stride, shape.padding);
  return fmt::format("{} {}x{}x{}x{} to {}{} {}{}{}", to_string(request.pass), shape.batch,
                     shape.height, shape.width, shape.in, shape.out, window, to_string(shape.math),
                     request.accumulates ? " adds" : "", to_string(request.epilogue));
}

std::string to_text(const MatmulShape& shape) {
  return fmt::format("product {}x{}x{}{}{} {}{}{}", shape.m, shape.k, shape.n,
                     shape.left_transposed ? " left transposed" : "",
                     shape.right_transposed ? " right transposed" : "", to_string(shape.math),
                     shape.accumulates ? " adds" : "", to_string(shape.epilogue));
}

}  // namespace paceline::cuda
