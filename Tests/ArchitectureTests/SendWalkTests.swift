import Foundation
import Testing

/// The handbook's walks of a send, a consent, a due message and a replay name files, and functions in them. Both must be there.
@Suite struct SendWalkTests {
    @Test func `each function that a walk names is declared in the file of its row`() throws {
        let page = try Self.text("Sources/sendgate/Sendgate.docc/Contributing.md")
        let walks = page.components(separatedBy: "| what happens | in | functions |").dropFirst()
        #expect(walks.count == 4)
        let rows = walks.flatMap { $0.split(separator: "\n").prefix { $0.hasPrefix("|") }.dropFirst() }
        var count = 0
        for row in rows {
            let cells = row.split(separator: "|", omittingEmptySubsequences: false)
            try #require(cells.count == 5, "\(row)")
            let path = cells[2].trimmingCharacters(in: ["`", " "])
            let declared = Self.functions(in: try Self.text(path))
            for function in cells[3].matches(of: /`([^`]+)`/).map({ String($0.1) }) {
                count += 1
                #expect(declared.contains(function), "\(path): \(function)")
            }
        }
        #expect(count > 50, "only \(count) functions were found")
    }

    @Test func `a function is known by its name and its labels`() {
        let source = """
            mutating func first(_ one: Int, of two: (a: Int, b: [Int]) -> Void) throws {}
            func second<Value>(
                three: Value = [1, 2], four _: Int
            ) -> Value {}
            func third() {}
            """
        #expect(Self.functions(in: source) == ["first(_:of:)", "second(three:four:)", "third()"])
    }

    private static func text(_ path: String) throws -> String {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized
        return try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The functions that a source declares, each with the labels of its parameters.
    private static func functions(in source: String) -> Set<String> {
        Set(
            source.matches(of: /\bfunc (\w+)(?:<[^(]*>)?\(/).map { match in
                "\(match.output.1)(\(labels(source[match.range.upperBound...]).map { "\($0):" }.joined()))"
            })
    }

    /// The first word of each parameter, up to the bracket that ends the list.
    private static func labels(_ parameters: Substring) -> [Substring] {
        var depth = 0
        var starts = [parameters.startIndex]
        var index = parameters.startIndex
        while index < parameters.endIndex {
            switch parameters[index] {
            case "(", "[": depth += 1
            case ")" where depth == 0:
                return starts.compactMap { parameters[$0..<index].firstMatch(of: /^\s*(\w+)/)?.output.1 }
            case ")", "]": depth -= 1
            case "," where depth == 0: starts.append(parameters.index(after: index))
            default: break
            }
            index = parameters.index(after: index)
        }
        return []
    }
}
