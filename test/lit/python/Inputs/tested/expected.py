import unittest

import pytest
import torch


def add(a, b):
    return torch.add(a, b)


def test_fails(device):
    x = torch.ones(3, device=device)
    with pytest.raises(RuntimeError) as error:
        torch.add(x, torch.ones(3))
    assert "device" in str(error)


class TestShapes(unittest.TestCase):
    def test_fails_in_a_method(self, device):
        with self.assertRaisesRegex(RuntimeError, "device"):
            torch.add(torch.ones(3, device=device), torch.ones(3))

    def test_adds(self, device):
        x = torch.ones(3, device=device)
        torch.add(x, torch.ones(3))
