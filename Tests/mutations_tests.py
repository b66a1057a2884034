"""Tests of what reads the mutations and the sources; part of `mutate.py check`."""

import pathlib
import tempfile
import unittest

import mutations
import swift_source

SOURCE = r'''
#if DEBUG
extension Outer.Inner {
#endif
    let text = """
        func no() { \(call("}")) }
        """
    let raw = #"a "quoted" } \#(call(#"}"#))"#
    // func neither() { /*
    /* func nor() { /* } */ } */
    static func == (a: Int, b: Int) -> Bool { true }
    func `case`<T>(_ one: [T: Int] = [1: 2], of two: (a: T, b: T) -> Void) throws -> Int {
        func inner(x: Int) -> Int { x }
        let local = 3, pattern = /"(\w+)\(/
        return inner(x: one[two]!)
    }
    @inlinable func same(_ a: Dictionary<Int, Int>, b: Int) -> Int {
        a.first { $0.key > b }
    }
    private func same(_ a: Int) {}
    private func same(_ a: String) {}
    init?(a: Int) { self.init(b: a) }
    enum Kind: String { case first = "1"
        case third(Int) }
    subscript(at place: Int) -> Int { get { 1 } set { } }
    var computed: Int { 2 }
}
protocol P {
    func f(_ x: Int) -> Int
    var v: Int { get }
}
func free() {}
'''


def mutated(body, operator):
    source = swift_source.Source("func f() {\n" + body + "\n}")
    start, end, new = mutations.Scope(source, source.declarations[0]).edit(operator)
    return (source.text[:start] + new + source.text[end:])[11:-2]


class ReaderTests(unittest.TestCase):
    def test_each_declaration_has_its_name(self):
        self.assertEqual([declaration.name for declaration in swift_source.Source(SOURCE).declarations], [
            "Outer.Inner", "Outer.Inner.text", "Outer.Inner.raw", "Outer.Inner.==(a:b:)", "Outer.Inner.case(_:of:)",
            "Outer.Inner.case(_:of:).inner(x:)", "Outer.Inner.same(_:b:)", "Outer.Inner.same(_:)", "Outer.Inner.same(_:)",
            "Outer.Inner.init(a:)", "Outer.Inner.Kind", "Outer.Inner.Kind.first", "Outer.Inner.Kind.third",
            "Outer.Inner.subscript(at:)", "Outer.Inner.computed", "P", "P.f(_:)", "P.v", "free()"])

    def test_a_declaration_ends_where_its_body_does(self):
        source = swift_source.Source(SOURCE)
        texts = {
            declaration.name: source.text[source.tokens[declaration.first].start:source.tokens[declaration.end - 1].end]
            for declaration in source.declarations}
        self.assertEqual(texts["Outer.Inner.raw"], r'''let raw = #"a "quoted" } \#(call(#"}"#))"#''')
        self.assertTrue(texts["Outer.Inner.case(_:of:)"].endswith("return inner(x: one[two]!)\n    }"))
        self.assertEqual(texts["P.f(_:)"], "func f(_ x: Int) -> Int")
        self.assertEqual(texts["Outer.Inner.Kind.first"], 'case first = "1"')

    def test_the_layout_does_not_matter(self):
        one = "g()\nguard let x = h(a, b), x < c, a.isQuiet else { return }\nk()"
        other = "g()\nguard\n  let x = h(\n    a, b),\n  x < c,\n  a.isQuiet\nelse {\n  return\n}\nk()"
        for operator in ["drop condition isQuiet", "negate condition isQuiet", "< to <=", "drop statement isQuiet",
                         "drop argument b", "set value h to 1", "append || y to condition isQuiet"]:
            self.assertEqual("".join(mutated(one, operator).split()), "".join(mutated(other, operator).split()), operator)


class OperatorTests(unittest.TestCase):
    def test_each_operator_changes_what_it_says(self):
        for body, operator, wanted in [
            ("if a < b, c < d { g() }", "< to <= at d", "if a < b, c <= d { g() }"),
            ("if a < b, c < d { g() }", "< to > #1", "if a > b, c < d { g() }"),
            ("if isQuiet(x),\n  c { g() }", "drop condition isQuiet", "if c { g() }"),
            ("return a && b.isOpen || c", "drop condition isOpen", "return a || c"),
            ("guard x, a == b else { return }", "negate condition b", "guard x, a != b else { return }"),
            ("guard x, a.isOpen else { return }", "negate condition isOpen", "guard x, !a.isOpen else { return }"),
            ("if !a { g() }", "negate condition a", "if a { g() }"),
            ("g()\nif a { h() }\nk()", "drop statement h", "g()\nif a {  }\nk()"),
            ("g()\nk(\n  1)\nm()", "drop statement k", "g()\n\nm()"),
            ("g(a: 1, b: h(2))", "drop argument h", "g(a: 1)"),
            ("x = y.filter { $0 > 1 }.count", "drop call filter", "x = y.count"),
            ("x = max(y ?? 0, z)", "drop operand 0", "x = max(y, z)"),
            ("return a ? b : try c()", "set value a to nil", "return nil"),
            ("switch a {\ncase .x: g()\ncase .y, .z: h()\n}", "drop case h", "switch a {\ncase .x: g()\n\n}"),
            ("if a { g() }", "append || b to condition a", "if a || b { g() }"),
            ("if a { g() }", "prepend k() to statement g", "if a { k()\ng() }"),
            ('g("a \\(b) c")', "b to d", 'g("a \\(d) c")'),
            ("g(a,\n  b)", "replace a, b by b", "g(b)"),
        ]:
            self.assertEqual(mutated(body, operator), wanted, operator)

    def test_what_is_gone_or_ambiguous_is_said(self):
        for body, operator, message in [
            ("g(a)", "drop statement h", "there is no statement with `h`"),
            ("g(a)\ng(b)", "drop statement g", "there are 2 of statement with `g`: say more, or `#1` to `#2`"),
            ("g(a)\ng(b)", "drop statement g #3", "there are 2 of statement with `g`, none is `#3`"),
            ("g(a)", "b to c", "there is no `b`"),
            ("g(a)", "turn a round", "no operator: turn a round"),
            ("if a { g() }", "drop condition a", "the condition stands alone: set it"),
        ]:
            with self.assertRaises(mutations.Stale) as caught:
                mutated(body, operator)
            self.assertEqual(str(caught.exception), message)

    def test_a_declaration_that_is_gone_or_ambiguous_is_said_with_the_nearest_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "A.swift")
            path.write_text("struct A {\n  func first(of: Int) {}\n  func f(_ a: Int) {}\n  func f(_ a: String) {}\n}")
            with self.assertRaisesRegex(mutations.Stale, r"`A.first\(_:\)` is not declared.*nearest name is `A.first\(of:\)`"):
                mutations.scope(path, "A.first(_:)")
            with self.assertRaisesRegex(mutations.Stale, r"there are 2 of `A.f\(_:\)`"):
                mutations.scope(path, "A.f(_:)")
            self.assertEqual(mutations.scope(path, "A.f(_:) #2").words.count("String"), 1)

    def test_an_operator_changes_only_the_lines_it_has_to(self):
        text = "f {\n    g(a)\n    h(b,\n        c)\n}\n"
        for edits, wanted in [
            ([(10, 11, "x")], (1, [("-", "    g(a)"), ("+", "    g(x)")])),
            ([(12, 12, "\nk()")], (2, [("+", "k()")])),
            ([(8, 8, "k()\n")], (1, [("+", "    k()")])),
            ([(8, 12, "")], (1, [("-", "    g(a)")])),
            ([(10, 11, "x"), (30, 31, "y")], (1, [
                ("-", "    g(a)"), ("+", "    g(x)"), ("=", "    h(b,"), ("-", "        c)"), ("+", "        y)")])),
        ]:
            self.assertEqual(mutations.hunk(text, edits), wanted)
