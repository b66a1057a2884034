import GateVocabulary

/// `application/x-www-form-urlencoded` (URL Living Standard section 5), in the order of the fields.
package enum FormFields {
    /// Fields of one form at most.
    static let countMax = 256

    package static func write(_ fields: [(name: String, value: String)]) -> String {
        fields.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }
            .joined(separator: "&")
    }

    /// - Returns: `nil` for a form that is not UTF-8, has a broken escape, or more than ``countMax`` fields.
    static func read(_ bytes: some Collection<UInt8>) -> [(name: String, value: String)]? {
        let pairs = bytes.split(separator: UInt8(ascii: "&"))
        guard pairs.count <= countMax else { return nil }
        var fields: [(name: String, value: String)] = []
        for pair in pairs {
            let halves = pair.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(halves[0]), let value = halves.count > 1 ? decode(halves[1]) : "" else {
                return nil
            }
            fields.append((name, value))
        }
        return fields
    }

    private static func decode(_ bytes: some Sequence<UInt8>) -> String? {
        PercentEncoding.decode(bytes.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
    }
}
