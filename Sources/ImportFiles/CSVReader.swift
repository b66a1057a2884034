/// Reads comma-separated values (RFC 4180) of a file of any size.
///
/// A record that breaks the rules is given as such, and reading goes on with the next line of the file: a bare quote costs one line.
package struct CSVReader: ~Copyable {
    private var text: ImportText
    private let separator: UInt8
    /// The names in the first record.
    package let columns: [String]

    /// - Parameter descriptor: Closed with the reader.
    package init(
        descriptor: Int32, separator: UInt8 = UInt8(ascii: ","), encoding: TextEncoding = .utf8
    ) throws(ImportFileError) {
        text = ImportText(descriptor: descriptor, encoding: encoding)
        self.separator = separator
        try text.fill()
        switch Self.record(in: text, separator) {
        case .success((let names, let end)):
            text.advance(to: end)
            guard !text.isEmpty || !names.isEmpty, names != [""] else { throw .header("the file is empty") }
            guard !names.contains(where: { $0.contains("\0") }) else {
                throw .header(
                    "it has zero bytes, as UTF-16 has; say in the map which `encoding` the file has")
            }
            guard !names.contains("") else { throw .header("a column has no name") }
            var seen: Set<String> = []
            if let twice = names.first(where: { !seen.insert($0).inserted }) {
                throw .header("two columns are named `\(twice)`")
            }
            columns = names
        case .failure(let problem):
            let first = text.bytes[text.start...].first { !Self.spaces.contains($0) }
            if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
                throw .header("it looks like JSON; say `reads: ndjson` in the map, with one document a line")
            }
            // The quotation marks may be right under another separator.
            for (name, other) in Self.separators.sorted(by: { $0.key < $1.key }) where other != separator {
                if case .success((let names, _)) = Self.record(in: text, other), names.count > 1 {
                    throw .header("\(problem.detail); \(Self.hint(name))")
                }
            }
            throw .header(problem.detail)
        }
    }

    private static let spaces: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]

    /// What may stand between two fields, as a map says it.
    static let separators = [
        ",": UInt8(ascii: ","), ";": UInt8(ascii: ";"), "|": UInt8(ascii: "|"), "tab": UInt8(ascii: "\t"),
    ]

    private static func hint(_ separator: String) -> String {
        "it is read with another separator: say `separator: \"\(separator)\"` in the map"
    }

    /// - Returns: What to do about a header that is one column and has another separator in it; `nil` of every other header.
    static func separatorHint(_ header: [String], _ separator: UInt8) -> String? {
        guard header.count == 1 else { return nil }
        let counts = separators.filter { $0.value != separator }.map { name, byte in
            (name: name, count: header[0].utf8.count { $0 == byte })
        }
        guard let most = counts.max(by: { ($0.count, $1.name) < ($1.count, $0.name) }), most.count > 0 else {
            return nil
        }
        let name = most.name == "tab" ? "tabs" : "`\(most.name)`"
        return "; its header is one column with \(name) in it: say `separator: \"\(most.name)\"` in the map"
    }

    /// - Returns: `nil` at the end of the file.
    package mutating func next() throws(ImportFileError) -> ImportRecord? {
        while true {
            try text.fill()
            if text.isEmpty { return nil }
            let line = text.lineCount + 1
            switch Self.record(in: text, separator) {
            case .success((let fields, let end)):
                text.advance(to: end)
                // A blank line is none.
                if fields == [""], columns.count > 1 { continue }
                guard fields.count == columns.count else {
                    let problem = RecordProblem(
                        "column_count",
                        "the record has \(fields.count) fields and the header \(columns.count)")
                    return ImportRecord(line: line, content: .failure(problem))
                }
                return ImportRecord(line: line, content: .success(.fields(fields)))
            case .failure(let problem):
                try text.skipLine()
                return ImportRecord(line: line, content: .failure(problem))
            }
        }
    }

    /// Reads the record that begins here, and uses nothing up.
    ///
    /// - Returns: Its fields, and where it ends.
    private static func record(
        in text: borrowing ImportText, _ separator: UInt8
    ) -> Result<(fields: [String], end: Int), RecordProblem> {
        let (quote, lineFeed, carriageReturn) = (UInt8(ascii: "\""), UInt8(ascii: "\n"), UInt8(ascii: "\r"))
        var fields: [String] = []
        var place = text.start
        let limit = min(text.bytes.count, text.start + ImportLimits.recordByteCountMax)
        func failure(
            _ reason: String, _ detail: String
        ) -> Result<(fields: [String], end: Int), RecordProblem> {
            .failure(RecordProblem(reason, detail))
        }
        while true {
            var field: [UInt8] = []
            if place < limit, text.bytes[place] == quote {
                place += 1
                while true {
                    guard let end = text.bytes[place..<limit].firstIndex(of: quote) else {
                        return failure(
                            "quote_not_closed", "a quotation mark opens a field and none closes it")
                    }
                    field += text.bytes[place..<end]
                    place = end + 1
                    guard place < limit, text.bytes[place] == quote else { break }
                    field.append(quote)
                    place += 1
                }
                if place < limit, ![separator, lineFeed, carriageReturn].contains(text.bytes[place]) {
                    return failure("bare_quote", "a quoted field goes on behind its closing quotation mark")
                }
            } else {
                let begin = place
                while place < limit, text.bytes[place] != separator, text.bytes[place] != lineFeed {
                    if text.bytes[place] == quote {
                        return failure(
                            "bare_quote", "a quotation mark stands in a field that is not quoted")
                    }
                    place += 1
                }
                var end = place
                let isLineEnd = place < limit ? text.bytes[place] == lineFeed : true
                if isLineEnd, end > begin, text.bytes[end - 1] == carriageReturn { end -= 1 }
                field += text.bytes[begin..<end]
            }
            guard fields.count < ImportLimits.columnCountMax else {
                return failure("too_many_columns", "more than \(ImportLimits.columnCountMax) fields")
            }
            guard let value = String(validating: field, as: UTF8.self) else {
                return failure(
                    "not_utf8", "a field is not UTF-8; say in the map which `encoding` the file has")
            }
            fields.append(value)
            if place < limit, text.bytes[place] == carriageReturn { place += 1 }
            if place == limit {
                guard limit == text.bytes.count, text.isAtEnd else {
                    return failure(
                        "record_too_long", "more than \(ImportLimits.recordByteCountMax) bytes")
                }
                break
            }
            let next = text.bytes[place]
            place += 1
            if next == lineFeed { break }
            guard next == separator else {
                return failure("bare_quote", "a quoted field goes on behind its closing quotation mark")
            }
        }
        return .success((fields, place))
    }
}

/// Reads a file with one JSON document a line.
package struct NDJSONReader: ~Copyable {
    private var text: ImportText

    /// - Parameter descriptor: Closed with the reader.
    /// - Throws: Where none of the first lines can be a document: a file of another kind is told once, and not line by line.
    package init(descriptor: Int32, encoding: TextEncoding = .utf8) throws(ImportFileError) {
        text = ImportText(descriptor: descriptor, encoding: encoding)
        try text.fill()
        let lines = text.bytes[text.start...].split(
            separator: UInt8(ascii: "\n"), maxSplits: Self.lookedAtCount, omittingEmptySubsequences: true)
        let beginnings = lines.prefix(Self.lookedAtCount).compactMap { line in
            line.first { ![0x20, 0x09, 0x0D].contains($0) }
        }
        if beginnings.first == UInt8(ascii: "[") { throw .noLines("it begins as one JSON array") }
        if beginnings.isEmpty || beginnings.contains(UInt8(ascii: "{")) { return }
        let line = String(decoding: (lines.first ?? []).prefix(Self.shownByteCount), as: UTF8.self)
        throw .noLines("its first line is `\(line.filter { $0 != "\r" })`")
    }

    /// Lines that are looked at: one that is broken is refused by itself.
    private static let lookedAtCount = 3
    /// Bytes of a line that are shown.
    private static let shownByteCount = 60

    /// - Returns: `nil` at the end of the file.
    package mutating func next() throws(ImportFileError) -> ImportRecord? {
        while true {
            try text.fill()
            if text.isEmpty { return nil }
            let line = text.lineCount + 1
            let rest = text.bytes[text.start...]
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            let length = (end ?? text.bytes.count) - text.start
            guard length <= ImportLimits.recordByteCountMax else {
                try text.skipLine()
                let problem = RecordProblem(
                    "record_too_long", "more than \(ImportLimits.recordByteCountMax) bytes")
                return ImportRecord(line: line, content: .failure(problem))
            }
            var content = rest.prefix(length)
            if content.last == UInt8(ascii: "\r") { content.removeLast() }
            let row = Array(content)
            text.advance(to: end.map { $0 + 1 } ?? text.bytes.count)
            if row.isEmpty { continue }
            return ImportRecord(line: line, content: .success(.json(row)))
        }
    }
}
