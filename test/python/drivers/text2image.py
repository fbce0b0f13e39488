from text2image import *

DEV = "cuda:0"


def parts():
    torch.manual_seed(0)
    return TextEncoder(), UNet(), Vae(), DDIMScheduler()


def pipeline(device=DEV, **kwargs):
    return TextToImagePipeline(*parts(), **kwargs).to(device)


def ids(n=2):
    return torch.randint(0, 64, (n, 8))


def offloaded(latent):
    pipe = TextToImagePipeline(*parts())
    pipe.enable_offload(DEV)
    with torch.no_grad():
        embeds = pipe.encode_prompt(ids(), ids())
        latents = pipe.denoise(torch.randn(2, 4, 8, 8, device=DEV), embeds, 3)
        return latents if latent else pipe.decode(latents)


def trained():
    encoder, unet, vae, scheduler = parts()
    encoder.to(DEV), unet.to(DEV), vae.to(DEV)
    opt = torch.optim.AdamW(unet.parameters())
    t = torch.randint(0, 100, (2,), device=DEV)
    latents = vae.encode(torch.randn(2, 3, 16, 16, device=DEV)).sample()
    loss = (unet(latents, t, encoder(ids().to(DEV))) - torch.randn_like(latents)).pow(2).mean((1, 2, 3))
    (loss * scheduler.snr_weights(t)).mean().backward()
    opt.step()


def attention(equalizer=None):
    pipe = pipeline()
    pipe.unet.attn.store = AttentionStore(equalizer)
    pipe(ids(), ids())
    return pipe.unet.attn.store.heatmap(3, (8, 8))


def tiled(axis):
    with torch.no_grad():
        return Vae().to(DEV).tiled_decode(torch.randn(1, 4, 8, 8, device=DEV), axis)


def lora():
    unet = UNet().to(DEV)
    merge_lora(unet.time, {"up": torch.randn(16, 2), "down": torch.randn(2, 16)})
    load_textual_inversion(TextEncoder().to(DEV), 5, torch.randn(16))


CALLS = {
    "time": lambda: timestep_embedding(torch.arange(4, device=DEV), 16),
    "guidance_embedding": lambda: guidance_scale_embedding(torch.full((2,), 7.5, device=DEV)),
    "call": lambda: pipeline()(ids(), ids()),
    "call_generator": lambda: pipeline()(ids(), ids(), generator=torch.Generator().manual_seed(1), output_type="pt"),
    "call_eta": lambda: pipeline()(ids(), ids(), generator=torch.Generator().manual_seed(1), eta=0.5),
    "call_second_gpu": lambda: pipeline("cuda:1")(ids(), ids(), generator=torch.Generator("cuda:1").manual_seed(1)),
    "call_no_negative": lambda: pipeline()(ids()),
    "unguided": lambda: pipeline().encode_prompt(ids(), guidance=False),
    "offload": lambda: offloaded(True),
    "offload_decode": lambda: offloaded(False),
    "tiled_rows": lambda: tiled("rows"),
    "tiled_columns": lambda: tiled("columns"),
    "train": trained,
    "noise": lambda: DDIMScheduler().add_noise(torch.randn(2, 4, 8, 8, device=DEV), torch.randn(2, 4, 8, 8, device=DEV),
                                               torch.tensor([3, 50], device=DEV)),
    "attention": attention,
    "attention_equalizer": lambda: attention(torch.ones(8)),
    "safety": lambda: pipeline(safety_checker=SafetyChecker()).check(torch.rand(2, 3, 16, 16, device=DEV)),
    "preview": lambda: pipeline().progress_image(torch.randn(2, 4, 8, 8, device=DEV)),
    "inpaint": lambda: pipeline().inpaint(torch.randn(1, 3, 16, 16), np.ones((16, 16), dtype="float32"), ids(1), ids(1)),
    "lora": lora,
}
