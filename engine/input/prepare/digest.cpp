#include "engine/input/prepare/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "engine/core/error.h"

namespace paceline {

std::string file_digest(const std::filesystem::path& file, const std::string& algorithm,
                        const std::function<void(double)>& progress) {
  const auto fail = [&](const std::string& why) {
    throw input_error("checksum cannot be computed: " + why, file.string(),
                      "check the file and its permissions");
  };
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(std::strerror(errno));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const EVP_MD* kind = EVP_get_digestbyname(algorithm.c_str());
  // Systems in FIPS mode have no MD5.
  if (!context || !kind || EVP_DigestInit_ex(context.get(), kind, nullptr) != 1) {
    fail("this OpenSSL has no " + algorithm);
  }
  std::vector<char> buffer(std::size_t{1} << 20);
  double done = 0;
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         stream.gcount() > 0) {
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(stream.gcount()));
    done += static_cast<double>(stream.gcount());
    progress(done);
  }
  if (stream.bad()) fail("reading failed");
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace paceline
