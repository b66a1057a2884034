/// Columns of text, as wide as they need to be.
package struct Table {
    private var rows: [[String]]

    package init(_ columns: String...) { rows = [columns] }

    package mutating func add(_ cells: String...) {
        precondition(cells.count == rows[0].count, "a row has as many cells as the table has columns")
        rows.append(cells.map(Terminal.printable))
    }

    package var isEmpty: Bool { rows.count == 1 }

    /// One line per row; no space at the end of any.
    package var lines: [String] {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell
                guard row[(column + 1)...].contains(where: { !$0.isEmpty }) else { break }
                line += String(repeating: " ", count: widths[column] - cell.count + 2)
            }
            return line
        }
    }
}
