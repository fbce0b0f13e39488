"""Files. The text of a file is known by its name."""

import dt


@dt.models("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath")
class Path:
    def __init__(self, *parts):
        self.name = parts[-1]

    def with_name(self, name):
        return Path(name)

    def joinpath(self, *parts):
        return Path(*parts)

    def __truediv__(self, part):
        return Path(part)

    def resolve(self, strict=False):
        return self

    def read_text(self, *options, **named):
        return self.name

    def open(self, *options, **named):
        return File(self.name)


class File:
    def __init__(self, name):
        self.name = name

    def read(self, *count):
        return self.name


@dt.models("tempfile.TemporaryDirectory", "tempfile.mkdtemp")
class TemporaryDirectory:
    """A folder that is known by this object."""


@dt.models("builtins.open")
def open_file(file, *options, **named):
    return File(file.name if isinstance(file, Path) else file)


@dt.models("os.path.join")
def join(*parts):
    return parts[-1]


@dt.models("json.load", "yaml.load", "yaml.safe_load", "toml.load", "tomllib.load", "tomli.load")
def load(file, *values, **options):
    return dt.file(file.name)


@dt.models("json.loads", "toml.loads", "tomllib.loads", "tomli.loads")
def loads(text, *values, **options):
    return dt.file(text)


@dt.models("io.BytesIO")
class BytesIO:
    """What is saved in it is known by this object."""

    def __init__(self, content=None):
        if content is not None:
            dt.save(self, dt.saved(content))

    def seek(self, *position):
        pass

    def getvalue(self):
        return self

    def read(self, *count):
        return self
