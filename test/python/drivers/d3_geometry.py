import torch
import l3_geometry as m
D = "cuda:0"
I = lambda *s: torch.rand(*(s or (2, 3, 8, 8)), device=D)
CALLS = {
    "create_meshgrid": lambda: m.create_meshgrid(4, 4, device=torch.device(D)),
    "spatial_softargmax": lambda: m.spatial_softargmax(I()),
    "spatial_expectation": lambda: m.spatial_expectation(I()),
    "transform_points": lambda: m.transform_points(I(2, 3, 3), I(2, 5, 2)),
    "get_rotation_matrix2d": lambda: m.get_rotation_matrix2d(I(2, 2), I(2), I(2)),
    "get_translation_matrix2d": lambda: m.get_translation_matrix2d(I(2, 2)),
    "get_affine_matrix2d": lambda: m.get_affine_matrix2d(I(2, 2), I(2, 2), I(2), I(2)),
    "normalize_homography": lambda: m.normalize_homography(I(1, 3, 3), (4, 4), (4, 4)),
    "denormalize_homography": lambda: m.denormalize_homography(I(1, 3, 3), (4, 4), (4, 4)),
    "gaussian_blur2d": lambda: m.gaussian_blur2d(I()),
    "unsharp_mask": lambda: m.unsharp_mask(I()),
    "laplacian": lambda: m.laplacian(I()),
    "rgb_to_grayscale": lambda: (m.rgb_to_grayscale(I()), m.rgb_to_grayscale(I(), torch.tensor([0.2, 0.3, 0.5]))),
    "sepia": lambda: m.sepia(I()),
    "posterize": lambda: (m.posterize(I(), 3), m.posterize(I(), torch.tensor([3, 4]))),
    "solarize": lambda: m.solarize(I()),
    "Normalize": lambda: m.Normalize([0.4, 0.4, 0.4], [0.2, 0.2, 0.2]).to(D)(I()),
    "Denormalize": lambda: m.Denormalize([0.4, 0.4, 0.4], [0.2, 0.2, 0.2]).to(D)(I()),
    "BlurPool": lambda: m.BlurPool(3).to(D)(I()),
    "PyramidPool": lambda: m.PyramidPool().to(D)(I()),
}
