import torch
from accelerate import Accelerator
from diffusers import UNet2DConditionModel
from diffusers.training_utils import EMAModel


def main():
    accelerator = Accelerator()
    unet = UNet2DConditionModel()
    averages = EMAModel(unet.parameters())

    def load(models, folder):
        saved = EMAModel.from_pretrained(folder, UNet2DConditionModel)
        averages.load_state_dict(saved.state_dict())
        averages.to(accelerator.device)

    accelerator.register_load_state_pre_hook(load)
    unet = accelerator.prepare(unet)
    averages.to(accelerator.device)
    accelerator.load_state("folder")
    averages.step(unet.parameters())


main()
