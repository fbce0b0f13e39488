import torch

import mesh_rendering as m

G = "cuda:0"


def mesh():
    return m.tetrahedron(device=G)


def cameras(cls=m.PinholeCamera, device=G):
    return cls.on_sphere(3.0, [0.0, 90.0], device)


def renderer(shader, camera=None):
    return m.Renderer(m.SoftRasterizer(m.RasterConfig(), camera or cameras()), shader).to(G)


def plain():
    return m.Shader(m.BlendConfig(), m.PointLight(device=G))


def drive_container():
    each = mesh()
    each.edge_lengths()
    each.valence()
    each.vertex_normals()
    each.sample_points(5)
    each.to_obj()
    each.bounds()


def drive_edges_after_move():
    each = m.tetrahedron()
    each.edge_lengths()
    each.to(G).edge_lengths()


def drive_valence_after_move():
    each = m.tetrahedron()
    each.valence()
    each.to(G).valence()


def drive_stratified():
    mesh().sample_stratified(2)


def drive_stratified_host():
    m.tetrahedron().sample_stratified(2)


def drive_extent():
    mesh().extent()


def drive_axis_angle():
    m.rotation_from_axis_angle(torch.rand(4, 3, device=G))


def drive_six():
    m.rotation_from_six(torch.rand(4, 6, device=G))


def drive_look_at():
    m.look_at(torch.rand(2, 3, device=G))


def drive_look_at_device():
    m.look_at(torch.rand(2, 3, device=G), device=G)


def drive_camera_moved():
    cameras(device="cpu").to("cuda:1").screen(torch.rand(1, 5, 3, device="cuda:1"))


def drive_distorted():
    cameras(m.DistortedCamera).screen(torch.rand(1, 5, 3, device=G))


def drive_distorted_moved():
    cameras(m.DistortedCamera, "cpu").to(G).screen(torch.rand(1, 5, 3, device=G))


def drive_render():
    renderer(plain()).snapshot(mesh())


def drive_textured():
    renderer(m.TexturedShader(m.BlendConfig(), m.PointLight(device=G), [(0.1, 0.2, 0.3)] * 4))(mesh()).mean().backward()


def drive_harmonic():
    renderer(m.Shader(m.BlendConfig(), m.HarmonicLight(device=G)))(mesh())


def drive_harmonic_host():
    m.HarmonicLight().shade(torch.rand(4, 3), torch.rand(4, 3))


def drive_foggy():
    renderer(m.FoggyShader(m.BlendConfig(), m.PointLight(device=G)))(mesh())


def drive_against():
    made = renderer(plain())
    made.against(mesh(), made.snapshot(mesh()))


def drive_rasterizer_moved():
    raster = m.SoftRasterizer(m.RasterConfig(), cameras(device="cpu")).to("cuda:2")
    raster(mesh().to("cuda:2"))


def regular():
    return m.ShapeRegularizer(m.tetrahedron())


def drive_stretch():
    regular().stretch(mesh())


def drive_bending():
    regular().bending(mesh())


def drive_smoothness():
    regular().smoothness(mesh())


def drive_align():
    m.rigid_align(torch.rand(5, 3, device=G), torch.rand(5, 3, device=G))


def drive_align_reflect():
    m.rigid_align(torch.rand(5, 3, device=G), torch.rand(5, 3, device=G), reflect=True)
