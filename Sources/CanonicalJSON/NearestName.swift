/// The known name a misspelled one was probably meant to be.
package enum NearestName {
    /// - Parameter editCountMax: Two, so that long names of something else are no misspelling; a mere hint may reach farther.
    /// - Returns: `nil` when none is within a third of its length in edits, and at least one.
    package static func to(
        _ name: String, among known: some Sequence<String>, editCountMax: Int = 2
    ) -> String? {
        var best: (name: String, distance: Int)?
        for candidate in known {
            let distanceMax = min(editCountMax, max(1, candidate.utf8.count / 3))
            // Each byte more or less is an edit. Most names are told apart by this alone.
            guard abs(name.utf8.count - candidate.utf8.count) <= distanceMax else { continue }
            let distance = distance(Array(name.utf8), Array(candidate.utf8))
            guard distance <= distanceMax else { continue }
            if best.map({ (distance, candidate) < ($0.distance, $0.name) }) ?? true {
                best = (candidate, distance)
            }
        }
        return best?.name
    }

    /// Insertions, deletions, replacements and swapped neighbours from one name to the other (optimal string
    /// alignment). Names are short.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        guard left.count <= 64, right.count <= 64 else { return Int.max }
        var rows = [Array(0...right.count)]
        for (row, byte) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var least = min(
                    rows[row][column + 1] + 1, current[column] + 1,
                    rows[row][column] + (byte == other ? 0 : 1))
                if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
                    least = min(least, rows[row - 1][column - 1] + 1)
                }
                current.append(least)
            }
            rows.append(current)
        }
        return rows[left.count][right.count]
    }
}
