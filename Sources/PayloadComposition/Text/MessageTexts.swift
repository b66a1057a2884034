import CanonicalJSON
package import GateVocabulary

/// The value of one param, of the kind its type declares.
package enum ParamValue: Hashable, Sendable {
    /// A text that somebody chose, of one or several lines.
    case text(CheckedText)
    /// An id, a code, a country, a link, or one of a list that the bundle has: its kind says which bytes it may have.
    case literal(String)
    case integer(Int64)
    /// In the smallest unit of an ISO 4217 currency.
    case money(minor: Int64, currency: String)
    case moment(Instant)
    /// Amounts of different currencies, written one after the other.
    case totals([Amount])

    /// An amount of money, in the smallest unit of an ISO 4217 currency.
    package struct Amount: Hashable, Sendable {
        package var minor: Int64
        package var currency: String

        package init(minor: Int64, currency: String) {
            self.minor = minor
            self.currency = currency
        }
    }
}

/// The params of one send, and what it takes to write them in the recipient's way.
///
/// A protocol, so that a send's are read as the kinds of its type where a text says them, and no list is made of them.
package protocol ParamValues {
    var language: LanguageTag { get }
    /// For moments; `nil` prints them in UTC.
    var utcOffsetSeconds: Int? { get }
    /// Whether numbers have the blanks and the minus sign of ASCII, as in a text message.
    var hasPlainNumbers: Bool { get }
    /// `nil` for a param that is optional and absent.
    subscript(name: String) -> ParamValue? { get }
}

extension ParamValues {
    /// - Returns: Empty for a param that is optional and absent.
    func text(_ name: String) throws(CompositionError) -> String {
        switch self[name] {
        case .text(let text): return text.isolated
        case .literal(let text): return text
        case .integer(let number): return plain(NumberConventions(language).text(number))
        case .money(let minor, let currency): return try text(minor, currency)
        case .totals(let amounts):
            var texts: [String] = []
            for amount in amounts { texts.append(try text(amount.minor, amount.currency)) }
            return texts.joined(separator: ", ")
        case .moment(let moment):
            return MomentText.text(moment, utcOffsetSeconds: utcOffsetSeconds, in: language)
        case nil: return ""
        }
    }

    private func text(_ minor: Int64, _ currency: String) throws(CompositionError) -> String {
        guard let text = MoneyText.text(minor: minor, currency: currency, in: language) else {
            throw .unknownCurrency(currency)
        }
        return plain(text)
    }

    /// A number that the gateway writes, with the characters that ``hasPlainNumbers`` asks for.
    private func plain(_ number: String) -> String {
        hasPlainNumbers ? SMSEncoding.plainNumber(number) : number
    }
}

extension MessageTemplate {
    /// Fills the places. The template's own line breaks stay, and those of paragraphs.
    func filled(with params: some ParamValues) throws(CompositionError) -> String {
        if parts.count == 1 {
            switch parts[0] {
            case .text(let text): return text
            case .param(let name): return try params.text(name)
            }
        }
        var filled = ""
        // At once as much as nearly every text takes.
        filled.reserveCapacity(
            parts.reduce(0) { byteCount, part in
                if case .text(let text) = part { byteCount + text.utf8.count } else { byteCount + 24 }
            })
        for part in parts {
            switch part {
            case .text(let text): filled += text
            case .param(let name):
                let text = try params.text(name)
                // An absent optional param must not leave two spaces behind: `from  today`.
                if text.isEmpty, filled.utf8.last == UInt8(ascii: " ") { filled.removeLast() }
                filled += text
            }
        }
        return filled
    }
}

extension MessageText {
    /// - Throws: ``CompositionError/pluralWithoutOther(param:)`` or ``CompositionError/noVariant``, which the check of a bundle
    ///   rules out.
    package func filled(with params: some ParamValues) throws(CompositionError) -> String {
        switch self {
        case .plain(let template): return try template.filled(with: params)
        case .plural(let name, let forms):
            var form = PluralForm.other
            if case .integer(let number) = params[name] {
                form = PluralForm(of: number, in: params.language)
            }
            guard let template = forms[form] ?? forms[.other] else {
                throw .pluralWithoutOther(param: name)
            }
            return try template.filled(with: params)
        case .variants:
            guard let text = chosen({ params[$0] != nil }) else { throw .noVariant }
            return try text.filled(with: params)
        }
    }
}

/// What a notification says, in one language, ready to be read.
package struct NotificationTexts: Sendable {
    /// Always one line.
    package let title: String
    package let body: String
    /// The texts for a locked screen.
    package let publicTitle: String?
    package let publicBody: String?

    package init(title: String, body: String, publicTitle: String? = nil, publicBody: String? = nil) {
        // Titles become subjects, and a line break in a header is a second header.
        self.title = Self.oneLine(title)
        self.body = body
        self.publicTitle = publicTitle.map(Self.oneLine)
        self.publicBody = publicBody
    }

    private static func oneLine(_ text: String) -> String {
        let isOneLine = CodeUnits.withBytes(text) { utf8 in
            var worst: UInt8 = 0
            // Without a branch in it, so that the compiler takes many bytes at once.
            for byte in utf8 { worst |= (byte < 0x20 ? 1 : 0) | (byte == 0x7F ? 1 : 0) }
            return worst == 0
        }
        if isOneLine { return text }
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
