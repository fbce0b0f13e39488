"""Training, saving and the ways PyTorch moves data, as its documentation shows them. Run on 4 virtual GPUs."""

import copy
import inspect
import io
import pickle
import unittest

import torch
import torch.cuda.comm
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from releases import has, needs, untyped_storage


def step(model, inputs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    first = model(inputs).square().mean()
    for _ in range(5):
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return first.item(), loss.item()


class Scripts(unittest.TestCase):
    def test_fusers(self):
        function = torch.jit.script(Gate())
        for fuser in ("fuser0", "fuser1", "fuser2"):
            with torch.jit.fuser(fuser):
                for _ in range(4):
                    x = torch.rand(4, 4, device="cuda", requires_grad=True)
                    function(x).sum().backward()


class Gate(nn.Module):
    def forward(self, x):
        return (x * 2 + 1).sigmoid() * x.tanh()


class Training(unittest.TestCase):
    def check(self, model, inputs):
        first, last = step(model.cuda(), inputs.cuda())
        self.assertLess(last, first)

    def test_linear(self):
        self.check(
            nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 2)),
            torch.randn(8, 4),
        )

    def test_convolution(self):
        self.check(
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
            torch.randn(4, 3, 8, 8),
        )

    def test_transformer(self):
        self.check(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(2, 5, 16))

    def test_padded_transformer(self):
        torch.manual_seed(0)
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).eval()
        inputs, padding = torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)
        padding[:, 3:] = True
        with torch.no_grad():
            host = model(inputs, src_key_padding_mask=padding)[:, :3]
            device = model.cuda()(inputs.cuda(), src_key_padding_mask=padding.cuda())[:, :3].cpu()
        self.assertTrue(torch.allclose(host, device, atol=1e-5))

    def test_lstm(self):
        class Last(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(4, 6, batch_first=True)

            def forward(self, x):
                return self.lstm(x)[0][:, -1]

        self.check(Last(), torch.randn(3, 5, 4))

    def test_embedding_and_loss(self):
        model = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 10)).cuda(1)
        tokens = torch.randint(10, (2, 5), device="cuda:1")
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        self.assertEqual(model[0].weight.grad.device.index, 1)

    def test_optimizers(self):
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad):
            for options in ({}, {"foreach": True}):
                parameter = nn.Parameter(torch.ones(3, device="cuda"))
                optimizer = kind([parameter], lr=0.1, **options)
                parameter.sum().backward()
                optimizer.step()
                self.assertLess(parameter.sum().item(), 3)

    def test_fused_optimizers(self):
        for kind in (torch.optim.Adam, torch.optim.AdamW):
            if "fused" not in inspect.signature(kind).parameters:
                continue
            for options in ({}, {"amsgrad": True, "weight_decay": 0.1}):
                parameters = [nn.Parameter(torch.ones(3, device="cuda")) for _ in range(2)]
                for parameter, fused in zip(parameters, (True, False)):
                    optimizer = kind([parameter], lr=0.1, fused=fused, **options)
                    for factor in (1, 2):
                        optimizer.zero_grad()
                        (factor * parameter**2).sum().backward()
                        optimizer.step()
                self.assertTrue(torch.allclose(*parameters))

    def test_autocast_and_scaler(self):
        model = nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda") if has("amp.GradScaler") else torch.cuda.amp.GradScaler()
        for dtype in (torch.float16, torch.bfloat16):
            with torch.autocast("cuda", dtype=dtype):
                output = model(torch.randn(3, 4, device="cuda"))
            self.assertEqual(output.dtype, dtype)
            scaler.scale(output.float().square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            self.assertTrue(torch.is_autocast_enabled())
        self.assertTrue(torch.cuda.amp.GradScaler().is_enabled())

    @needs("nn.functional.scaled_dot_product_attention")
    def test_attention(self):
        attend = nn.functional.scaled_dot_product_attention
        causal = torch.ones(4, 4, dtype=torch.bool).tril()
        for options in ({"is_causal": True}, {"attn_mask": causal}, {"attn_mask": torch.randn(4, 4)}, {"scale": 0.5}):
            host = torch.randn(1, 2, 4, 8, requires_grad=True)
            query = host.detach().cuda().requires_grad_()
            result = attend(host, host, host, **options)
            moved = {name: each.cuda() if isinstance(each, torch.Tensor) else each for name, each in options.items()}
            of_device = attend(query, query, query, **moved)
            self.assertTrue(torch.allclose(result, of_device.cpu(), atol=1e-5))
            result.square().sum().backward()
            of_device.square().sum().backward()
            self.assertTrue(torch.allclose(host.grad, query.grad.cpu(), atol=1e-5))
        with self.assertRaisesRegex(RuntimeError, "device"):
            attend(query, torch.ones(1, 2, 4, 8), query)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            nn.functional.scaled_dot_product_attention(query, query, query)

    def test_gradient_clipping(self):
        model = nn.Linear(3, 3).cuda()
        model(torch.ones(2, 3, device="cuda")).sum().mul(100).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.assertEqual(norm.device.type, "cuda")

    def test_checkpointing(self):
        from torch.utils.checkpoint import checkpoint

        model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).cuda()
        inputs = torch.ones(2, 3, device="cuda", requires_grad=True)
        for reentrant in (True, False):
            checkpoint(model, inputs, use_reentrant=reentrant).sum().backward()
        self.assertIsNotNone(inputs.grad)

    def test_custom_function(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return 2 * x

            @staticmethod
            def backward(ctx, gradient):
                return 2 * gradient

        x = torch.ones(2, device="cuda:1", requires_grad=True)
        Double.apply(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 2])

    def test_two_devices(self):
        class Split(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(4, 4).to("cuda:0")
                self.second = nn.Linear(4, 2).to("cuda:1")

            def forward(self, x):
                return self.second(torch.relu(self.first(x)).to("cuda:1"))

        model = Split()
        model(torch.ones(2, 4, device="cuda:0")).sum().backward()
        self.assertEqual(model.first.weight.grad.device.index, 0)
        self.assertEqual(model.second.weight.grad.device.index, 1)

    def test_hooks(self):
        devices = []
        model = nn.Linear(2, 2).cuda()
        model.register_forward_hook(lambda module, inputs, output: devices.append(output.device.type))
        model.register_full_backward_hook(lambda module, inputs, outputs: devices.append(outputs[0].device.type))
        model(torch.ones(1, 2, device="cuda", requires_grad=True)).sum().backward()
        self.assertEqual(devices, ["cuda", "cuda"])

    def test_jit(self):
        scripted = torch.jit.script(nn.Linear(2, 2).cuda())
        self.assertEqual(scripted(torch.ones(1, 2, device="cuda")).device.type, "cuda")
        traced = torch.jit.trace(nn.ReLU().cuda(), torch.ones(2, device="cuda"))
        self.assertEqual(traced(torch.ones(2, device="cuda")).device.type, "cuda")

    @needs("func")
    def test_func(self):
        model = nn.Linear(2, 1).cuda()
        parameters = dict(model.named_parameters())
        inputs = torch.ones(3, 2, device="cuda")

        def loss(values, x):
            return torch.func.functional_call(model, values, (x,)).sum()

        gradients = torch.func.grad(loss)(parameters, inputs)
        self.assertEqual(gradients["weight"].device.type, "cuda")
        self.assertEqual(torch.func.vmap(torch.sin)(inputs).device.type, "cuda")

    @needs("compile")
    def test_compile(self):
        compiled = torch.compile(nn.Linear(2, 2).cuda())
        self.assertEqual(compiled(torch.ones(1, 2, device="cuda")).device.type, "cuda")

    def test_profiler(self):
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            torch.ones(2, device="cuda").sum()
        self.assertIn("aten::sum", profile.key_averages().table())
        with torch.cuda.nvtx.range("step"):
            pass

    @needs("func")
    def test_jacobians(self):
        x = torch.ones(3, device="cuda")
        for of in (torch.func.jacrev, torch.func.jacfwd):
            self.assertEqual(of(lambda x: x**2)(x).tolist(), (2 * torch.eye(3)).tolist())
        self.assertEqual(torch.func.hessian(lambda x: (x**3).sum())(x).tolist(), (6 * torch.eye(3)).tolist())

    def test_alignment_loss(self):
        inputs = torch.randn(5, 2, 4, device="cuda").log_softmax(2).requires_grad_()
        lengths = torch.tensor([5, 5]), torch.tensor([2, 2])
        nn.functional.ctc_loss(inputs, torch.ones(2, 2, dtype=torch.long, device="cuda"), *lengths).backward()
        self.assertEqual(inputs.grad.device.type, "cuda")


class Saving(unittest.TestCase):
    def saved(self, value):
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        return file

    def test_load_restores_the_device(self):
        file = self.saved({"a": torch.ones(2, device="cuda:2")})
        self.assertEqual(torch.load(file)["a"].device.index, 2)

    def test_map_location(self):
        for where, expected in (
            ("cpu", "cpu"),
            ("cuda:1", "cuda:1"),
            (torch.device("cuda:3"), "cuda:3"),
            ({"cuda:2": "cuda:0"}, "cuda:0"),
            (lambda storage, place: storage.cuda(1), "cuda:1"),
            (lambda storage, place: storage, "cpu"),
        ):
            file = self.saved(torch.ones(2, device="cuda:2"))
            self.assertEqual(str(torch.load(file, map_location=where, weights_only=False).device), expected)

    def test_state_of_model_and_optimizer(self):
        model = nn.Linear(2, 2).cuda(1)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(1, 2, device="cuda:1")).sum().backward()
        optimizer.step()
        state = torch.load(self.saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
        other = nn.Linear(2, 2).cuda(2)
        other.load_state_dict(state["model"])
        restored = torch.optim.Adam(other.parameters())
        restored.load_state_dict(state["optimizer"])
        self.assertEqual(restored.state[other.weight]["exp_avg"].device.index, 2)
        self.assertTrue(torch.equal(other.weight.cpu(), model.weight.cpu()))

    def test_copies(self):
        tensor = torch.ones(2, device="cuda:1")
        for copied in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), copy.copy(tensor), tensor.clone()):
            self.assertEqual((copied.device.index, copied.tolist()), (1, [1, 1]))
        self.assertEqual(copy.deepcopy(nn.Linear(2, 2).cuda(1)).weight.device.index, 1)

    def test_storages(self):
        storage = untyped_storage(torch.arange(3, device="cuda:1"))
        self.assertEqual((storage.device, storage.get_device()), (torch.device("cuda:1"), 1))
        self.assertTrue(storage.is_cuda)
        self.assertEqual(storage.cpu().device.type, "cpu")
        self.assertEqual(storage.cuda(2).device.index, 2)
        self.assertEqual(storage.clone().device.index, 1)
        self.assertEqual(len(torch.UntypedStorage(8, device="cuda")), 8)
        self.assertEqual(torch.cuda.FloatStorage(3).device.type, "cuda")
        tensor = torch.arange(3.0, device="cuda:1")
        untyped_storage(tensor).resize_(0)
        self.assertEqual(untyped_storage(tensor).size(), 0)
        untyped_storage(tensor).resize_(12).fill_(0)
        self.assertEqual(tensor.tolist(), [0, 0, 0])
        untyped_storage(tensor).copy_(untyped_storage(torch.ones(3)))
        self.assertEqual(tensor.tolist(), [1, 1, 1])
        self.assertEqual(torch.tensor(storage.tolist()).numel(), 24)


class Data(unittest.TestCase):
    def test_loader_with_workers(self):
        torch.cuda.init()
        data = TensorDataset(torch.arange(8.0), torch.arange(8))
        seen = 0
        for values, labels in DataLoader(data, 4, num_workers=2, pin_memory=True):
            self.assertTrue(values.is_pinned())
            seen += values.cuda(non_blocking=True).sum().item()
        self.assertEqual(seen, 28)

    def test_loader_with_generator(self):
        loader = DataLoader(
            TensorDataset(torch.arange(8.0)), 4, shuffle=True, generator=torch.Generator().manual_seed(1)
        )
        self.assertEqual(sum(values[0].numel() for values in loader), 8)


class Parallel(unittest.TestCase):
    def test_data_parallel(self):
        model = nn.DataParallel(nn.Linear(4, 2).cuda())
        inputs = torch.randn(8, 4, device="cuda")
        output = model(inputs)
        self.assertTrue(torch.allclose(output, model.module(inputs)))
        output.sum().backward()
        self.assertEqual(model.module.weight.grad.device.index, 0)

    def test_data_parallel_of_other_device_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "module must have its parameters and buffers on device cuda:0"):
            nn.DataParallel(nn.Linear(4, 2).cuda(1), device_ids=[0, 1])(torch.ones(4, 4, device="cuda"))

    def test_comm(self):
        tensor = torch.arange(8.0, device="cuda:0")
        copies = torch.cuda.comm.broadcast(tensor, [0, 1, 2])
        self.assertEqual([each.get_device() for each in copies], [0, 1, 2])
        parts = torch.cuda.comm.scatter(tensor, [1, 3], dim=0)
        self.assertEqual([each.tolist() for each in parts], [[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertEqual(torch.cuda.comm.gather(parts, destination=2).device.index, 2)
        self.assertEqual(torch.cuda.comm.reduce_add(copies, 1).tolist(), (3 * tensor).tolist())

    def test_nccl_of_one_process(self):
        tensors = [torch.ones(2, device=f"cuda:{i}") * (i + 1) for i in range(2)]
        torch.cuda.nccl.all_reduce(tensors)
        self.assertEqual([each.tolist() for each in tensors], [[3, 3], [3, 3]])
        self.assertTrue(torch.cuda.nccl.version())


if __name__ == "__main__":
    unittest.main()
