import CanonicalJSON
import GateVocabulary

/// What the reader of one value asks of it, noted while it runs over nothing.
final class ShapeRecorder {
    private struct Field {
        let name: String
        let isRequired: Bool
        let defaultValue: JSONValue?
        let means: String
        let value: ShapeRecorder
    }

    private struct Others {
        let keys: TextRule
        let values: ShapeRecorder
        let count: ClosedRange<Int>
    }

    private enum Content {
        /// Nothing has been asked.
        case nothing
        case value(Shape)
        case list(of: ShapeRecorder, countMin: Int, countMax: Int)
        case object([Field], others: Others?, means: String)
        case either([ShapeRecorder])
        case nullable(ShapeRecorder)
        case named(String, ShapeRecorder, means: String?)
    }

    private var content = Content.nothing

    /// - Precondition: A member that a reader takes is read; otherwise a page could have anything there.
    var shape: Shape {
        switch content {
        case .nothing: preconditionFailure("a reader takes a member of a page and asks nothing of it")
        case .value(let shape): return shape
        case .list(let element, let countMin, let countMax):
            return .list(of: element.shape, countMin: countMin, countMax: countMax)
        case .object(let fields, let others?, _) where fields.isEmpty:
            return .map(
                keys: others.keys, values: others.values.shape, countMin: others.count.lowerBound,
                countMax: others.count.upperBound)
        case .object(let fields, let others, let means):
            let members = fields.map { field in
                field.isRequired
                    ? ObjectShape.Member.required(field.name, field.value.shape, field.means)
                    : .optional(
                        field.name, field.value.shape, default: field.defaultValue, field.means)
            }
            let own = others.map {
                ObjectShape.Others(
                    keys: $0.keys, values: $0.values.shape, countMax: $0.count.upperBound)
            }
            return .object(ObjectShape(means, members, others: own))
        case .either(let choices):
            return .either(
                choices.map(\.shape).flatMap { shape in
                    if case .either(let shapes) = shape { shapes } else { [shape] }
                })
        case .nullable(let value): return .nullable(value.shape)
        case .named(let name, let value, let means): return .named(name, value.shape, means: means)
        }
    }

    func note(_ shape: Shape) { content = .value(shape) }

    func list(countMin: Int, countMax: Int) -> ShapeRecorder {
        let element = ShapeRecorder()
        content = .list(of: element, countMin: countMin, countMax: countMax)
        return element
    }

    func object(_ means: String) { content = .object([], others: nil, means: means) }

    /// A member that is asked for twice is declared by the first call.
    func field(
        _ name: String, isRequired: Bool, default defaultValue: JSONValue?, _ means: String
    ) -> ShapeRecorder {
        guard case .object(var fields, let others, let ownMeans) = content else {
            preconditionFailure("`\(name)` is asked of something that is no mapping")
        }
        let value = ShapeRecorder()
        if !fields.contains(where: { $0.name == name }) {
            fields.append(
                Field(
                    name: name, isRequired: isRequired, defaultValue: defaultValue, means: means,
                    value: value))
            content = .object(fields, others: others, means: ownMeans)
        }
        return value
    }

    /// Names that the page's author chooses.
    func others(_ keys: TextRule, count: ClosedRange<Int>) -> ShapeRecorder {
        guard case .object(let fields, nil, let means) = content else {
            preconditionFailure("other members are asked of something that is no mapping, or twice")
        }
        let others = Others(keys: keys, values: ShapeRecorder(), count: count)
        content = .object(fields, others: others, means: means)
        return others.values
    }

    /// One more shape that the value may have.
    func choice() -> ShapeRecorder {
        let choice = ShapeRecorder()
        if case .either(let others) = content {
            content = .either(others + [choice])
        } else {
            content = .either([choice])
        }
        return choice
    }

    func nullable() -> ShapeRecorder {
        let value = ShapeRecorder()
        content = .nullable(value)
        return value
    }

    func named(_ name: String, _ means: String?) -> ShapeRecorder {
        let value = ShapeRecorder()
        content = .named(name, value, means: means)
        return value
    }
}

/// What the names of a mapping are, where the page's author chooses them.
struct PageKeys: Sendable {
    let rule: TextRule
    /// What stands for a name while no page is read.
    let example: String

    static let any = PageKeys(rule: .ofPage(byteCountMax: NodeReader.textByteCountMax), example: "name")
    static let typeIDs = PageKeys(rule: .typeIDOfPage, example: "type")
    /// Types' ids, or what their pages call their texts.
    static let messages = PageKeys(rule: .ofPage(byteCountMax: 128), example: "type")
    static let params = PageKeys(rule: .paramOfPage, example: "param")
    static let regions = PageKeys(rule: .regionOfPage, example: "XK")
    static let names = PageKeys(rule: .nameOfPage, example: "name")
    static let locales = PageKeys(rule: .localeOfPage, example: "en")
    static let callingCodes = PageKeys(rule: .callingCodeOfPage, example: "+1")
    static let schemes = PageKeys(rule: .schemeOfPage, example: "drop")
}

extension TextRule {
    /// A text that is the same for everybody.
    static func withoutParams(byteCountMax: Int) -> TextRule {
        .ofPage(
            "a text of 1 to \(byteCountMax) bytes without params", pattern: "^[^{]+$",
            byteCountMax: byteCountMax
        ) { !$0.isEmpty && !$0.contains("{") }
    }

    /// A text of a page as ``NodeReader/text(byteCountMax:)`` takes it; a character is a byte at least.
    static func ofPage(byteCountMax: Int) -> TextRule {
        TextRule("a text of 1 to \(byteCountMax) bytes", lengths: 1...byteCountMax) {
            (1...byteCountMax).contains($0.count)
        }
    }

    /// A text that a pattern describes to editors, and `isRight` to everything else.
    static func ofPage(
        _ expectation: String, pattern: String, byteCountMax: Int? = nil,
        _ isRight: @escaping @Sendable (String) -> Bool
    ) -> TextRule {
        TextRule(expectation, lengths: byteCountMax.map { 0...$0 }, pattern: pattern) { bytes in
            guard bytes.count <= byteCountMax ?? bytes.count else { return false }
            var text: [UInt8] = []
            for index in 0..<bytes.count { text.append(bytes[index]) }
            return isRight(String(decoding: text, as: UTF8.self))
        }
    }

    /// Days that the pattern takes and no month has, such as 31 February, the reader refuses.
    static let dateOfPage = TextRule.ofPage(
        "a date such as \"2026-11-02\"",
        pattern: "^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
    ) { CalendarDate($0) != nil }

    static let typeIDOfPage = TextRule.ofPage(
        "a type's id", pattern: "^[a-z0-9][a-z0-9_]*(\\.[a-z0-9][a-z0-9_]*)*$",
        byteCountMax: 128
    ) { text in
        text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy {
            $0.first?.isOneOf("_") == false
                && $0.allSatisfy { $0.isLowercaseLetter || $0.isDigit || $0.isOneOf("_") }
        }
    }

    /// Names that the page's author gives to things, such as a caller's; the reader takes every text of the length.
    static let nameOfPage = TextRule.ofPage(
        "a name of small letters, digits, `_` and `-`", pattern: "^[a-z][a-z0-9_-]*$",
        byteCountMax: 128
    ) { text in
        text.utf8.first?.isLowercaseLetter == true
            && text.utf8.allSatisfy { $0.isLowercaseLetter || $0.isDigit || $0.isOneOf("_-") }
    }

    /// A language with its subtags, as far as the beginning of RFC 5646 goes; the reader takes every text.
    static let localeOfPage = TextRule.ofPage(
        "a locale such as \"nb\"", pattern: "^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$"
    ) { text in
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return (2...3).contains(parts[0].count) && parts[0].allSatisfy(\.isLowercaseLetter)
            && parts.dropFirst().allSatisfy { (2...8).contains($0.count) && $0.allSatisfy(\.isAlphanumeric) }
    }

    /// Days that the pattern takes and no month has, such as 31 February, the reader refuses.
    static let momentOfPage = TextRule.ofPage(
        "a moment such as \"2026-11-10T12:00:00Z\"",
        pattern:
            "^(19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    ) { Instant(rfc3339: $0) != nil }

    static let paramOfPage = TextRule.ofPage(
        "a param's name of letters, digits and `_`", pattern: "^[A-Za-z][A-Za-z0-9_]{0,63}$",
        byteCountMax: 64
    ) { NotificationType.isParamName($0) }

    static let schemeOfPage = TextRule.ofPage(
        "an app's scheme", pattern: "^[a-z][a-z0-9+.-]{0,63}$", byteCountMax: 64
    ) { LinkPrefix(inApp: "\($0)://") != nil }

    static let webPlaceOfPage = TextRule.ofPage(
        "a place on the web", pattern: "^https://", byteCountMax: LinkPrefix.byteCountMax
    ) { LinkPrefix(onWeb: $0) != nil }

    /// A file of a bundle, relative to its folder.
    static let pathOfPage = TextRule.ofPage(
        "the path of a page or a notice",
        pattern: "^([A-Za-z0-9_.-]+/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*\\.(yaml|txt)$", byteCountMax: 256
    ) { text in
        let steps = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return [".yaml", ".txt"].contains { text.hasSuffix($0) && steps.last!.count > $0.utf8.count }
            && steps.last!.first != UInt8(ascii: ".")
            && steps.allSatisfy {
                !$0.isEmpty && $0.allSatisfy { $0.isAlphanumeric || $0.isOneOf("_.-") }
            }
    }

    static let callingCodeOfPage = TextRule.ofPage(
        "the beginning of a telephone number such as \"+1\"", pattern: "^\\+[0-9]{1,7}$"
    ) { SendingHours.isCallingCode($0) }

    static let regionOfPage = TextRule.ofPage(
        "an ISO 3166 code", pattern: "^[A-Z]{2}(-[A-Z0-9]{1,3})?$"
    ) { RegionCode($0) != nil }
}

extension Shape {
    static let typeIDOfPage = Shape.named("type_id", .text(.typeIDOfPage))

    static let dateOfPage = Shape.named(
        "date", .text(.dateOfPage), means: "A day between double quotes, e.g. \"2026-11-02\".")

    static let timeOfPage = Shape.named(
        "time",
        .text(
            .ofPage("a time such as \"08:00\"", pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$") {
                CalendarDate.minutes(ofDay: $0) != nil
            }),
        means: "A time of day between double quotes, e.g. \"08:00\".")

    static let regionOfPage = Shape.named(
        "region", .text(.regionOfPage),
        means: "ISO 3166-1 alpha-2, or ISO 3166-2 where a country is not enough.")
}
