"""The tensors that functions start from."""

LABELS = ["host()", "gpu()", "second()"]
SPELLED = {"host()": ["torch::ones({2, 2})", "torch::zeros({2, 2}, torch::kCPU)", "gpu().to(torch::kCPU)"],
           "gpu()": ["torch::zeros({2, 2}, torch::Device(torch::kCUDA, 0))",
                     "host().to(torch::Device(torch::kCUDA, 0))"],
           "second()": ["torch::ones({2, 2}, torch::Device(torch::kCUDA, 1))"]}  # fmt: skip
