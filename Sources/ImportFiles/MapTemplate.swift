import BundleModel
import CanonicalJSON
import ConfigurationPages
import GateVocabulary

/// What one place of a line is made of.
indirect enum MapTemplate: Sendable {
    /// The whole record, of a file that is written for the gateway.
    case record
    case constant(JSONValue)
    case column(Int, MapConversion, values: [String: JSONValue], otherwise: JSONValue?)
    case object([(key: String, value: MapTemplate)])
    case conditional([MapCondition], MapTemplate)
    case list([MapTemplate])
    /// Elements by one of their members, as a line has devices and addresses.
    case keyed([(name: MapTemplate, value: MapTemplate)])

    static let columnKey = "column"
    static let constantKey = "constant"
    static let conditionKey = "when"
    /// What a mapping with `column` may say.
    static let columnKeys = [columnKey, "as", "values", "otherwise"]
    /// Members of a line that are objects by a name, and which member of an element on the page is the name.
    static let keys = ["devices": "id", "addresses": "id", "withdrawals": "consent"]

    init(_ node: PolicyNode, isLine: Bool = false, in columns: inout MapColumns) {
        columns.count(node)
        switch node.value {
        case .null: self = .constant(.null)
        case .boolean(let boolean): self = .constant(.boolean(boolean))
        case .integer(let integer): self = .constant(.integer(integer))
        case .text(let text): self = .constant(.string(text))
        case .list(let elements):
            var made: [MapTemplate] = []
            for element in elements { made.append(MapTemplate(element, in: &columns)) }
            self = .list(made)
        case .mapping(let members):
            let rest = members.filter { $0.key != Self.conditionKey }
            let template: MapTemplate
            if rest.contains(where: { $0.key == Self.columnKey }) {
                template = Self.column(rest, at: node, in: &columns)
            } else if let constant = rest.first(where: { $0.key == Self.constantKey }) {
                template = .constant(constant.value.json)
                for other in rest where other.key != Self.constantKey {
                    columns.refuse(
                        "`\(other.key)` is nothing that a constant has", at: other.value,
                        hint: "beside `constant` there is only `when`")
                }
            } else {
                var made: [(key: String, value: MapTemplate)] = []
                for member in rest {
                    if isLine, let name = Self.keys[member.key] {
                        made.append((member.key, Self.keyed(member.value, by: name, in: &columns)))
                    } else {
                        made.append((member.key, MapTemplate(member.value, in: &columns)))
                    }
                }
                template = .object(made)
            }
            if let when = members.first(where: { $0.key == Self.conditionKey }) {
                self = .conditional(MapCondition.all(when.value, in: &columns), template)
            } else {
                self = template
            }
        }
    }

    private static func keyed(
        _ node: PolicyNode, by name: String, in columns: inout MapColumns
    ) -> MapTemplate {
        guard case .list(let elements) = node.value else {
            columns.refuse("expected a list whose elements have `\(name)`", at: node)
            return .keyed([])
        }
        var made: [(name: MapTemplate, value: MapTemplate)] = []
        for element in elements {
            guard case .mapping(let members) = element.value,
                let key = members.first(where: { $0.key == name })
            else {
                columns.refuse("expected a mapping with `\(name)`", at: element)
                continue
            }
            var rest = element
            rest.value = .mapping(members.filter { $0.key != name })
            made.append(
                (MapTemplate(key.value, in: &columns), MapTemplate(rest, in: &columns)))
        }
        return .keyed(made)
    }

    private static func column(
        _ members: [PolicyNode.Member], at node: PolicyNode, in columns: inout MapColumns
    ) -> MapTemplate {
        var column = 0
        var conversion = MapConversion.text
        var values: [String: JSONValue] = [:]
        var otherwise: JSONValue?
        for member in members {
            switch (member.key, member.value.value) {
            case ("column", .text(let name)): column = columns.place(of: name)
            case ("as", .text(let name)):
                if let found = MapConversion(rawValue: name) {
                    conversion = found
                } else {
                    columns.refuse(
                        "`as` is `\(name)`", among: MapConversion.allCases.map(\.rawValue), name,
                        at: member.value)
                }
            case ("values", .mapping(let pairs)):
                for pair in pairs { values[pair.key] = pair.value.json }
            case ("otherwise", _): otherwise = member.value.json
            case ("column", _), ("as", _): columns.refuse("`\(member.key)` must be a text", at: member.value)
            case ("values", _): columns.refuse("`values` must be a mapping", at: member.value)
            default:
                columns.refuse(
                    "`\(member.key)` is nothing that a value of a column has", among: columnKeys, member.key,
                    at: member.value)
            }
        }
        if let otherwise = members.first(where: { $0.key == "otherwise" }), values.isEmpty {
            columns.refuse(
                "`otherwise` says nothing without `values`", at: otherwise.value,
                hint: "say which texts have values of their own")
        }
        return .column(column, conversion, values: values, otherwise: otherwise)
    }

    /// - Returns: `nil` where the record has nothing for it.
    func value(of record: MapRecord, missing: Set<String>) -> JSONValue? {
        switch self {
        case .record:
            guard case .json(let object, _) = record else { return nil }
            return .object(object)
        case .constant(let value): return value
        case .column(let column, let conversion, let values, let otherwise):
            guard let value = record.value(column, missing: missing) else { return nil }
            let text =
                value.stringValue ?? value.integerValue.map(String.init) ?? value.booleanValue.map { "\($0)" }
            if let text, let named = values[text] { return named.isNull ? nil : named }
            if !values.isEmpty, let otherwise { return otherwise.isNull ? nil : otherwise }
            return conversion.convert(value, text)
        case .conditional(let conditions, let template):
            guard conditions.allSatisfy({ $0.holds(for: record, missing: missing) }) else { return nil }
            return template.value(of: record, missing: missing)
        case .object(let members):
            var object = JSONObject()
            for member in members {
                if let value = member.value.value(of: record, missing: missing) { object[member.key] = value }
            }
            return object.members.isEmpty && !members.isEmpty ? nil : .object(object)
        case .list(let elements):
            let values = elements.compactMap { $0.value(of: record, missing: missing) }
            return values.isEmpty ? nil : .array(values)
        case .keyed(let elements):
            var object = JSONObject()
            for element in elements {
                guard let value = element.value.value(of: record, missing: missing) else { continue }
                // An element without a name stays, under none: the gateway refuses it, and nothing is lost without a word.
                let name = element.name.value(of: record, missing: missing)
                object[name?.stringValue ?? name?.integerValue.map(String.init) ?? ""] = value
            }
            return object.members.isEmpty ? nil : .object(object)
        }
    }
}

/// When a part of a line is made: every condition of its `when` holds.
struct MapCondition: Sendable {
    private var column: Int
    /// `nil` where any value does.
    private var values: Set<String>?
    private var isNegated = false

    static func all(_ node: PolicyNode, in columns: inout MapColumns) -> [MapCondition] {
        let nodes = if case .list(let elements) = node.value { elements } else { [node] }
        return nodes.compactMap { node -> MapCondition? in
            guard case .mapping(let members) = node.value,
                case .text(let name)? = members.first(where: { $0.key == "column" })?.value.value
            else {
                columns.refuse("a condition must be a mapping with `column`", at: node)
                return nil
            }
            var condition = MapCondition(column: columns.place(of: name))
            for member in members where member.key != "column" {
                guard ["is", "is_not"].contains(member.key) else {
                    columns.refuse(
                        "`\(member.key)` is nothing that a condition has", among: ["column", "is", "is_not"],
                        member.key, at: member.value)
                    continue
                }
                if condition.values != nil {
                    columns.refuse(
                        "a condition has `is` or `is_not`, not both", at: member.value,
                        hint: "write two conditions: `when` takes a list of them")
                }
                condition.isNegated = member.key == "is_not"
                condition.values = columns.texts(member.key, member.value)
            }
            return condition
        }
    }

    func holds(for record: MapRecord, missing: Set<String>) -> Bool {
        guard let value = record.value(column, missing: missing) else { return isNegated }
        guard let values else { return true }
        let text =
            value.stringValue ?? value.integerValue.map(String.init) ?? value.booleanValue.map { "\($0)" }
        return text.map(values.contains) == !isNegated
    }
}

/// What a value of a record is made into. A value that it does not fit goes as it is, so that the gateway refuses it by name.
enum MapConversion: String, CaseIterable, Sendable {
    case text
    case integer
    case boolean
    case lower
    case upper
    /// `en_US` and `en-US`.
    case language
    /// RFC 3339, and `2025-11-03 10:00:00` with an optional fraction, which is UTC.
    case instant
    case unixSeconds = "unix_seconds"
    case unixMilliseconds = "unix_milliseconds"

    /// Whether what it makes is a text.
    var isText: Bool { self != .integer && self != .boolean }

    func convert(_ value: JSONValue, _ text: String?) -> JSONValue {
        guard let text else { return value }
        switch self {
        case .text: return .string(text)
        case .integer: return Int64(text).map { .integer($0) } ?? .string(text)
        case .boolean:
            switch text.lowercased() {
            case "true", "t", "yes", "1": return true
            case "false", "f", "no", "0": return false
            default: return .string(text)
            }
        case .lower: return .string(text.lowercased())
        case .upper: return .string(text.uppercased())
        case .language: return .string(text.split(separator: "_").joined(separator: "-"))
        case .instant: return .string(Self.instant(text) ?? text)
        case .unixSeconds:
            return .string(Int64(text).flatMap { Self.moment($0, unit: 1_000) } ?? text)
        case .unixMilliseconds: return .string(Int64(text).flatMap { Self.moment($0, unit: 1) } ?? text)
        }
    }

    private static func moment(_ number: Int64, unit: Int64) -> String? {
        let (milliseconds, isOver) = number.multipliedReportingOverflow(by: unit)
        guard !isOver, Instant.storable.contains(milliseconds) else { return nil }
        return Instant(milliseconds: milliseconds).rfc3339
    }

    private static func instant(_ text: String) -> String? {
        if Instant(rfc3339: text) != nil { return text }
        var parts = text.split(separator: " ")
        if parts.last == "UTC" || parts.last == "+0000" { parts.removeLast() }
        guard parts.count == 2 else { return nil }
        return Instant(rfc3339: "\(parts[0])T\(parts[1])Z")?.rfc3339
    }
}

extension MapColumns {
    /// Holds the bound on what a map is made of.
    fileprivate mutating func count(_ node: PolicyNode) {
        nodeCount += 1
        if nodeCount == ImportLimits.mapNodeCountMax + 1 {
            refuse("the map has more than \(ImportLimits.mapNodeCountMax) values", at: node)
        }
    }

    fileprivate func refuse(_ message: String, at node: PolicyNode, hint: String? = nil) {
        problems.add(message, at: node.location.map { "\($0)" }, hint: hint)
    }

    fileprivate func refuse(_ message: String, among known: [String], _ word: String, at node: PolicyNode) {
        refuse(message, at: node, hint: NearestName.hint(to: word, among: known))
    }

    /// Texts of a record. An unquoted number or truth value is the text that it is written as.
    func texts(_ key: String, _ node: PolicyNode) -> Set<String> {
        guard case .list(let elements) = node.value else {
            let word = node.word.map { "`\(key): [\"\($0)\"]`" } ?? "texts between `[` and `]`"
            refuse(
                "`\(key)` must be a list of texts, and is \(node.shapeName)", at: node, hint: "write \(word)")
            return []
        }
        if elements.isEmpty {
            refuse("`\(key)` lists nothing", at: node, hint: "name a text, or leave it out")
        }
        return Set(
            elements.compactMap { element in
                if let word = element.word { return word }
                refuse(
                    "`\(key)` must be a list of texts, and has \(element.shapeName) in it", at: element,
                    hint: "put a text between double quotes")
                return nil
            })
    }
}

extension PolicyNode {
    /// A text, and a number or a truth value as a record spells it; `nil` of everything else.
    fileprivate var word: String? {
        switch value {
        case .text(let text): text
        case .integer(let integer): String(integer)
        case .boolean(let boolean): String(boolean)
        case .null, .list, .mapping: nil
        }
    }
}

extension NearestName {
    /// What to do about a name that is not among those that are known.
    static func hint(to name: String, among known: [String]) -> String {
        to(name, among: known).map { "did you mean `\($0)`?" }
            ?? "one of \(known.map { "`\($0)`" }.joined(separator: ", "))"
    }
}
