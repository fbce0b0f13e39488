#include "../../cases.h"
#include "model.h"

void encoder_with_plain_mean_bad() {
  Encoder encoder;
  encoder->to(torch::kCUDA);
  encoder->forward(torch::rand({2, 4}, torch::kCUDA));
}

void encoder_with_buffer_ok() {
  BufferedEncoder encoder;
  encoder->to(torch::kCUDA);
  encoder->forward(torch::rand({2, 4}, torch::kCUDA));
}

DT_MAIN(encoder_with_plain_mean_bad, encoder_with_buffer_ok)
