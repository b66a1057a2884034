import GateVocabulary

/// The fields of a submitted form, in their order.
///
/// RFC 8058 section 3.1 lets a mail program send either encoding.
enum FormBody {
    enum Failure: Error, Equatable {
        case malformed
    }

    /// Fields that are read; a form of ours has one.
    static let fieldCountMax = 8

    static func read(_ body: [UInt8], as contentType: String?) throws(Failure) -> [(
        name: String, value: String
    )] {
        guard let contentType else { throw .malformed }
        let pieces = contentType.split(separator: ";").map { $0.trimming(while: { $0 == " " || $0 == "\t" }) }
        switch pieces.first?.lowercased() {
        case "application/x-www-form-urlencoded": return try urlEncoded(body)
        case "multipart/form-data":
            let boundary = pieces.dropFirst().lazy.compactMap { parameter(of: $0, named: "boundary") }.first
            guard let boundary, (1...70).contains(boundary.utf8.count) else { throw .malformed }
            return try multipart(body, boundary: Array(boundary.utf8))
        default: throw .malformed
        }
    }

    /// The value of `name=value` or `name="value"`.
    private static func parameter(of text: String, named name: String) -> String? {
        let pieces = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard pieces.count == 2, pieces[0].lowercased() == name else { return nil }
        let value = pieces[1]
        if value.utf8.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
            return String(value.dropFirst().dropLast())
        }
        return value.contains("\"") ? nil : String(value)
    }

    // MARK: application/x-www-form-urlencoded

    private static func urlEncoded(_ body: [UInt8]) throws(Failure) -> [(name: String, value: String)] {
        // Some programs end the line of a form.
        let line = body.suffix(2) == Array("\r\n".utf8) ? body.dropLast(2) : body[...]
        let fields = line.split(separator: UInt8(ascii: "&"))
        guard fields.count <= fieldCountMax else { throw .malformed }
        var read: [(name: String, value: String)] = []
        for field in fields {
            let parts = field.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            read.append(
                (try decode(parts[0]), parts.count > 1 ? try decode(parts[1]) : ""))
        }
        return read
    }

    private static func decode(_ part: ArraySlice<UInt8>) throws(Failure) -> String {
        let spaced = part.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        guard let text = PercentEncoding.decode(spaced) else { throw .malformed }
        return text
    }

    private static func text(_ bytes: [UInt8]) throws(Failure) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .malformed }
        return text
    }

    // MARK: multipart/form-data (RFC 7578)

    private static func multipart(
        _ body: [UInt8], boundary: [UInt8]
    ) throws(Failure) -> [(name: String, value: String)] {
        let newline = Array("\r\n".utf8)
        let delimiter = newline + Array("--".utf8) + boundary
        // The first delimiter may stand at the very beginning.
        var rest = (newline + body)[...]
        guard let start = rest.firstRange(of: delimiter) else { throw .malformed }
        rest = rest[start.upperBound...]
        var fields: [(name: String, value: String)] = []
        while !rest.starts(with: Array("--".utf8)) {
            guard fields.count < fieldCountMax, rest.starts(with: newline) else { throw .malformed }
            rest = rest.dropFirst(newline.count)
            guard let end = rest.firstRange(of: delimiter) else { throw .malformed }
            fields.append(try part(rest[..<end.lowerBound]))
            rest = rest[end.upperBound...]
        }
        return fields
    }

    private static func part(_ part: ArraySlice<UInt8>) throws(Failure) -> (name: String, value: String) {
        guard let blank = part.firstRange(of: Array("\r\n\r\n".utf8)) else { throw .malformed }
        let head = try text(Array(part[..<blank.lowerBound]))
        for line in head.split(separator: "\r\n") {
            let pieces = line.split(separator: ":", maxSplits: 1)
            guard pieces.count == 2, pieces[0].lowercased() == "content-disposition" else { continue }
            let parameters = pieces[1].split(separator: ";").map {
                $0.trimming(while: { $0 == " " || $0 == "\t" })
            }
            guard parameters.first?.lowercased() == "form-data",
                let name = parameters.dropFirst().lazy.compactMap({ parameter(of: $0, named: "name") }).first
            else { throw .malformed }
            return (name, try text(Array(part[blank.upperBound...])))
        }
        throw .malformed
    }
}
