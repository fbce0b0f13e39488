"""torch.use_deterministic_algorithms(True): what CUDA has no deterministic kernel for refuses. Run on 1 virtual GPU."""

import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional


def ones(*sizes, **options):
    return torch.ones(*sizes, device="cuda", **options)


def backward(function, *sizes):
    function(ones(*sizes, requires_grad=True)).sum().backward()


def ctc_loss():
    scores = ones(5, 1, 4, requires_grad=True).log_softmax(2)
    functional.ctc_loss(scores, ones(1, 2, dtype=torch.long), torch.tensor([5]), torch.tensor([2])).backward()


# Calls that are refused, by a word of the error.
REFUSED = {
    "adaptive_avg_pool2d_backward_cuda": lambda: backward(nn.AdaptiveAvgPool2d(2), 1, 1, 5, 5),
    "adaptive_max_pool2d_backward_cuda": lambda: backward(nn.AdaptiveMaxPool2d(2), 1, 1, 5, 5),
    "avg_pool3d_backward_cuda": lambda: backward(nn.AvgPool3d(2), 1, 1, 4, 4, 4),
    "max_unpooling2d_forward_out": lambda: nn.MaxUnpool2d(2)(ones(1, 1, 2, 2), ones(1, 1, 2, 2, dtype=torch.long)),
    "reflection_pad1d_backward_out_cuda": lambda: backward(nn.ReflectionPad1d(1), 1, 1, 4),
    "reflection_pad2d_backward_cuda": lambda: backward(nn.ReflectionPad2d(1), 1, 1, 4, 4),
    "upsample_bicubic2d_backward_out_cuda": lambda: backward(nn.Upsample(scale_factor=2, mode="bicubic"), 1, 1, 4, 4),
    "grid_sampler_2d_backward_cuda": lambda: backward(
        lambda x: functional.grid_sample(x, torch.zeros(1, 1, 1, 2, device="cuda"), align_corners=False), 1, 1, 2, 2
    ),
    "embedding_bag_backward_cuda_max": lambda: backward(
        lambda weight: functional.embedding_bag(ones(2, 2, dtype=torch.long), weight, mode="max"), 3, 2
    ),
    "nll_loss2d_forward_out_cuda_template": lambda: functional.nll_loss(ones(2, 3, 5, 5), ones(2, 5, 5).long()),
    "ctc_loss_backward_gpu": ctc_loss,
    "put_": lambda: ones(3).put_(ones(1, dtype=torch.long), ones(1), accumulate=True),
    "_histc_cuda": lambda: torch.histc(ones(3)),
    "_bincount_cuda": lambda: torch.bincount(ones(3, dtype=torch.long), ones(3)),
    "median CUDA with indices output": lambda: ones(3).median(0),
}
# Relatives of theirs that are deterministic.
RUNS = [
    lambda: backward(nn.Conv2d(1, 1, 3).cuda(), 1, 1, 5, 5),
    lambda: backward(nn.MaxPool2d(2), 1, 1, 4, 4),
    lambda: backward(lambda weight: functional.embedding_bag(ones(2, 2, dtype=torch.long), weight), 3, 2),
    lambda: ones(3).index_add(0, ones(1, dtype=torch.long), ones(1)),
    lambda: torch.bincount(ones(3, dtype=torch.long)),
    lambda: ones(3).median(),
    lambda: functional.nll_loss(ones(2, 3), ones(2, dtype=torch.long)),
]


class Determinism(unittest.TestCase):
    def setUp(self):
        torch.use_deterministic_algorithms(True)

    def tearDown(self):
        torch.use_deterministic_algorithms(False)

    def test_refused(self):
        for name, call in REFUSED.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, name + ".* a deterministic implementation"):
                call()

    def test_deterministic(self):
        for call in RUNS:
            call()

    def test_warning(self):
        torch.use_deterministic_algorithms(True, warn_only=True)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ones(3).median(0)
        self.assertIn("median CUDA with indices output", str(told[0].message))

    def test_off(self):
        torch.use_deterministic_algorithms(False)
        for call in REFUSED.values():
            call()


if __name__ == "__main__":
    unittest.main()
