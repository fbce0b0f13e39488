import torch

import imgops

D = "cuda:0"
img = lambda: torch.rand(2, 3, 8, 8, device=D)
CALLS = {
    "gaussian_blur2d": lambda: imgops.gaussian_blur2d(img(), (3, 3), (1.0, 1.0)),
    "filter2d": lambda: imgops.filter2d(img(), torch.rand(1, 3, 3, device=D)),
    "sobel": lambda: imgops.sobel(img()),
    "adjust_brightness": lambda: imgops.adjust_brightness(img(), 0.2),
    "adjust_gamma": lambda: imgops.adjust_gamma(img(), 2.2),
    "posterize": lambda: imgops.posterize(img(), 4),
    "rgb_to_grayscale": lambda: imgops.rgb_to_grayscale(img()),
    "rgb_to_ycbcr": lambda: imgops.rgb_to_ycbcr(img()),
    "remap": lambda: imgops.remap(img(), torch.zeros(2, 8, 8, 2, device=D)),
    "warp_affine": lambda: imgops.warp_affine(img(), torch.eye(2, 3, device=D).expand(2, 2, 3), (4, 4)),
    "SSIM": lambda: imgops.SSIM().to(D)(img(), img()),
    "MSSSIM": lambda: imgops.MSSSIM().to(D)(img(), img()),
    "RandomErasing": lambda: imgops.RandomErasing(1.0).to(D)(img()),
    "ColorMix": lambda: imgops.ColorMix().to(D)(img(), torch.arange(2, device=D)),
}
