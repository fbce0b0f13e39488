"""The standard library."""

import dt

dt.numbers("math.pi", "math.e", "math.inf", "math.tau", "math.nan")


@dt.models("builtins.object")
class Sentinel:
    """Made to be told from everything else."""


@dt.models("functools.partial")
class Partial:
    def __init__(self, func, *args, **keywords):
        self.func = func
        self.args = args
        self.keywords = keywords

    def __call__(self, *args, **keywords):
        return self.func(*self.args, *args, **{**self.keywords, **keywords})


@dt.models("functools.reduce")
def reduce(function, iterable, initial=None):
    value = initial
    for each in iterable:
        value = each if value is None else function(value, each)
    return value


@dt.models("builtins.sum")
def added(iterable, start=0):
    total = start
    for each in iterable:
        total = total + each
    return total


@dt.models("builtins.map")
def mapped(function, *iterables):
    if len(iterables) > 1:
        return [function(*each) for each in zip(*iterables)]
    return [function(each) for each in iterables[0]]


@dt.models("itertools.zip_longest")
def zip_longest(*iterables, fillvalue=None):
    return zip(*iterables)


@dt.models("itertools.islice")
def part(iterable, *ends):
    if len(ends) == 1:
        return list(iterable)[: ends[0]]
    return list(iterable)[ends[0] : ends[1]]


@dt.models("itertools.pairwise")
def pairwise(iterable):
    elements = list(iterable)
    return zip(elements[:-1], elements[1:])


@dt.models("itertools.cycle")
def cycle(iterable):
    return list(iterable)


@dt.models("itertools.repeat")
def repeated(object, times=None):
    return [object for _ in dt.unknown()] if times is None else [object] * times


@dt.models("itertools.accumulate")
def accumulate(iterable, func=None, *, initial=None):
    sums = []
    value = initial
    for each in iterable:
        if value is None:
            value = each
        else:
            value = value + each if func is None else func(value, each)
        sums.append(value)
    return sums


@dt.models("itertools.chain.from_iterable")
def chained(iterables):
    return [each for iterable in iterables for each in iterable]


@dt.models("itertools.chain")
def chain(*iterables):
    return [each for iterable in iterables for each in iterable]


@dt.models("itertools.product")
def product(*iterables):
    rows = [()]
    for iterable in iterables:
        rows = [(*row, each) for row in rows for each in iterable]
    return rows


@dt.models("builtins.filter")
def kept(function, iterable):
    return [each for each in iterable if (each if function is None else function(each))]


@dt.models("functools.singledispatch")
class Dispatcher:
    """The first case that the first argument is one of."""

    def __init__(self, function):
        self.function = function
        self.cases = []

    def register(self, cls, function=None):
        if function is None:
            return lambda case: self.register(cls, case)
        self.cases.append((cls, function))
        return function

    def __call__(self, first, *rest, **named):
        for cls, function in self.cases:
            if isinstance(first, cls):
                return function(first, *rest, **named)
        return self.function(first, *rest, **named)


@dt.models("random.choice", "secrets.choice")
def choice(seq):
    return seq[int(dt.unknown())]


@dt.models("random.sample", "random.choices")
def sample(population, weights=None, k=1, **options):
    """Any of them may be among those drawn."""
    return [each for each in population]


@dt.models("random.Random", "random.SystemRandom")
class Random:
    def choice(self, seq):
        return choice(seq)

    def sample(self, population, k=1):
        return sample(population)

    def choices(self, population, weights=None, k=1):
        return sample(population)

    def __getattr__(self, name):
        return dt.unknown()


@dt.models("operator.add", "operator.iadd")
def add(a, b):
    return a + b


@dt.models("operator.mul", "operator.imul")
def mul(a, b):
    return a * b


@dt.models("operator.sub")
def sub(a, b):
    return a - b


@dt.models("operator.truediv")
def truediv(a, b):
    return a / b


@dt.models("operator.matmul")
def matmul(a, b):
    return a @ b


@dt.models("operator.getitem")
def getitem(a, b):
    return a[b]


class Fields:
    """Values under names, in their order: what namedtuple() makes."""

    def __init__(self, names, values, named):
        self._fields = names
        for number, name in enumerate(names):
            setattr(self, name, values[number])
        for name, value in named.items():
            setattr(self, name, value)

    def __iter__(self):
        return [getattr(self, name) for name in self._fields]

    def __getitem__(self, index):
        return list(self)[index]

    def __len__(self):
        return len(self._fields)

    def _replace(self, **changes):
        return Fields(self._fields, list(self), changes)

    def _asdict(self):
        return {name: getattr(self, name) for name in self._fields}


class FieldsClass:
    def __init__(self, names):
        self._fields = names

    def __call__(self, *values, **named):
        return Fields(self._fields, values, named)

    def _make(self, values):
        return Fields(self._fields, list(values), {})


@dt.models("collections.namedtuple")
def namedtuple(typename, field_names, **options):
    if isinstance(field_names, str):
        return FieldsClass(field_names.replace(",", " ").split())
    return FieldsClass(list(field_names))


@dt.models("typing.NamedTuple")
class NamedTuple:
    """What a class of named values derives from."""

    @property
    def _fields(self):
        return dt.fields(self)

    def __iter__(self):
        return [getattr(self, name) for name in dt.fields(self)]

    def __getitem__(self, index):
        return list(self)[index]

    def __len__(self):
        return len(dt.fields(self))

    def _replace(self, **changes):
        return type(self)(**{**self._asdict(), **changes})

    def _asdict(self):
        return {name: getattr(self, name) for name in dt.fields(self)}


class Field:
    def __init__(self, name):
        self.name = name


@dt.models("dataclasses.field", "attr.ib", "attrs.field")
def field(default=None, default_factory=None, factory=None, **options):
    """What a class has for it is made anew for each object."""
    make = default_factory or factory
    return make() if make is not None else default


@dt.models("dataclasses.fields")
def fields(class_or_instance):
    return [Field(name) for name in dt.fields(class_or_instance)]


@dt.models("dataclasses.asdict")
def asdict(obj, **options):
    return {name: getattr(obj, name) for name in dt.fields(obj)}


@dt.models("dataclasses.astuple")
def astuple(obj, **options):
    return tuple([getattr(obj, name) for name in dt.fields(obj)])


@dt.models("dataclasses.replace", "copy.replace")
def replace(obj, **changes):
    return type(obj)(**{**asdict(obj), **changes})


@dt.models("collections.UserList")
class UserList:
    """A list that is an object of a class; what derives from list is as one."""

    def __init__(self, initlist=()):
        self.data = list(initlist)

    def __iter__(self):
        return self.data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index]

    def __setitem__(self, index, value):
        self.data[index] = value

    def append(self, item):
        self.data.append(item)

    def extend(self, other):
        self.data.extend(list(other))

    def insert(self, index, item):
        self.data.insert(index, item)

    def pop(self, index=-1):
        return self.data.pop(index)

    def clear(self):
        self.data.clear()


@dt.models("contextlib.AbstractContextManager")
class AbstractContextManager:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


@dt.models("contextlib.ExitStack", "contextlib.AsyncExitStack")
class ExitStack:
    """Leaves, at its end, what was entered through it, the last first."""

    def __init__(self):
        self.managers = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def enter_context(self, cm):
        self.managers.append(cm)
        return cm.__enter__()

    def push(self, cm):
        self.managers.append(cm)
        return cm

    def callback(self, callback, *values, **named):
        return callback

    def close(self):
        for manager in reversed(self.managers):
            manager.__exit__(None, None, None)
        self.managers = []


@dt.models("weakref.ref", "weakref.ReferenceType")
def reference(target, callback=None):
    return lambda: target


@dt.models("weakref.proxy")
def proxy(target, callback=None):
    return target
