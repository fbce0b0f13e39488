"""NumPy. Its arrays are on the host; it asks what it is given for one, which a tensor on a GPU has not."""

import collections

import dt
import torch

dt.numbers("numpy.pi", "numpy.e", "numpy.euler_gamma", "numpy.inf", "numpy.nan", "numpy.Inf", "numpy.NaN")


def arrayed(value):
    """value.numpy() would say here that every value is a tensor."""
    if dt.is_tensor(value):
        torch.Tensor.numpy(value)
    if isinstance(value, (list, tuple, collections.deque)):
        for each in value:
            if dt.is_tensor(each):
                torch.Tensor.numpy(each)


def takes_part(index):
    """Does array[index] have a dimension for certain?"""
    if isinstance(index, tuple):
        for each in index:
            if isinstance(each, (slice, Array, list)):
                return True
        return False
    return isinstance(index, (slice, Array, list))


def with_array(array, other):
    """A tensor and an array: the tensor's own operator turns the array into a tensor of the CPU."""
    if dt.is_tensor(other):
        torch.Tensor.numpy(other)
        return other
    return array


@dt.models("numpy.ndarray")
class Array:
    """An array of NumPy, with one dimension or more: what it holds is not followed.

    Of those that are known to have one, `_dimensions` says so."""

    def __array__(self):
        return self

    def __getattr__(self, name):
        if name == "T":
            return self
        if name in (
            "astype",
            "clip",
            "copy",
            "cumsum",
            "flatten",
            "ravel",
            "repeat",
            "round",
        ):
            return self._same
        if name in ("reshape", "squeeze", "swapaxes", "transpose", "view"):
            return self._shaped
        if name in ("all", "any", "argmax", "argmin", "item", "max", "mean", "min", "prod", "ptp", "std", "sum", "var"):
            return self._reduced
        return dt.unknown()

    def _same(self, *values, **options):
        return self

    def _shaped(self, *values, **options):
        return Array()

    def _reduced(self, *values, **options):
        return dt.on_host()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self
        return Array() if takes_part(index) else dt.on_host()

    def __setitem__(self, index, value):
        """A number may be anywhere: float() is asked for it."""
        if takes_part(index):
            arrayed(value)

    def __iter__(self):
        return [dt.on_host() for _ in range(int(dt.unknown()))]

    def __bool__(self):
        return dt.unknown()

    def __len__(self):
        return int(dt.unknown())

    def __add__(self, other):
        return with_array(self, other)

    def __sub__(self, other):
        return with_array(self, other)

    def __mul__(self, other):
        return with_array(self, other)

    def __truediv__(self, other):
        return with_array(self, other)

    def __pow__(self, other):
        return with_array(self, other)

    def __mod__(self, other):
        return with_array(self, other)

    def __radd__(self, other):
        return with_array(self, other)

    def __rsub__(self, other):
        return with_array(self, other)

    def __rmul__(self, other):
        return with_array(self, other)

    def __rtruediv__(self, other):
        return with_array(self, other)

    def __rpow__(self, other):
        return with_array(self, other)

    def __neg__(self):
        return self

    def __lt__(self, other):
        return with_array(self, other)

    def __le__(self, other):
        return with_array(self, other)

    def __gt__(self, other):
        return with_array(self, other)

    def __ge__(self, other):
        return with_array(self, other)

    def __eq__(self, other):
        return with_array(self, other)

    def __ne__(self, other):
        return with_array(self, other)


@dt.models(
    "numpy.empty",
    "numpy.eye",
    "numpy.full",
    "numpy.identity",
    "numpy.ones",
    "numpy.tri",
    "numpy.zeros",
    "numpy.random.dirichlet",
    "numpy.random.permutation",
)
def made(*values, **options):
    return Array()


@dt.models("numpy.arange", "numpy.linspace", "numpy.logspace")
def line(*values, **options):
    array = Array()
    array._dimensions = 1
    return array


@dt.models(
    "numpy.append",
    "numpy.argsort",
    "numpy.argwhere",
    "numpy.array",
    "numpy.asarray",
    "numpy.ascontiguousarray",
    "numpy.asfortranarray",
    "numpy.atleast_1d",
    "numpy.atleast_2d",
    "numpy.bincount",
    "numpy.column_stack",
    "numpy.concatenate",
    "numpy.cumsum",
    "numpy.diag",
    "numpy.empty_like",
    "numpy.expand_dims",
    "numpy.flatnonzero",
    "numpy.full_like",
    "numpy.hstack",
    "numpy.ones_like",
    "numpy.outer",
    "numpy.pad",
    "numpy.repeat",
    "numpy.reshape",
    "numpy.sort",
    "numpy.stack",
    "numpy.tile",
    "numpy.transpose",
    "numpy.unique",
    "numpy.vstack",
    "numpy.zeros_like",
)
def array_of(*values, **options):
    """An array, whatever it is made of; of a number it has no dimension."""
    for value in values:
        arrayed(value)
    if isinstance(values[0], (list, tuple, Array)) or torch.is_tensor(values[0]):
        return Array()
    return dt.on_host()


@dt.models(
    "numpy.abs",
    "numpy.clip",
    "numpy.cos",
    "numpy.exp",
    "numpy.floor",
    "numpy.log",
    "numpy.log1p",
    "numpy.maximum",
    "numpy.minimum",
    "numpy.power",
    "numpy.round",
    "numpy.sign",
    "numpy.sin",
    "numpy.sqrt",
    "numpy.square",
    "numpy.tanh",
)
def each_of(x, *others, **options):
    """Of a number it is a number."""
    arrayed(x)
    for other in others:
        arrayed(other)
    return x if isinstance(x, Array) else dt.on_host()


# Of a tensor, sum() and its kin are the tensor's own method, which has other arguments.
@dt.models("numpy.all", "numpy.any", "numpy.max", "numpy.mean", "numpy.min", "numpy.prod", "numpy.std", "numpy.sum", "numpy.var")
def one_of(values, *others, **options):
    if not torch.is_tensor(values):
        arrayed(values)
    return dt.on_host()


@dt.models(
    "numpy.allclose",
    "numpy.argmax",
    "numpy.argmin",
    "numpy.array_equal",
    "numpy.corrcoef",
    "numpy.digitize",
    "numpy.dot",
    "numpy.float32",
    "numpy.float64",
    "numpy.interp",
    "numpy.isclose",
    "numpy.isfinite",
    "numpy.isnan",
    "numpy.linalg.norm",
    "numpy.median",
    "numpy.percentile",
    "numpy.quantile",
    "numpy.save",
    "numpy.savetxt",
    "numpy.searchsorted",
    "numpy.testing.assert_allclose",
    "numpy.where",
)
def asked_of(*values, **options):
    for value in values:
        arrayed(value)
    return dt.on_host()


@dt.models(
    "numpy.linalg.cholesky",
    "numpy.linalg.eigvalsh",
    "numpy.linalg.inv",
    "numpy.linalg.pinv",
    "numpy.linalg.solve",
    "numpy.linalg.svdvals",
)
def array(*values, **options):
    for value in values:
        arrayed(value)
    return Array()


@dt.models(
    "numpy.gradient",
    "numpy.histogram",
    "numpy.histogram2d",
    "numpy.meshgrid",
    "numpy.nonzero",
    "numpy.linalg.eig",
    "numpy.linalg.eigh",
    "numpy.linalg.lstsq",
    "numpy.linalg.qr",
    "numpy.linalg.svd",
    "numpy.polynomial.chebyshev.chebgauss",
    "numpy.polynomial.hermite.hermgauss",
    "numpy.polynomial.hermite_e.hermegauss",
    "numpy.polynomial.laguerre.laggauss",
    "numpy.polynomial.legendre.leggauss",
)
def arrays(*values, **options):
    for value in values:
        arrayed(value)
    return [Array() for _ in range(int(dt.unknown()))]


@dt.models("numpy.*", "numpy.linalg.*", "numpy.fft.*", "numpy.ma.*")
def other(*values, **options):
    """Most of them ask for an array."""
    for value in values:
        if dt.is_tensor(value):
            torch.Tensor.numpy(value)
    return dt.on_host()


@dt.models("numpy.iterable", "numpy.isscalar", "numpy.ndim", "numpy.shape", "numpy.size")
def seen(value, *others):
    return dt.unknown()


def drawn(size):
    return float(dt.unknown()) if size is None else Array()


@dt.models("numpy.random.normal", "numpy.random.uniform", "numpy.random.randint")
def draw(low=None, high=None, size=None, **options):
    return drawn(size)


@dt.models("numpy.random.rand", "numpy.random.randn")
def draw_shape(*shape):
    return Array() if shape else float(dt.unknown())


@dt.models("numpy.random.random", "numpy.random.random_sample", "numpy.random.standard_normal")
def draw_size(size=None):
    return drawn(size)


@dt.models("numpy.random.choice")
def choice(a, size=None, replace=True, p=None):
    return dt.on_host() if size is None else Array()


@dt.models("numpy.random.default_rng", "numpy.random.RandomState")
class Generator:
    def __init__(self, seed=None):
        self.normal = self.uniform = self.integers = self.randint = draw
        self.rand = self.randn = draw_shape
        self.random = self.standard_normal = draw_size
        self.permutation = made
        self.choice = choice
