#include <gtest/gtest.h>

#include "engine/core/environment.h"

namespace paceline {
namespace {

TEST(Secrets, NamesThatHoldThem) {
  for (const char* name : {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "password",
                           "api-key", "SLURM_JWT_TOKEN", "WANDB_API_KEY", "apikey", "Credentials",
                           "MY_PASS", "XAUTH_COOKIE", "PROXY_AUTH", "tokens"}) {
    EXPECT_TRUE(names_secret(name)) << name;
  }
  for (const char* name : {"PATH", "KEYBOARD", "OMPI_MCA_pml", "SLURM_JOB_ID", "COMPASS", "AUTHOR",
                           "tokenizer_threads", "BYPASS_CACHE", "monkeys_count"}) {
    EXPECT_FALSE(names_secret(name)) << name;
  }
}

TEST(Secrets, ValuesAreRemovedAndTheRestStays) {
  EXPECT_EQ(without_secrets("HF_TOKEN=hf_abc123 PATH=/bin\n"), "HF_TOKEN=[removed] PATH=/bin\n");
  EXPECT_EQ(without_secrets("export API_KEY=\"a b\" # ours"), "export API_KEY=[removed] # ours");
  EXPECT_EQ(without_secrets("{\"password\": \"x y\", \"step\": 3}"),
            "{\"password\": [removed], \"step\": 3}");
  EXPECT_EQ(without_secrets("password: open sesame\nnext"), "password: [removed]\nnext");
  EXPECT_EQ(without_secrets("--auth-token=abc --steps=2"), "--auth-token=[removed] --steps=2");
  EXPECT_EQ(without_secrets("step 3: loss 0.5, key frames 2"), "step 3: loss 0.5, key frames 2");
}

TEST(Secrets, UrlsHeadersAndKeys) {
  EXPECT_EQ(without_secrets("proxy http://me:pw@host:3128/x"),
            "proxy http://[removed]@host:3128/x");
  EXPECT_EQ(without_secrets("https://host/a@b"), "https://host/a@b");
  EXPECT_EQ(without_secrets("Authorization Bearer abcdefgh.ijk"), "Authorization Bearer [removed]");
  EXPECT_EQ(without_secrets(
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\nabc\n-----END RSA PRIVATE KEY-----\nb\n"),
            "a\n[removed]\nb\n");
  EXPECT_EQ(without_secrets("-----BEGIN PRIVATE KEY-----\nMII"), "[removed]\n");
}

TEST(Secrets, OddInputEndsWell) {
  for (const char* text :
       {"", "=", "KEY=", "KEY", "TOKEN: ", "://", "http://@", "PASSWORD=\"", "\n\n"}) {
    EXPECT_NO_THROW(without_secrets(text)) << text;
  }
  EXPECT_EQ(without_secrets("KEY="), "KEY=");
}

}  // namespace
}  // namespace paceline
