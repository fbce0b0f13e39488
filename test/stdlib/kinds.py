"""The containers and wrappers that operations with `on` work on: how they are declared and looked at.

A declaration makes `$v` out of the tensors A, B and C (wrappers hold fewer); `#K` is the name of the type.
An observer is an expression that gives one of the tensors, with the least size that it needs; of maps, with
the key that must be there.
"""

from dataclasses import dataclass, field


@dataclass
class Kind:
    name: str
    declarations: list
    size: int = 3
    keys: tuple = ()
    observers: list = field(default_factory=list)  # (expression, least size or key)
    jumps: bool = False  # iterators can be moved by any distance at once


LISTS = ["std::#K<Tensor> $v{A, B, C};", "std::#K<Tensor> $v = {A, B, C};"]
PUSHED = ["std::#K<Tensor> $v;\n$v.push_back(A);\n$v.push_back(B);\n$v.push_back(C);",
          "std::#K<Tensor> $v;\n$v.emplace_back(A);\n$v.push_back(B);\n$v.emplace_back(C);",
          "std::#K<Tensor> $v{A};\n$v.insert($v.end(), B);\n$v.push_back(C);"]  # fmt: skip
SIZED = ["std::#K<Tensor> $v(3);\n$v[0] = A;\n$v[1] = B;\n$v[2] = C;",
         "std::#K<Tensor> $v(3, A);\n$v[1] = B;\n$v.back() = C;"]  # fmt: skip
ENDS = [("$v.front()", 1), ("*$v.begin()", 1)]
BACK = [("$v.back()", 1), ("*std::prev($v.end())", 1), ("*$v.rbegin()", 1)]
STEPS = [("*std::next($v.begin())", 2), ("*std::next($v.begin(), 2)", 3)]
INDEX = [("$v[0]", 1), ("$v[1]", 2), ("$v.at(1)", 2), ("$v[2]", 3), ("*($v.begin() + 1)", 2), ("$v.begin()[1]", 2),
         ("$v[$v.size() - 1]", 1), ("*($v.end() - 1)", 1), ("$v.rbegin()[1]", 2)]  # fmt: skip

KEYS = ("bias", "input", "weight")
KEYED = ['std::#K<std::string, Tensor> $v{{"bias", A}, {"input", B}, {"weight", C}};',
         'std::#K<std::string, Tensor> $v;\n$v["bias"] = A;\n$v["input"] = B;\n$v["weight"] = C;',
         'std::#K<std::string, Tensor> $v;\n$v.emplace("bias", A);\n$v.insert({"input", B});\n'
         '$v.try_emplace("weight", C);',
         'std::#K<std::string, Tensor> $v = {{"weight", C}, {"bias", A}};\n$v.insert_or_assign("input", B);']
FINDS = [(text % {"k": key}, key) for key in (*KEYS, "mask")
         for text in ('$v.at("%(k)s")', '$v["%(k)s"]', '$v.find("%(k)s")->second')]  # fmt: skip

KINDS = {kind.name: kind for kind in [
    Kind("vector", LISTS + PUSHED + SIZED, observers=ENDS + BACK + STEPS + INDEX, jumps=True),
    Kind("deque", LISTS + PUSHED + SIZED, observers=ENDS + BACK + STEPS + INDEX, jumps=True),
    Kind("list", LISTS + PUSHED, observers=ENDS + BACK + STEPS),
    Kind("forward_list", [*LISTS, "std::#K<Tensor> $v{C};\n$v.push_front(B);\n$v.push_front(A);",
                          "std::#K<Tensor> $v;\n$v.push_front(A);\n$v.insert_after($v.begin(), {B, C});"],
         observers=ENDS + STEPS),
    Kind("array", ["std::array<Tensor, 3> $v{A, B, C};", "std::array<Tensor, 3> $v = {A, B, C};",
                   "std::array $v{A, B, C};", "std::array<Tensor, 3> $v;\n$v[0] = A;\n$v[1] = B;\n$v[2] = C;",
                   "auto $v = std::to_array<Tensor>({A, B, C});"],
         observers=[*ENDS, *BACK, *STEPS, *INDEX, ("std::get<1>($v)", 2)], jumps=True),
    Kind("map", KEYED, keys=KEYS, observers=FINDS),
    Kind("unordered_map", KEYED, keys=KEYS, observers=FINDS),
    Kind("multimap", ['std::multimap<std::string, Tensor> $v{{"bias", A}, {"input", B}, {"weight", C}};',
                      'std::multimap<std::string, Tensor> $v;\n$v.emplace("bias", A);\n$v.insert({"input", B});\n'
                      '$v.emplace("weight", C);'],
         keys=KEYS, observers=[(f'$v.{find}("{key}")->second', key) for key in (*KEYS, "mask")
                               for find in ("find", "lower_bound")]),
    Kind("optional", ["std::optional<Tensor> $v = A;", "std::optional<Tensor> $v;\n$v = A;",
                      "auto $v = std::make_optional(A);", "std::optional $v{A};",
                      "std::optional<Tensor> $v;\n$v.emplace(A);",
                      "std::optional<Tensor> $v(std::in_place, A);"], size=1,
         observers=[("*$v", 1), ("$v.value()", 1), ("$v.value_or(B)", 0)]),
    Kind("unique_ptr", ["auto $v = std::make_unique<Tensor>(A);", "std::unique_ptr<Tensor> $v(new Tensor(A));",
                        "std::unique_ptr<Tensor> $v;\n$v.reset(new Tensor(A));"], size=1,
         observers=[("*$v", 1), ("$v->clone()", 1), ("*$v.get()", 1)]),
    Kind("shared_ptr", ["auto $v = std::make_shared<Tensor>(A);", "std::shared_ptr<Tensor> $v(new Tensor(A));",
                        "std::shared_ptr<Tensor> $v = std::make_unique<Tensor>(A);"], size=1,
         observers=[("*$v", 1), ("$v->clone()", 1), ("*$v.get()", 1)]),
    Kind("pair", ["std::pair<Tensor, Tensor> $v{A, B};", "auto $v = std::make_pair(A, B);", "std::pair $v(A, B);",
                  "std::pair<Tensor, Tensor> $v;\n$v.first = A;\n$v.second = B;"], size=2,
         observers=[("$v.first", 1), ("$v.second", 2), ("std::get<0>($v)", 1), ("std::get<1>($v)", 2)]),
    Kind("tuple", ["std::tuple<Tensor, Tensor, Tensor> $v{A, B, C};", "auto $v = std::make_tuple(A, B, C);",
                   "std::tuple $v(A, B, C);", "std::tuple<Tensor, Tensor, Tensor> $v;\nstd::get<0>($v) = A;\n"
                   "std::get<1>($v) = B;\nstd::get<2>($v) = C;"],
         observers=[("std::get<0>($v)", 1), ("std::get<1>($v)", 2), ("std::get<2>($v)", 3)]),
    Kind("variant", ["std::variant<int, Tensor> $v = A;", "std::variant<int, Tensor> $v;\n$v = A;",
                     "std::variant<int, Tensor> $v(std::in_place_type<Tensor>, A);",
                     "std::variant<int, Tensor> $v = 3;\n$v.emplace<Tensor>(A);"], size=1,
         observers=[("std::get<Tensor>($v)", 1), ("std::get<1>($v)", 1), ("*std::get_if<Tensor>(&$v)", 1)]),
    Kind("any", ["std::any $v = A;", "std::any $v;\n$v = A;", "auto $v = std::make_any<Tensor>(A);",
                 "std::any $v;\n$v.emplace<Tensor>(A);"], size=1,
         observers=[("std::any_cast<Tensor>($v)", 1), ("std::any_cast<Tensor&>($v)", 1),
                    ("*std::any_cast<Tensor>(&$v)", 1)]),
    Kind("stack", ["std::stack<Tensor> $v;\n$v.push(A);\n$v.push(B);\n$v.push(C);",
                   "std::stack<Tensor, std::vector<Tensor>> $v;\n$v.emplace(A);\n$v.push(B);\n$v.emplace(C);"],
         observers=[("$v.top()", 1)]),
    Kind("queue", ["std::queue<Tensor> $v;\n$v.push(A);\n$v.push(B);\n$v.push(C);",
                   "std::queue<Tensor> $v;\n$v.emplace(A);\n$v.push(B);\n$v.emplace(C);"],
         observers=[("$v.front()", 1), ("$v.back()", 1)]),
]}  # fmt: skip
GROUPS = {"sequence": ["vector", "deque", "list"], "indexed": ["vector", "deque"], "maps": ["map", "unordered_map"],
          "pointers": ["unique_ptr", "shared_ptr"]}  # fmt: skip
