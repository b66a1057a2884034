import BundleModel
package import CanonicalJSON
package import ConfigurationPages
import GateVocabulary

/// How a file of another system becomes lines of an import: a page that says, for each member of a line, which column it comes from.
///
///     map: A plain consent table
///     reads: csv
///     line:
///       user: {column: customer_id}
///       consents:
///         - when: {column: decision, is: [yes]}
///           id: {column: record_id}
///           event_time: {column: decided_at, as: instant}
///           purpose: marketing
///
/// A mapping with `column` is a value of the record; everything else stands as it is. A value that the record does not have is left
/// out, so the gateway tells what is missing.
package struct ImportMap: Sendable {
    package enum Format: String, CaseIterable, Sendable {
        case csv
        case ndjson
    }

    /// What the page says it is.
    package let name: String
    package let format: Format
    package let separator: UInt8
    package let encoding: TextEncoding
    /// Texts that say that there is no value.
    let missing: Set<String>
    let line: MapTemplate
    /// The columns that the map asks for, in the order of the page.
    package let columns: [String]

    /// Whether somebody wrote it, of an export; otherwise a file has lines as the gateway takes them.
    package var isPage: Bool { if case .record = line { false } else { true } }

    /// What a file of lines is read by that are written for the gateway.
    package static let lines = ImportMap(
        name: "lines of an import", format: .ndjson, separator: UInt8(ascii: ","), encoding: .utf8,
        missing: [],
        line: .record, columns: [])

    private init(
        name: String, format: Format, separator: UInt8, encoding: TextEncoding, missing: Set<String>,
        line: MapTemplate, columns: [String]
    ) {
        (self.name, self.format, self.separator, self.encoding) = (name, format, separator, encoding)
        (self.missing, self.line, self.columns) = (missing, line, columns)
    }

    /// Reads a map.
    ///
    /// - Throws: Every problem of the page, each with its line.
    package static func read(_ path: String) throws(ConfigurationDiagnostics) -> ImportMap {
        let page = try ConfigurationPage.read(path).get()
        let problems = ConfigurationProblems()
        let root = MappingReader(page, file: path, problems: problems)
        let name = root.required("map", hint: "say what the map is of")
        let format: Format = root.choice("reads")
        let separator = root.text("separator") ?? ","
        let separators = CSVReader.separators
        if separators[separator] == nil {
            root.refuse("separator", "is `\(separator)`", hint: "one of `,` `;` `|` and `tab`")
        }
        if format == .ndjson, root.has("separator") {
            root.refuse("separator", "says nothing of `ndjson`", hint: "leave it out, or say `reads: csv`")
        }
        let encoding: TextEncoding = root.choice("encoding", standard: .utf8)
        var columns = MapColumns(problems: problems)
        var missing: Set<String> = [""]
        if let node = root.node("missing") { missing.formUnion(columns.texts("missing", node)) }
        var line = MapTemplate.record
        if let node = root.node("line") {
            line = MapTemplate(node, isLine: true, in: &columns)
            MapCheck(format: format, problems: problems).check(line: node)
        } else {
            root.refuse("line", "is not set", hint: "say what each member of a line comes from")
        }
        root.end()
        guard problems.diagnostics.isEmpty else { throw ConfigurationDiagnostics(problems.diagnostics) }
        return ImportMap(
            name: name, format: format, separator: separators[separator] ?? 0, encoding: encoding,
            missing: missing, line: line, columns: columns.names)
    }

    /// - Returns: Where each of ``columns`` is in a file; the first that is not there as a failure.
    package func places(in header: [String]) -> Result<[Int], ImportFileError> {
        var places: [Int] = []
        for column in columns {
            guard let place = header.firstIndex(of: column) else {
                let near =
                    NearestName.to(column, among: header).map { "; it has `\($0)`" }
                    ?? CSVReader.separatorHint(header, separator) ?? ""
                return .failure(
                    .header("the map asks for the column `\(column)`, and the file has none\(near)"))
            }
            places.append(place)
        }
        return .success(places)
    }

    /// The line that a record comes to.
    ///
    /// - Parameter places: Of ``places(in:)``; of JSON none.
    package func line(of row: ImportRow, places: [Int]) -> Result<JSONObject, RecordProblem> {
        let record: MapRecord
        switch row {
        case .fields(let fields): record = .fields(fields, places: places)
        case .json(let bytes):
            let value: JSONValue
            do throws(JSONError) {
                // An export has columns that no map asks for, and numbers in them of every kind.
                value = try CanonicalJSON.read(
                    bytes,
                    limits: JSONLimits(byteCountMax: bytes.count, readsOtherNumbersAsTexts: isPage))
            } catch {
                return .failure(RecordProblem("malformed_json", "the line is no JSON: \(error.message)"))
            }
            guard let object = value.objectValue else {
                return .failure(
                    RecordProblem("malformed_json", "the line is \(value.kind), and must be a JSON object")
                )
            }
            record = .json(object, names: columns)
        }
        // A record with nothing in it is a line with nothing in it, so the gateway names what is missing.
        let line = self.line.value(of: record, missing: missing) ?? .object(JSONObject())
        guard let line = line.objectValue else {
            return .failure(
                RecordProblem("malformed_json", "`line` comes to \(line.kind), and must come to an object")
            )
        }
        return .success(line)
    }
}

extension JSONValue {
    /// What kind of value it is, with its article.
    fileprivate var kind: String { isNull ? "`null`" : article }
}

/// The columns that a map asks for.
struct MapColumns {
    let problems: ConfigurationProblems
    private(set) var names: [String] = []
    var nodeCount = 0

    init(problems: ConfigurationProblems) { self.problems = problems }

    mutating func place(of name: String) -> Int {
        if let place = names.firstIndex(of: name) { return place }
        names.append(name)
        return names.count - 1
    }
}

/// A record as a map sees it.
enum MapRecord {
    case fields([String], places: [Int])
    /// Of JSON a column is a path of members with dots between them.
    case json(JSONObject, names: [String])

    func value(_ column: Int, missing: Set<String>) -> JSONValue? {
        switch self {
        case .fields(let fields, let places):
            let text = fields[places[column]]
            return missing.contains(text) ? nil : .string(text)
        case .json(let object, let names):
            var value: JSONValue? = .object(object)
            for name in names[column].split(separator: ".") { value = value?[String(name)] }
            guard let value, !value.isNull else { return nil }
            if let text = value.stringValue, missing.contains(text) { return nil }
            return value
        }
    }
}
