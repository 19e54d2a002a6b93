#include "engine/input/prepare/jpeg_writer.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs what stands above it.
#include <jpeglib.h>

#include "engine/core/error.h"

namespace paceline {

namespace {

struct Encoder {
  jpeg_error_mgr errors{};
  jpeg_compress_struct jpeg{};
  std::jmp_buf leave{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  char message[JMSG_LENGTH_MAX] = "";

  ~Encoder() {
    jpeg_destroy_compress(&jpeg);
    std::free(bytes);
  }
};

// libjpeg's callback must not return; only frames without destructors are left.
[[noreturn]] void leave(j_common_ptr common) {
  auto* encoder = static_cast<Encoder*>(common->client_data);
  common->err->format_message(common, encoder->message);
  std::longjmp(encoder->leave, 1);
}

bool run(Encoder& encoder, const Image& image, int quality) {
  jpeg_compress_struct& jpeg = encoder.jpeg;
  jpeg.err = jpeg_std_error(&encoder.errors);
  encoder.errors.error_exit = leave;
  if (setjmp(encoder.leave) != 0) return false;
  jpeg_create_compress(&jpeg);
  jpeg.client_data = &encoder;
  jpeg_mem_dest(&jpeg, &encoder.bytes, &encoder.size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    // libjpeg reads rows through pointers that are not const.
    auto* row = const_cast<JSAMPLE*>(image.pixels.data() + jpeg.next_scanline * image.row_bytes());
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

}  // namespace

std::string encode_jpeg(const Image& image, int quality) {
  Encoder encoder;
  encoder.jpeg.client_data = &encoder;
  if (!run(encoder, image, quality)) {
    throw Error(ErrorKind::internal, std::string("libjpeg: ") + encoder.message);
  }
  return {reinterpret_cast<const char*>(encoder.bytes), encoder.size};
}

}  // namespace paceline
