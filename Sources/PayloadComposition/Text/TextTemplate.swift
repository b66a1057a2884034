package import GateVocabulary

/// The value of one param, of the kind its type declares.
package enum ParamValue: Hashable, Sendable {
    /// Free text, ids, countries and links. Cleaned by ``PlainText`` when it is shown.
    case text(String)
    /// Free text of several lines, each cleaned alone.
    case paragraphs(String)
    case integer(Int64)
    /// In the smallest unit of an ISO 4217 currency.
    case money(minor: Int64, currency: String)
    case moment(Instant)
    /// Amounts of different currencies, written one after the other.
    case totals([Amount])

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
package struct ParamValues: Sendable {
    package var values: [(name: String, value: ParamValue)]
    package var language: LanguageTag
    /// For moments; `nil` prints them in UTC.
    package var utcOffsetSeconds: Int?

    package init(
        _ values: [(name: String, value: ParamValue)], in language: LanguageTag, utcOffsetSeconds: Int? = nil
    ) {
        self.values = values
        self.language = language
        self.utcOffsetSeconds = utcOffsetSeconds
    }

    package subscript(name: String) -> ParamValue? { values.first { $0.name == name }?.value }

    /// - Returns: Empty for a param that is optional and absent.
    func text(_ name: String) throws(CompositionError) -> String {
        switch self[name] {
        case .text(let text): return PlainText.line(text)
        case .paragraphs(let text):
            return text.split(separator: "\n", omittingEmptySubsequences: false)
                .map { PlainText.line(String($0)) }.joined(separator: "\n")
        case .integer(let number): return NumberConventions(language).text(number)
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
}

extension ParamValues {
    private func text(_ minor: Int64, _ currency: String) throws(CompositionError) -> String {
        guard let text = MoneyText.text(minor: minor, currency: currency, in: language) else {
            throw .unknownCurrency(currency)
        }
        return text
    }
}

/// A text with places for params, e.g. `You sent {amount} to {recipient_name}.`
package struct TextTemplate: Hashable, Sendable {
    package enum Part: Hashable, Sendable {
        case text(String)
        case param(String)
    }

    package var parts: [Part]

    package init(_ parts: [Part]) {
        self.parts = parts
    }

    /// Fills the places. The template's own line breaks stay, and those of ``ParamValue/paragraphs(_:)``.
    func filled(with params: ParamValues) throws(CompositionError) -> String {
        if parts.count == 1, case .text(let text) = parts[0] { return text }
        var filled = ""
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

/// A text, or one text per plural category of an integer param.
package enum TextVariants: Hashable, Sendable {
    case always(TextTemplate)
    /// `.other` stands in for a category that has no text of its own.
    case counted(by: String, [PluralCategory: TextTemplate])

    func chosen(for params: ParamValues) throws(CompositionError) -> TextTemplate {
        switch self {
        case .always(let template): return template
        case .counted(let name, let forms):
            var category = PluralCategory.other
            if case .integer(let number) = params[name] {
                category = PluralCategory(of: number, in: params.language)
            }
            guard let template = forms[category] ?? forms[.other] else {
                throw .pluralWithoutOther(param: name)
            }
            return template
        }
    }

    package func filled(with params: ParamValues) throws(CompositionError) -> String {
        try chosen(for: params).filled(with: params)
    }
}

/// The texts of one type in one language, with places for params.
package struct TemplateTexts: Hashable, Sendable {
    package var title: TextVariants
    package var body: TextVariants
    package var publicTitle: TextVariants?
    package var publicBody: TextVariants?

    package init(
        title: TextVariants, body: TextVariants, publicTitle: TextVariants? = nil,
        publicBody: TextVariants? = nil
    ) {
        self.title = title
        self.body = body
        self.publicTitle = publicTitle
        self.publicBody = publicBody
    }

    package func filled(with params: ParamValues) throws(CompositionError) -> NotificationTexts {
        NotificationTexts(
            title: try title.filled(with: params), body: try body.filled(with: params),
            publicTitle: try publicTitle?.filled(with: params),
            publicBody: try publicBody?.filled(with: params))
    }
}

/// What a notification says, in one language, ready to be read.
package struct NotificationTexts: Hashable, Sendable {
    /// Always one line.
    package var title: String
    package var body: String
    /// What whoever sees the screen may see.
    package var publicTitle: String?
    package var publicBody: String?

    package init(title: String, body: String, publicTitle: String? = nil, publicBody: String? = nil) {
        // Titles become subjects, and a line break in a header is a second header.
        self.title = Self.oneLine(title)
        self.body = body
        self.publicTitle = publicTitle.map(Self.oneLine)
        self.publicBody = publicBody
    }

    private static func oneLine(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return text }
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
