import Foundation

/// A table of a page of the handbook, found by its head.
package struct HandbookTable {
    /// The cells of each row, without white space around them.
    package let rows: [[String]]

    package struct Missing: Error {
        package let page: String
        package let head: String
    }

    /// - Parameters:
    ///   - page: Without `.md`.
    ///   - head: The whole line of the table's head.
    package init(of page: String, head: String) throws {
        let path = Repository.root + "/Sources/sendgate/Sendgate.docc/\(page).md"
        let lines = try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n")
        guard let start = lines.firstIndex(of: head) else { throw Missing(page: page, head: head) }
        rows = lines[(start + 2)...].prefix { $0.hasPrefix("|") }.map { line in
            line.components(separatedBy: "|").dropFirst().dropLast().map {
                $0.trimmingCharacters(in: .whitespaces)
            }
        }
    }

    /// What stands between backticks in a column, from the first row to the last.
    package func names(in column: Int) -> [String] {
        rows.flatMap { $0[column].matches(of: /`([^`]+)`/).map { String($0.1) } }
    }
}
