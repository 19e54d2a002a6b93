#include "engine/device/cuda/dnn/choices_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/json.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline::cuda {
namespace {

Choice by_cudnn() {
  Choice choice;
  choice.request = "forward 32x75x75x64 to 256 bf16";
  choice.recipe.engine = 62;
  choice.recipe.knobs = {{2, 1}, {13, -1}};
  choice.tensor_cores = true;
  choice.workspace_bytes = 131;
  choice.offered = 30;
  choice.usable = 29;
  choice.seconds = 1.5e-4;
  choice.runner_up = "cuDNN engine 45";
  choice.runner_up_seconds = 1.75e-4;
  choice.origin = Choice::Origin::measured;
  return choice;
}

Choice by_cublas() {
  Choice choice = by_cudnn();
  choice.request = "product 64x5408x64 fp32";
  choice.recipe = {Recipe::Library::cublas_lt, 66, {}, std::string(128, 'a')};
  return choice;
}

void expect_equal(const Choice& a, const Choice& b) {
  EXPECT_EQ(a.request, b.request);
  EXPECT_EQ(a.recipe, b.recipe);
  EXPECT_EQ(a.tensor_cores, b.tensor_cores);
  EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
  EXPECT_EQ(a.offered, b.offered);
  EXPECT_EQ(a.usable, b.usable);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.runner_up, b.runner_up);
  EXPECT_EQ(a.runner_up_seconds, b.runner_up_seconds);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

class Choices : public testing::Test {
 protected:
  // Not read, said, and left as it is also when there is something to save.
  void expect_left_alone(const std::string& text, const std::string& because) {
    write(path_, text);
    ChoicesFile file(path_);
    expect_parts(file.problem(), {because, path_.string()});
    EXPECT_FALSE(file.find("h200", by_cudnn().request));
    file.put("h200", by_cudnn());
    file.save();
    EXPECT_EQ(read_text(path_), text);
  }

  int count_marks() const {
    int marks = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_.path())) {
      marks += entry.path().filename().string().find(".trying-") != std::string::npos;
    }
    return marks;
  }

  std::string good_file() {
    ChoicesFile file(path_);
    file.put("h200", by_cudnn());
    file.put("h200", by_cublas());
    file.save();
    return read_text(path_);
  }

  Scratch scratch_;
  std::filesystem::path path_ = scratch_.path() / "folder" / "choices.json";
};

TEST_F(Choices, AreReadAsTheyWereWritten) {
  good_file();
  const ChoicesFile file(path_);
  EXPECT_EQ(file.problem(), "");
  for (const Choice& choice : {by_cudnn(), by_cublas()}) {
    const auto found = file.find("h200", choice.request);
    ASSERT_TRUE(found);
    expect_equal(*found, choice);
    EXPECT_EQ(found->origin, Choice::Origin::file);
  }
}

TEST_F(Choices, AreOfTheirCircumstances) {
  good_file();
  const ChoicesFile file(path_);
  EXPECT_FALSE(file.find("h100", by_cudnn().request));
  EXPECT_FALSE(file.find("h200", "another request"));
}

TEST_F(Choices, OfTwoWritersAreAllKept) {
  ChoicesFile one(path_), other(path_);
  one.put("h200", by_cudnn());
  other.put("h200", by_cublas());
  one.save();
  other.save();
  const ChoicesFile file(path_);
  EXPECT_TRUE(file.find("h200", by_cudnn().request));
  EXPECT_TRUE(file.find("h200", by_cublas().request));
}

TEST_F(Choices, ThatBrokeACardAreExcludedForGood) {
  good_file();
  ChoicesFile file(path_);
  const Recipe other{Recipe::Library::cudnn, 62, {{2, 2}}, ""};
  file.exclude("h200", by_cudnn().request, {by_cudnn().recipe, "it broke"});
  file.exclude("h200", by_cudnn().request, {other, "it is wrong"});
  file.exclude("h200", by_cudnn().request, {other, "it is wrong again"});
  EXPECT_FALSE(file.find("h200", by_cudnn().request)) << "a choice that is excluded";
  file.save();
  const ChoicesFile again(path_);
  EXPECT_EQ(again.problem(), "");
  EXPECT_FALSE(again.find("h200", by_cudnn().request));
  EXPECT_TRUE(again.find("h200", by_cublas().request));
  const auto excluded = again.excluded("h200", by_cudnn().request);
  ASSERT_EQ(excluded.size(), 2U);
  EXPECT_EQ(excluded[0].recipe, by_cudnn().recipe);
  EXPECT_EQ(excluded[0].because, "it broke");
  EXPECT_EQ(excluded[1].recipe, other);
  EXPECT_EQ(excluded[1].because, "it is wrong");
  EXPECT_TRUE(again.excluded("h100", by_cudnn().request).empty());
  EXPECT_TRUE(again.excluded("h200", by_cublas().request).empty());
}

// Before there were reasons there was one.
TEST_F(Choices, ThatAreExcludedWithoutAReasonBrokeACard) {
  ChoicesFile file(path_);
  file.exclude("h200", by_cudnn().request, {by_cudnn().recipe, "anything"});
  file.save();
  std::string text = read_text(path_);
  const auto reason = text.find("\"because\"");
  ASSERT_NE(reason, std::string::npos) << text;
  text.replace(reason, 9, "\"comment\"");
  write(path_, text);
  const auto excluded = ChoicesFile(path_).excluded("h200", by_cudnn().request);
  ASSERT_EQ(excluded.size(), 1U);
  EXPECT_EQ(excluded[0].because, "it broke the GPU's context");
}

TEST_F(Choices, ThatDidNotReturnAreExcludedByTheNextProcess) {
  good_file();
  const pid_t child = fork();
  if (child == 0) {
    TrialMark mark(path_);
    mark.set("h200", by_cublas().request, by_cublas().recipe);  // longer, and returns
    mark.set("h200", by_cudnn().request, by_cudnn().recipe);
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(count_marks(), 1);
  for (int start = 0; start < 2; ++start) {
    const ChoicesFile file(path_);
    const auto excluded = file.excluded("h200", by_cudnn().request);
    ASSERT_EQ(excluded.size(), 1U) << start;
    EXPECT_EQ(excluded[0].recipe, by_cudnn().recipe);
    EXPECT_EQ(excluded[0].because, "it did not return");
    EXPECT_FALSE(file.find("h200", by_cudnn().request));
    EXPECT_TRUE(file.find("h200", by_cublas().request));
    EXPECT_EQ(count_marks(), 0);
  }
}

TEST_F(Choices, ThatAProcessStillTriesAreNotExcluded) {
  {
    TrialMark mark(path_);
    EXPECT_EQ(count_marks(), 0);
    mark.set("h200", by_cudnn().request, by_cudnn().recipe);
    EXPECT_TRUE(ChoicesFile(path_).excluded("h200", by_cudnn().request).empty());
    EXPECT_EQ(count_marks(), 1);
  }
  EXPECT_EQ(count_marks(), 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Choices, MarkedByHalfAreForgotten) {
  good_file();
  write(path_.string() + ".trying-abcdef", "{\"circumstances\": \"h2");
  EXPECT_TRUE(ChoicesFile(path_).find("h200", by_cudnn().request));
  EXPECT_EQ(count_marks(), 0);
}

TEST_F(Choices, WithoutAPathOrAFolderAreNotMarked) {
  TrialMark nowhere("");
  nowhere.set("h200", by_cudnn().request, by_cudnn().recipe);
  write(scratch_.path() / "file", "");
  TrialMark impossible(scratch_.path() / "file" / "choices.json");
  impossible.set("h200", by_cudnn().request, by_cudnn().recipe);
  EXPECT_EQ(count_marks(), 0);
}

TEST_F(Choices, WithNothingNewAreNotWritten) {
  good_file();
  std::filesystem::remove(path_);
  ChoicesFile file(path_);
  EXPECT_EQ(file.problem(), "");
  file.save();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Choices, DamagedAreLeftAlone) {
  const std::string good = good_file();
  expect_left_alone(good.substr(0, good.size() / 2), "not JSON");
  expect_left_alone("", "not JSON");
  const auto broken = [&](const std::string& part, const std::string& by) {
    std::string text = good;
    const auto at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), by);
  };
  expect_left_alone(broken("\"engine\": 62", "\"engine\": \"62\""), "number");
  expect_left_alone(broken("\"request\"", "\"requests\""), "request");
  expect_left_alone(broken("\"cuBLASLt\"", "\"MAGMA\""), "unknown library");
  expect_left_alone(broken(std::string(128, 'a'), std::string(127, 'a')), "hexadecimal");
  expect_left_alone(broken(std::string(128, 'a'), std::string(128, 'x')), "hexadecimal");
  expect_left_alone(broken("-1\n", "\"x\"\n"), "number");
}

TEST_F(Choices, OfAnotherProgramAreLeftAlone) {
  good_file();
  expect_left_alone("{\"weights\": [1, 2]}\n", "not a file of choices");
  expect_left_alone("[1, 2]\n", "not a file of choices");
  expect_left_alone("<html></html>\n", "not JSON");
}

TEST_F(Choices, OfANewerVersionAreLeftAlone) {
  std::string text = good_file();
  text.replace(text.find("\"paceline_choices\": 1"), 21, "\"paceline_choices\": 2");
  expect_left_alone(text, "newer version");
}

TEST_F(Choices, WithoutAPathStayInMemory) {
  ChoicesFile file("");
  file.put("h200", by_cudnn());
  EXPECT_TRUE(file.find("h200", by_cudnn().request));
  file.save();
  EXPECT_EQ(file.problem(), "");
}

TEST_F(Choices, ThatCannotBeWrittenAreMarked) {
  write(scratch_.path() / "file", "");
  ChoicesFile file(scratch_.path() / "file" / "choices.json");
  EXPECT_EQ(file.problem(), "");
  file.put("h200", by_cudnn());
  expect_error(ErrorKind::input, {"file"}, [&] { file.save(); });
}

}  // namespace
}  // namespace paceline::cuda
