"""Devices, streams, memory and generators, as PyTorch documents them. Run on 4 virtual GPUs."""

import gc
import importlib.util
import os
import threading
import unittest

import torch

from releases import has, needs


class Devices(unittest.TestCase):
    def tearDown(self):
        torch.cuda.set_device(0)

    def test_four_are_available(self):
        self.assertTrue(torch.cuda.is_available())
        self.assertEqual(torch.cuda.device_count(), 4)
        self.assertTrue(torch.backends.cuda.is_built())
        if has("accelerator"):
            self.assertEqual(torch.accelerator.current_accelerator().type, "cuda")

    def test_current_device(self):
        torch.cuda.set_device(2)
        self.assertEqual(torch.cuda.current_device(), 2)
        self.assertEqual(torch.zeros(1, device="cuda").device, torch.device("cuda:2"))
        self.assertEqual(torch.zeros(1).cuda().device.index, 2)
        torch.cuda.set_device("cuda:1")
        self.assertEqual(torch.cuda.current_device(), 1)

    def test_device_context(self):
        with torch.cuda.device(1):
            self.assertEqual(torch.ones(2).cuda().get_device(), 1)
            with torch.cuda.device("cuda:3"):
                self.assertEqual(torch.cuda.current_device(), 3)
            self.assertEqual(torch.cuda.current_device(), 1)
        self.assertEqual(torch.cuda.current_device(), 0)

    def test_device_of(self):
        with torch.cuda.device_of(torch.ones(1, device="cuda:2")):
            self.assertEqual(torch.cuda.current_device(), 2)

    def test_current_device_of_threads(self):
        seen = []
        torch.cuda.set_device(3)
        thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_device()))
        thread.start()
        thread.join()
        self.assertEqual(seen, [0])

    def test_ordinal(self):
        for use in (
            lambda: torch.cuda.set_device(4),
            lambda: torch.ones(1, device="cuda:4"),
            lambda: torch.ones(1).cuda(7),
        ):
            with self.assertRaisesRegex(RuntimeError, "invalid device ordinal"):
                use()

    def test_properties(self):
        properties = torch.cuda.get_device_properties(1)
        self.assertGreater(properties.total_memory, 1 << 30)
        self.assertEqual((properties.major, properties.minor), torch.cuda.get_device_capability(1))
        self.assertEqual(properties.name, torch.cuda.get_device_name(1))
        self.assertTrue(torch.cuda.is_bf16_supported())
        with self.assertRaises(AssertionError):
            torch.cuda.get_device_properties(4)

    def test_peers(self):
        self.assertTrue(torch.cuda.can_device_access_peer(0, 1))
        self.assertFalse(torch.cuda.can_device_access_peer(0, 0))
        with self.assertRaises(AssertionError):
            torch.cuda.can_device_access_peer(0, 4)

    @needs("set_default_device")
    def test_default_device(self):
        torch.set_default_device("cuda:1")
        try:
            self.assertEqual(torch.ones(2).device.index, 1)
            self.assertEqual(torch.nn.Linear(2, 2).weight.device.index, 1)
            self.assertEqual(torch.get_default_device(), torch.device("cuda:1"))
        finally:
            torch.set_default_device(None)
        with torch.device("cuda"):
            self.assertEqual(torch.arange(3).device.type, "cuda")
        self.assertEqual(torch.arange(3).device.type, "cpu")

    def test_moves(self):
        host = torch.arange(6.0).view(2, 3)
        tensor = host.to("cuda:1", non_blocking=True)
        self.assertTrue(tensor.is_cuda)
        self.assertIs(tensor.to("cuda:1"), tensor)
        self.assertIsNot(tensor.to("cuda:1", copy=True), tensor)
        self.assertEqual(tensor.to(2).device.index, 2)
        self.assertEqual(torch.ones(1).to(tensor).device.index, 1)
        self.assertEqual(torch.ones(1).type_as(tensor).device.index, 1)
        self.assertTrue(torch.equal(tensor.cpu(), host))
        self.assertEqual(tensor.new_zeros(2).device.index, 1)
        self.assertEqual(torch.as_tensor(host, device="cuda").device.index, 0)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "needs NumPy")
    def test_numpy_is_refused(self):
        with self.assertRaisesRegex(TypeError, "can't convert cuda:0 device type tensor to numpy"):
            torch.ones(1, device="cuda").numpy()

    def test_mixed_devices(self):
        with self.assertRaisesRegex(RuntimeError, "Expected all tensors to be on the same device"):
            torch.ones(2, device="cuda:0") + torch.ones(2)
        with self.assertRaisesRegex(RuntimeError, "Expected all tensors to be on the same device"):
            torch.ones(2, device="cuda:0") @ torch.ones(2, device="cuda:1")
        self.assertEqual((torch.ones(2, device="cuda:1") * torch.tensor(2.0)).device.index, 1)
        with self.assertRaisesRegex(RuntimeError, "indices should be either on"):
            torch.ones(2)[torch.tensor([0], device="cuda")]

    def test_tensor_types(self):
        tensor = torch.cuda.FloatTensor([1, 2])
        self.assertEqual((tensor.device.type, tensor.dtype, tensor.tolist()), ("cuda", torch.float32, [1, 2]))
        self.assertEqual(torch.cuda.LongTensor(2, 3).shape, (2, 3))
        self.assertIsInstance(tensor, torch.cuda.FloatTensor)
        self.assertNotIsInstance(tensor, torch.FloatTensor)
        self.assertEqual(tensor.type(), "torch.cuda.FloatTensor")
        self.assertEqual(torch.ones(1).type("torch.cuda.DoubleTensor").dtype, torch.float64)
        self.assertEqual(torch.ones(1).type(torch.cuda.HalfTensor).device.type, "cuda")
        with torch.cuda.device(1):
            self.assertEqual(torch.cuda.IntTensor(1).device.index, 1)

    def test_default_tensor_type(self):
        for kind in ("torch.cuda.FloatTensor", torch.cuda.DoubleTensor):
            torch.set_default_tensor_type(kind)
            try:
                self.assertEqual(torch.ones(1).device.type, "cuda")
            finally:
                torch.set_default_tensor_type(torch.FloatTensor)
        self.assertEqual(torch.ones(1).device.type, "cpu")
        self.assertTrue(torch.cuda.FloatTensor.is_cuda)

    def test_plan_cache(self):
        cache = torch.backends.cuda.cufft_plan_cache
        cache[1].max_size = 8
        self.assertEqual((cache[1].max_size, cache[0].max_size, cache.size), (8, 4096, 0))
        cache.clear()

    def test_errors_of_the_runtime(self):
        torch.cuda.check_error(0)
        with self.assertRaisesRegex(torch.cuda.CudaError, r"\(2\)"):
            torch.cuda.check_error(2)

    def test_versions(self):
        self.assertTrue(torch.version.cuda)
        self.assertIn("sm_80", torch.cuda.get_arch_list())
        self.assertTrue(torch.cuda.get_gencode_flags())

    def test_fork_is_refused(self):
        torch.cuda.init()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                torch.ones(1).cuda()
                os.write(write, b"no error")
            except RuntimeError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        self.assertIn(b"Cannot re-initialize CUDA in forked subprocess", os.read(read, 1000))


class Streams(unittest.TestCase):
    def test_streams(self):
        stream = torch.cuda.Stream(device=1)
        self.assertEqual(stream.device, torch.device("cuda:1"))
        with torch.cuda.stream(stream):
            self.assertEqual(torch.cuda.current_stream(), stream)
            self.assertEqual(torch.cuda.current_device(), 1)
            tensor = torch.ones(2, device="cuda")
        self.assertNotEqual(torch.cuda.current_stream(1), stream)
        self.assertEqual(torch.cuda.current_stream(1), torch.cuda.default_stream(1))
        tensor.record_stream(stream)
        torch.cuda.current_stream().wait_stream(stream)
        stream.synchronize()
        self.assertTrue(stream.query())
        self.assertIsInstance(torch.cuda.Stream(priority=-1).priority, int)
        self.assertEqual(len({torch.cuda.Stream(), torch.cuda.Stream()}), 2)

    def test_streams_by_pointer(self):
        stream = torch.cuda.Stream(device=1)
        again = torch.cuda.ExternalStream(stream.cuda_stream, device=1)
        self.assertEqual((again, again.device), (stream, stream.device))
        with self.assertRaisesRegex(NotImplementedError, "virtual GPUs"):
            torch.cuda.ExternalStream(0xABCDEF01)
        with torch.cuda.stream(stream):
            tensor = torch.arange(3.0, device="cuda:1")
            shared = torch.from_dlpack(tensor)
        shared += 1
        self.assertEqual((tensor.tolist(), shared.device.index), ([1, 2, 3], 1))

    def test_events(self):
        first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.assertTrue(first.query())
        first.record()
        torch.ones(300, 300, device="cuda") @ torch.ones(300, 300, device="cuda")
        second.record(torch.cuda.current_stream())
        second.synchronize()
        self.assertGreater(first.elapsed_time(second), 0)
        torch.cuda.Stream().wait_event(second)
        first.wait()
        with self.assertRaises((ValueError, RuntimeError)):
            torch.cuda.Event().elapsed_time(torch.cuda.Event())

    @needs("accelerator")
    def test_generic_streams_and_events(self):
        stream = torch.Stream(device="cuda:1")
        event = stream.record_event()
        event.synchronize()
        torch.accelerator.synchronize()
        with stream:
            self.assertEqual(torch.accelerator.current_stream().stream_id, stream.stream_id)

    def test_graphs_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "_CUDAGraph: virtual GPUs"):
            torch.cuda.CUDAGraph()
        self.assertFalse(torch.cuda.is_current_stream_capturing())


class Memory(unittest.TestCase):
    def test_statistics(self):
        gc.collect()
        torch.cuda.reset_peak_memory_stats(3)
        before = torch.cuda.memory_allocated(3)
        tensor = torch.ones(1 << 20, device="cuda:3")
        self.assertEqual(torch.cuda.memory_allocated(3) - before, 4 << 20)
        del tensor
        self.assertEqual(torch.cuda.memory_allocated(3), before)
        self.assertEqual(torch.cuda.max_memory_allocated(3) - before, 4 << 20)
        torch.cuda.reset_peak_memory_stats(3)
        self.assertEqual(torch.cuda.max_memory_allocated(3), before)
        self.assertIn("cuda", torch.cuda.memory_summary(3).lower())
        self.assertGreaterEqual(torch.cuda.memory_reserved(3), 0)

    def test_accumulated_statistics(self):
        torch.cuda.reset_accumulated_memory_stats(2)
        torch.ones(1 << 10, device="cuda:2")
        stats = torch.cuda.memory_stats(2)
        self.assertEqual((stats["allocation.all.allocated"], stats["allocation.all.freed"]), (1, 1))
        self.assertEqual(stats["allocated_bytes.all.allocated"], 4096)

    def test_free_and_total(self):
        free, total = torch.cuda.mem_get_info(1)
        self.assertEqual(total, torch.cuda.get_device_properties(1).total_memory)
        tensor = torch.ones(1 << 20, device="cuda:1")
        self.assertEqual(torch.cuda.mem_get_info(1)[0], free - (4 << 20))
        del tensor
        torch.cuda.empty_cache()

    def test_fraction(self):
        torch.cuda.set_per_process_memory_fraction(1e-6, 2)
        try:
            with self.assertRaisesRegex(torch.cuda.OutOfMemoryError, "CUDA out of memory"):
                torch.ones(1 << 20, device="cuda:2")
            if has("cuda.get_per_process_memory_fraction"):
                self.assertAlmostEqual(torch.cuda.get_per_process_memory_fraction(2), 1e-6)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0, 2)

    def test_raw_allocations(self):
        before = torch.cuda.memory_allocated(0)
        pointer = torch.cuda.caching_allocator_alloc(1024)
        self.assertEqual(torch.cuda.memory_allocated(0) - before, 1024)
        torch.cuda.caching_allocator_delete(pointer)
        self.assertEqual(torch.cuda.memory_allocated(0), before)

    def test_pinned(self):
        pinned = torch.ones(3).pin_memory()
        self.assertTrue(pinned.is_pinned())
        self.assertFalse(torch.ones(3).is_pinned())
        self.assertTrue(torch.empty(3, pin_memory=True).is_pinned())


class Generators(unittest.TestCase):
    def test_generator_of_a_device(self):
        generator = torch.Generator(device="cuda:1").manual_seed(7)
        self.assertEqual(generator.device, torch.device("cuda:1"))
        first = torch.rand(3, device="cuda:1", generator=generator)
        generator.manual_seed(7)
        self.assertTrue(torch.equal(first, torch.rand(3, device="cuda:1", generator=generator)))
        with self.assertRaisesRegex(RuntimeError, "Expected a 'cuda' device type for generator"):
            torch.rand(3, device="cuda:1", generator=torch.Generator())
        with self.assertRaises(RuntimeError):
            torch.randperm(3, generator=generator)

    def test_seeds(self):
        torch.manual_seed(3)
        first = torch.rand(3, device="cuda")
        torch.cuda.manual_seed_all(3)
        self.assertTrue(torch.equal(first, torch.rand(3, device="cuda")))
        torch.cuda.manual_seed(3)
        self.assertEqual(torch.cuda.initial_seed(), 3)
        torch.cuda.seed_all()
        self.assertEqual(len(torch.cuda.default_generators), 4)

    def test_states(self):
        state = torch.cuda.get_rng_state(2)
        first = torch.rand(3, device="cuda:2")
        torch.cuda.set_rng_state(state, 2)
        self.assertTrue(torch.equal(first, torch.rand(3, device="cuda:2")))
        states = torch.cuda.get_rng_state_all()
        self.assertEqual(len(states), 4)
        torch.cuda.set_rng_state_all(states)
        with torch.random.fork_rng(devices=[2]):
            torch.rand(1, device="cuda:2")
        again = torch.rand(1, device="cuda:2")
        torch.cuda.set_rng_state_all(states)
        self.assertTrue(torch.equal(again, torch.rand(1, device="cuda:2")))

    def test_state_is_that_of_cuda(self):
        generator = torch.Generator(device="cuda").manual_seed(7)
        start = generator.get_state()
        self.assertEqual((start.numel(), start[:8].tolist()), (16, [7] + [0] * 7))
        draws = [torch.rand(2, device="cuda", generator=generator) for _ in range(3)]
        self.assertFalse(torch.equal(draws[0], draws[1]))
        generator.set_state(torch.cat([start[:8], torch.tensor([4] + [0] * 7, dtype=torch.uint8)]))
        self.assertTrue(torch.equal(draws[1], torch.rand(2, device="cuda", generator=generator)))
        generator.set_state(start[:8])  # of PyTorch before it had an offset
        self.assertTrue(torch.equal(draws[0], torch.rand(2, device="cuda", generator=generator)))
        with self.assertRaisesRegex(RuntimeError, "RNG state is wrong size"):
            generator.set_state(torch.get_rng_state())

    @needs("Generator.get_offset")
    def test_offset(self):
        generator = torch.Generator(device="cuda").manual_seed(7)
        first = torch.rand(2, device="cuda", generator=generator)
        self.assertGreater(generator.get_offset(), 0)
        generator.set_offset(0)
        self.assertTrue(torch.equal(first, torch.rand(2, device="cuda", generator=generator)))

    def test_many_small_draws(self):
        torch.manual_seed(0)
        for draw, mean, variance in ((torch.rand, 0.5, 1 / 12), (torch.randn, 0.0, 1.0)):
            numbers = torch.cat([draw(1, device="cuda") for _ in range(2000)])
            self.assertGreater(numbers.unique().numel(), 1990)
            self.assertAlmostEqual(numbers.mean().item(), mean, delta=0.1)
            self.assertAlmostEqual(numbers.var().item(), variance, delta=0.1)

    def test_devices_differ_from_the_host(self):
        torch.manual_seed(0)
        host = torch.rand(1)
        torch.rand(5, device="cuda")
        torch.manual_seed(0)
        self.assertTrue(torch.equal(host, torch.rand(1)))


if __name__ == "__main__":
    unittest.main()
