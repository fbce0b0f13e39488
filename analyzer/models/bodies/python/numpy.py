"""NumPy. It asks what it is given for an array, which a tensor on a GPU has not."""

import dt
import torch


class Array:
    """An array of NumPy: what it holds is not followed."""

    def __getattr__(self, name):
        return dt.unknown()


def arrayed(value):
    if torch.is_tensor(value):
        value.numpy()
    if isinstance(value, (list, tuple)):
        for each in value:
            if torch.is_tensor(each):
                each.numpy()


# Those that hand over to a method of their argument where it has one (sum, mean, max) are left out.
@dt.models(
    "numpy.allclose",
    "numpy.append",
    "numpy.argsort",
    "numpy.argwhere",
    "numpy.array",
    "numpy.array_equal",
    "numpy.asarray",
    "numpy.ascontiguousarray",
    "numpy.asfortranarray",
    "numpy.bincount",
    "numpy.column_stack",
    "numpy.concatenate",
    "numpy.corrcoef",
    "numpy.exp",
    "numpy.flatnonzero",
    "numpy.histogram",
    "numpy.hstack",
    "numpy.interp",
    "numpy.isclose",
    "numpy.isfinite",
    "numpy.isnan",
    "numpy.linalg.norm",
    "numpy.log",
    "numpy.median",
    "numpy.percentile",
    "numpy.quantile",
    "numpy.save",
    "numpy.sort",
    "numpy.sqrt",
    "numpy.stack",
    "numpy.testing.assert_allclose",
    "numpy.unique",
    "numpy.vstack",
    "numpy.where",
)
def array_of(*values, **options):
    for value in values:
        arrayed(value)
    return Array()
