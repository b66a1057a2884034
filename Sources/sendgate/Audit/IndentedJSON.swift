import CanonicalJSON

/// JSON for eyes: two spaces a level, short lists and objects of plain values on one line.
enum IndentedJSON {
    /// Characters up to which a value stays on one line.
    private static let lineCountMax = 96

    static func lines(_ value: JSONValue) -> [String] {
        switch value {
        case .object(let object) where !object.isEmpty:
            let short = value.description
            if short.count <= lineCountMax { return [short] }
            var lines = ["{"]
            for (position, member) in object.members.enumerated() {
                var inner = Self.lines(member.value)
                inner[0] = "\(JSONValue.string(member.key)): \(inner[0])"
                if position < object.count - 1 { inner[inner.count - 1] += "," }
                lines += inner.map { "  \($0)" }
            }
            return lines + ["}"]
        case .array(let elements) where !elements.isEmpty:
            let short = value.description
            if short.count <= lineCountMax { return [short] }
            var lines = ["["]
            for (position, element) in elements.enumerated() {
                var inner = Self.lines(element)
                if position < elements.count - 1 { inner[inner.count - 1] += "," }
                lines += inner.map { "  \($0)" }
            }
            return lines + ["]"]
        default: return [value.description]
        }
    }
}
