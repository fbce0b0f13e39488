from adapted_layers import *
import tempfile


def net():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))


def x():
    return torch.rand(3, 8, device="cuda")


def saved():
    path = tempfile.mktemp(suffix=".pt")
    torch.save(lora_state(inject_lora(net()).to("cuda")), path)
    return path


def drive_quant():
    quantize_blockwise(torch.randn(8, 8, device="cuda"))


def drive_dequant():
    w = torch.randn(8, 8, device="cuda")
    dequantize_blockwise(*quantize_blockwise(w), w.shape)


def drive_lora():
    m = inject_lora(net()).to("cuda")
    m(x()).sum().backward()
    m[0].init_from_svd()
    m[0].identity_gap()
    m[0].merge()(x())


def drive_ortho():
    inject_lora(net()).to("cuda")[0].orthogonality()


def drive_inject_after():
    m = net().to("cuda")
    inject_lora(m)(x())


def drive_ia3():
    m = net().to("cuda")
    inject_ia3(m)(x())


def drive_load():
    load_lora(inject_lora(net()).to("cuda"), saved())(x())


def drive_export():
    export_numpy(inject_lora(net()).to("cuda"))


def drive_merge():
    merge_lora_file(net().to("cuda"), saved())(x())


def drive_prompt():
    PrefixEncoder(3, 8).to("cuda").prompt(2)


def drive_prefix():
    PrefixEncoder(3, 8).to("cuda")(torch.rand(2, 4, 8, device="cuda"))


def drive_prefix_mask():
    PrefixEncoder(3, 8).to("cuda")(torch.rand(2, 4, 8, device="cuda"), torch.ones(2, 4, device="cuda"))


def drive_gated():
    GatedAdapters(8, 2).to("cuda")(x(), 1)
