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
    case object([(key: String, value: MapTemplate)], when: [MapCondition])
    case list([MapTemplate])
    /// Elements by one of their members, as a line has devices and addresses.
    case keyed([(name: MapTemplate, value: MapTemplate)])

    /// Members of a line that are objects by a name, and which member of an element on the page is the name.
    private static let keys = ["devices": "id", "addresses": "id", "withdrawals": "consent"]

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
        case .mapping(let members) where members.contains { $0.key == "column" }:
            self = Self.column(members, at: node, in: &columns)
        case .mapping(let members):
            var made: [(key: String, value: MapTemplate)] = []
            var conditions: [MapCondition] = []
            for member in members {
                if member.key == "when" {
                    conditions = MapCondition.all(member.value, in: &columns)
                } else if isLine, let name = Self.keys[member.key] {
                    made.append((member.key, Self.keyed(member.value, by: name, in: &columns)))
                } else {
                    made.append((member.key, MapTemplate(member.value, in: &columns)))
                }
            }
            self = .object(made, when: conditions)
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
        let known = ["column", "as", "values", "otherwise"]
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
                    "`\(member.key)` is nothing that a value of a column has", among: known, member.key,
                    at: member.value)
            }
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
        case .object(let members, let conditions):
            guard conditions.allSatisfy({ $0.holds(for: record, missing: missing) }) else { return nil }
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
                guard let name = element.name.value(of: record, missing: missing),
                    let value = element.value.value(of: record, missing: missing)
                else { continue }
                object[name.stringValue ?? name.integerValue.map(String.init) ?? ""] = value
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
                guard ["is", "is_not"].contains(member.key), case .list(let texts) = member.value.value else {
                    columns.refuse(
                        "`\(member.key)` is nothing that a condition has; `is` and `is_not` are lists",
                        among: ["is", "is_not"], member.key, at: member.value)
                    continue
                }
                condition.isNegated = member.key == "is_not"
                condition.values = Set(texts.map { $0.json.stringValue ?? $0.word })
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

    fileprivate func refuse(
        _ message: String, among known: [String] = [], _ word: String = "", at node: PolicyNode
    ) {
        let hint =
            known.isEmpty
            ? nil
            : NearestName.to(word, among: known).map { "did you mean `\($0)`?" }
                ?? "one of \(known.map { "`\($0)`" }.joined(separator: ", "))"
        problems.add(message, at: node.location.map { "\($0)" }, hint: hint)
    }
}

extension PolicyNode {
    /// A number or a truth value as a record spells it.
    fileprivate var word: String {
        switch value {
        case .integer(let integer): String(integer)
        case .boolean(let boolean): String(boolean)
        default: ""
        }
    }
}
