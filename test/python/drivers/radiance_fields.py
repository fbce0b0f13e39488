from dataclasses import replace
import torch
import radiance_fields as R

D = "cuda"


def poses(n=3):
    p = torch.eye(4).repeat(n, 1, 1)
    p[:, 2, 3] = 3.0
    return p


def cams():
    return R.Cameras(poses(), 8.0, 6, 5).to(D)


def rays():
    return cams().rays_of_image(1).with_bounds(1.0, 4.0)


def field(**kw):
    return R.RadianceField(R.FieldConfig(**kw)).to(D)


def drive_rays_of_image(): assert rays().device.type == "cuda"
def drive_rays_of_pixels(): cams().rays_of_pixels(torch.zeros(4, 3).long())
def drive_sample(): R.PixelSampler(R.PixelSamplerConfig()).sample(torch.rand(2, 6, 5, 3, device=D))
def drive_sample_mask(): R.PixelSampler(R.PixelSamplerConfig()).sample(torch.rand(2, 6, 5, 3, device=D), torch.ones(2, 6, 5, device=D).bool())
def drive_uniform(): R.UniformSampler(4).to(D)(rays())
def drive_pdf_train(): R.PDFSampler(4).to(D)(rays(), weights=torch.rand(6, 5, 4, device=D), existing=torch.rand(6, 5, 5, device=D).sort(-1).values)
def drive_pdf_eval(): R.PDFSampler(4).to(D).eval()(rays(), weights=torch.rand(6, 5, 4, device=D), existing=torch.rand(6, 5, 5, device=D).sort(-1).values)
def drive_freq(): R.FrequencyEncoding().to(D)(torch.rand(4, 3, device=D))
def drive_freq_window(): R.FrequencyEncoding(window="cosine").to(D)(torch.rand(4, 3, device=D))
def drive_hash(): R.HashEncoding().to(D)(torch.rand(4, 3, device=D))
def drive_hash_dense(): R.HashEncoding(hashed=False).to(D)(torch.rand(4, 3, device=D))
def drive_plane():
    p = R.PlaneEncoding().to(D)
    p(torch.rand(4, 3, device=D))
    p.upsample(12)
    p(torch.rand(4, 2, 3, device=D))
def drive_plane_lines(): R.PlaneEncoding(with_lines=True).to(D)(torch.rand(4, 3, device=D))
def drive_field():
    f = field(encoding=R.HashEncoding, appearance_dim=2)
    s = R.UniformSampler(4)(rays())
    f(s)
    f.eval()
    out = f(s)
    w = s.weights(out["density"])
    for b in ("white", "random"):
        o = R.Renderer(b).to(D)(out["rgb"], w, s)
    R.ImageMetrics().update(o["rgb"], torch.rand(6, 5, 3))
def drive_inside(): field().inside(torch.rand(4, 3, device=D))
def drive_occ():
    g = R.OccupancyGrid().to(D)
    g.update(0, lambda x: field().density(x)[0])
def drive_occ_late():
    g = R.OccupancyGrid().to(D)
    g.update(20, lambda x: field().density(x)[0])
def drive_carve(): R.OccupancyGrid().to(D).carve(cams())
def drive_composite(): R.Renderer.composite_images(torch.rand(4, 4, device=D))
def drive_depth_range(): R.ImageMetrics().depth_range({"depth": torch.rand(4, 1, device=D)})
