// The short way of a call from Python: a call that was made before, on tensors of torch that are like those, is found by what they are
// and launched, without Python in between. What is not found takes the long way (operation.py), which adds it.
#include <nanobind/nanobind.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace nb = nanobind;

namespace {

// What Heddle's C function is (heddle_c.h), which is found by ctypes: this module is linked to no Heddle.
using Launch = const char* (*)(void* call, void* const* pointers, void* stream);

// Names are made once.
struct Names {
  nb::object shape = nb::steal(PyUnicode_InternFromString("shape"));
  nb::object stride = nb::steal(PyUnicode_InternFromString("stride"));
  nb::object dtype = nb::steal(PyUnicode_InternFromString("dtype"));
  nb::object data_ptr = nb::steal(PyUnicode_InternFromString("data_ptr"));
  nb::object get_device = nb::steal(PyUnicode_InternFromString("get_device"));
};

// What a call is found by: numbers, and settings that are compared.
struct Key {
  std::vector<int64_t> numbers;
  std::vector<nb::object> settings;

  size_t hash() const {
    uint64_t h = numbers.size();
    for (const int64_t n : numbers)
      h = (h ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
  }
  bool operator==(const Key& other) const {
    if (numbers != other.numbers || settings.size() != other.settings.size()) return false;
    for (size_t i = 0; i < settings.size(); ++i) {
      if (settings[i].is(other.settings[i])) continue;
      // Of one type, too: True is not 1.
      if (Py_TYPE(settings[i].ptr()) != Py_TYPE(other.settings[i].ptr())) return false;
      const int equal = PyObject_RichCompareBool(settings[i].ptr(), other.settings[i].ptr(), Py_EQ);
      if (equal < 0) nb::raise_python_error();
      if (equal == 0) return false;
    }
    return true;
  }
};
struct KeyHash {
  size_t operator()(const Key& key) const { return key.hash(); }
};

// How it is launched.
struct Plan {
  void* call = nullptr;
  nb::object owner;        // keeps the call
  std::vector<int> order;  // of each pointer: the tensor given, or ~i for the i-th that is made
  std::vector<nb::object> makers;  // each makes a tensor
  std::vector<nb::object>
      makers_here;  // likewise, where its device is the current one; may be empty
};

int64_t to_number(const nb::object& number) {
  const long long value = PyLong_AsLongLong(number.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

nb::object checked(PyObject* object) {
  if (object == nullptr) nb::raise_python_error();
  return nb::steal(object);
}

// Of what every version of Python has.
nb::object call_method(nb::handle object, const nb::object& name) {
  PyObject* const arguments[] = {object.ptr()};
  return checked(PyObject_VectorcallMethod(name.ptr(), arguments,
                                           1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

constexpr size_t kMostPlans = 1024;

// A call that is being made. Making a tensor may let another thread run, or run Python's destructors: nothing of it is shared.
struct Request {
  Key key;
  std::vector<void*> addresses;  // of the tensors given
  int64_t device = -1;
};

// The calls of one operation.
class Calls {
 public:
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  // `tensor_types`: whose data lies at data_ptr(); `raw_stream(device)`: torch's current stream; `fail(text)` raises.
  Calls(uintptr_t launch, nb::tuple tensor_types, nb::object raw_stream, nb::object fail)
      : launch_(reinterpret_cast<Launch>(launch)),
        types_(std::move(tensor_types)),
        raw_stream_(std::move(raw_stream)),
        fail_(std::move(fail)) {}

  // The number of the thread's current device, by current().
  void set_current_device(nb::object current) { current_device_ = std::move(current); }

  // The results of a call that was added before; NotImplemented where there is none.
  nb::object run(nb::args arrays, nb::kwargs named) {
    Request request;
    if (!describe(arrays, named, request)) return not_implemented();
    const std::shared_ptr<const Plan> plan = find(request.key);
    if (plan == nullptr) return not_implemented();
    std::vector<nb::object> made;
    made.reserve(plan->makers.size());
    std::vector<void*> pointers;
    pointers.reserve(plan->order.size());
    const bool here =
        !plan->makers_here.empty() &&
        to_number(checked(PyObject_CallNoArgs(current_device_.ptr()))) == request.device;
    for (const nb::object& maker : here ? plan->makers_here : plan->makers) {
      made.push_back(checked(PyObject_CallNoArgs(maker.ptr())));
    }
    for (const int place : plan->order) {
      pointers.push_back(place >= 0 ? request.addresses[static_cast<size_t>(place)]
                                    : address_of(made[static_cast<size_t>(~place)]));
    }
    const nb::int_ number(request.device);
    PyObject* const of_device[] = {nullptr, number.ptr()};
    const nb::object stream = checked(PyObject_Vectorcall(
        raw_stream_.ptr(), of_device + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    const auto handle = static_cast<uintptr_t>(to_number(stream));
    // The launch may wait: for another variant that is compiled, for a full queue.
    const char* error = nullptr;
    {
      const nb::gil_scoped_release released;
      error = launch_(plan->call, pointers.data(), reinterpret_cast<void*>(handle));
    }
    if (error != nullptr) fail_(error);
    if (made.size() == 1) return made[0];
    nb::object results = checked(PyTuple_New(static_cast<Py_ssize_t>(made.size())));
    for (size_t i = 0; i < made.size(); ++i) {
      if (PyTuple_SetItem(results.ptr(), static_cast<Py_ssize_t>(i), made[i].release().ptr()) != 0)
        nb::raise_python_error();
    }
    return results;
  }

  // `order`: as in Plan. False where such arrays cannot take the short way.
  bool add(nb::tuple arrays, nb::dict named, uintptr_t call, nb::object owner, nb::list order,
           nb::list makers, nb::list makers_here) {
    Request request;
    if (!describe(arrays, named, request)) return false;
    auto plan = std::make_shared<Plan>();
    plan->call = reinterpret_cast<void*>(call);
    plan->owner = std::move(owner);
    for (nb::handle place : order) plan->order.push_back(nb::cast<int>(place));
    for (nb::handle maker : makers) plan->makers.push_back(nb::borrow(maker));
    for (nb::handle maker : makers_here) plan->makers_here.push_back(nb::borrow(maker));
    last_key_ = nullptr;
    // As operation.py: calls that change a setting each time must not fill the memory.
    if (plans_.size() >= kMostPlans) plans_.clear();
    plans_[std::move(request.key)] = std::move(plan);
    return true;
  }

  size_t size() const { return plans_.size(); }

 private:
  static nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

  bool is_tensor(nb::handle x) const {
    const size_t count = nb::len(types_);
    for (size_t i = 0; i < count; ++i) {
      if (reinterpret_cast<PyObject*>(Py_TYPE(x.ptr())) ==
          PyTuple_GetItem(types_.ptr(), static_cast<Py_ssize_t>(i)))
        return true;
    }
    return false;
  }

  void* address_of(nb::handle x) const {
    return reinterpret_cast<void*>(
        static_cast<uintptr_t>(to_number(call_method(x, names_.data_ptr))));
  }

  void append(nb::handle tuple, std::vector<int64_t>& numbers) const {
    const Py_ssize_t count = PyTuple_Size(tuple.ptr());
    numbers.push_back(count);
    for (Py_ssize_t i = 0; i < count; ++i)
      numbers.push_back(PyLong_AsLongLong(PyTuple_GetItem(tuple.ptr(), i)));
  }

  // Puts what a tensor is into the key, and its address aside; false where it is none of a GPU, or not on the others' GPU.
  bool describe_tensor(nb::handle x, Request& request) const {
    std::vector<int64_t>& numbers = request.key.numbers;
    const int64_t device = to_number(call_method(x, names_.get_device));
    if (device < 0 || (request.device >= 0 && device != request.device)) return false;
    request.device = device;
    numbers.push_back(device);
    // Element types are objects of which there is one each.
    numbers.push_back(static_cast<int64_t>(
        reinterpret_cast<uintptr_t>(checked(PyObject_GetAttr(x.ptr(), names_.dtype.ptr())).ptr())));
    append(checked(PyObject_GetAttr(x.ptr(), names_.shape.ptr())), numbers);
    append(call_method(x, names_.stride), numbers);
    request.addresses.push_back(address_of(x));
    return true;
  }

  bool describe(nb::handle arrays, nb::handle named, Request& request) const {
    Key& key = request.key;
    key.numbers.reserve(32);
    const Py_ssize_t count = PyTuple_Size(arrays.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
      const nb::handle x = PyTuple_GetItem(arrays.ptr(), i);
      if (!is_tensor(x) || !describe_tensor(x, request)) return false;
    }
    if (PyDict_Size(named.ptr()) == 0) return request.device >= 0;
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(named.ptr(), &at, &name, &value);) {
      key.settings.push_back(nb::borrow(name));
      if (is_tensor(value)) {
        key.numbers.push_back(-1);
        if (!describe_tensor(value, request)) return false;
        continue;
      }
      if (PyLong_Check(value) == 0 && PyFloat_Check(value) == 0 && PyUnicode_Check(value) == 0)
        return false;
      // By its bits, a float: 0.0 is not -0.0.
      key.numbers.push_back(PyFloat_Check(value) != 0
                                ? std::bit_cast<int64_t>(PyFloat_AsDouble(value))
                                : PyObject_Hash(value));
      key.settings.push_back(nb::borrow(value));
    }
    return request.device >= 0;
  }

  std::shared_ptr<const Plan> find(const Key& key) {
    // Most calls are like the one before.
    if (last_key_ != nullptr && *last_key_ == key) return last_plan_;
    const auto found = plans_.find(key);
    if (found == plans_.end()) return nullptr;
    last_key_ = &found->first;
    last_plan_ = found->second;
    return last_plan_;
  }

  const Launch launch_;
  const nb::tuple types_;
  const nb::object raw_stream_, fail_;
  nb::object current_device_;
  const Names names_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans_;
  const Key* last_key_ = nullptr;
  std::shared_ptr<const Plan> last_plan_;
};

}  // namespace

NB_MODULE(_calls, module) {
  // The package keeps its operations, and they these, for as long as the program runs.
  nb::set_leak_warnings(false);
  module.doc() = "The short way of calls on tensors of torch.";
  nb::class_<Calls>(module, "Calls")
      .def(nb::init<uintptr_t, nb::tuple, nb::object, nb::object>())
      .def("run", &Calls::run)
      .def("set_current_device", &Calls::set_current_device)
      .def("add", &Calls::add)
      .def("__len__", &Calls::size);
}
