"""An operation as a function of arrays."""
import functools
import re
import threading

from heddle.arrays import common_kind, kind_of
from heddle.library import HeddleError, device, shared

# "y: inout f32[n] if beta!=0"
DECLARATION = re.compile(r"(?P<name>\w+): (?:inout )?(?P<dtype>\w+)(?:\[(?P<modes>[^\]]*)\])?(?: if (?P<condition>.*))?")
ROWS = "rows"


# Calls of an operation that are kept: one that changes a setting each time, such as a seed, must not fill the memory.
MOST_PLANS = 1024


class Plan:
    """A call that is compiled for shapes, strides and settings: its tensors in order, and where each comes from."""

    def __init__(self, call, tensors, given, modes):
        self.call, self.modes = call, modes
        self.writes = {tensor["name"] for tensor in tensors if tensor["writes"]}
        # Those to allocate: name, dtype, extents.
        self.made = [(tensor["name"], tensor["dtype"], tuple(tensor["extents"])) for tensor in tensors if tensor["name"] not in given]
        self.order = [tensor["name"] for tensor in tensors]


class Operation:
    """One operation: call it with its inputs, and settings by name."""

    def __init__(self, document):
        self.name = self.__name__ = document["name"]
        self.settings = {setting["name"]: setting for setting in document["settings"]}
        self.dtypes, self.modes = {}, {}  # by tensor: the first declaration of each
        self.declarations = [DECLARATION.fullmatch(text) for text in document["arguments"]]
        for found in self.declarations:
            if found["modes"] is not None and found["name"] not in self.modes:
                self.dtypes[found["name"]] = found["dtype"]
                self.modes[found["name"]] = found["modes"].split(", ")
        takes = [*self.modes, *(f"{name}={setting['default']}" for name, setting in self.settings.items())]
        self.__doc__ = f"{document['summary']}\n\n    {self.name}({', '.join(takes)})"
        self._plans, self._lock = {}, threading.Lock()
        self._short = None  # calls that were made before, found without Python

    def __repr__(self):
        return f"<operation {self.name}({', '.join(self.modes)})>"

    def __call__(self, *arrays, stream=None, **named):
        """The arrays that it writes: one, or a tuple in the operation's order. `stream`: a CUstream as a number, in place of the framework's
        current one."""
        if self._short is not None and stream is None:
            results = self._short.run(*arrays, **named)
            if results is not NotImplemented:
                return results
        return self._by_plan(arrays, named, stream)

    def _by_plan(self, arrays, named, stream):
        settings = {name: value for name, value in named.items() if name in self.settings}
        given = self._given(arrays, {name: value for name, value in named.items() if name not in settings})
        if stream is not None and stream < 0:
            raise HeddleError(f"{self.name}: {stream} is no stream; fix: give a CUstream as a number, or none")
        kind, theirs = self._kind(given), next(iter(given.values()))
        given = {name: self._about(name, kind.taken, x, stream) for name, x in given.items()}
        whole = dict(given)
        first = next(iter(given.values()))
        leading = self._flatten(kind, given)
        described = {name: kind.describe(x) for name, x in given.items()}
        settings = {name: _text(value) for name, value in settings.items()}
        key = (tuple(settings.items()), tuple((name, d.dtype, d.shape, d.strides, d.device) for name, d in described.items()))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(key, settings, described)
        copied = [name for name, x in whole.items() if kind.describe(x).address != described[name].address]
        if any(name in plan.writes for name in copied):
            raise HeddleError(f"{self.name}: '{next(name for name in copied if name in plan.writes)}' is written, and its leading modes are no rows of one matrix; "
                              "fix: give a tensor whose leading modes are contiguous, or none")
        for name in plan.writes.intersection(given):
            if kind.is_read_only(given[name]):
                raise HeddleError(f"{self.name}: '{name}' is written, and its library lets nobody write it; fix: give another array, or none")
        if copied and stream is not None:
            raise HeddleError(f"{self.name}: '{copied[0]}' must be copied first, which the framework does on its own stream; fix: give it contiguous, or no stream")
        made = {name: kind.empty(first, extents, dtype) for name, dtype, extents in plan.made}
        if kind.staged:
            everything = {**given, **made}
            plan.call.on_copies({name: kind.view(everything[name]) for name in plan.order}, plan.writes,
                                {name: kind.offset(everything[name]) for name in plan.order})
        else:
            addresses = [described[name].address if name in described else kind.describe(made[name]).address for name in plan.order]
            try:
                plan.call.launch(plan.call.pointers(addresses), kind.stream(first) if stream is None else stream)
            finally:
                kind.finish(first)
        results = tuple(self._unflatten(kind, plan.modes[name], made[name], leading) for name, *_ in plan.made)
        if stream is None and not copied:
            self._remember(kind, arrays, named, plan, list(whole), results)
        results = tuple(kind.given_back(theirs, result) for result in results)
        return results[0] if len(results) == 1 else results

    def _remember(self, kind, arrays, named, plan, names, results):
        """Lets calls like this one take the short way, where there is one."""
        calls = kind.short_calls()
        if calls is None:
            return
        if self._short is None:
            self._short = calls(plan.call.launch_address)
        made = [name for name, *_ in plan.made]
        order = [names.index(name) if name in names else ~made.index(name) for name in plan.order]
        self._short.add(arrays, named, plan.call.handle.value, plan.call, order, [kind.maker(result) for result in results],
                        kind.makers_here(results))

    def _kind(self, given):
        """The kind of all the arrays."""
        kind = common_kind(list(given.values()))
        if kind is not None:
            return kind
        for name, x in given.items():
            if kind_of(x) is None:
                raise HeddleError(f"{self.name}: {type(x).__name__} is no array that Heddle knows; fix: give '{name}' as a CUDA tensor of torch or CuPy, an array on "
                                  "the host, or one that has __dlpack__")
        where = ", ".join(f"{name} is {type(x).__name__} on {kind_of(x).place(x)}" for name, x in given.items())
        raise HeddleError(f"{self.name}: its tensors have no kind in common: {where}; fix: give all of them on the host, or all on a GPU, with __dlpack__")

    def _about(self, name, function, *arguments):
        """What a function of a kind gives, or what it says with the tensor's name."""
        try:
            return function(*arguments)
        except HeddleError as error:
            raise HeddleError(f"{self.name}: '{name}' is {error}") from None

    def _given(self, arrays, named):
        names = list(self.modes)
        if len(arrays) > len(names):
            raise HeddleError(f"{self.name}: it takes {len(names)} tensors ({', '.join(names)}), not {len(arrays)}")
        given = dict(zip(names, arrays))
        for name, value in named.items():
            if name not in self.modes:
                raise HeddleError(f"{self.name}: it has no tensor or setting '{name}'; tensors: {', '.join(names)}; settings: {', '.join(self.settings)}")
            if name in given:
                raise HeddleError(f"{self.name}: '{name}' is given twice")
            if value is not None:
                given[name] = value
        if not given:
            raise HeddleError(f"{self.name}: it takes tensors: {', '.join(names)}")
        return given

    def _flatten(self, kind, given):
        """Makes matrices of tensors with more modes, in place; the leading extents, which are those of all of them, or None."""
        leading = None
        for name, x in given.items():
            modes, shape = self.modes[name], tuple(kind.describe(x).shape)
            extra = len(shape) - len(modes)
            if ROWS != modes[0] or extra == 0 or (extra < 0 and leading is None and extra != -1):
                continue
            here = shape[:len(shape) - len(modes) + 1]
            leading = here if leading is None else leading
            if here != leading:
                raise HeddleError(f"{self.name}: the leading extents of '{name}' are {list(here)}, and others' {list(leading)}; fix: give tensors that agree "
                                  "in all modes but those that the operation works along")
            rows = 1
            for extent in here:
                rows *= extent
            given[name] = self._about(name, kind.reshaped, x, (rows, *shape[len(here):]))
        return leading

    def _modes_of(self, name, settings):
        """Of the declaration whose condition holds."""
        chosen = {name: setting["default"] for name, setting in self.settings.items()} | settings
        for found in self.declarations:
            if found["name"] == name and found["modes"] is not None and _holds(found["condition"], chosen):
                return found["modes"].split(", ")
        return self.modes[name]

    def _unflatten(self, kind, modes, x, leading):
        if leading is None or modes[0] != ROWS:
            return x
        return kind.reshaped(x, (*leading, *kind.describe(x).shape[1:]))

    def _check_type(self, name, described, setting):
        """That a tensor's type is one that the setting may have."""
        choices = self.settings[setting].get("choices") or [described.dtype]
        if described.dtype in choices:
            return
        # Values of tf32 lie in memory as f32's do.
        fix = f"set {setting}='tf32', or convert it" if described.dtype == "f32" and "tf32" in choices else "convert it"
        raise HeddleError(f"{self.name}: '{name}' has elements of {described.dtype}, and the operation takes {', '.join(choices)}; fix: {fix}")

    def _plan(self, key, settings, described):
        devices = {d.device for d in described.values()}
        if len(devices) > 1:
            where = ", ".join(f"{name} is on {d.device}" for name, d in described.items())
            raise HeddleError(f"{self.name}: its tensors are on different devices: {where}; fix: copy them to one")
        settings = dict(settings)
        for name, d in described.items():
            if self.dtypes[name] in self.settings:
                setting = self.dtypes[name]
                if setting not in settings:
                    self._check_type(name, d, setting)
                chosen = settings.setdefault(setting, d.dtype)
                # Frameworks have no such type: its values are those of f32.
                if (chosen, d.dtype) == ("tf32", "f32"):
                    d.dtype = "tf32"
        texts = [f"{name}={value}" for name, value in settings.items()]
        library = shared()
        tensors = library.bind(self.name, texts, [(name, d.dtype, d.shape, d.strides) for name, d in described.items()])
        missing = [tensor["name"] for tensor in tensors if tensor["reads"] and tensor["name"] not in described]
        if missing:
            raise HeddleError(f"{self.name}: it reads '{missing[0]}', which is not given; fix: give {missing[0]}=…")
        unknown = [name for name in described if name not in [tensor["name"] for tensor in tensors]]
        if unknown:
            raise HeddleError(f"{self.name}: with these settings it takes no '{unknown[0]}'")
        call = device(devices.pop()).compile(self.name, texts, [
            (t["name"], t["dtype"], t["extents"], *([described[t["name"]].strides] if t["name"] in described else [])) for t in tensors])
        modes = {tensor["name"]: self._modes_of(tensor["name"], settings) for tensor in tensors}
        with self._lock:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()  # calls that are under way keep theirs
            return self._plans.setdefault(key, Plan(call, tensors, described, modes))


def _holds(condition, settings):
    """"dim=first and op=argmax|argmin", "beta!=0"."""
    for part in (condition or "").split(" and ") if condition else []:
        name, differs, values = re.fullmatch(r"(\w+)(!?)=(.*)", part).groups()
        if (settings.get(name) in values.split("|")) == bool(differs):
            return False
    return True


def _text(value):
    """Of a setting, also of NumPy's numbers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value))
    return str(value)


@functools.lru_cache(maxsize=None)
def operations():
    """All operations by name."""
    return {document["name"]: Operation(document) for document in shared().operations()}


def operation(name):
    found = operations().get(name)
    if found is None:
        import difflib
        near = difflib.get_close_matches(name, operations(), n=1)
        raise HeddleError(f"there is no operation '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    return found
