#!/usr/bin/env python3
"""Shows a header to Doxygen as a user of it should see it.

    python3 tools/doc/filter.py FILE        what Doxygen reads in its place (INPUT_FILTER)

Headers keep plain `//` comments. Here each becomes a comment of Doxygen's:
  - the one above a declaration is that declaration's, and also that of the declarations below it up to a
    blank line or the next comment;
  - the one behind a declaration is that declaration's;
  - the first of the file is the file's. Lines that are indented by two blanks more are code.
Left out is what users do not call: bodies, private members, the implementation's namespaces (except the
classes in SHOWN), functions that exist to refuse a mistake, and the parameter for the caller's line. Macros
that declare something are expanded, with the rows of .def files (ROWS says how a row becomes a comment).
"""
import functools
import pathlib
import re
import sys

# A folder's group, with its title; the longest prefix of the path decides.
GROUPS = {
    "dsl": ("dsl", "Kernels"),
    "dsl/collective": ("dsl_collective", "Reductions and scans"),
    "dsl/cuda": ("dsl_cuda", "CUDA's words"),
    "dsl/layout": ("dsl_layout", "Layouts"),
    "dsl/math": ("dsl_math", "Mathematics"),
    "dsl/tensor": ("dsl_tensor", "Tensors with layouts"),
    "ir": ("status", "Errors and extents"),
    "kernels": ("kernels", "The kernel library"),
    "runtime": ("runtime", "Devices, memory and launches"),
    "runtime/operation": ("runtime_operation", "Operations"),
    "runtime/testing": ("runtime_testing", "Filetests"),
    "tools": ("tools", "The command line"),
}
# The implementation's namespaces.
HIDDEN = {"detail", "internal", "ir", "codegen", "std"}
# Their classes that users get objects of, or pass without naming them.
SHOWN = {
    "Dim3", "Arg", "Index", "HostIndex", "TensorBase", "View", "StructView", "ElementAddress", "ElementRef",
    "GroupRef", "Family", "ChoiceOperators", "CommonOperators", "NumberOperators", "FloatOperators",
    "IntegerOperators", "BoolOperators",
}
# Types that only the implementation has values of: a member that takes or returns one is not for users.
MACHINERY = re.compile(r"\b(Node|NodeType|NodeList|Access|AccessMode|AnyTensor|TupleNode|Trips)\b")
ITEM_MACRO = re.compile(r"(HEDDLE_[A-Z0-9_]+)[ \t]*\(")
MISTAKE = re.compile(r"\bHEDDLE_(MISTAKE|NOT_COPIED|NEEDS_A_VALUE|NAMED_ELEMENT)\b")
CALLERS_LINE = re.compile(r",?\s*(const )?SourceLoc&? \w+\s*=\s*(SourceLoc::current\(\)|SourceLoc\{\}|\{\})")
# The text in front of the brace of a requires expression, not of one behind a requires clause.
IN_REQUIRES = re.compile(r"(requires|&&|\|\||=|!)\s*requires\s*(\([^{}]*\))?\s*$|requires\s*$")
# Destructors, copies, moves and comparisons: a comment above others is not about them.
SPECIAL = re.compile(
    r"^(constexpr |explicit |virtual )*(~|(\w+)\((const )?\3 ?&)|operator(=|==|!=)\(|= (delete|default);")
FORWARD = re.compile(r"(friend |extern template )?(class|struct|enum class)\s+[\w:]+\s*(:\s*[\w:]+\s*)?;$")


def error_bound(given):
    """What a row of math.def says: HEDDLE_MATH_n(name, f32, f64, "meaning")."""
    _, single, double, meaning = given
    bounds = {"0": "exact"}
    of_float = bounds.get(single, f"within {single} units in the last place")
    if "kNoFunction" in double:
        of_double = "not for double"
    else:
        of_double = "double: " + bounds.get(double, f"within {double}")
    return f" {meaning}. Float: {of_float}; {of_double}."


# How the row of a .def file becomes a comment.
ROWS = {"HEDDLE_MATH": error_bound}


class Comment:
    def __init__(self, line, column, whole_line, text):
        self.line, self.column, self.whole_line, self.text = line, column, whole_line, text


def closing(masked, at):
    """The position behind the bracket that closes the one at `at`."""
    pairs = {"(": ")", "[": "]", "{": "}", "<": ">"}
    open_, close, depth = masked[at], pairs[masked[at]], 0
    for i in range(at, len(masked)):
        depth += (masked[i] == open_) - (masked[i] == close)
        if depth == 0:
            return i + 1
    return len(masked)


def mask(text):
    """The text with comments, literals and directives blanked; the comments; the directives."""
    out, comments, directives = list(text), [], []
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
    for match in pattern.finditer(text):
        begin, end = match.span()
        piece = match.group()
        for i in range(begin, end):
            if out[i] != "\n":
                out[i] = " "
        line = text.count("\n", 0, begin) + 1
        if piece.startswith("//"):
            start = text.rfind("\n", 0, begin) + 1
            comments.append(Comment(line, begin - start, text[start:begin].strip() == "", piece[2:]))
        elif piece.startswith('"'):
            out[begin] = out[end - 1] = '"'
        elif not piece.startswith(("'", "/*")):
            directives.append((line, piece.strip().replace("\\\n", "\n")))
    return "".join(out), comments, directives


def arguments(text):
    """The arguments of a macro, split at commas outside of brackets and literals."""
    masked, _, _ = mask(text)
    parts, start, depth = [], 0, 0
    for i, c in enumerate(masked):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


class Macro:
    def __init__(self, parameters, body):
        self.parameters, self.body = parameters, body

    def expand(self, given):
        values = dict(zip(self.parameters, given))
        variadic = ", ".join(given[len(self.parameters) - 1:])

        def value(match):
            return variadic if match.group() == "__VA_ARGS__" else values.get(match.group(), match.group())
        text = re.sub(r"(?<!#)#(\w+)", lambda m: '"%s"' % values.get(m.group(1), ""), self.body)
        text = re.sub(r"[A-Za-z_]\w*", value, text)
        return re.sub(r"\s*##\s*", "", text)


def macros_of_includes(text, root, seen):
    """The macros that a header finds defined by those that it includes."""
    found = {}
    for name in re.findall(r'^#include "heddle/([^"]+\.h)"', text, re.M):
        path = root / name
        if name not in seen and path.exists():
            seen.add(name)
            included = path.read_text()
            found.update(macros_of_includes(included, root, seen))
            for _, directive in mask(included)[2]:
                define(directive, found)
    return found


def define(directive, macros):
    match = re.match(r"#\s*define (\w+)\(([^)]*)\)(.*)", directive, re.S)
    if match:
        macros[match.group(1)] = Macro([p.strip() for p in match.group(2).split(",")], match.group(3))
    match = re.match(r"#\s*undef (\w+)", directive)
    if match:
        macros.pop(match.group(1), None)


def markdown(lines):
    """A comment's lines as Markdown: prose with what Doxygen would read as commands escaped; code fenced."""
    out, in_code = [], False
    lines = [line.rstrip() for line in lines]
    for i, line in enumerate(lines):
        here = line or next((below for below in lines[i:] if below), "")
        is_code = here.startswith("   ") and (in_code or bool(line))
        if is_code and not in_code:
            out.append("```{.cpp}")
        if in_code and not is_code:
            out.append("```")
        in_code = is_code
        out.append(line[3:] if is_code else prose(line[1:]))
    return out + (["```"] if in_code else [])


def prose(line):
    """A line with the characters escaped that are not meant as commands, HTML or Markdown."""
    out = []
    for part in re.split(r'(`[^`]*`|"[^"]*")', line):
        if not part.startswith(("`", '"')):  # Doxygen leaves what is quoted alone
            part = re.sub(r"([\\@<>&#%$|]|--)", r"\\\1", part)
            part = re.sub(r"(\*(?!\w+\*)(?<!\w\*)|(?<!\w)_|_(?!\w))", r"\\\1", part)
        out.append(part)
    return "".join(out)


def one_by_one(declaration):
    """`int x, y` as `int x` and `int y`."""
    parts, depth = [""], 0
    for c in declaration:
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    names = [part.strip() for part in parts[1:]]
    if not names or "operator" in declaration or not all(re.match(r"\w+( = .*)?$", name) for name in names):
        return [declaration]
    kind = re.match(r"(.*?) ?\w+( = .*)?$", parts[0]).group(1)
    return [parts[0]] + [f"{kind} {name}" for name in names]


class Header:
    def __init__(self, path, root, text, macros):
        self.path, self.root, self.text, self.macros = path, root, text, macros
        self.name = path.relative_to(root).as_posix()
        self.out = []  # (text, line of the header)
        self.open_namespaces = 0
        self.masked, comments, self.directives = mask(text)
        included = ((line, re.match(r'#\s*include "heddle/([^"]+\.def)"', text)) for line, text in self.directives)
        self.tables = [(line, self.root / match.group(1)) for line, match in included if match]
        self.blocks, self.behind = {}, {}
        block, last = [], None
        for comment in comments:
            follows = last and comment.line == last.line + 1
            if not comment.whole_line:
                block = []
                self.behind[comment.line] = [comment.text]
                tail = comment.line
            elif follows and not block and comment.column == last.column:
                self.behind[tail].append(comment.text)  # goes on behind the declaration
            else:
                block = block + [comment.text] if follows and block else [comment.text]
                self.blocks[comment.line] = block
                self.blocks.pop(comment.line - 1, None)
            last = comment

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def emit(self, text, line):
        self.out += [(piece, line) for piece in text.split("\n")]

    def comment(self, lines, line):
        if lines:
            self.emit("\n".join(("/// " + text).rstrip() for text in markdown(lines)), line)

    def present(self):
        first = min(self.blocks, default=0)
        if first and first == len(self.blocks[first]):
            self.emit("/// \\file\n///", 1)
            self.comment(self.blocks.pop(first), 1)
        self.scope(0, len(self.text), "namespace", True)
        return self.out

    def group(self):
        folder = max((f for f in GROUPS if self.name.startswith(f + "/")), key=len)
        return GROUPS[folder]

    def scope(self, at, end, kind, visible, general=None):
        """Presents the declarations between two positions; those without a comment get the general one."""
        doc, last_line, access = None, None, "private" if kind == "class" else "public"
        while True:
            while at < end and (self.masked[at].isspace() or self.masked[at] in ";"):
                at += 1
            self.rows_before(min(at, end), kind, visible)
            if at >= end or self.masked[at] == "}":
                return
            label = re.compile(r"(public|private|protected):").match(self.masked, at)
            if label and kind in ("class", "struct"):
                access = label.group(1)
                self.emit(label.group(), self.line(at))
                at, doc, last_line = label.end(), None, None
                continue
            first = self.line(at)
            stop, body = (self.enumerator if kind == "enum" else self.declaration)(at, end)
            last = self.line(stop - 1)
            above = self.blocks.pop(first - 1, None)
            if above:
                doc = above
            elif last_line is None or first > last_line + 1 or self.directive_between(last_line, first):
                doc = None
            own = self.behind.get(last) if first == last or body is None else None
            if own and not above:
                shown = own
            else:
                alone = kind == "enum" or SPECIAL.search(self.without_templates(self.clean(at, stop)))
                shown = (above or (None if alone else doc) or []) + (own or [])
            if access == "public":
                self.item(at, stop, body, kind if visible else "hidden", shown or general)
            last_line, at = last, stop

    def rows_before(self, at, kind, visible):
        """Presents the rows of the .def files that are included up to a position."""
        while self.tables and self.tables[0][0] < self.line(at):
            line, path = self.tables.pop(0)
            if not visible or kind != "namespace":
                continue
            rows = path.read_text()
            masked, _, _ = mask(rows)
            for macro in re.finditer(r"^(HEDDLE_[A-Z0-9_]+)\(", masked, re.M):
                given = arguments(rows[macro.end():closing(masked, macro.end() - 1) - 1])
                said = next(said for start, said in ROWS.items() if macro.group(1).startswith(start))
                self.expand(line, macro.group(1), given, [said([argument.strip('"') for argument in given])])

    def directive_between(self, a, b):
        return any(a < line < b for line, _ in self.directives)

    def declaration(self, at, end):
        """Where a declaration ends, and where the brace of its body is, if it has one."""
        macro = ITEM_MACRO.match(self.text, at)
        if macro and not MISTAKE.match(self.text, at):
            stop = closing(self.masked, macro.end() - 1)
            body = re.compile(r"\s*\{").match(self.masked, stop)
            return (closing(self.masked, body.end() - 1) if body else stop), None
        i = at
        while i < end:
            c = self.masked[i]
            if c in "([":
                i = closing(self.masked, i)
            elif c == ";":
                return i + 1, None
            elif c == "{":
                head = self.masked[at:i]
                if IN_REQUIRES.search(head) or self.initializes(head):
                    i = closing(self.masked, i)
                    continue
                behind = closing(self.masked, i)
                rest = re.compile(r"\s*(\S?)").match(self.masked, behind)
                if self.kind_of(head)[0] == "function":
                    if rest.group(1) in (",", "{", "(", "."):
                        i = behind
                        continue
                    if rest.group(1) == ";":
                        return rest.end(), None
                    return behind, i
                return (rest.end() if rest.group(1) == ";" else behind), i
            else:
                i += 1
        return end, None

    def initializes(self, head):
        """Whether a brace behind this text is part of an initializer."""
        head, count = re.sub(r"operator\s*[^\w\s(]+", "", self.without_templates(head)), 1
        while count:
            head, count = re.subn(r"\([^()]*\)", "", head)
        return re.search(r"[\w>\]]\s*=[^=]", head) is not None

    def enumerator(self, at, end):
        i = at
        while i < end and self.masked[i] not in ",}":
            i = closing(self.masked, i) if self.masked[i] in "([{" else i + 1
        return min(i + 1, end), None

    @staticmethod
    def without_templates(head):
        head = head.strip()
        while head.startswith("template"):
            head = head[closing(head, head.index("<")):].strip()
        return head

    def kind_of(self, head):
        """What a declaration with a body is: (namespace, class, struct, enum or function; its name)."""
        space = re.match(r"\s*(inline )?namespace\s+([\w:]+)", head)
        if space:
            return "namespace", space.group(2)
        head = re.sub(r"\[\[.*?\]\]", "", self.without_templates(head))
        match = re.search(r"\b(class|struct|union|enum)\s+(class\s+)?([\w:]+)", head)
        before = head[:match.start()].strip() if match else ""
        if match and (not before or before.startswith("requires")):
            return "struct" if match.group(1) == "union" else match.group(1), match.group(3)
        return "function", ""

    def item(self, at, stop, body, scope, doc):
        line = self.line(at)
        text = self.text[at:stop]
        macro = ITEM_MACRO.match(text)
        if macro and not MISTAKE.match(text):
            if scope != "hidden":
                given = text[macro.end():closing(self.masked, at + macro.end() - 1) - 1 - at]
                self.expand(line, macro.group(1), arguments(given), doc)
            return
        head = self.masked[at:body] if body is not None else ""
        kind, called = self.kind_of(head)
        if kind == "namespace":
            self.namespace(at, stop, body, called.split("::"))
            return
        if kind != "function":
            if called.startswith("std::") or (scope == "hidden" and called not in SHOWN):
                return
            self.comment(doc, line)
            self.emit(self.clean(at, body).replace("detail::AnyView<", "detail::View<") + " {", line)
            self.scope(body + 1, stop - 2, kind, True)
            self.emit("};", line)
            return
        if scope == "hidden" or MISTAKE.search(self.text[at:body if body is not None else stop]):
            return
        if scope == "enum":
            self.comment(doc, line)
            self.emit(self.clean(at, stop), line)
            return
        plain = self.without_templates(re.sub(r"\s+", " ", self.clean(at, stop) if body is None else ""))
        if FORWARD.match(plain) or re.match(r"static_assert|using (namespace |[\w:]+::operator)", plain):
            return
        if re.match(r"using (Operand|Bools|Count|Ints|Base) =", plain):
            return  # what a class is made of, where a comment explains it
        if MACHINERY.search(self.clean(at, self.initializers(at, stop if body is None else body))):
            return
        shown = self.clean(at, self.initializers(at, stop if body is None else body)).rstrip(";")
        for one in one_by_one(shown):
            self.comment(doc, line)
            self.emit(one + ";", line)

    def initializers(self, at, end):
        """Where a constructor's list of initializers begins, else `end`."""
        head = self.masked[at:end]
        i, seen = end - len(self.without_templates(head).lstrip()) if head.startswith("template") else at, False
        while i < end:
            c = self.masked[i]
            if c in "([{":
                i = closing(self.masked, i)
                seen = seen or c == "("
                continue
            if c == ":" and seen and self.masked[i - 1] != ":" and self.masked[i + 1] != ":":
                return i
            if c == "=" and self.masked[i:i + 2] != "==":
                return end
            i += 1
        return end

    def clean(self, at, end):
        """The text without comments, attributes and the caller's line."""
        out = re.sub(r"//[^\n]*", "", self.text[at:end])
        out = re.sub(r"\[\[.*?\]\]\s*", "", out)
        out = re.sub(r"\s+", " ", CALLERS_LINE.sub("", out)).strip()
        return self.without_constraint(out)

    @staticmethod
    def without_constraint(text):
        """The declaration without a requires clause that speaks of the implementation's concepts."""
        clause = re.search(r"(?<=> )requires ?(?!requires)", text)
        if not clause:
            return text
        end = clause.end()
        while True:
            name = re.compile(r"!?[\w:]*").match(text, end)
            end = name.end()
            if text[end:end + 1] in ("(", "<"):
                end = closing(text, end)
            more = re.compile(r" ?(&&|\|\|) ?").match(text, end)
            if not more:
                break
            end = more.end()
        return text[:clause.start()] + text[end:].lstrip() if "detail::" in clause.string[clause.start():end] else text

    def namespace(self, at, stop, body, names):
        line = self.line(at)
        visible = not HIDDEN & set(names)
        mark = len(self.out)
        group, title = self.group()
        nested = self.open_namespaces > 0
        if nested:
            self.emit("/** @} */", line)  # a group has what is in the namespace, and not the namespace
        self.open_namespaces += 1
        for part in names:
            self.emit("namespace %s {" % part, line)
        opening = f"/** @addtogroup {group} {title}\n@{{ */"
        self.emit(opening, line)
        before = len(self.out)
        self.scope(body + 1, stop - 1, "namespace", visible)
        self.open_namespaces -= 1
        if len(self.out) == before:
            del self.out[mark:]
            return
        self.emit("/** @} */\n" + "}" * len(names), self.line(stop - 1))
        if nested:
            self.emit(opening, self.line(stop - 1))

    def expand(self, line, name, given, doc):
        """Presents what a macro that declares makes of its arguments. A comment above its definition serves
        those that have none."""
        macros, general = dict(self.macros), None
        for where, directive in self.directives:
            if where <= line:
                define(directive, macros)
                if re.match(r"#\s*define %s\(" % name, directive):
                    general = self.blocks.get(where - 1)
        if name not in macros:
            return
        inner = Header(self.path, self.root, macros[name].expand(given), macros)
        inner.scope(0, len(inner.text), "struct", True, doc or general)
        self.out += [(text, line) for text, _ in inner.out]


@functools.lru_cache(maxsize=None)
def present(path):
    """What Doxygen reads of a header: [(text, line of the header)]."""
    path = pathlib.Path(path).resolve()
    root = next(folder for folder in path.parents if (folder / "ARCHITECTURE.md").exists())
    text = path.read_text()
    return Header(path, root, text, macros_of_includes(text, root, set())).present()


def main():
    for text, _ in present(sys.argv[1]):
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
