from diffusion.process import Diffusion
from diffusion.unet import Denoiser

__all__ = ["Diffusion", "Denoiser"]
